"""Named errors and warnings, so that callers can catch exactly what they mean.

Knows nothing else of the package.
"""

__all__ = [
    "BackboneError",
    "BadImageError",
    "BadImageWarning",
    "CalibrationEdgeWarning",
    "CheckpointWarning",
    "CollapseWarning",
    "DiscoveryWarning",
    "DivergenceWarning",
    "EmptyGraphError",
    "FeatureScaleWarning",
    "LabelWarning",
    "ModelFileError",
    "NoNovelClassWarning",
    "WorkerLostError",
    "WorkerMismatchError",
    "WorkflowWarning",
]


class DiscoveryWarning(UserWarning):
    """Base of every warning this package raises."""


class BadImageWarning(DiscoveryWarning):
    """Images that could not be read were left out, because ``on_bad_image="skip"``."""


class CalibrationEdgeWarning(DiscoveryWarning):
    """The number of neighbours chosen is the smallest or largest tried; one beyond may be better."""


class CheckpointWarning(DiscoveryWarning):
    """A checkpoint is damaged, cannot be written or is in use; the fit goes on without it."""


class CollapseWarning(DiscoveryWarning):
    """All unlabelled rows were put into one class, though there could be several."""


class DivergenceWarning(DiscoveryWarning):
    """The loss or a weight was no longer finite; training ended with the last epoch before that."""


class FeatureScaleWarning(DiscoveryWarning):
    """The pool's features are on another scale than the labelled ones."""


class LabelWarning(DiscoveryWarning):
    """Labels were read in a way that the caller may not have meant."""


class NoNovelClassWarning(DiscoveryWarning):
    """No new class was found among the unlabelled rows."""


class WorkflowWarning(DiscoveryWarning):
    """A scikit-learn tool is about to do something else than was meant; the message says what to write."""


class EmptyGraphError(ValueError):
    """No pair of rows is similar enough to be an edge of the neighbour graph."""


class BadImageError(ValueError):
    """An image cannot be read, or is not one; the message names it."""


class BackboneError(ValueError):
    """A backbone, or the file of its weights, cannot be used as asked for."""


class ModelFileError(ValueError):
    """A saved model is damaged, forged, newer than this version, or refers to weights that are not there."""


class WorkerLostError(RuntimeError):
    """Another process of the same fit has ended; the message says where, and how to go on."""


class WorkerMismatchError(ValueError):
    """The processes of one fit were given different rows, labels or parameters."""
