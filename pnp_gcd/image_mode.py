"""Images in, features out: what an estimator needs around a backbone.

Knows parameters of estimators by their names, images and a backbone: no labels, no training.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pnp_gcd._progress import ProgressLine
from pnp_gcd.activations import PictureLoader, digest_backbone
from pnp_gcd.augmentations import Augmentation
from pnp_gcd.backbones import Backbone, choose_device, load_backbone
from pnp_gcd.exceptions import BadImageError, BadImageWarning
from pnp_gcd.geometry import unit_rows
from pnp_gcd.image_rows import ImageRows, ImageSettings, encode_images
from pnp_gcd.images import Images, list_bad, read_images
from pnp_gcd.workers import ALONE, World

__all__ = ["ImageMode", "parse_size"]

# Networks move to a GPU and back: of threads that ask at once, one after the other does so.
_elsewhere = threading.Lock()
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_size(size: int | str, name: str = "cache_size") -> int:
    """Return bytes: a number, or a string like "500MB".

    Examples
    --------
    >>> parse_size("1.5GB") // 2**20
    1536
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)B?\s*", size.upper())
        if match is None:
            raise ValueError(f'{name}={size!r} is no size. Pass bytes, or a string like "500MB" or "4GB".')
        return int(float(match[1]) * _UNITS[match[2]])
    return int(size)


@dataclass
class ImageMode:
    """A backbone and how images go through it, in a fit and after it.

    Attributes
    ----------
    backbone : Backbone
    settings : ImageSettings
    on_bad_image : {"error", "skip"}
    device : str
        As asked for; a model may be loaded on another machine.
    n_views : int
        Drawn views over which new images are averaged.
    batch_size : int
        New images that go through the trunk together.
    """

    backbone: Backbone
    settings: ImageSettings
    on_bad_image: str
    device: str
    n_views: int
    batch_size: int = 32

    @classmethod
    def from_parameters(cls, estimator: Any, *, seed: int, world: World = ALONE) -> ImageMode:
        """Load the backbone that an estimator's parameters name."""
        settings = ImageSettings(
            augmentation=estimator.augmentation,
            n_cached_views=int(estimator.n_cached_views),
            cache_size=parse_size(estimator.cache_size),
            cache_dir=estimator.cache_dir,
            seed=seed,
        )
        backbone = load_backbone(
            estimator.backbone,
            weights=estimator.backbone_weights,
            image_size=estimator.image_size,
            n_trainable_blocks=int(estimator.n_trainable_blocks),
            device=world.choose_device(estimator.device),
            seed=seed,
        )
        return cls(backbone, settings, estimator.on_bad_image, estimator.device, 0)

    @classmethod
    def for_features(cls, estimator: Any) -> ImageMode:
        """Load the backbone that a transformer's parameters name, all of it as a trunk."""
        backbone = load_backbone(
            estimator.backbone,
            weights=estimator.backbone_weights,
            image_size=estimator.image_size,
            n_trainable_blocks=0,
            device=estimator.device,
        )
        return cls(
            backbone,
            ImageSettings(),
            estimator.on_bad_image,
            estimator.device,
            int(estimator.n_views),
            int(estimator.batch_size),
        )

    @property
    def n_features(self) -> int:
        """Columns of the backbone's features."""
        blank = torch.zeros(1, 3, self.backbone.size, self.backbone.size)
        return int(self.backbone.tail(self.backbone.activate(blank)).shape[1])

    def digest(self) -> str:
        """Return what features depend on besides the images, as a digest."""
        return f"{digest_backbone(self.backbone)}-{self.loader.augmentation}-{self.settings.seed}"

    @property
    def loader(self) -> PictureLoader:
        """How images are read."""
        augmentation = Augmentation(
            self.backbone.size, self.settings.augmentation, self.backbone.interpolation
        )
        return PictureLoader(self.backbone, augmentation, self.settings.seed)

    def prepare(
        self,
        images: Images,
        *,
        world: World = ALONE,
        report: Callable[[str, dict[str, Any]], None] = lambda stage, row: None,
    ) -> ImageRows:
        """Run the trunk over the images of a fit; what cannot be read is told at once where it may not be."""
        if world.size > 1:
            world.agree({"images": images.fingerprint(), "backbone": self.digest()})
        if self.on_bad_image == "error":
            bad = images.find_bad()
            if bad:
                raise BadImageError(
                    f'{list_bad(bad)}\nMend or remove what cannot be read, or pass on_bad_image="skip".'
                )
        rows = ImageRows.prepare(
            images,
            self.loader,
            self.settings,
            may_skip=self.on_bad_image == "skip",
            world=world,
            report=report,
        )
        self.n_views = max(rows.store.n_views - 1, 0)
        return rows

    def tell_read(self, rows: ImageRows) -> NDArray[np.bool_]:
        """Return which images could be read, and warn of the others."""
        is_read = np.ones(len(rows), dtype=bool)
        is_read[list(rows.bad)] = False
        self._warn({index: BadImageError(why) for index, why in rows.bad.items()}, len(rows))
        return is_read

    def encode(self, encoder: nn.Module, X: Any, estimator: Any) -> NDArray[np.float32]:
        """Return unit features of new images; NaN where one was skipped.

        Where they are computed, and what is done about bad images, the estimator's parameters say as they
        are now: a model may have been loaded on another machine.
        """
        self.on_bad_image, self.device = estimator.on_bad_image, estimator.device
        images = read_images(X)
        features, bad = self.run(encoder, images, verbose=estimator.verbose)
        self.judge(bad, len(images))
        features = unit_rows(features)
        features[list(bad)] = np.nan
        return features

    def run(
        self, network: nn.Module, images: Images, *, verbose: int = 0
    ) -> tuple[NDArray[np.float32], dict[int, BadImageError]]:
        """Return what a network on the trunk makes of new images, and images that cannot be read."""
        device = choose_device(self.device)
        progress = ProgressLine(verbose, 1)
        with nullcontext() if device.type == "cpu" else _elsewhere:
            self.backbone.to(device)
            try:
                return encode_images(
                    network.to(device),
                    self.loader,
                    images,
                    n_views=self.n_views,
                    batch_size=self.batch_size,
                    report=progress.show,
                )
            finally:
                network.cpu()  # a pickle then loads where there is no GPU
                progress.close()

    def judge(self, bad: dict[int, BadImageError], n_images: int) -> None:
        """Raise or warn about images that cannot be read."""
        if bad and self.on_bad_image == "error":
            raise BadImageError(f'{list_bad(bad)}\nMend or remove it, or pass on_bad_image="skip".')
        self._warn(bad, n_images)

    def _warn(self, bad: dict[int, BadImageError], n_images: int) -> None:
        if bad:
            warnings.warn(
                f"{len(bad)} of {n_images} images cannot be read and are left out:\n{list_bad(bad)}",
                BadImageWarning,
                stacklevel=6,  # where fit, predict or transform was called
            )
