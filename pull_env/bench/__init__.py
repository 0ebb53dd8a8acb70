"""Speed and memory on this machine: customers and env steps per second, start-up time, bytes per server.

`python -m pull_env bench` runs it, from a checkout: wheels do not contain this folder. All numbers are of one
machine at one moment: compare them within a run only.
"""
