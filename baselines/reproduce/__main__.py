"""`python -m baselines.reproduce`."""

import sys

from baselines.reproduce.run import main

if __name__ == "__main__":
    sys.exit(main())
