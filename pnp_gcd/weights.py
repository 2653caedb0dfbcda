"""Read a file of pretrained weights, and fit its tensors to a network.

Files of DINO and DINOv2 as published, of timm, and of people who saved the whole of their training: names
are stripped of their prefixes, position embeddings resampled to the network's image size, and whatever is
left over or missing is named. Nothing in a file is ever executed. Knows tensors and their names: no images,
no splitting of networks.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pnp_gcd.exceptions import BackboneError

__all__ = ["check_weights_file", "first_line", "load_weights", "read_weights"]

# Where a file of a whole training keeps the network; the teacher is what DINO publishes.
_CONTAINERS = ("teacher", "state_dict_ema", "model_ema", "state_dict", "model", "student")
_PREFIXES = ("module.", "_orig_mod.", "backbone.", "encoder.", "model.")
# What training needs and features do not: masks, heads, their running centres.
_NOT_NEEDED = (
    "mask_token",
    "head.",
    "fc.",
    "classifier.",
    "last_layer.",
    "dino_head.",
    "ibot_head.",
    "projection_head.",
)
_N_LISTED = 6


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def check_weights_file(path: str | Path) -> Path:
    """Return the path of a file of weights that is there."""
    if not Path(path).is_file():
        raise BackboneError(
            f'backbone_weights="{path}" is not a file. Correct the path, or pass "auto" to download weights '
            "or None for random ones."
        )
    return Path(path)


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a ``.safetensors``, ``.pth``, ``.pt`` or ``.bin`` file by their names."""
    path = check_weights_file(path)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        return _find_tensors(_unpickle(path))
    except BackboneError:
        raise
    except Exception as error:  # the readers raise many kinds
        raise BackboneError(
            f'backbone_weights="{path}" cannot be read ({type(error).__name__}): it is damaged, no file of '
            "weights, or holds more than tensors. Files that could execute code are refused: save plain "
            "tensors, best as .safetensors."
        ) from error


def _unpickle(path: Path) -> Any:
    """Read a torch file with torch's restricted reader, which builds tensors and plain containers only."""
    import argparse

    # Trainings save their command line beside the weights: a bag of values that runs no code.
    with torch.serialization.safe_globals([argparse.Namespace]):
        return torch.load(path, map_location="cpu", weights_only=True)


def _find_tensors(content: Any) -> dict[str, Tensor]:
    """Return the network's tensors, wherever a file of a whole training keeps them."""
    while isinstance(content, dict):
        tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
        inner = next((content[name] for name in _CONTAINERS if isinstance(content.get(name), dict)), None)
        if inner is None:
            if tensors:
                return tensors
            break
        content = inner
    raise BackboneError(
        f"the file holds no tensors by name, nor any of {', '.join(_CONTAINERS)}. Save model.state_dict()."
    )


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Fill ``model`` from a file; a tensor that is missing, unknown or of another shape is an error.

    Parameters
    ----------
    model : nn.Module
        A timm network without its classifier.
    path : str or Path
    """
    tensors = _rename(read_weights(path), set(model.state_dict()))
    tensors = _adapt_positions(tensors, model)
    wanted = model.state_dict()
    unknown = [name for name in tensors if name not in wanted and not name.startswith(_NOT_NEEDED)]
    tensors = {name: tensor for name, tensor in tensors.items() if name in wanted}
    missing = [name for name in wanted if name not in tensors and not name.endswith("num_batches_tracked")]
    other = [
        f"{name} {tuple(tensor.shape)} for {tuple(wanted[name].shape)}"
        for name, tensor in tensors.items()
        if tensor.shape != wanted[name].shape
    ]
    if missing or unknown or other:
        parts = [("missing", missing), ("not in the network", unknown), ("of another shape", other)]
        told = "; ".join(f"{what}: {_list(names)}" for what, names in parts if names)
        raise BackboneError(
            f'backbone_weights="{path}" does not fit backbone "{_name_of(model)}". Keys {told}. Pass the '
            "timm name of the architecture the file was made with."
        )
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)


def _name_of(model: nn.Module) -> str:
    configuration: Any = getattr(model, "pretrained_cfg", None) or {}
    return str(configuration.get("architecture", type(model).__name__))


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _N_LISTED} more" if len(names) > _N_LISTED else ""
    return ", ".join(names[:_N_LISTED]) + more


def _rename(tensors: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """Strip the prefixes that wrappers put before names; drop what lies beside a backbone."""
    for _ in _PREFIXES:
        prefix = next((p for p in _PREFIXES if any(name.startswith(p) for name in tensors)), None)
        if prefix is None or len(wanted & set(tensors)) > len(wanted) // 2:
            break
        tensors = {
            name.removeprefix(prefix): tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix) or name.startswith(_NOT_NEEDED)
        }
    if "register_tokens" in tensors and "reg_token" in wanted:
        tensors["reg_token"] = tensors.pop("register_tokens")
    return tensors


def _adapt_positions(tensors: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Resample position embeddings to the network's grid, and put the class token's where timm keeps it."""
    positions, wanted = tensors.get("pos_embed"), getattr(model, "pos_embed", None)
    if positions is None or wanted is None or positions.ndim != 3 or positions.shape == wanted.shape:
        return tensors
    if positions.shape[-1] != wanted.shape[-1]:
        return tensors  # another architecture: the comparison of shapes will say so
    from timm.layers import resample_abs_pos_embed

    tensors = dict(tensors)
    n_wanted = _n_prefix(wanted.shape[1])
    n_prefix = _n_prefix(positions.shape[1])
    if n_prefix == 1 and n_wanted == 0 and "cls_token" in tensors:
        # Networks with registers have no position for the class token: it is added to the token itself.
        tensors["cls_token"] = tensors["cls_token"] + positions[:, :1]
        positions, n_prefix = positions[:, 1:], 0
    side = math.isqrt(wanted.shape[1] - n_wanted)
    tensors["pos_embed"] = resample_abs_pos_embed(
        positions.float(), new_size=[side, side], num_prefix_tokens=n_prefix
    )
    return tensors


def _n_prefix(n_positions: int) -> int:
    """Return how many positions come before those of a square grid of patches."""
    return n_positions - math.isqrt(n_positions) ** 2 if n_positions > 0 else 0
