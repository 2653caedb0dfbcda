"""Tools to use category discovery inside scikit-learn workflows.

Knows arrays and labels: no torch.
"""

from pnp_gcd.inputs import pool

__all__ = ["pool"]
