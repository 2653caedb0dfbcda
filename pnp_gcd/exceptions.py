"""Named errors and warnings, so that callers can catch exactly what they mean.

Knows nothing else of the package.
"""

__all__ = [
    "DiscoveryWarning",
    "EmptyGraphError",
    "FeatureScaleWarning",
    "LabelWarning",
]


class DiscoveryWarning(UserWarning):
    """Base of every warning this package raises."""


class FeatureScaleWarning(DiscoveryWarning):
    """The pool's features are on another scale than the labelled ones."""


class LabelWarning(DiscoveryWarning):
    """Labels were read in a way that the caller may not have meant."""


class EmptyGraphError(ValueError):
    """No pair of rows is similar enough to be an edge of the neighbour graph."""
