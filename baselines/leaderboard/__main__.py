"""`python -m baselines.leaderboard`."""

import sys

from baselines.leaderboard.run import main

if __name__ == "__main__":
    sys.exit(main())
