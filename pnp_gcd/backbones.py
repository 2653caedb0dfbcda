"""timm networks, cut into a frozen trunk and a tail that can be trained.

The only door to timm. Knows networks and pictures: no labels, no prototypes, no losses.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from pnp_gcd.cutting import cut_network
from pnp_gcd.exceptions import BackboneError
from pnp_gcd.weights import check_weights_file, first_line, load_weights

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Backbone", "BackboneRequest", "choose_device", "load_backbone"]


@dataclass(frozen=True)
class BackboneRequest:
    """What a backbone was asked for by, see :func:`load_backbone`: enough to make it again."""

    name: str
    weights: str | Path | None
    image_size: int | None
    n_trainable_blocks: int
    seed: int


@dataclass
class Backbone:
    """A network in two parts, and how pictures come into it.

    Attributes
    ----------
    name : str
    trunk : nn.Module
        Pixels (b, 3, size, size) to activations; frozen.
    tail : nn.Module
        Activations to features (b, d); its last blocks may be trained. Kept as loaded: copies learn.
    size : int
        Height and width of the pictures.
    interpolation : str
    mean, std : tuple of float
        Of each colour, by which pixels are normalised.
    crop : callable
        A picture to the network's own evaluation view, as normalised pixels (3, size, size).
    dtype : torch.dtype
        Of the activations: half precision, but single where they are the features.
    request : BackboneRequest or None
        Where it came from.
    """

    name: str
    trunk: nn.Module
    tail: nn.Module
    size: int
    interpolation: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: Callable[[Image], Tensor]
    dtype: torch.dtype = torch.float16
    request: BackboneRequest | None = None

    @property
    def device(self) -> torch.device:
        """Where the trunk works."""
        return next((parameter.device for parameter in self.trunk.parameters()), torch.device("cpu"))

    def normalise(self, views: np.ndarray[Any, Any]) -> Tensor:
        """Return drawn views (b, size, size, 3) of uint8 as normalised pixels (b, 3, size, size)."""
        pixels = torch.from_numpy(views).permute(0, 3, 1, 2).float().div_(255.0)
        return pixels.sub_(torch.tensor(self.mean)[:, None, None]).div_(torch.tensor(self.std)[:, None, None])

    def activate(self, pixels: Tensor) -> Tensor:
        """Run the trunk: pixels (b, 3, size, size) to activations (b, …) of ``dtype``, on the CPU.

        Everywhere of ``dtype``: a picture then has the same activations whether they were kept or not.
        """
        device = self.device
        with torch.no_grad(), _mixed_precision(device, torch.float16):
            out: Tensor = self.trunk(pixels.to(device))
        # Beyond what half precision holds, the nearest number it does hold.
        limit = torch.finfo(self.dtype).max
        return out.float().clamp(-limit, limit).to("cpu", self.dtype)

    def to(self, device: torch.device) -> None:
        """Move the trunk."""
        self.trunk.to(device)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: tensors on the CPU, so that it loads where there is no GPU."""
        state = self.__dict__.copy()
        if self.device.type != "cpu":
            state["trunk"] = copy.deepcopy(self.trunk).cpu()
        return state


def choose_device(device: str) -> torch.device:
    """Return the device of that name; "auto" takes CUDA, else Apple's MPS, else the CPU."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'device={device!r} cannot be used: {first_line(error)} Pass "auto", "cpu", "mps" or "cuda".'
        ) from error
    return chosen


def _mixed_precision(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """Return a context in which CUDA computes in ``dtype`` where that is safe; no other device does."""
    return torch.autocast(device.type, dtype=dtype, enabled=device.type == "cuda")


def load_backbone(
    name: str,
    *,
    weights: str | Path | None = "auto",
    image_size: int | None = None,
    n_trainable_blocks: int = 1,
    device: str = "auto",
    seed: int = 0,
) -> Backbone:
    """Make a timm network, load its weights and cut it.

    Parameters
    ----------
    name : str
        As in ``timm.list_models()``.
    weights : str, Path or None
        "auto" downloads timm's, a path reads a file, None leaves them random.
    image_size : int or None
        None takes the network's own.
    n_trainable_blocks : int
        Blocks at the end that may be trained; with 0 the trunk is the whole network.
    device : str
    seed : int
        Of random weights.
    """
    place = choose_device(device)
    if weights is not None and weights != "auto":
        check_weights_file(weights)  # before a network is built
    model = _make_model(name, image_size, is_pretrained=weights == "auto", seed=seed)
    if weights is not None and weights != "auto":
        load_weights(model, weights)
    model.eval().requires_grad_(False)
    size = _check_size(model, name, image_size)
    with torch.inference_mode(False), torch.no_grad():
        trunk, tail = cut_network(model, size, n_trainable_blocks, name)
    dtype = torch.float16 if n_trainable_blocks else torch.float32
    asked_size = None if image_size is None else int(image_size)
    request = BackboneRequest(name, weights, asked_size, n_trainable_blocks, seed)
    return Backbone(name, trunk.to(place), tail, size, *_transforms(model, size), dtype, request)


def _make_model(name: str, image_size: int | None, *, is_pretrained: bool, seed: int) -> nn.Module:
    """Return timm's network without its classifier."""
    import timm

    if not (timm.is_model(name) or ":" in name):
        near = difflib.get_close_matches(name, timm.list_models() + timm.list_pretrained(), n=3)
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise BackboneError(f"backbone={name!r} is not known to timm. {hint}See timm.list_models().")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone: a GPU's would not be restored
        try:
            return _create(name, image_size, is_pretrained)
        except Exception as error:
            if not is_pretrained:
                raise BackboneError(
                    f"backbone={name!r} with image_size={image_size} cannot be made: {error}"
                ) from error
            raise BackboneError(
                f"The weights of backbone={name!r} could not be downloaded: {first_line(error)} "
                "Check the network, or pass backbone_weights= the path of a file, or None for random weights."
            ) from error


def _create(name: str, image_size: int | None, is_pretrained: bool) -> nn.Module:
    import timm

    options: dict[str, Any] = {"pretrained": is_pretrained, "num_classes": 0}
    if image_size is not None:
        try:
            sized: nn.Module = timm.create_model(name, img_size=image_size, **options)
            return sized
        except TypeError:  # convolutional networks take any size, and no such argument
            pass
    model: nn.Module = timm.create_model(name, **options)
    return model


def _check_size(model: nn.Module, name: str, image_size: int | None) -> int:
    """Return the size of pictures; patches must fill it."""
    from timm.data import resolve_model_data_config

    size = image_size or int(resolve_model_data_config(model)["input_size"][-1])
    patches: Any = getattr(model, "patch_embed", None)
    patch = getattr(patches, "patch_size", None)
    side = int(patch[0] if isinstance(patch, tuple | list) else patch or 1)
    if image_size is not None and size % side:
        below = max(size // side, 1) * side
        raise BackboneError(
            f"image_size={size} is no multiple of the {side}-pixel patches of backbone={name!r}. "
            f"Pass {below} or {below + side}."
        )
    return size


def _transforms(
    model: nn.Module, size: int
) -> tuple[str, tuple[float, ...], tuple[float, ...], Callable[[Image], Tensor]]:
    """Return interpolation, mean, deviation and evaluation view, as the network's authors had them."""
    from timm.data import create_transform, resolve_model_data_config

    configuration = resolve_model_data_config(model) | {"input_size": (3, size, size)}
    crop: Callable[[Image], Tensor] = create_transform(**configuration, is_training=False)
    interpolation = str(configuration["interpolation"])
    return (
        interpolation if interpolation in ("bicubic", "bilinear", "nearest", "lanczos") else "bicubic",
        tuple(configuration["mean"]),
        tuple(configuration["std"]),
        crop,
    )
