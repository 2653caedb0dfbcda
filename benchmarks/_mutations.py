"""Ways to damage and to forge the files of a saved model.

Damage changes bytes and leaves the digests as they were. A forgery makes all digests right again, so that
what is behind them has to notice. Each way takes a generator and changes a folder in place.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

DOCUMENT, ARRAYS, BACKBONE = "model.json", "arrays.safetensors", "backbone.safetensors"
Generator = np.random.Generator

NASTY: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 10**30, -(10**30), 10**4000, 2**31, 2**63, 2**64, 0.5, -0.0, 1e308,
    5e-324, "", "\0", "auto", "../..", "/etc/passwd", "a" * 100_000, "\ud800", "novel_0", "-1", "nan", [],
    {}, [[]], {"$tuple": []}, {"$tuple": [1, 2]}, {"$float": "nan"}, {"$float": "inf"}, {"$float": "1e5"},
    {"$numpy": ["<i8", 2**63]}, {"$numpy": ["<i8", 1]}, {"$numpy": ["<U9999999", "a"]}, {"$path": "\0"},
    {"$path": "/dev/zero"}, {"$array": {"dtype": "<f8", "values": [], "shape": [0, 10**12]}},
    {"$array": {"dtype": "<f8", "values": [1.0], "shape": [1] * 70}}, {"dtype": "<U1", "values": []},
    {"dtype": "|O", "values": [None, {"$float": "nan"}]}, {"dtype": "<M8[s]", "values": [0]}, {"$run": "id"},
)  # fmt: skip


def pick(rng: Generator, choices: Any) -> Any:
    """Return one of some things."""
    return choices[int(rng.integers(len(choices)))]


def digest(document: dict[str, Any]) -> str:
    """Return the digest that a document should tell of itself."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seal(folder: Path, document: dict[str, Any]) -> None:
    """Write a document with digests that fit the files beside it."""
    for name in document.get("files", {}) if isinstance(document.get("files"), dict) else ():
        path = folder / name
        if name in (ARRAYS, BACKBONE) and path.is_file():
            data = path.read_bytes()
            document["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    document.pop("sha256", None)
    try:
        document = {"sha256": digest(document), **document}
    except (ValueError, RecursionError):
        document = {"sha256": "0" * 64, **document}
    (folder / DOCUMENT).write_text(json.dumps(document))


def read(folder: Path) -> dict[str, Any]:
    """Return the document of a folder."""
    return json.loads((folder / DOCUMENT).read_text())


# --- damage ------------------------------------------------------------------------------------------------


def damage_bytes(data: bytes, rng: Generator) -> bytes:
    """Return bytes with some flipped, cut off, left out, doubled, moved or overwritten."""
    if not data:
        return b"\0"
    place, kind = int(rng.integers(len(data))), int(rng.integers(8))
    length = int(pick(rng, (1, 2, 8, 64, 1024)))
    piece = data[place : place + length]
    if kind == 0:
        changed = bytearray(data)
        for spot in rng.integers(len(data), size=int(pick(rng, (1, 1, 2, 8, 100)))):
            changed[spot] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 1:
        return data[:place]
    if kind == 2:
        return data[:place] + piece * 2 + data[place + length :]
    if kind == 3:
        return data[:place] + data[place + length :]
    if kind == 4:
        other = int(rng.integers(len(data)))
        return data[:other] + piece + data[other + length :]
    if kind == 5:
        return data[:place] + rng.bytes(length) + data[place + length :]
    if kind == 6:
        return data[:place] + pick(rng, (b"\0", b"\xff")) * length + data[place + length :]
    return data + rng.bytes(length)


def damage_file(folder: Path, rng: Generator) -> None:
    """Damage the bytes of a file."""
    path = pick(rng, sorted(folder.iterdir()))
    path.write_bytes(damage_bytes(path.read_bytes(), rng))


def swap_file(folder: Path, rng: Generator) -> None:
    """Put something else in the place of a file."""
    path = pick(rng, sorted(folder.iterdir()))
    data = path.read_bytes()
    path.unlink()
    kind = int(rng.integers(7))
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(path.name)  # a loop
    elif kind == 3:
        path.symlink_to("/dev/zero")
    elif kind == 4:
        path.symlink_to(folder / "nowhere")
    elif kind == 5:
        (folder / "moved").write_bytes(data)
        path.symlink_to(folder / "moved")


# --- forged documents --------------------------------------------------------------------------------------


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every container and key below a value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        _places(value[key], found)
    return found


def _nudge(value: Any, rng: Generator) -> Any:
    """Return a value that is a little other, of the same type where there is one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return pick(rng, (value + 1, value - 1, -value, value * 1000, 0, value / 3, float(value), str(value)))
    if isinstance(value, str):
        return pick(rng, (value + "x", value[:-1], value.upper(), value * 2, value + "\0", [value]))
    if isinstance(value, list):
        return pick(
            rng, (value * 2, value[:-1], value[::-1], value[:1] * 3, {str(i): v for i, v in enumerate(value)})
        )
    if isinstance(value, dict):
        return list(value.values())
    return 0


def forge_value(folder: Path, rng: Generator) -> None:
    """Change one to three values of a document."""
    document = read(folder)
    for _ in range(int(pick(rng, (1, 1, 1, 2, 3)))):
        root = document if rng.random() < 0.1 else document.get("content")
        places = _places(root, [])
        if not places:
            break
        place, key = pick(rng, places)
        kind = rng.random()
        if kind < 0.15:
            place.pop(key)
        elif kind < 0.45:
            place[key] = copy.deepcopy(pick(rng, NASTY))
        elif kind < 0.75:
            place[key] = _nudge(place[key], rng)
        elif kind < 0.9:
            other, name = pick(rng, places)
            place[key] = copy.deepcopy(other[name]) if name in other or isinstance(name, int) else 0
        elif isinstance(place, dict):
            place[f"{key}_more"] = copy.deepcopy(place[key])
        else:
            place.insert(key, copy.deepcopy(place[key]))
    seal(folder, document)


def forge_depth(folder: Path, rng: Generator) -> None:
    """Nest a value very deep."""
    document = read(folder)
    place, key = pick(rng, _places(document["content"], []))
    place[key] = "@"
    document.pop("sha256", None)
    depth = int(pick(rng, (50, 300, 450, 600, 900, 990, 5_000, 100_000)))
    start, end = pick(rng, (("[", "]"), ('{"a":', "}"), ('{"$tuple":[', "]}")))
    deep = start * depth + "1" + end * depth
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).replace('"@"', deep)
    told = hashlib.sha256(text.encode()).hexdigest()
    (folder / DOCUMENT).write_text(f'{{"sha256": "{told}", {text[1:]}')


def forge_text(folder: Path, rng: Generator) -> None:
    """Write JSON of the right digest in an unusual way."""
    document = read(folder)
    text = json.dumps(document)
    key = pick(rng, sorted(document["content"]))
    ways: tuple[Callable[[], str], ...] = (
        lambda: text.replace("{", '{"content": {}, ', 1),
        lambda: text.replace(f'"{key}":', f'"{key}": 1, "{key}":', 1),
        lambda: text.replace(f'"{key}":', f'"{key}": NaN, "z":', 1),
        lambda: text.replace(f'"{key}":', f'"{key}": 1e999, "z":', 1),
        lambda: text.replace(f'"{key}":', f'"{key}": {"9" * 10_000}, "z":', 1),
        lambda: "\ufeff" + text,
        lambda: text + text,
        lambda: " " * 100_000 + text,
        lambda: text.replace(" ", "\n\t"),
        lambda: text + "\0",
    )
    (folder / DOCUMENT).write_text(pick(rng, ways)())


# --- forged arrays -----------------------------------------------------------------------------------------


def _forge_array(array: Any, rng: Generator) -> Any:
    """Return an array of other numbers, shape or type."""
    kind = int(rng.integers(14))
    spot = int(rng.integers(max(array.size, 1)))
    flat = array.ravel().copy()
    extremes = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0, -0.0)
    if kind < 3 and flat.size:
        is_float = array.dtype.kind == "f"
        value = pick(rng, extremes) if is_float else pick(rng, (-1, 2**31 - 1, 99, -(2**31), 0))
        flat[spot if kind else slice(None)] = value
        return flat.reshape(array.shape)
    with np.errstate(all="ignore"):
        ways: tuple[Callable[[], Any], ...] = (
            lambda: array[: len(array) // 2] if array.ndim else array[None],
            lambda: array[None],
            lambda: array.ravel(),
            lambda: array.T.copy(),
            lambda: np.concatenate([array, array]) if array.ndim else array,
            lambda: array.astype(pick(rng, ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?"))),
            lambda: array * array.dtype.type(pick(rng, (0, 1, 2, 100))),
            lambda: array[::-1].copy() if array.ndim else array,
            lambda: array[:0] if array.ndim else array,
            lambda: rng.permutation(flat).reshape(array.shape),
            lambda: np.zeros(pick(rng, ((), (0,), (1,), (3, 3), (0, 5), (2, 2, 2))), array.dtype),
        )
        return np.array(pick(rng, ways)(), order="C")


def forge_arrays(folder: Path, rng: Generator) -> None:
    """Change one to three arrays of a file."""
    path = pick(rng, sorted(folder.glob("*.safetensors")))
    arrays = load(path.read_bytes())
    for _ in range(int(pick(rng, (1, 1, 2, 3)))):
        name, other = pick(rng, sorted(arrays)), pick(rng, sorted(arrays))
        kind = rng.random()
        if kind < 0.1 and len(arrays) > 1:
            arrays.pop(name)
        elif kind < 0.15:
            arrays[f"{name}.more"] = arrays[name]
        elif kind < 0.25:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        else:
            arrays[name] = _forge_array(arrays[name], rng)
    path.write_bytes(save({name: np.array(array, order="C") for name, array in arrays.items()}))
    seal(folder, read(folder))


def forge_header(folder: Path, rng: Generator) -> None:
    """Change what a safetensors file says about its arrays."""
    path = pick(rng, sorted(folder.glob("*.safetensors")))
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, numbers = json.loads(data[8 : 8 + size]), data[8 + size :]
    name = pick(rng, sorted(set(header) - {"__metadata__"}))
    facts = header[name]
    low, high = facts["data_offsets"]
    sizes = (0, 1, -1, 2**31, 2**62, 2**63, 2**64, 10**30, 1.5, "1", None)
    ways: tuple[Callable[[], object], ...] = (
        lambda: facts.update(shape=[pick(rng, sizes)]),
        lambda: facts.update(shape=[2**32, 2**32, *facts["shape"]]),
        lambda: facts.update(shape=[0] * int(pick(rng, (1, 40, 100)))),
        lambda: facts.update(shape=[1] * int(pick(rng, (33, 65, 10_000))) + facts["shape"]),
        lambda: facts.update(
            dtype=pick(rng, ("BF16", "F8_E4M3", "F16", "F64", "I8", "U64", "BOOL", "C64", "X", 3))
        ),
        lambda: facts.update(data_offsets=[pick(rng, sizes), pick(rng, sizes)]),
        lambda: facts.update(data_offsets=[high, low]),
        lambda: facts.update(data_offsets=[low + 4, high + 4]),
        lambda: facts.update(data_offsets=[0, high - low]),
        lambda: facts.pop(pick(rng, sorted(facts))),
        lambda: header.update(__metadata__=pick(rng, ({}, {"a": "b"}, {"a": 1}, [], "x"))),
        lambda: header.update({pick(rng, ("", "\0", "a" * 10_000, "__class__")): facts}),
        lambda: header.pop(name),
    )
    pick(rng, ways)()
    text = json.dumps(header).encode()
    if rng.random() < 0.1:
        text = damage_bytes(text, rng)
    told = len(text) if rng.random() < 0.85 else int(pick(rng, (0, 1, 7, 2**27, 2**40, 2**63, len(text) - 1)))
    path.write_bytes(struct.pack("<Q", told) + text + numbers)
    seal(folder, read(folder))


def forge_bytes(folder: Path, rng: Generator) -> None:
    """Damage a file of arrays and make its digest right again."""
    path = pick(rng, sorted(folder.glob("*.safetensors")))
    path.write_bytes(damage_bytes(path.read_bytes(), rng))
    seal(folder, read(folder))


def join_models(folder: Path, other: Path, rng: Generator) -> None:
    """Put a part of another model into this one."""
    document, foreign = read(folder), read(other)
    if rng.random() < 0.4:
        shutil.copyfile(other / ARRAYS, folder / ARRAYS)
    elif rng.random() < 0.5:
        key = pick(rng, sorted(document["content"]))
        document["content"][key] = foreign["content"].get(key)
    else:
        mine, theirs = (load((place / ARRAYS).read_bytes()) for place in (folder, other))
        shared = sorted(set(mine) & set(theirs))
        name = pick(rng, shared)
        mine[name] = theirs[name]
        (folder / ARRAYS).write_bytes(save({key: np.array(array, order="C") for key, array in mine.items()}))
    seal(folder, document)


def mutate(folder: Path, others: list[Path], rng: Generator) -> str:
    """Change a saved model in one of all ways; return the name of the way."""
    ways: dict[str, tuple[float, Callable[[], None]]] = {
        "damage": (0.15, lambda: damage_file(folder, rng)),
        "swap": (0.02, lambda: swap_file(folder, rng)),
        "value": (0.30, lambda: forge_value(folder, rng)),
        "depth": (0.02, lambda: forge_depth(folder, rng)),
        "text": (0.03, lambda: forge_text(folder, rng)),
        "arrays": (0.22, lambda: forge_arrays(folder, rng)),
        "header": (0.12, lambda: forge_header(folder, rng)),
        "bytes": (0.10, lambda: forge_bytes(folder, rng)),
        "join": (0.04, lambda: join_models(folder, pick(rng, others), rng)),
    }
    shares = np.array([share for share, _ in ways.values()])
    name = list(ways)[int(rng.choice(len(ways), p=shares / shares.sum()))]
    ways[name][1]()
    return name
