"""Search and validate category discovery with scikit-learn's own tools.

Knows arrays and labels: no torch.
"""

from pnp_gcd.inputs import pool
from pnp_gcd.model_selection.scoring import DiscoveryScorer, discovery_scorer
from pnp_gcd.model_selection.splitting import ClassHoldoutSplit, KeepUnlabelled
from pnp_gcd.model_selection.transduction import Transductive

__all__ = [
    "ClassHoldoutSplit",
    "DiscoveryScorer",
    "KeepUnlabelled",
    "Transductive",
    "discovery_scorer",
    "pool",
]
