"""Generalized category discovery as a scikit-learn estimator.

>>> from pnp_gcd import PNPDiscoverer
"""

import logging
from importlib.metadata import PackageNotFoundError, version

from pnp_gcd.discoverer import PNPDiscoverer
from pnp_gcd.embedder import ImageEmbedder
from pnp_gcd.inputs import pool
from pnp_gcd.spooling import spool

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until a program asks

try:
    __version__ = version("pnp-gcd")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["ImageEmbedder", "PNPDiscoverer", "__version__", "pool", "spool"]
