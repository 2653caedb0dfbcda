"""Random changes of a picture that leave its class alone: crop, mirror, colours.

Knows pictures and random numbers: no torch, no network, no labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Augmentation", "AugmentationKind"]

AugmentationKind = Literal["standard", "strong"]

# Tries of a random crop before the middle of the picture is taken.
_N_TRIES = 10


@dataclass(frozen=True)
class Augmentation:
    """Draws a view of a picture.

    Parameters
    ----------
    size : int
        Height and width of the view.
    kind : {"standard", "strong"}
        "standard": a random resized crop, mirrored half of the times, brightness, contrast and saturation
        changed. "strong" crops smaller parts and also turns hues, drops colour and blurs.
    interpolation : str
        Of the resize: "bicubic", "bilinear", "nearest" or "lanczos".
    """

    size: int
    kind: AugmentationKind = "standard"
    interpolation: str = "bicubic"

    def draw(self, picture: Image, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return one view (size, size, 3) of an RGB picture; the same ``rng`` state gives the same view."""
        from PIL import Image

        is_strong = self.kind == "strong"
        box = _draw_box(picture.width, picture.height, 0.14 if is_strong else 0.3, rng)
        resample = Image.Resampling[self.interpolation.upper()]
        # One call crops and resizes: pixels outside the box are never touched.
        view = picture.resize((self.size, self.size), resample, box=box)
        if rng.random() < 0.5:
            view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        view = _jitter_colours(view, rng)
        if is_strong:
            view = _disturb(view, rng)
        return np.array(view)  # a copy, which may be written to


def _draw_box(
    width: int, height: int, least_area: float, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return a box of at least a share ``least_area`` of the picture, of sides 3:4 to 4:3."""
    for _ in range(_N_TRIES):
        area = width * height * rng.uniform(least_area, 1.0)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        wide, high = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if wide <= width and high <= height:
            break
    else:  # a panorama holds no such box
        wide = high = min(width, height)
    left, top = rng.uniform(0, width - wide), rng.uniform(0, height - high)
    # The sum may round to a hair outside.
    return left, top, min(left + wide, width), min(top + high, height)


def _jitter_colours(view: Image, rng: np.random.Generator) -> Image:
    """Change brightness, contrast and saturation by up to 40 %, in a random order."""
    from PIL import ImageEnhance

    enhancers: list[Callable[[Image], ImageEnhance._Enhance]] = [
        ImageEnhance.Brightness,
        ImageEnhance.Contrast,
        ImageEnhance.Color,
    ]
    for chosen in rng.permutation(len(enhancers)):
        view = enhancers[chosen](view).enhance(rng.uniform(0.6, 1.4))
    return view


def _disturb(view: Image, rng: np.random.Generator) -> Image:
    """Turn hues by up to a tenth of the circle, drop colour one time in five, blur every other time."""
    from PIL import Image, ImageFilter, ImageOps

    hue, saturation, value = view.convert("HSV").split()
    shift = round(rng.uniform(-0.1, 0.1) * 255)
    view = Image.merge("HSV", (hue.point(lambda h: (h + shift) % 256), saturation, value)).convert("RGB")
    if rng.random() < 0.2:
        view = ImageOps.grayscale(view).convert("RGB")
    if rng.random() < 0.5:
        view = view.filter(ImageFilter.GaussianBlur(rng.uniform(0.1, 2.0)))
    return view
