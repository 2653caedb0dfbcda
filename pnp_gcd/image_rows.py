"""Images as a fit learns from them: activations of a frozen trunk, kept or computed anew.

Knows images, a backbone and where activations are kept: no labels, no losses, no epochs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pnp_gcd.activations import (
    ActivationStore,
    PictureLoader,
    digest_backbone,
    free_bytes,
    make_room,
    plan_views,
    run_trunk,
)
from pnp_gcd.augmentations import AugmentationKind
from pnp_gcd.encoders import ImageEncoder
from pnp_gcd.exceptions import BadImageError
from pnp_gcd.geometry import Geometry, unit_rows
from pnp_gcd.images import Images, list_bad
from pnp_gcd.rows import Copies, LearningPart, adapter_rate, find_copies
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.views import TwoViews, draw_pairs
from pnp_gcd.workers import ALONE, World

__all__ = ["ImageRows", "ImageSettings", "encode_images"]

# A pretrained block learns at this part of the rate of layers that start from nothing.
_TAIL_RATE = 0.2
# Images that go through a tail together; straight from a trunk, as many as go through that.
_BLOCK, _TRUNK_BLOCK = 128, 32

# Places of images, and their activations.
_Batch = tuple[NDArray[np.int64], Tensor]


@dataclass(frozen=True)
class ImageSettings:
    """How images are turned into activations.

    Attributes
    ----------
    augmentation : {"standard", "strong"}
    n_cached_views : int
        Drawn views of each image that are kept.
    cache_size : int
        Bytes that may be kept; 0 keeps nothing, and the trunk runs in every epoch.
    cache_dir : path or None
        Folder that outlives the fit; None for a temporary one.
    seed : int
        Of the drawn views.
    """

    augmentation: AugmentationKind = "standard"
    n_cached_views: int = 4
    cache_size: int = 4 * 2**30
    cache_dir: str | os.PathLike[str] | None = None
    seed: int = 0


class ImageRows:
    """Images and what the trunk made of them. See :class:`~pnp_gcd.rows.Rows`.

    Made by :meth:`prepare`, to be closed after use: ``with ImageRows.prepare(…) as rows``.
    """

    # Whether an image is the mean of its kept views, or its evaluation view alone; benchmarks compare both.
    is_averaged = True

    def __init__(
        self,
        images: Images,
        loader: PictureLoader,
        store: ActivationStore,
        places: NDArray[np.int64],
        world: World = ALONE,
    ) -> None:
        self.images, self.loader, self.store, self.places = images, loader, store, places
        self.world, self.owners = world, places % world.size
        self.bad: dict[int, str] = {}  # images that could not be read, and why

    @classmethod
    def prepare(
        cls,
        images: Images,
        loader: PictureLoader,
        settings: ImageSettings,
        *,
        may_skip: bool = False,
        world: World = ALONE,
        report: Callable[[str, dict[str, Any]], None] = lambda stage, row: None,
    ) -> ImageRows:
        """Run the trunk over every image: its evaluation view first, then as many drawn views as are kept.

        An image that cannot be read is an error, or with ``may_skip`` noted in :attr:`bad`. Of several
        workers, each runs the trunk over its own images, and keeps the activations of these.
        """
        if len(images) < world.size:
            raise ValueError(
                f"{len(images)} images for {world.size} workers: start no more than there are images."
            )
        world.note("while the images went through the backbone")
        store, n_kept = world.together(lambda: _open_store(images, loader, settings, world))
        rows = cls(images, loader, store, np.arange(len(images)), world)
        try:
            n_kept = min(world.gather(n_kept))
            world.together(lambda: rows._fill_all(n_kept, settings, may_skip, report))
            for rank, bad in enumerate(world.gather(store.bad)):
                rows.bad |= {rank + place * world.size: why for place, why in bad.items()}
            if may_skip and not n_kept:  # else the first view has told which images are bad
                rows.bad = {i: str(error) for i, error in images.find_bad(is_thorough=True).items()}
        except BaseException:
            store.close()
            raise
        return rows

    def _fill_all(
        self,
        n_views: int,
        settings: ImageSettings,
        may_skip: bool,
        report: Callable[[str, dict[str, Any]], None],
    ) -> None:
        """Run the trunk over this worker's images, once a view."""
        store = self.store
        if store.is_kept and settings.cache_dir is not None:
            needed = n_views * store.view_bytes
            make_room(settings.cache_dir, store.folder, settings.cache_size, needed)
        if store.bad and not may_skip:  # an earlier fit skipped them
            raise BadImageError("\n".join(store.bad.values()))
        for view in range(n_views):
            self._fill(view, n_views, may_skip, report)

    def _fill(
        self, view: int, n_views: int, may_skip: bool, report: Callable[[str, dict[str, Any]], None]
    ) -> None:
        backbone = self.loader.backbone
        own = np.arange(self.world.rank, len(self.images), self.world.size)

        def run(indices: NDArray[np.int64]) -> Any:
            return run_trunk(
                backbone, lambda i: self.loader.load(self.images, i, view), own[indices], is_padded=True
            )

        def tell(done: int, total: int) -> None:
            report("trunk", {"done": view * total + done, "total": n_views * total})

        self.store.fill(view, run, may_skip=may_skip, report=tell)

    def __len__(self) -> int:
        return len(self.places)

    def __enter__(self) -> ImageRows:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def take(self, indices: NDArray[np.int64]) -> ImageRows:
        """Return some of the images; the activations are shared."""
        return ImageRows(self.images, self.loader, self.store, self.places[indices], self.world)

    def find_copies(self) -> Copies:
        """Tell which images have the same activations in their evaluation view."""
        digests = np.empty((len(self.mine), 16), dtype=np.uint8)
        for places, activations in self.activations(0):
            flat = activations.flatten(1).numpy()
            for place, row in zip(places, flat, strict=True):
                digests[place] = np.frombuffer(
                    hashlib.blake2b(row.tobytes(), digest_size=16).digest(), np.uint8
                )
        return find_copies(self.world.join_rows(digests, self.owners))

    def describe(self) -> NDArray[np.float32]:
        """Return the backbone's own features, the mean of those of all views that are kept."""
        return self.encode(self.loader.backbone.tail, torch.device("cpu"))

    def fingerprint(self) -> str:
        """Return a digest of the images, of the backbone and of how many views are kept."""
        backbone = self.loader.backbone
        facts = [
            self.images.fingerprint(),
            digest_backbone(backbone),
            self.loader.augmentation,
            self.loader.seed,
        ]
        digest = hashlib.sha256(repr([*facts, self.store.n_views, backbone.device.type]).encode())
        digest.update(self.places.tobytes())
        for name, tensor in sorted(backbone.tail.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, network: nn.Module, device: torch.device) -> NDArray[np.float32]:
        """Return what a tail or an encoder makes of every image, in the mean over all views kept."""
        n_views = max(self.store.n_views, 1) if self.is_averaged else 1
        batches = (self._fill_up(batch, view) for view in range(n_views) for batch in self.activations(view))
        own = _average(network, batches, len(self.mine), n_views, device)
        return self.world.join_rows(own, self.owners)

    @property
    def mine(self) -> NDArray[np.int64]:
        """The places of the images that are this worker's, in the files of all."""
        return self.places[self.world.mine(self.owners)]

    def activations(self, view: int) -> Iterator[_Batch]:
        """Yield places and activations of one view of this worker's images, kept or computed."""
        mine, n_whole = self.mine, self._count_whole(view)
        if view < self.store.n_views:
            for first, end in ((0, n_whole), (n_whole, len(mine))):
                for start in range(first, end, _BLOCK):
                    places = np.arange(start, min(start + _BLOCK, end))
                    yield places, self.store.read(view, mine[places] // self.world.size)
            return
        for first, part in ((0, mine[:n_whole]), (n_whole, mine[n_whole:])):
            for places, activations, bad in run_trunk(
                self.loader.backbone,
                lambda i: self.loader.load(self.images, i, view),
                part,
                _TRUNK_BLOCK,
                is_padded=True,
            ):
                _refuse(bad)
                yield first + places, activations

    def _block(self, view: int) -> int:
        """Return how many images of a view go through a tail together."""
        return _BLOCK if view < self.store.n_views else _TRUNK_BLOCK

    def _count_whole(self, view: int) -> int:
        """Return how many of this worker's images one process would see in blocks that are full."""
        if self.world.size == 1:
            return len(self)
        n_whole = len(self) - len(self) % self._block(view)
        return int((self.owners[:n_whole] == self.world.rank).sum())

    def _fill_up(self, batch: _Batch, view: int) -> _Batch:
        """Give a worker's batch the shape that one process gives it: at another, it is rounded differently.

        Features from which the geometry is chosen are then equal to the last bit; the signs of its axes,
        which are anybody's choice, would else differ now and then.
        """
        places, activations = batch
        if self.world.size == 1:
            return batch
        is_whole = places[0] < self._count_whole(view)
        shape = self._block(view) if is_whole else len(self) % self._block(view)
        blank = activations.new_zeros((shape - len(places), *activations.shape[1:]))
        return places, torch.cat([activations, blank])

    def place(
        self, geometry: Geometry, settings: TrainingSettings, generator: torch.Generator
    ) -> ImageSource:
        """Return the images in a geometry, ready for training."""
        return ImageSource(self, geometry, settings, generator)

    def encode_in_blocks(self, geometry: Geometry, encoder: nn.Module) -> Iterator[NDArray[np.float32]]:
        """Yield unit features of all images, in their order, by an encoder that has learnt from some."""
        device = self.loader.backbone.device
        yield unit_rows(self.encode(encoder.to(device), device))
        encoder.cpu()


def _open_store(
    images: Images, loader: PictureLoader, settings: ImageSettings, world: World
) -> tuple[ActivationStore, int]:
    """Return where this worker's activations go, and how many views fit."""
    backbone = loader.backbone
    sample = backbone.activate(torch.zeros(1, 3, backbone.size, backbone.size))[0].numpy()
    n_own = len(range(world.rank, len(images), world.size))
    # Workers on one machine share its disk.
    allowed = settings.cache_size and min(settings.cache_size, free_bytes(settings.cache_dir))
    n_kept = plan_views(n_own * sample.nbytes, settings.n_cached_views, allowed // world.n_local)
    fingerprint = ""
    if settings.cache_dir is not None and n_kept:
        facts = f"{images.fingerprint()}|{digest_backbone(backbone)}|{loader.augmentation}|{loader.seed}"
        if world.size > 1:
            facts += f"|{world.rank} of {world.size}"
        fingerprint = hashlib.sha256(facts.encode()).hexdigest()
    folder = settings.cache_dir if n_kept else None
    return ActivationStore.open(folder, fingerprint, n_own, sample.shape, sample.dtype), n_kept


def _average(
    network: nn.Module, batches: Iterable[_Batch], n_images: int, n_views: int, device: torch.device
) -> NDArray[np.float32]:
    """Return what a network makes of ``n_views`` views of images, in the mean."""
    total = np.empty((0, 0), dtype=np.float32)
    with torch.inference_mode():
        for places, activations in batches:
            out = network(activations.to(device))[: len(places)].float().cpu().numpy()
            if not len(total):
                total = np.zeros((n_images, out.shape[1]), dtype=np.float32)
            total[places] += out / n_views
    return total


def _refuse(bad: dict[int, BadImageError]) -> None:
    if bad:
        raise BadImageError(list_bad(bad))


class ImageSource:
    """Images in the geometry of a fit; the backbone's tail learns. See :class:`~pnp_gcd.rows.Source`."""

    def __init__(
        self, rows: ImageRows, geometry: Geometry, settings: TrainingSettings, generator: torch.Generator
    ) -> None:
        self.rows, self.geometry, self.generator = rows, geometry, generator
        self.hidden_width = settings.hidden_width
        self.device = rows.loader.backbone.device
        self.n_drawn = 0
        self.world, self.owners = rows.world, rows.owners
        with torch.random.fork_rng(devices=[]):  # an adapter draws its start, which is not used here
            self.start = self.encode(self.make_encoder().to(self.device))

    def make_encoder(self) -> nn.Module:
        """Return the tail, the geometry and an adapter that starts as the identity."""
        return ImageEncoder(self.rows.loader.backbone.tail, self.geometry, self.hidden_width).eval()

    def learning_parts(self, encoder: nn.Module) -> list[LearningPart]:
        """Return the tail, which was trained before and learns slowly, and the adapter."""
        assert isinstance(encoder, ImageEncoder)
        return [
            LearningPart(encoder.tail, _TAIL_RATE),
            LearningPart(encoder.adapter, adapter_rate(len(self.geometry.scaling))),
        ]

    def take(self, indices: Tensor) -> TwoViews:
        """Return activations of two drawn views of each image: kept ones, or new ones."""
        n_kept = self.rows.store.n_views - 1
        batch = indices.numpy()
        mine = self.world.mine(self.owners[batch])
        places = self.rows.places[batch][mine]
        if n_kept < 2:
            self.n_drawn += 1
            return TwoViews(*(self._draw(places, view) for view in (1, 2)))
        drawn = draw_pairs(n_kept, len(indices), self.generator)
        read = self.rows.store.read_mixed
        own = places // self.world.size
        return TwoViews(*(read(1 + views.numpy()[mine], own).to(self.device) for views in drawn))

    def _draw(self, places: NDArray[np.int64], view: int) -> Tensor:
        loader, images, draw = self.rows.loader, self.rows.images, self.n_drawn
        parts = [torch.empty((0, *self.rows.store.shape), dtype=loader.backbone.dtype)]
        for _, activations, bad in run_trunk(
            loader.backbone, lambda i: loader.load(images, i, view, draw=draw), places
        ):
            _refuse(bad)
            parts.append(activations)
        return torch.cat(parts).to(self.device)

    def encode(self, encoder: nn.Module) -> NDArray[np.float32]:
        """Return unit features of all images, in the mean over all views kept."""
        return unit_rows(self.rows.encode(encoder, self.device))


def encode_images(
    network: nn.Module,
    loader: PictureLoader,
    images: Images,
    *,
    n_views: int = 0,
    batch_size: int = 32,
    report: Callable[[str, dict[str, Any]], None] = lambda stage, row: None,
) -> tuple[NDArray[np.float32], dict[int, BadImageError]]:
    """Return what a network makes of images outside a fit, and images that could not be read.

    Parameters
    ----------
    network : nn.Module
        Activations to features.
    loader : PictureLoader
    images : Images
    n_views : int
        Drawn views, the same for every image, over which to take the mean with the evaluation view.
    batch_size : int
    report : callable
        Told ``("trunk", {"done": …, "total": …})``.
    """
    failed: dict[int, BadImageError] = {}
    n_images = len(images)

    def run(view: int) -> Iterator[_Batch]:
        def load(index: int) -> Tensor:
            return loader.load_common(images, index, view)

        for places, activations, bad in run_trunk(loader.backbone, load, np.arange(n_images), batch_size):
            failed.update(bad)
            yield places, activations
            done = view * n_images + int(places[-1]) + 1
            report("trunk", {"done": done, "total": (1 + n_views) * n_images})

    batches = (batch for view in range(1 + n_views) for batch in run(view))
    return _average(network, batches, n_images, 1 + n_views, loader.backbone.device), failed
