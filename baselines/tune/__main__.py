"""`python -m baselines.tune`."""

import sys

from baselines.tune.run import main

if __name__ == "__main__":
    sys.exit(main())
