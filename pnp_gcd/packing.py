"""Networks of a fitted model as arrays, and back: the adapter, or the encoder of images behind its backbone.

A backbone is named, with a digest of its weights, or its weights are packed too. Knows networks, and where
a backbone came from: no files of models, no labels, no training.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pnp_gcd.activations import digest_backbone
from pnp_gcd.backbones import Backbone, BackboneRequest, load_backbone
from pnp_gcd.encoders import ImageEncoder, ResidualAdapter
from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.geometry import Geometry
from pnp_gcd.image_mode import ImageMode
from pnp_gcd.image_rows import ImageSettings
from pnp_gcd.weights import first_line

__all__ = [
    "describe_images",
    "pack_backbone",
    "pack_network",
    "restore_adapter",
    "restore_encoder",
    "restore_images",
]

Arrays = dict[str, NDArray[Any]]

# Beyond this a number in a file is none that a fit has had, and would only fill the memory.
_MAX_IMAGE_SIZE = 4096


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return all parameters and buffers: also those that state_dict leaves out, which a cut may depend on."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def pack_network(network: nn.Module) -> Arrays:
    """Return copies of a network's numbers, by their names."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in _tensors(network).items()}


def _fill(network: nn.Module, arrays: Arrays, what: str) -> None:
    """Put arrays into a network; each must have its name, shape and type."""
    wanted = _tensors(network)
    if set(wanted) != set(arrays):
        other = sorted(set(wanted) ^ set(arrays))
        raise ModelFileError(
            f"The weights of {what} are of another network: {', '.join(other[:3])} are in one of both only."
        )
    with torch.no_grad():
        for name, tensor in wanted.items():
            given = torch.from_numpy(arrays[name])
            if given.shape != tensor.shape or given.dtype != tensor.dtype:
                raise ModelFileError(
                    f"{name} of {what} is {given.dtype} of shape {tuple(given.shape)}, but {tensor.dtype} of "
                    f"shape {tuple(tensor.shape)} is needed."
                )
            tensor.copy_(given)


def restore_adapter(arrays: Arrays, width: int) -> nn.Module:
    """Return the adapter on rows of ``width`` columns."""
    with torch.random.fork_rng(devices=[]):  # layers draw weights, though others follow
        adapter = ResidualAdapter(width, _hidden_width(arrays, "expand.weight", width))
    _fill(adapter, arrays, "the encoder")
    return adapter.eval()


def _hidden_width(arrays: Arrays, name: str, width: int) -> int:
    """Return the columns of the hidden layer: as many as the file has weights for, before any are made."""
    shape = arrays.get(name, np.empty(0)).shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] != width:
        raise ModelFileError(f"{name} of the encoder has shape {shape}, but (…, {width}) is needed.")
    return int(shape[0])


# --- images ------------------------------------------------------------------------------------------------


def describe_images(mode: ImageMode) -> dict[str, Any]:
    """Return how images go through a model, in plain values: what backbone, what of it, what views."""
    request = mode.backbone.request
    if request is None:
        raise ValueError(
            "The backbone does not say where it came from. Fit the model again before saving it."
        )
    path = None
    if request.weights not in (None, "auto"):
        path = str(Path(str(request.weights)).absolute())
    return {
        "backbone": asdict(request),
        "weights_file": path,
        "digest": digest_backbone(mode.backbone),
        "settings": asdict(mode.settings),
        "on_bad_image": mode.on_bad_image,
        "device": mode.device,
        "n_views": mode.n_views,
        "batch_size": mode.batch_size,
    }


def pack_backbone(mode: ImageMode) -> Arrays:
    """Return the numbers of trunk and tail, as they were before training."""
    parts = {"trunk": mode.backbone.trunk, "tail": mode.backbone.tail}
    return {
        f"{part}.{name}": array
        for part, module in parts.items()
        for name, array in pack_network(module).items()
    }


def restore_images(facts: dict[str, Any], packed: Arrays | None) -> ImageMode:
    """Return the image mode of a description; ``packed`` are the backbone's numbers if they were saved."""
    request = BackboneRequest(**facts["backbone"])
    settings = ImageSettings(**facts["settings"])
    _check_facts(facts, request, settings)
    backbone = _load(request, facts["weights_file"]) if packed is None else _rebuild(request, packed)
    if digest_backbone(backbone) != facts["digest"]:
        raise ModelFileError(
            f"The weights of backbone={request.name!r} are not those that the model was fitted with "
            f"({_tell_source(request)}). Bring back the file or version it was fitted with, or save the "
            "model with include_backbone=True where it was."
        )
    return ImageMode(
        backbone,
        settings,
        facts["on_bad_image"],
        facts["device"],
        facts["n_views"],
        facts["batch_size"],
    )


def _check_facts(facts: dict[str, Any], request: BackboneRequest, settings: ImageSettings) -> None:
    """Refuse numbers and names that no fit has had."""
    limits = {
        "n_views": (facts["n_views"], 0, 10_000),
        "batch_size": (facts["batch_size"], 1, 10_000),
        "n_trainable_blocks": (request.n_trainable_blocks, 0, 10_000),
        "image_size": (1 if request.image_size is None else request.image_size, 1, _MAX_IMAGE_SIZE),
        "seed": (request.seed, 0, 2**63 - 1),
        "seed of views": (settings.seed, 0, 2**63 - 1),
        "n_cached_views": (settings.n_cached_views, 0, 2**31),
        "cache_size": (settings.cache_size, 0, 2**63 - 1),
    }
    for name, (value, low, high) in limits.items():
        if type(value) is not int or not low <= value <= high:
            raise ModelFileError(f"{name}={value!r} must be a whole number from {low} to {high}.")
    options = {
        "augmentation": (settings.augmentation, ("standard", "strong")),
        "on_bad_image": (facts["on_bad_image"], ("error", "skip")),
    }
    for name, (chosen, allowed) in options.items():
        if chosen not in allowed:
            raise ModelFileError(f"{name}={chosen!r} must be one of {', '.join(allowed)}.")
    texts = (request.name, facts["digest"], facts["device"])
    optional = (request.weights, facts["weights_file"], settings.cache_dir)
    if not all(isinstance(text, str) for text in texts) or not all(
        text is None or isinstance(text, str | Path) for text in optional
    ):
        raise ModelFileError("The backbone is not described by names and paths.")


def _load(request: BackboneRequest, weights_file: str | None) -> Backbone:
    """Return the backbone that is referred to: downloaded, from its file, or random as it was."""
    weights = request.weights
    if weights is not None and weights != "auto":
        places = [Path(str(weights)), Path(str(weights_file))]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise ModelFileError(
                f'The model refers to the weights of its backbone in "{places[0]}", which is not there. Put '
                "the file there, or save the model with include_backbone=True where it is."
            )
        weights = found
    try:
        backbone = load_backbone(
            request.name,
            weights=weights,
            image_size=request.image_size,
            n_trainable_blocks=request.n_trainable_blocks,
            device="cpu",
            seed=request.seed,
        )
    except Exception as error:  # whatever a network raises that was asked for what it cannot be
        raise ModelFileError(
            f"The backbone that the model refers to cannot be made: {first_line(error)}"
        ) from error
    return replace(backbone, request=request)


def _rebuild(request: BackboneRequest, packed: Arrays) -> Backbone:
    """Return the backbone with the numbers that were saved."""
    backbone = replace(_load(replace(request, weights=None), None), request=request)
    for part, module in (("trunk", backbone.trunk), ("tail", backbone.tail)):
        prefix = f"{part}."
        arrays = {name[len(prefix) :]: array for name, array in packed.items() if name.startswith(prefix)}
        _fill(module, arrays, f"the backbone's {part}")
    return backbone


def _tell_source(request: BackboneRequest) -> str:
    if request.weights is None:
        return "they are random, and another version of torch or timm draws others"
    return "timm's own" if request.weights == "auto" else f'in "{request.weights}"'


def restore_encoder(mode: ImageMode, arrays: Arrays, geometry: Geometry) -> nn.Module:
    """Return the encoder of images, tried on a blank one."""
    tail, size = mode.backbone.tail, mode.backbone.size
    hidden_width = _hidden_width(arrays, "adapter.expand.weight", geometry.n_columns)
    with torch.random.fork_rng(devices=[]):
        encoder = ImageEncoder(tail, geometry, hidden_width).eval()
    _fill(encoder, arrays, "the encoder")
    try:
        with torch.inference_mode():
            out = encoder(mode.backbone.activate(torch.zeros(1, 3, size, size)))
    except RuntimeError as error:
        raise ModelFileError(f"The encoder does not fit its backbone: {error}") from error
    if not bool(torch.isfinite(out).all()):
        raise ModelFileError("The encoder gives numbers that are not finite.")
    if out.shape != (1, geometry.n_columns):
        raise ModelFileError(f"The encoder gives {out.shape[1]} columns instead of {geometry.n_columns}.")
    return encoder
