"""Look at what was discovered: displays in the way of scikit-learn's.

Needs matplotlib, which the extra ``plots`` installs and which is imported when something is drawn.
"""

from pnp_gcd.plotting.biases import PredictionBiasDisplay
from pnp_gcd.plotting.calibrations import CalibrationTableDisplay
from pnp_gcd.plotting.histories import TrainingHistoryDisplay
from pnp_gcd.plotting.maps import DiscoveryMapDisplay
from pnp_gcd.plotting.novelty import NoveltyHistogramDisplay
from pnp_gcd.plotting.sizes import ClassSizesDisplay

__all__ = [
    "CalibrationTableDisplay",
    "ClassSizesDisplay",
    "DiscoveryMapDisplay",
    "NoveltyHistogramDisplay",
    "PredictionBiasDisplay",
    "TrainingHistoryDisplay",
]
