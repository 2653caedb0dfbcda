"""Run a frozen trunk over images, once per image and view, and keep what comes out on disk.

Activations lie in memory-mapped files of half precision, one a view, in a folder that is removed after the
fit, or in one of the user's, where a fit that was interrupted goes on. Knows images, views and a trunk: no
labels, no training.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pnp_gcd.atomic_files import LOCK, make_temporary_folder, sweep_temporary_folders, take_lock
from pnp_gcd.augmentations import Augmentation
from pnp_gcd.backbones import Backbone
from pnp_gcd.exceptions import BadImageError
from pnp_gcd.images import Images

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "ActivationStore",
    "PictureLoader",
    "digest_backbone",
    "free_bytes",
    "make_room",
    "plan_views",
    "run_trunk",
]

# Batches after which progress is written down.
_SAVED_EVERY = 8
_PROGRESS = "progress.json"
_PREFIX = "pnp_gcd_"
# Of folders that are removed after the fit, or by a later one if the process was killed.
_TEMPORARY = _PREFIX + "views-"
# Names of our folders in one of the user's: no other folder is ever removed.
_OURS = re.compile(_PREFIX + "[0-9a-f]{24}")
# Part of the free space of a disk that may be taken.
_FREE_PART = 0.9

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class PictureLoader:
    """Reads images as the pixels that a trunk wants.

    Parameters
    ----------
    backbone : Backbone
    augmentation : Augmentation
    seed : int
    """

    backbone: Backbone
    augmentation: Augmentation
    seed: int

    def load(self, images: Images, index: int, view: int, *, draw: int = 0) -> Tensor:
        """Return pixels (3, size, size) of an image; view 0 is the evaluation view, others are drawn.

        The same arguments give the same pixels; ``draw`` gives other ones in each epoch.
        """
        return self._see(images.open(index), view, (self.seed, draw, view, index))

    def load_common(self, images: Images, index: int, view: int) -> Tensor:
        """Return view ``view`` as above, drawn alike for every image: for images outside a fit."""
        return self._see(images.open(index), view, (self.seed, view))

    def _see(self, picture: Image, view: int, seed: tuple[int, ...]) -> Tensor:
        if view == 0:
            return self.backbone.crop(picture)
        drawn = self.augmentation.draw(picture, np.random.default_rng(seed))
        return self.backbone.normalise(drawn[None])[0]


def run_trunk(
    backbone: Backbone,
    load: Callable[[int], Tensor],
    indices: NDArray[np.int64],
    batch_size: int = 32,
    *,
    is_padded: bool = False,
) -> Iterator[tuple[NDArray[np.int64], Tensor, dict[int, BadImageError]]]:
    """Yield places in ``indices``, their activations, and images that could not be read.

    Threads read the next images while the trunk works on these. A bad image has activations of 0.
    ``is_padded`` fills the last batch up: at another shape the same image may be rounded differently.
    """
    blank = torch.zeros(3, backbone.size, backbone.size)

    def read(index: int) -> Tensor | BadImageError:
        try:
            return load(index)
        except BadImageError as error:
            return error

    starts = range(0, len(indices), batch_size)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as readers:
        waiting = [readers.submit(read, int(i)) for i in indices[:batch_size]]
        for start in starts:
            parts = [future.result() for future in waiting]
            waiting = [
                readers.submit(read, int(i)) for i in indices[start + batch_size : start + 2 * batch_size]
            ]
            bad = {start + k: part for k, part in enumerate(parts) if isinstance(part, BadImageError)}
            pixels = torch.stack([blank if isinstance(part, BadImageError) else part for part in parts])
            n_missing = batch_size - len(parts) if is_padded else 0
            if n_missing:
                pixels = torch.cat([pixels, blank.expand(n_missing, -1, -1, -1)])
            activations = backbone.activate(pixels)[: len(parts)]
            for place in bad:
                activations[place - start] = 0.0
            yield np.arange(start, start + len(parts)), activations, bad


def plan_views(n_bytes: int, n_views: int, cache_size: int) -> int:
    """Return how many views of ``n_bytes``, the evaluation view among them, fit into ``cache_size`` bytes.

    Fewer than two drawn views are of no use: the answer is then 1 at most, for the evaluation view.
    """
    fitting = min(n_views + 1, cache_size // max(n_bytes, 1))
    return fitting if fitting >= 3 else min(fitting, 1)


@dataclass
class ActivationStore:
    """Activations of images, by view.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    is_kept : bool
        Whether the folder outlives the fit.
    n_images : int
    shape : tuple of int
        Of the activations of one image.
    dtype : numpy.dtype

    Attributes
    ----------
    bad : dict of int to str
        Images that could not be read, and why.
    """

    folder: Path
    is_kept: bool
    n_images: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bad: dict[int, str] = field(default_factory=dict)
    _lock: Any = field(default=None, repr=False)
    _maps: dict[int, NDArray[Any]] = field(default_factory=dict, repr=False)
    _done: dict[int, int] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        cache_dir: str | os.PathLike[str] | None,
        fingerprint: str,
        n_images: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> ActivationStore:
        """Open a folder for these images: a new temporary one, or the one an earlier fit began.

        A folder that another fit is using just now is left to it.
        """
        if cache_dir is not None:
            folder = Path(cache_dir) / f"{_PREFIX}{fingerprint[:24]}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                lock = take_lock(folder / LOCK)
            except OSError as error:
                raise ValueError(
                    f'cache_dir="{cache_dir}" cannot be used: {error}. Pass a folder that can be written to.'
                ) from error
            if lock is not None:
                store = cls(folder, True, n_images, shape, dtype, _lock=lock)
                store._read_progress()
                return store
        sweep_temporary_folders(_TEMPORARY)
        folder, lock = make_temporary_folder(_TEMPORARY)
        return cls(folder, False, n_images, shape, dtype, _lock=lock)

    def _read_progress(self) -> None:
        try:
            saved = json.loads((self.folder / _PROGRESS).read_text())
            if saved["n_images"] == self.n_images and tuple(saved["shape"]) == self.shape:
                self._done = {int(view): int(n_rows) for view, n_rows in saved["done"].items()}
                self.bad = {int(index): str(why) for index, why in saved["bad"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._done, self.bad = {}, {}  # no notes, or damaged ones

    def _write_progress(self) -> None:
        saved = {"n_images": self.n_images, "shape": self.shape, "done": self._done, "bad": self.bad}
        part = self.folder / f"{_PROGRESS}.{os.getpid()}"
        part.write_text(json.dumps(saved))
        part.replace(self.folder / _PROGRESS)

    def fill(
        self,
        view: int,
        run: Callable[[NDArray[np.int64]], Any],
        *,
        may_skip: bool = False,
        report: Report = lambda done, total: None,
    ) -> None:
        """Run the trunk for the images of one view that are not there yet.

        Parameters
        ----------
        view : int
        run : callable
            Indices to what :func:`run_trunk` yields.
        may_skip : bool
            Note images that cannot be read, instead of raising at the first.
        report : callable
            Told images done and images in all.
        """
        path = self.folder / f"view_{view}.npy"
        start = self._done.get(view, 0) if self._is_whole(path) else 0
        rows = np.lib.format.open_memmap(path, "r+") if start else self._create(path)
        left = np.arange(start, self.n_images)
        for n_batches, (places, activations, bad) in enumerate(run(left), start=1):
            if bad and not may_skip:
                raise next(iter(bad.values()))
            rows[left[places]] = activations.numpy()
            self.bad |= {int(left[place]): str(error) for place, error in bad.items()}
            self._done[view] = int(left[places[-1]]) + 1
            if self.is_kept and n_batches % _SAVED_EVERY == 0:
                rows.flush()
                self._write_progress()
            report(self._done[view], self.n_images)
        rows.flush()
        if self.is_kept:
            self._write_progress()
        self._maps[view] = np.lib.format.open_memmap(path, "r")

    @property
    def view_bytes(self) -> int:
        """Bytes of the activations of one view."""
        return self.n_images * int(np.prod(self.shape)) * self.dtype.itemsize

    def _is_whole(self, path: Path) -> bool:
        """Tell whether a file is as long as it was made: one cut off would be read as zeros."""
        return path.exists() and path.stat().st_size >= self.view_bytes

    def _create(self, path: Path) -> np.memmap[Any, Any]:
        """Make a file with all its space taken: a disk that is full later on would end the process."""
        rows = np.lib.format.open_memmap(path, "w+", self.dtype, (self.n_images, *self.shape))
        if hasattr(os, "posix_fallocate"):
            try:
                with path.open("r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"{self.view_bytes} bytes for a view do not fit into {self.folder}: {error.strerror}. "
                    "Lower cache_size or n_cached_views, or pass a cache_dir on a larger disk",
                ) from error
        return rows

    def read(self, view: int, indices: NDArray[np.int64] | slice) -> Tensor:
        """Return activations (b, …) of one view."""
        return torch.from_numpy(np.ascontiguousarray(self._maps[view][indices]))

    def read_mixed(self, views: NDArray[np.int64], indices: NDArray[np.int64]) -> Tensor:
        """Return activations (b, …) of a view for each image."""
        out = np.empty((len(indices), *self.shape), dtype=self.dtype)
        for view in np.unique(views):
            chosen = views == view
            out[chosen] = self._maps[int(view)][indices[chosen]]
        return torch.from_numpy(out)

    @property
    def n_views(self) -> int:
        """Views that are there, the evaluation view among them."""
        return len(self._maps)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return sum(rows.nbytes for rows in self._maps.values())

    def close(self) -> None:
        """Let go of the files, and remove them unless they are kept."""
        self._maps.clear()
        if self._lock is not None:
            self._lock.close()
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def make_room(cache_dir: str | os.PathLike[str], kept: Path, cache_size: int, needed: int) -> None:
    """Remove the folders of earlier fits, oldest first, until those left and ``needed`` bytes fit.

    Folders that a fit is using just now stay.
    """
    others = [
        folder
        for folder in Path(cache_dir).iterdir()
        if _OURS.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink() and folder != kept
    ]
    sizes = {folder: sum(file.stat().st_size for file in folder.glob("*")) for folder in others}
    for folder in sorted(others, key=lambda folder: folder.stat().st_mtime):
        if sum(sizes.values()) + needed <= cache_size:
            break
        try:
            lock = take_lock(folder / LOCK)
        except OSError:  # it cannot be told whether somebody uses it
            continue
        if lock is None:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        del sizes[folder]


def free_bytes(cache_dir: str | os.PathLike[str] | None) -> int:
    """Return how many bytes may be kept on the disk of a folder, of one to be made that of its parent."""
    folder = Path(tempfile.gettempdir() if cache_dir is None else cache_dir).resolve()
    while not folder.exists():
        folder = folder.parent
    ours = sum(file.stat().st_size for file in folder.glob(f"{_PREFIX}*/*")) if cache_dir is not None else 0
    return int(_FREE_PART * shutil.disk_usage(folder).free) + ours


def digest_backbone(backbone: Backbone) -> str:
    """Return a digest of a trunk's weights and of how pictures come into it."""
    digest = hashlib.sha256(repr((backbone.name, backbone.size, backbone.mean, backbone.std)).encode())
    for name, tensor in sorted(backbone.trunk.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
