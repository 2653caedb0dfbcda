"""Tell a user when a fit went wrong, or may have: a named warning for each, with what to do.

Knows what a fit found and what it was told: no rows, no torch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._warn import warn_user
from pnp_gcd.calibration import Calibration, find_edge
from pnp_gcd.exceptions import (
    CalibrationEdgeWarning,
    CollapseWarning,
    DivergenceWarning,
    NoNovelClassWarning,
)
from pnp_gcd.labelling import Labelling
from pnp_gcd.settings import TrainingSettings

__all__ = ["warn_of_divergence", "warn_of_result"]

# Unlabelled rows below which one class for all of them, or no new one, is no surprise.
_FEWEST_ROWS = 20


def warn_of_divergence(error: ArithmeticError, n_epochs: int, settings: TrainingSettings) -> None:
    """Say that training ended early, and with what."""
    warn_user(
        f"Training ended after {n_epochs} of max_iter={settings.max_iter} epochs: {error}. The model is as "
        f"it was then. Lower learning_rate={settings.learning_rate:g}, or raise a temperature far below its "
        "default.",
        DivergenceWarning,
    )


def warn_of_result(
    row_classes: NDArray[np.int64],
    codes: NDArray[np.int64],
    labelling: Labelling,
    calibration: Calibration,
    settings: TrainingSettings,
) -> None:
    """Look at what was found, and warn of what is seldom meant.

    Parameters
    ----------
    row_classes, codes : ndarray of shape (n,)
        Classes found, and known-class codes with −1 for unlabelled rows.
    labelling : Labelling
    calibration : Calibration
    settings : TrainingSettings
    """
    unlabelled = row_classes[codes < 0]
    if len(unlabelled) >= _FEWEST_ROWS and settings.n_clusters is None:
        has_new = labelling.n_classes > labelling.n_known
        if labelling.n_known != 1 and (unlabelled == unlabelled[0]).all():
            warn_user(
                f"All {len(unlabelled)} unlabelled rows were put into one class. If they hold more, pass "
                "n_clusters, a lower resolution or fewer n_neighbors, or features that tell "
                "classes apart better.",
                CollapseWarning,
            )
        elif labelling.n_known and not has_new:
            warn_user(
                f"No new class was found among {len(unlabelled)} unlabelled rows: all went to the "
                f"{labelling.n_known} known ones. If there are others, pass n_clusters, or label more rows, "
                "of more classes. If not, all is well: ignore NoNovelClassWarning.",
                NoNovelClassWarning,
            )
    edge = find_edge(calibration)
    if edge is not None:
        chosen = calibration.graph.n_neighbors
        beyond = chosen * 3 // 2 if edge == "largest" else max(2, chosen // 2)
        warn_user(
            f"n_neighbors={chosen} was chosen, the {edge} number that is tried, and did better than the one "
            f"before it: one beyond may do better still. Compare with n_neighbors={beyond}; calibration_ "
            "shows what was tried.",
            CalibrationEdgeWarning,
        )
