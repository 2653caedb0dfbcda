"""A fitted ``PNPDiscoverer`` as a folder, and back.

Knows what of a fitted model has to be kept, and what must hold for it to work: no training, no torch of its
own. What is saved was checked as if it had been loaded, and so can be.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.geometry import Geometry, Whitening
from pnp_gcd.labelling import Labelling
from pnp_gcd.labels import check_missing_label, join_classes
from pnp_gcd.model_files import Arrays, ModelFiles, read_folder, write_folder
from pnp_gcd.parameters import read_settings
from pnp_gcd.plain_values import (
    RowLabels,
    from_plain,
    pack_labels,
    pack_rows,
    to_plain,
    unpack_labels,
    unpack_rows,
)
from pnp_gcd.refinement import Discriminant

__all__ = ["load_model", "save_model"]

_Model = TypeVar("_Model")

_ARRAYS, _BACKBONE = "arrays.safetensors", "backbone.safetensors"
_ENCODER = "encoder."
_PACKAGES = {"pnp_gcd": "pnp-gcd", "torch": "torch", "scikit-learn": "scikit-learn", "numpy": "numpy"}
# Lengths of unit rows and cosines are 1 up to rounding.
_UNIT = 1.001
# Numbers beyond these are none of a fit, and would overflow in predict.
_MAX_WEIGHT, _MAX_CENTRE = 1e9, 1e31
_SHARPNESS = 1e-9, 1e9
# Containers of set_output.
_OUTPUTS = ("default", "pandas", "polars")
# What reading values of the wrong kind may raise.
_PROVOKED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
# Attributes that are kept as they are, and the types they have.
_VALUES: dict[str, type] = {
    "n_clusters_interval_": tuple,
    "n_neighbors_": numbers.Integral,
    "similarity_threshold_": numbers.Real,
    "resolution_": numbers.Real,
    "history_": list,
    "calibration_": list,
    "_sharpness": numbers.Real,
}
# Attributes that others tell, or that are kept in another form.
_MADE_AGAIN = {
    "known_classes_",
    "novel_classes_",
    "classes_",
    "n_clusters_",
    "labels_",
    "unlabelled_labels_",
    "prototypes_",
    "prototype_labels_",
    "encoder_",
    "n_iter_",
    "whitening_",
    "n_features_in_",
    "feature_names_in_",
    "_position",
    "_homes",
    "_is_confirmed",
    "_usual_closeness",
    "_geometry",
    "_labelling",
    "_image_mode",
    "_n_features_out",
    "_sklearn_output_config",
}


def save_model(
    model: Any, path: str | os.PathLike[str], *, include_backbone: bool = False, overwrite: bool = False
) -> None:
    """Write a fitted model into a folder. See :meth:`pnp_gcd.PNPDiscoverer.save`."""
    from pnp_gcd.packing import describe_images, pack_backbone, pack_network

    _check_parameters(model)
    mode = model._image_mode
    if include_backbone and mode is None:
        raise ValueError(
            "include_backbone=True, but the model was fitted on feature vectors and has no backbone. Leave "
            "it out."
        )
    notes: list[str] = []
    content, arrays = _pack_state(model)
    content["parameters"] = _pack_parameters(model, notes)
    content["images"] = None if mode is None else to_plain(describe_images(mode))
    content["notes"] = notes + _note_left_out(model)
    arrays |= {_ENCODER + name: array for name, array in pack_network(model.encoder_).items()}
    _check_finite(arrays)
    _unpack_state(content, arrays)  # what cannot be loaded is not saved
    files = {_ARRAYS: arrays}
    if include_backbone:
        files[_BACKBONE] = pack_backbone(mode)
    write_folder(path, ModelFiles(content, files, _tell_versions()), overwrite=overwrite)


def load_model(cls: type[_Model], path: str | os.PathLike[str]) -> _Model:
    """Return the model of a folder. See :meth:`pnp_gcd.PNPDiscoverer.load`."""
    files = read_folder(path)
    with _telling(path):
        content, arrays = files.content, files.arrays[_ARRAYS]
        model = _make_model(cls, content["parameters"])
        _check_finite(arrays)
        state = _unpack_state(content, arrays)
        state |= _load_networks(content["images"], files.arrays, state["_geometry"])
        vars(model).update(state)
        output = content.get("set_output")
        _require(output is None or output in _OUTPUTS, f"set_output={str(output)[:60]} is none")
        if output is not None:
            model.set_output(transform=output)  # type: ignore[attr-defined]
    return model


def _tell_versions() -> dict[str, str]:
    versions = {}
    for name, package in _PACKAGES.items():
        try:
            versions[name] = metadata.version(package)
        except metadata.PackageNotFoundError:  # a source tree that was never installed
            versions[name] = "unknown"
    return versions


@contextmanager
def _telling(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a forged folder provokes into the one named error, with its path."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f'The model in "{os.fspath(path)}" cannot be loaded: {error}') from error
    except _PROVOKED as error:
        raise ModelFileError(
            f'The model in "{os.fspath(path)}" cannot be loaded: it holds what save does not write '
            f"({type(error).__name__}: {error!s:.200}). Save it again where it was fitted."
        ) from error


# --- parameters --------------------------------------------------------------------------------------------


def _pack_parameters(model: Any, notes: list[str]) -> dict[str, Any]:
    packed = {}
    for name, value in model.get_params(deep=False).items():
        try:
            packed[name] = to_plain(value)
        except TypeError:
            if name not in ("random_state", "missing_label"):
                raise TypeError(
                    f"{name}={value!r:.60} cannot be saved: it is a {type(value).__name__}. Pass a plain "
                    "value: a number, a string, a path, None, or a pair of numbers."
                ) from None
            packed[name] = None
            notes.append(
                f"{name} was a {type(value).__name__}, which is not saved: it is None in this model."
            )
    return packed


def _make_model(cls: type[_Model], packed: Any) -> _Model:
    """Return an unfitted model; parameters that this version has and the file has not keep their default."""
    known = cls._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted(set(packed) - set(known))
    if unknown:
        raise ModelFileError(f"its parameters {', '.join(unknown)[:200]} are not known to this version.")
    model: Any = cls(**{name: from_plain(value) for name, value in packed.items()})
    _check_parameters(model)
    made: _Model = model
    return made


def _check_parameters(model: Any) -> None:
    """Refuse what a fit would refuse."""
    model._validate_params()
    read_settings(model, 0)
    check_missing_label(model.missing_label)


def _note_left_out(model: Any) -> list[str]:
    """Name what others have put on the model, which is not saved."""
    ours = {*_VALUES, *_MADE_AGAIN, *model.get_params(deep=False)}
    return [f"{name} is not saved." for name in sorted(set(vars(model)) - ours)]


# --- what was fitted ---------------------------------------------------------------------------------------


def _pack_state(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return what was fitted, the networks apart: plain values, and arrays by their names."""
    geometry, labelling = model._geometry, model._labelling
    rows = {name: pack_rows(getattr(model, name)) for name in ("labels_", "unlabelled_labels_")}
    names = getattr(model, "feature_names_in_", None)
    content = {
        "known_classes": pack_labels(model.known_classes_),
        "novel_classes": pack_labels(model.novel_classes_),
        "is_confirmed": model._is_confirmed.tolist(),
        "rows": {name: packed.distinct for name, packed in rows.items()},
        "values": {name: to_plain(getattr(model, name)) for name in _VALUES},
        "geometry": {"lift": to_plain(float(geometry.lift)), "whitening": geometry.whitening},
        "n_known": int(labelling.n_known),
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": None if names is None else pack_labels(names),
        "set_output": getattr(model, "_sklearn_output_config", {}).get("transform"),
    }
    arrays = {
        "geometry.centre": geometry.centre,
        "geometry.axes": geometry.axes,
        "geometry.scaling": geometry.scaling,
        "prototypes": labelling.prototypes,
        "prototype_classes": labelling.classes,
        "discriminant.axes": labelling.discriminant.axes,
        "discriminant.directions": labelling.discriminant.directions,
        "homes": model._homes,
        "usual_closeness": model._usual_closeness,
        **{name: packed.codes for name, packed in rows.items()},
    }
    return content, arrays


def _unpack_state(content: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the attributes of a fitted model, the networks apart; what cannot work together is an error."""
    geometry = _read_geometry(content["geometry"], arrays)
    labelling = _read_labelling(content["n_known"], arrays, geometry.n_columns)
    homes = _take(arrays, "homes", np.int64, (labelling.n_classes,))
    state = {
        "_geometry": geometry,
        "_labelling": labelling,
        "_homes": homes,
        "prototypes_": labelling.prototypes,
        "_n_features_out": labelling.prototypes.shape[1],
        "whitening_": geometry.whitening,
        **_read_classes(content, labelling, homes),
        **_read_values(content["values"]),
        **_read_features(content, geometry),
    }
    for name in ("labels_", "unlabelled_labels_"):
        state[name] = unpack_rows(RowLabels(content["rows"][name], arrays[name]))
    closeness = _take(arrays, "usual_closeness", np.float64, (-1,))
    _require(len(closeness) > 0 and bool((np.diff(closeness) >= 0).all()), "usual_closeness must rise")
    _require(max(-closeness[0], closeness[-1]) <= _UNIT, "usual_closeness must lie from -1 to 1")
    return state | {"_usual_closeness": closeness, "n_iter_": len(state["history_"])}


def _read_geometry(facts: Any, arrays: Arrays) -> Geometry:
    centre = _take(arrays, "geometry.centre", np.float64, (-1,))
    axes = _take(arrays, "geometry.axes", np.float32, (len(centre), -1))
    scaling = _take(arrays, "geometry.scaling", np.float32, (axes.shape[1], -1))
    lift, whitening = from_plain(facts["lift"]), facts["whitening"]
    _require(type(lift) is float and 0.0 <= lift < np.inf, f"lift={lift!r} must be 0 or more")
    allowed = (*get_args(get_args(Whitening)[0]), None)
    _require(whitening in allowed, f"whitening={whitening!r} must be one of {allowed}")
    _require(float(np.abs(centre).max(initial=0.0)) <= _MAX_CENTRE, "geometry.centre is too large")
    _require(min(len(centre), *scaling.shape) > 0, "the geometry has no columns")
    return Geometry(centre, axes, scaling, lift, whitening)


def _read_labelling(n_known: Any, arrays: Arrays, width: int) -> Labelling:
    prototypes = _take(arrays, "prototypes", np.float32, (-1, width))
    classes = _take(arrays, "prototype_classes", np.int64, (len(prototypes),))
    directions = _take(arrays, "discriminant.directions", np.float32, (-1, width))
    axes = _take(arrays, "discriminant.axes", np.float32, (width, width))
    n_classes = len(directions)
    for name, rows in (("prototypes", prototypes), ("discriminant.directions", directions)):
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        _require(bool((np.abs(lengths - 1.0) < _UNIT - 1.0).all()), f"{name} must be rows of length 1")
    _require(_holds_each(classes, n_classes), f"each of the {n_classes} classes needs a prototype")
    _require(type(n_known) is int and 0 <= n_known <= n_classes, f"n_known={n_known!r} is none")
    return Labelling(prototypes, classes, Discriminant(axes, directions), n_known, n_classes)


def _read_classes(content: dict[str, Any], labelling: Labelling, homes: NDArray[np.int64]) -> dict[str, Any]:
    known, novel = (unpack_labels(content[name]) for name in ("known_classes", "novel_classes"))
    classes, position = join_classes(known, novel)
    _require(_holds_each(homes, len(classes)), f"each of the {len(classes)} classes needs a part of the fit")
    confirmed = content["is_confirmed"]
    _require(
        isinstance(confirmed, list) and len(confirmed) == len(novel) and set(map(type, confirmed)) <= {bool},
        "is_confirmed must tell of each new class whether a person has named it",
    )
    return {
        "known_classes_": known,
        "novel_classes_": novel,
        "classes_": classes,
        "_position": position,
        "n_clusters_": len(classes),
        "prototype_labels_": classes[position][homes[labelling.classes]],
        "_is_confirmed": np.array(confirmed, dtype=bool),
    }


def _read_values(packed: Any) -> dict[str, Any]:
    values = {name: from_plain(packed[name]) for name in _VALUES}
    for name, value in values.items():
        _require(isinstance(value, _VALUES[name]), f"{name}={str(value)[:60]} is of another type")
    interval = values["n_clusters_interval_"]
    _require(
        len(interval) == 2
        and all(isinstance(number, numbers.Integral) for number in interval)
        and interval[0] <= interval[1],
        f"n_clusters_interval_={str(interval)[:60]} must be two rising whole numbers",
    )
    low, high = _SHARPNESS
    _require(
        low <= values["_sharpness"] <= high, f"_sharpness={values['_sharpness']} is not from {low} to {high}"
    )
    for name in ("history_", "calibration_"):
        _require(all(type(row) is dict for row in values[name]), f"{name} must be a list of dicts")
    return values


def _read_features(content: dict[str, Any], geometry: Geometry) -> dict[str, Any]:
    """Return what scikit-learn keeps about columns; models of images have none."""
    n_features, names = content["n_features_in"], content["feature_names_in"]
    if content["images"] is not None:
        _require(n_features is None and names is None, "images have no columns")
        return {}
    width = len(geometry.centre)
    _require(type(n_features) is int and n_features == width, f"n_features_in={n_features!r} is not {width}")
    if names is None:
        return {"n_features_in_": n_features}
    columns = unpack_labels(names)
    _require(columns.dtype == object and len(columns) == width, f"{width} columns need a name each")
    _require(all(type(column) is str for column in columns), "names of columns must be strings")
    return {"n_features_in_": n_features, "feature_names_in_": columns}


def _load_networks(images: Any, arrays: dict[str, Arrays], geometry: Geometry) -> dict[str, Any]:
    from pnp_gcd.packing import restore_adapter, restore_encoder, restore_images

    weights = {
        name.removeprefix(_ENCODER): array
        for name, array in arrays[_ARRAYS].items()
        if name.startswith(_ENCODER)
    }
    for name, array in weights.items():
        is_learnt = array.dtype.kind == "f" and name not in ("centre", "axes")
        _require(
            not is_learnt or float(np.abs(array).max(initial=0.0)) <= _MAX_WEIGHT, f"{name} is too large"
        )
    if images is None:
        return {"_image_mode": None, "encoder_": restore_adapter(weights, geometry.n_columns)}
    mode = restore_images(from_plain(images), arrays.get(_BACKBONE))
    return {"_image_mode": mode, "encoder_": restore_encoder(mode, weights, geometry)}


# --- checks ------------------------------------------------------------------------------------------------


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ModelFileError(f"{what}.")


def _take(arrays: Arrays, name: str, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of that type and shape; −1 is any length."""
    if name not in arrays:
        raise ModelFileError(f"the array {name} is missing.")
    array = arrays[name]
    is_fitting = array.ndim == len(shape) and all(
        want in (-1, found) for want, found in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not is_fitting:
        wanted = tuple("any" if want == -1 else want for want in shape)
        raise ModelFileError(
            f"{name} is {array.dtype} of shape {array.shape}, but needs to be {np.dtype(dtype)} of {wanted}."
        )
    return array


def _holds_each(codes: NDArray[np.int64], n_codes: int) -> bool:
    """Tell whether codes are all those from 0 to ``n_codes`` − 1."""
    return n_codes > 0 and np.array_equal(np.unique(codes), np.arange(n_codes))


def _check_finite(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{name} holds numbers that are not finite. Fit the model again.")
