"""One page that shows what a fitted model found, and the file in which a person names it.

Knows a fitted estimator's public face: no torch, no training, no network.
"""

from pnp_gcd.report.names import NamesFile, read_names
from pnp_gcd.report.writing import write_report

__all__ = ["NamesFile", "read_names", "write_report"]
