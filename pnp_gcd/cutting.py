"""Cut a network in two: a trunk that stays as it is, and a tail that can be trained.

A network is not taken apart by its name: it is run on a random picture, the modules that it calls are
written down, and the cut is kept only if trunk and tail together give what the whole gave. Knows modules and
tensors: no files, no pictures of users, no losses.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pnp_gcd.exceptions import BackboneError

__all__ = ["FirstTokenBlock", "Tail", "cut_network"]


class _Reached(Exception):  # noqa: N818 - not an error: how a trunk ends
    """Carries the activations out of a network that is left in the middle."""

    def __init__(self, activations: Tensor) -> None:
        super().__init__()
        self.activations = activations


class _Exit(nn.Module):
    """Stands where the tail began, and leaves the network with what arrives there."""

    def forward(self, activations: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise _Reached(activations)


class _Trunk(nn.Module):
    """A network up to its exit."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        try:
            self.model.forward_features(pixels)  # type: ignore[operator]
        except _Reached as reached:
            return reached.activations
        raise BackboneError("the trunk's exit was not reached.")


class _Whole(nn.Module):
    """A network to its pooled features."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        return _pooled(self.model, self.model.forward_features(pixels))  # type: ignore[operator]


def _pooled(model: nn.Module, activations: Tensor) -> Tensor:
    out: Tensor = model.forward_head(activations, pre_logits=True)  # type: ignore[operator]
    return out


class _Step(nn.Module):
    """A module with what it is given besides activations, the same for every picture."""

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.kwargs = {name: value for name, value in kwargs.items() if not isinstance(value, Tensor)}
        self.args = [None if isinstance(value, Tensor) else value for value in args]
        for key, value in [*enumerate(args), *kwargs.items()]:
            if isinstance(value, Tensor):  # so that it moves to a device with the module
                self.register_buffer(f"given_{key}", value.clone(), persistent=False)

    def forward(self, activations: Tensor) -> Tensor:
        given = dict(self.named_buffers(recurse=False))
        args = [given.get(f"given_{place}", value) for place, value in enumerate(self.args)]
        named = {key.removeprefix("given_"): value for key, value in given.items() if not key[6:].isdigit()}
        out: Tensor = self.module(activations, *args, **self.kwargs, **named)
        return out


class Tail(nn.Module):
    """The steps after the cut, and the network's own pooling.

    Parameters
    ----------
    steps : list of nn.Module
    head : nn.Module
        The network without its features: it only pools.
    """

    def __init__(self, steps: Sequence[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.steps = nn.ModuleList(steps)
        self.head = head

    def forward(self, activations: Tensor) -> Tensor:
        """Map activations (b, …) to features (b, d)."""
        activations = activations.float()
        for step in self.steps:
            activations = step(activations)
        return _pooled(self.head, activations)


class _Called:
    """A module that the network called, where it hangs, and what it was given."""

    def __init__(self, module: nn.Module, parent: nn.Module, name: str) -> None:
        self.module, self.parent, self.name = module, parent, name
        self.is_block = False
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.given: Tensor | None = None
        self.out: Tensor | None = None


def cut_network(
    model: nn.Module, size: int, n_trainable_blocks: int, name: str
) -> tuple[nn.Module, nn.Module]:
    """Return trunk and tail of a network; what they give together is compared with the network."""
    whole = _Whole(model)
    if n_trainable_blocks == 0:
        return whole, Tail([], _PassOn())
    random = torch.Generator().manual_seed(0)
    probe, other = (torch.rand(n_pictures, 3, size, size, generator=random) for n_pictures in (2, 3))
    expected, of_other = whole(probe), whole(other)
    steps = _write_down(model, probe)
    blocks = [place for place, step in enumerate(steps) if step.is_block]
    if n_trainable_blocks > len(blocks):
        most = f"at most {len(blocks)}, or " if blocks else ""
        raise BackboneError(
            f"n_trainable_blocks={n_trainable_blocks} is more than the {len(blocks)} blocks found in "
            f"backbone={name!r}. Pass {most}0 to train on top of its features."
        )
    first = blocks[-n_trainable_blocks]
    tail = _make_tail(model, steps[first:], set(blocks[-n_trainable_blocks:]), first)
    tail = _shorten(tail, steps[first].given, expected)
    for step in steps[first:]:
        setattr(step.parent, step.name, nn.Identity())
    setattr(steps[first].parent, steps[first].name, _Exit())
    trunk = _Trunk(model)
    # Other pictures, and another number of them: what depends on the picture is no constant of a step.
    if not (_gives(trunk, tail, probe, expected) and _gives(trunk, tail, other, of_other)):
        raise BackboneError(
            f"backbone={name!r} does not pass its activations on from block to block, so that it "
            "cannot be cut into trunk and tail. Pass n_trainable_blocks=0 to train on top of its features."
        )
    return trunk, tail


def _gives(trunk: nn.Module, tail: nn.Module, pixels: Tensor, expected: Tensor) -> bool:
    """Tell whether trunk and tail together give what is expected."""
    try:
        return _agree(tail(trunk(pixels)), expected)
    except Exception:  # whatever a network raises that does not fit together
        return False


class _PassOn(nn.Module):
    """Pools what is pooled already."""

    def forward_head(self, activations: Tensor, pre_logits: bool = True) -> Tensor:
        return activations


def _agree(found: Tensor, expected: Tensor) -> bool:
    if found.shape != expected.shape or not bool(torch.isfinite(found).all()):
        return False
    scale = float(expected.abs().max()) or 1.0
    return float((found - expected).abs().max()) <= 1e-4 * scale


def _write_down(model: nn.Module, probe: Tensor) -> list[_Called]:
    """Run the network's features once; return the modules that pass activations on, in their order."""
    steps: list[_Called] = []
    for name, child in model.named_children():
        steps.extend(_open_up(_Called(child, model, name), is_inside=False))
    called: list[_Called] = []
    hooks = []
    for step in steps:
        hooks.append(step.module.register_forward_pre_hook(_note_call(step, called), with_kwargs=True))
        hooks.append(step.module.register_forward_hook(_note_result(step)))
    try:
        model.forward_features(probe)  # type: ignore[operator]
    finally:
        for hook in hooks:
            hook.remove()
    return [part for step in called for part in _open_stage(step)]


def _open_up(step: _Called, *, is_inside: bool) -> list[_Called]:
    """Return the modules of nested sequences; those inside one that hold a matrix are blocks."""
    if not isinstance(step.module, nn.Sequential | nn.ModuleList):
        step.is_block = is_inside and any(parameter.ndim > 1 for parameter in step.module.parameters())
        return [step]
    parts = []
    for name, child in step.module.named_children():
        parts.extend(_open_up(_Called(child, step.module, name), is_inside=True))
    return parts


def _open_stage(stage: _Called) -> list[_Called]:
    """Return the blocks of a stage that passes activations through its children in order; else the stage."""
    children = list(stage.module.named_children())
    is_made_of_blocks = len(children) > 0 and all(
        len(list(child.children())) or not list(child.parameters()) for _, child in children
    )
    n_own = len(list(stage.module.parameters(recurse=False))) + len(list(stage.module.buffers(recurse=False)))
    is_plain = is_made_of_blocks and not (n_own or stage.args or stage.kwargs)
    if not is_plain or stage.given is None or stage.out is None:
        return [stage]
    parts: list[_Called] = []
    for name, child in children:
        parts.extend(_open_up(_Called(child, stage.module, name), is_inside=True))
    activations = stage.given
    try:
        for part in parts:
            part.given = activations
            activations = part.module(activations)
            part.out = activations
    except Exception:  # not a chain
        return [stage]
    return parts if _agree(activations, stage.out) else [stage]


def _note_call(step: _Called, called: list[_Called]) -> Any:
    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args and isinstance(args[0], Tensor):
            step.given, step.args, step.kwargs = args[0], args[1:], dict(kwargs)
            called.append(step)

    return note


def _note_result(step: _Called) -> Any:
    def note(module: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        step.out = out if isinstance(out, Tensor) else None

    return note


def _make_tail(model: nn.Module, steps: list[_Called], trainable: set[int], first: int) -> Tail:
    """Return copies of the steps with the network's pooling; only its blocks may learn."""
    parts = []
    for place, step in enumerate(steps, start=first):
        part = _Step(copy.deepcopy(step.module), step.args, step.kwargs)
        part.requires_grad_(place in trainable)
        parts.append(part)
    return Tail(parts, _make_head(model, steps))


def _make_head(model: nn.Module, tail: list[_Called]) -> nn.Module:
    """Return a copy of the network that only pools: modules that make its features are left out."""
    children = dict(model.named_children())
    last = max(list(children.values()).index(_ancestor(model, step)) for step in tail)
    # Modules are declared in the order of their use: all up to the tail's last one make features.
    emptied = {id(child): nn.Identity() for child in list(children.values())[: last + 1]}
    # deepcopy takes the memo's word for modules that it shall not copy.
    head = copy.deepcopy(model, dict(emptied))
    for name in list(head._parameters):  # position embeddings, class tokens
        head._parameters[name] = None
    return head.requires_grad_(False)


def _ancestor(model: nn.Module, step: _Called) -> nn.Module:
    """Return the child of the network that holds a step."""
    return next(child for child in model.children() if any(m is step.module for m in child.modules()))


# --- the last block of a transformer, for one token only ---------------------------------------------------


class FirstTokenBlock(nn.Module):
    """A pre-norm transformer block whose result is wanted for its first token only.

    One query makes keys and values needless: with q the query of a head and K, V its matrices, the scores
    of normed tokens n are n·(Kᵀq) and the result is V(Σ a·n), so that tokens meet two vectors a head and
    not two matrices. A bias of the keys adds the same to every score and drops out. The result is that of
    the block up to rounding, at a fraction of its work.

    Parameters
    ----------
    block : nn.Module
        timm's ``Block``.
    """

    def __init__(self, block: Any) -> None:
        super().__init__()
        self.block = block

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (b, t, c) to the block's first token (b, 1, c)."""
        block, norm, attention = self.block, self.block.norm1, self.block.attn
        width, n_heads = tokens.shape[-1], attention.num_heads
        matrices = attention.qkv.weight.view(3, n_heads, -1, width)
        normed = functional.layer_norm(tokens, (width,), eps=norm.eps)  # scale and shift follow below
        first = normed[:, 0] * norm.weight + norm.bias
        query = torch.einsum("bc,hdc->bhd", first, matrices[0])
        if attention.qkv.bias is not None:
            query = query + attention.qkv.bias.view(3, n_heads, -1)[0]
        asked = torch.einsum("bhd,hdc->bhc", query, matrices[1]) * (norm.weight * attention.scale)
        shares = torch.softmax(asked @ normed.transpose(1, 2), dim=-1)
        seen = (shares @ normed) * norm.weight + norm.bias
        values = torch.einsum("bhc,hdc->bhd", seen, matrices[2])
        if attention.qkv.bias is not None:
            values = values + attention.qkv.bias.view(3, n_heads, -1)[2]
        token = tokens[:, 0] + block.ls1(attention.proj(values.flatten(1)))
        token = token + block.ls2(block.mlp(block.norm2(token)))
        return token[:, None]


def _shorten(tail: Tail, given: Tensor | None, expected: Tensor) -> Tail:
    """Return the tail with its last block for one token, where the network pools by that token."""
    places = [place for place, step in enumerate(tail.steps) if _is_plain_block(step)]
    if not places or given is None:
        return tail
    short = copy.deepcopy(tail)
    short.steps[places[-1]] = FirstTokenBlock(short.steps[places[-1]].module)
    return short if _gives(nn.Identity(), short, given, expected) else tail


def _is_plain_block(step: nn.Module) -> bool:
    """Tell timm's plain pre-norm block: nothing between query, keys and their products."""
    block: Any = getattr(step, "module", None)
    attention = getattr(block, "attn", None)
    if attention is None or getattr(step, "args", None) or dict(step.named_buffers(recurse=False)):
        return False
    parts = (block, "norm1", "norm2", "mlp", "ls1", "ls2"), (attention, "qkv", "proj", "num_heads", "scale")
    if not all(hasattr(owner, name) for owner, *names in parts for name in names):
        return False
    between = [getattr(attention, name, nn.Identity()) for name in ("q_norm", "k_norm", "norm")]
    return (
        isinstance(attention.qkv, nn.Linear)
        and isinstance(block.norm1, nn.LayerNorm)
        and all(isinstance(module, nn.Identity) for module in between)
        and getattr(attention, "gate", None) is None
    )
