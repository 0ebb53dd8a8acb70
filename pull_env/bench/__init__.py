"""What this machine does in a second: customers and env steps, what a start costs, what a system takes.

`python -m pull_env bench` runs it. All numbers are of one machine at one moment: they compare within a run
only.
"""
