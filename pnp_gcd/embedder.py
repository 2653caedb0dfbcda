"""``ImageEmbedder``: a scikit-learn transformer from images to the features of a timm network.

Checks what comes in and calls one plain function. torch and timm are imported when they are first needed.
"""

from __future__ import annotations

import numbers
import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pnp_gcd._compat import Interval, ParameterHelpMixin, StrOptions, Tags
from pnp_gcd.exceptions import BadImageError

if TYPE_CHECKING:
    import joblib

    from pnp_gcd.image_mode import ImageMode
    from pnp_gcd.images import Images

__all__ = ["ImageEmbedder"]


class ImageEmbedder(ParameterHelpMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn images into feature vectors, for Pipelines.

    ``make_pipeline(ImageEmbedder(...), PNPDiscoverer())`` is an ordinary Pipeline on images. Nothing is
    learnt from them: to train the network too, give ``PNPDiscoverer`` the backbone.

    Parameters
    ----------
    backbone : str, default="vit_small_patch14_dinov2.lvd142m"
        Name of a timm network.
    backbone_weights : str, path or None, default="auto"
        "auto" downloads timm's weights; a path reads a file (.pth or .safetensors), of which nothing is
        executed; None leaves them random.
    image_size : int or None, default=None
        Height and width at which images enter the backbone; None takes its own.
    n_views : int, default=0
        Drawn views to average with the evaluation view: steadier features, each view takes as long again.
    batch_size : int, default=32
        Images that go through the network together.
    memory : None, str or object with the joblib.Memory interface, default=None
        Where features are kept, so that the same images are not embedded twice.
    on_bad_image : {"error", "skip"}, default="error"
        Images that cannot be read raise an error, or become rows of NaN with a warning.
    device : str, default="auto"
        "cuda", "mps", "cpu", or the first of them there is.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    n_features_out_ : int
        Columns of the features.

    See Also
    --------
    PNPDiscoverer : Its ``backbone`` trains the last block of the network as well.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd import ImageEmbedder
    >>> images = np.random.default_rng(0).integers(256, size=(3, 40, 40, 3), dtype=np.uint8)
    >>> ImageEmbedder("test_vit", backbone_weights=None, image_size=64).fit_transform(images).shape
    (3, 64)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "backbone": [str],
        "backbone_weights": [str, os.PathLike, None],
        "image_size": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "n_views": [Interval(numbers.Integral, 0, None, closed="left")],
        "batch_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "memory": "no_validation",
        "on_bad_image": [StrOptions({"error", "skip"})],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        backbone: str = "vit_small_patch14_dinov2.lvd142m",
        *,
        backbone_weights: str | os.PathLike[str] | None = "auto",
        image_size: int | None = None,
        n_views: int = 0,
        batch_size: int = 32,
        memory: str | joblib.Memory | None = None,
        on_bad_image: Literal["error", "skip"] = "error",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.backbone = backbone
        self.backbone_weights = backbone_weights
        self.image_size = image_size
        self.n_views = n_views
        self.batch_size = batch_size
        self.memory = memory
        self.on_bad_image = on_bad_image
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        tags.requires_fit = True
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None) -> ImageEmbedder:
        """Load the network; X is only looked at to see whether it holds images.

        Parameters
        ----------
        X : images
            An array of shape (n, height, width, 3), (n, 3, height, width) or (n, height, width); a list
            or column of file paths or PIL images; or a torch ``Dataset``.
        y : ignored

        Returns
        -------
        self : ImageEmbedder
        """
        self._validate_params()
        from pnp_gcd.image_mode import ImageMode
        from pnp_gcd.images import read_images

        read_images(X)
        self._image_mode: ImageMode = ImageMode.for_features(self)
        self.n_features_out_ = self._n_features_out = self._image_mode.n_features
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the network's features of images.

        Parameters
        ----------
        X : images
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_images, n_features_out_), float32
        """
        check_is_fitted(self)
        from sklearn.utils.validation import check_memory

        from pnp_gcd.images import read_images

        images, mode = read_images(X), self._image_mode
        mode.on_bad_image, mode.device = self.on_bad_image, self.device  # as they are now
        mode.n_views, mode.batch_size = int(self.n_views), int(self.batch_size)
        embed = check_memory(self.memory).cache(_embed, ignore=["mode", "images", "verbose"])
        # The memory knows images and network by their digests, and asks for neither itself.
        known_by = (images.fingerprint(), mode.digest()) if self.memory is not None else ("", "")
        features, bad = embed(known_by, mode.n_views, mode, images, self.verbose)
        mode.judge({place: BadImageError(why) for place, why in bad.items()}, len(images))
        out: NDArray[np.float32] = features
        return out


def _embed(
    known_by: tuple[str, str], n_views: int, mode: ImageMode, images: Images, verbose: int
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """Return features (n, d), rows of NaN for images that cannot be read, and why they cannot."""
    features, bad = mode.run(mode.backbone.tail, images, verbose=verbose)
    features[list(bad)] = np.nan
    return features, {place: str(error) for place, error in bad.items()}
