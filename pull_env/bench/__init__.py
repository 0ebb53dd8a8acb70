"""The benchmark: speed, start-up time and memory on this machine.

`python -m pull_env bench` runs it, from a checkout: wheels do not contain this folder. All numbers are of one
machine at one moment: compare them within a run only.
"""
