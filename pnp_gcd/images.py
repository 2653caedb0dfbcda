"""Images in any container, read one by one as RGB pictures.

Knows PIL and arrays: no network, no labels, no augmentation. PIL is imported when an image is read;
torch, pandas and polars are recognised, never imported.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import BadImageError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Images", "is_picture", "join_images", "list_bad", "read_images"]

_KINDS = (
    "an array of shape (n, height, width, 3), (n, 3, height, width) or (n, height, width); a sequence or "
    "column of file paths or PIL images; or a torch Dataset"
)
# Names of bad images that one message lists.
_N_LISTED = 5
# Readers that hand a file to another program: Ghostscript, or Windows' own for metafiles.
_NOT_READ = ("EPS", "WMF")
# Filters of warnings belong to the whole process: one thread at a time may change and restore them.
_filters = threading.Lock()
# A picture that PIL has opened and not yet read must not be read by two threads at once.
_pictures = threading.Lock()


class Images:
    """Pictures that are read when asked for, by their place.

    Parameters
    ----------
    sources : tuple of _Source
    places : ndarray of shape (n, 2)
        Source of each image, and its place there.
    """

    def __init__(self, sources: tuple[_Source, ...], places: NDArray[np.int64]) -> None:
        self._sources, self._places = sources, places

    def __len__(self) -> int:
        return len(self._places)

    def take(self, indices: NDArray[Any]) -> Images:
        """Return the images at ``indices`` (integers or a mask)."""
        return Images(self._sources, self._places[indices])

    def open(self, index: int) -> Image:
        """Read one image as an upright RGB picture; :class:`BadImageError` names one that cannot be read."""
        source, place = self._places[index]
        return self._sources[source].open(int(place))

    def name(self, index: int) -> str:
        """Return what a message calls the image: its file, or its place in its argument."""
        source, place = self._places[index]
        return self._sources[source].name(int(place))

    def find_bad(self, *, is_thorough: bool = False) -> dict[int, BadImageError]:
        """Return the images whose file is missing, no image or too large.

        Only headers are read; ``is_thorough`` reads the pixels too, and finds damaged ones.
        """
        bad = {}
        for index, (source, place) in enumerate(self._places):
            try:
                self._sources[source].check(int(place))
                if is_thorough:
                    self.open(index)
            except BadImageError as error:
                bad[index] = error
        return bad

    def fingerprint(self) -> str:
        """Return a digest by which these images are known again: of pixels, or of path, size and date."""
        digest = hashlib.sha256()
        for source, place in self._places:
            self._sources[source].feed(digest, int(place))
        return digest.hexdigest()


def list_bad(bad: dict[int, BadImageError]) -> str:
    """Return the first few messages about bad images, one a line."""
    lines = [str(error) for error in list(bad.values())[:_N_LISTED]]
    if len(bad) > _N_LISTED:
        lines.append(f"… and {len(bad) - _N_LISTED} more.")
    return "\n".join(lines)


def join_images(parts: Iterable[Images]) -> Images:
    """Return the images of several arguments as one, in their order."""
    sources: list[_Source] = []
    places = []
    for part in parts:
        places.append(part._places + np.array([len(sources), 0]))
        sources.extend(part._sources)
    return Images(tuple(sources), np.concatenate(places))


def read_images(X: Any, name: str = "X") -> Images:
    """Recognise images in whatever container they come.

    Parameters
    ----------
    X : array, sequence, column or Dataset
        Arrays of shape (n, height, width, 3), (n, 3, height, width) or (n, height, width), uint8 from 0
        to 255 or float from 0 to 1; file paths, PIL images, or arrays of one image each, of any sizes; a
        torch ``Dataset``, of whose items the first element counts.
    name : str
        What messages call the argument.

    Returns
    -------
    Images

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.images import read_images
    >>> images = read_images(np.zeros((2, 4, 6, 3), dtype=np.uint8))
    >>> len(images), images.open(0).size
    (2, (6, 4))
    """
    source: _Source
    array = _as_array(X)
    if array is not None and array.ndim >= 2 and not (array.ndim == 2 and array.shape[1] == 1):
        source = _ArraySource(_check_pixels(array, name), name)
    else:
        source = _ItemSource(_as_sequence(X if array is None else array.ravel(), name), name)
    if not len(source):
        raise ValueError(f"{name} holds no image. Pass at least one.")
    places = np.stack([np.zeros(len(source), dtype=np.int64), np.arange(len(source))], axis=1)
    return Images((source,), places)


def _as_array(X: Any) -> NDArray[Any] | None:
    """Return arrays, tensors and columns of data frames as an array; None for everything else."""
    if isinstance(X, np.ndarray):
        return X
    if hasattr(X, "detach") and hasattr(X, "cpu"):  # a torch tensor
        X = X.detach().cpu()
        return np.asarray((X.float() if "bfloat16" in str(X.dtype) else X).numpy())
    if hasattr(X, "to_numpy"):  # a column or a data frame
        return np.asarray(X.to_numpy())
    return None


def _as_sequence(X: Any, name: str) -> Any:
    if isinstance(X, dict | set | frozenset):
        raise TypeError(f"{name} is a {type(X).__name__}, not a sequence of images. Pass a list.")
    if isinstance(X, str | os.PathLike | bytes) or is_picture(X):
        raise TypeError(f"{name}={X!r} is one image, not a sequence. Pass a list of images: [image].")
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(
            f"{name} is a {type(X).__name__}, not a sequence of images. With backbone= set, pass {_KINDS}."
        )
    return X


def is_picture(item: Any) -> bool:
    """Tell a PIL image without importing PIL."""
    return hasattr(item, "convert") and hasattr(item, "getbands")


def _check_pixels(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return pixels as (n, height, width, 3) or (n, height, width) of uint8 or floats from 0 to 1."""
    if array.ndim == 4 and array.shape[3] == 3:
        pixels = array
    elif array.ndim == 4 and array.shape[1] == 3:
        pixels = np.moveaxis(array, 1, 3)
    elif array.ndim == 3:
        pixels = array
    else:
        raise ValueError(
            f"{name} has shape {array.shape}, which is none of images. With backbone= set, pass {_KINDS}; "
            "without backbone, rows of features."
        )
    if pixels.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: there is no pixel in it. Pass at least one image.")
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind != "f":
        raise ValueError(
            f"{name} has pixels of dtype {pixels.dtype}. Pass uint8 from 0 to 255 or floats from 0 to 1."
        )
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= 0.0 and high <= 1.0):  # also where one is not a number
        raise ValueError(
            f"{name} has float pixels from {low:g} to {high:g}, but they must lie from 0 to 1. Divide "
            "pixels from 0 to 255 by 255, and do not normalise them: the backbone's own transform does."
        )
    return pixels


class _Source(ABC):
    """Images of one argument of fit or predict."""

    name_of_argument: str

    @abstractmethod
    def __len__(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def open(self, place: int) -> Image:
        """Read one as an upright RGB picture."""

    def name(self, place: int) -> str:
        return f"image {place} of {self.name_of_argument}"

    def check(self, place: int) -> None:  # noqa: B027 - of pixels there is nothing more to tell
        """Raise what can be told without reading the pixels."""

    @abstractmethod
    def feed(self, digest: Any, place: int) -> None:
        """Tell a digest by what the image is known again."""


class _ArraySource(_Source):
    """Pixels of images that all have one size."""

    def __init__(self, pixels: NDArray[Any], name: str) -> None:
        self.pixels, self.name_of_argument = pixels, name

    def __len__(self) -> int:
        return len(self.pixels)

    def open(self, place: int) -> Image:
        return _to_picture(self.pixels[place])

    def feed(self, digest: Any, place: int) -> None:
        pixels = self.pixels[place]
        digest.update(f"{pixels.shape}|{pixels.dtype}\n".encode())
        digest.update(np.ascontiguousarray(pixels).tobytes())


class _ItemSource(_Source):
    """Images that come one by one: files, PIL images, arrays, items of a Dataset."""

    def __init__(self, items: Any, name: str) -> None:
        self.items, self.name_of_argument = items, name

    def __len__(self) -> int:
        return len(self.items)

    def _item(self, place: int) -> Any:
        try:
            item = self.items[place]
        except Exception as error:  # a Dataset may raise what it likes
            raise BadImageError(f"{super().name(place)} could not be got: {error!r}") from error
        return item[0] if isinstance(item, tuple) and item else item  # a Dataset's (image, label)

    def name(self, place: int) -> str:
        item = self.items[place] if isinstance(self.items, list | tuple | np.ndarray) else None
        return str(item) if isinstance(item, str | os.PathLike) else super().name(place)

    def check(self, place: int) -> None:
        # A Dataset makes its items, which may take as long as reading them.
        if not isinstance(self.items, list | tuple | np.ndarray):
            return
        item = self._item(place)
        if isinstance(item, str | os.PathLike):
            with _open_file(Path(item)):
                pass

    def open(self, place: int) -> Image:
        item = self._item(place)
        if isinstance(item, str | os.PathLike):
            with _open_file(Path(item)) as picture:
                return _upright_rgb(picture, str(item))
        name = super().name(place)
        if is_picture(item):
            with _pictures:
                return _upright_rgb(item, name)
        array = _as_array(item)
        if array is None or array.ndim not in (2, 3):
            raise BadImageError(
                f"{name} is {_describe(item)}, not an image. Pass a file path, a PIL image or an array of "
                "shape (height, width, 3), (3, height, width) or (height, width)."
            )
        try:
            return _to_picture(_check_pixels(array[None], name)[0])
        except ValueError as error:
            raise BadImageError(str(error)) from error

    def feed(self, digest: Any, place: int) -> None:
        try:
            item = self._item(place)
        except BadImageError:
            item = None
        if isinstance(item, str | os.PathLike):
            path = Path(item)
            facts = path.stat() if _is_there(path) else None
            digest.update(f"{path.resolve()}|{facts and (facts.st_size, facts.st_mtime_ns)}\n".encode())
            return
        try:
            picture = self.open(place)
        except BadImageError as error:  # told when it is read
            digest.update(str(error).encode())
        else:
            digest.update(f"{picture.size}\n".encode())
            digest.update(np.asarray(picture).tobytes())


def _describe(item: Any) -> str:
    if item is None or (isinstance(item, float) and np.isnan(item)):
        return f"missing ({item!r})"
    return f"a {type(item).__name__}"


def _to_picture(pixels: NDArray[Any]) -> Image:
    """Return checked pixels of one image as an RGB picture."""
    from PIL import Image

    if pixels.dtype != np.uint8:
        pixels = np.rint(pixels * 255.0).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


def _open_file(path: Path) -> Image:
    """Open an image file and look at its header; its pixels are not read yet."""
    from PIL import Image

    if not str(path) or str(path) == "." or not _is_there(path):
        raise BadImageError(f"{path} does not exist. Correct the path; it is taken from {Path.cwd()}.")
    if path.is_dir():
        raise BadImageError(f"{path} is a folder. Read one with pnp_gcd.datasets.read_image_folder.")
    if not path.is_file():  # a pipe would never end
        raise BadImageError(f"{path} is no plain file. Pass files of images.")
    try:
        with _filters, warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            Image.init()
            picture = Image.open(path, formats=[kind for kind in Image.ID if kind not in _NOT_READ])
    except Image.DecompressionBombError as error:
        raise BadImageError(_too_large(path)) from error
    except Exception as error:  # PIL's readers raise what they like on damaged files
        raise BadImageError(f"{path} cannot be read as an image: {error}") from error
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and picture.width * picture.height > limit:
        picture.close()
        raise BadImageError(_too_large(path))
    return picture


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long to be one
        return False


def _too_large(path: Path) -> str:
    from PIL import Image

    return (
        f"{path} has more than {Image.MAX_IMAGE_PIXELS:,} pixels, which may be an attack by a file that "
        "grows when it is read. Make it smaller, or raise PIL.Image.MAX_IMAGE_PIXELS if you trust it."
    )


def _upright_rgb(picture: Image, name: str) -> Image:
    """Read the pixels; turn the picture as its camera says, and convert it to 8-bit RGB."""
    from PIL import Image, ImageOps

    try:
        picture = ImageOps.exif_transpose(picture)
        if picture.mode.startswith("I;16"):
            picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
        if picture.mode in ("I", "F"):
            raise BadImageError(
                f"{name} has pixels of {picture.mode!r} mode, whose range is not known. Save it with 8 bits."
            )
        return picture.convert("RGB")
    except BadImageError:
        raise
    except Exception as error:  # PIL's readers raise what they like on damaged files
        raise BadImageError(f"{name} is damaged, its pixels cannot be read: {error}") from error
