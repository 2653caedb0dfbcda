"""``python -m pnp_gcd`` is the command ``pnp-gcd``."""

import sys

from pnp_gcd.cli import main

if __name__ == "__main__":
    sys.exit(main())
