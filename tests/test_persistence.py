"""A saved model: what comes back, what is refused, and what a failure leaves behind."""

import copy
import errno
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import make_world
from safetensors.numpy import load_file, save
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pnp_gcd import PNPDiscoverer
from pnp_gcd.atomic_files import swap
from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.plain_values import from_plain, to_plain

QUICK = {"max_iter": 1, "n_neighbors": 5, "whitening": None, "hidden_width": 8, "random_state": 0}
ANSWERS = ("predict", "predict_proba", "transform", "novelty_score", "typicality", "decision_function")
FORMAT_1 = Path(__file__).parent / "saved_models" / "format_1"


@pytest.fixture(scope="module")
def world():
    return make_world(120, 4, 2, width=6)


def fit(world, names=None, **changes):
    X, y = world.labelled
    y = y if names is None else np.asarray(names)[y]
    return PNPDiscoverer(**{"n_clusters": 4} | QUICK | changes).fit(X, y, world.rest)


@pytest.fixture(scope="module")
def fitted(world):
    return fit(world)


@pytest.fixture
def saved(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def again(model, tmp_path, **options):
    model.save(tmp_path / "again", **options)
    return PNPDiscoverer.load(tmp_path / "again")


def assert_same(found, expected, name=""):
    """Equal in type, dtype and every bit."""
    assert type(found) is type(expected), name
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype, name
        assert found.shape == expected.shape, name
        if expected.dtype == object:
            assert [(type(a), a) for a in found.ravel()] == [(type(a), a) for a in expected.ravel()], name
        else:
            assert found.tobytes() == expected.tobytes(), name
    elif isinstance(expected, torch.nn.Module):
        weights = expected.state_dict()
        assert set(found.state_dict()) == set(weights)
        assert all(torch.equal(tensor, weights[key]) for key, tensor in found.state_dict().items()), name
        assert found.training == expected.training, name
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), name
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b, name)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), name
        for key in expected:
            assert_same(found[key], expected[key], key)
    elif hasattr(expected, "__dataclass_fields__"):
        assert_same(vars(found), vars(expected), name)
    else:
        assert found == expected or (found != found and expected != expected), name


def assert_same_model(found, expected, X):
    assert set(vars(found)) == set(vars(expected))
    for name, value in vars(expected).items():
        if name != "_image_mode":
            assert_same(getattr(found, name), value, name)
    for method in ANSWERS:
        assert_same(getattr(found, method)(X), getattr(expected, method)(X), method)


# --- what comes back ---------------------------------------------------------------------------------------


def test_a_loaded_model_has_every_attribute_and_answers_to_the_last_bit(fitted, world, tmp_path):
    assert_same_model(again(fitted, tmp_path), fitted, world.X)


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1], dtype=np.int8),
        np.array([3, 2**63 + 5], dtype=np.uint64),
        np.array([0.0, 1.0]),
        np.array([0.0, 1.0], dtype=np.float32),
        np.array([False, True]),
        np.array(["cat", "d\u00f6g \U0001f415"], dtype="<U40"),
        np.array(["cat", "dog"], dtype=object),
        np.array([-7, 10**30], dtype=object),
        np.array([">", "<"], dtype=">U1"),
    ],
    ids=lambda names: f"{names.dtype}",
)
def test_labels_come_back_in_their_own_type(world, tmp_path, names):
    model = fit(world, names)
    assert_same_model(again(model, tmp_path), model, world.X)


def test_clustering_without_labels_and_labels_without_a_pool_come_back(world, tmp_path):
    for number, model in enumerate(
        (PNPDiscoverer(3, **QUICK).fit(world.X), PNPDiscoverer(**QUICK).fit(world.X, world.y))
    ):
        model.save(tmp_path / str(number))
        assert_same_model(PNPDiscoverer.load(tmp_path / str(number)), model, world.X)


def test_parameters_come_back_in_their_own_type(world, tmp_path):
    model = fit(
        world,
        n_clusters=np.int64(4),
        temperature=np.float32(0.1),
        teacher_temperature=np.array([0.07, 0.04]),
        teacher_momentum=[0.7, 0.99],
        merge_threshold=np.inf,
        missing_label=np.nan,
        cache_dir=Path("kept") / "views",
        n_components=None,
        random_state=np.int32(5),
    )
    loaded = again(model, tmp_path).get_params()
    for name, value in model.get_params().items():
        assert_same(loaded[name], value, name)


def test_attributes_may_be_numbers_of_numpy(world, tmp_path):
    model = fit(world)
    model.similarity_threshold_ = np.float64(0.25)
    model.n_clusters_interval_ = (np.int64(3), np.int64(5))
    assert_same_model(again(model, tmp_path), model, world.X)


def test_a_model_whose_settings_were_calibrated_comes_back(world, tmp_path):
    X, y = world.labelled
    model = PNPDiscoverer(random_state=0, max_iter=2).fit(X, y, world.rest)
    assert model.calibration_
    assert_same_model(again(model, tmp_path), model, world.X)


def test_a_random_state_that_cannot_be_written_is_none_and_noted(world, tmp_path):
    model = fit(world, random_state=np.random.RandomState(0))
    assert again(model, tmp_path).random_state is None
    notes = json.loads((tmp_path / "again" / "model.json").read_text())["content"]["notes"]
    assert notes == ["random_state was a RandomState, which is not saved: it is None in this model."]


def test_names_of_columns_and_the_chosen_output_come_back(world, tmp_path):
    frame = pd.DataFrame(world.X, columns=list("abcdef"))
    model = PNPDiscoverer(4, **QUICK).fit(frame, np.where(world.has_label, world.y, -1))
    loaded = again(model.set_output(transform="pandas"), tmp_path)
    assert_same(loaded.feature_names_in_, model.feature_names_in_)
    pd.testing.assert_frame_equal(loaded.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[list("fedcba")])


def test_precomputed_views_come_back(world, tmp_path):
    views = np.stack([world.X, world.X + 0.01], axis=1)
    model = PNPDiscoverer(4, **QUICK).fit(views, np.where(world.has_label, world.y, -1))
    assert_same_model(again(model, tmp_path), model, views)


def test_a_loaded_model_can_be_cloned_pickled_saved_and_fitted_again(fitted, world, saved, tmp_path):
    loaded = PNPDiscoverer.load(saved)
    assert not hasattr(clone(loaded), "classes_")
    assert_same_model(pickle.loads(pickle.dumps(loaded)), fitted, world.X)
    loaded.save(tmp_path / "second")
    for name in ("model.json", "arrays.safetensors"):
        assert (tmp_path / "second" / name).read_bytes() == (saved / name).read_bytes()
    X, y = world.labelled
    refitted = loaded.fit(X, y, world.rest)
    assert np.array_equal(refitted.predict_proba(world.X), fitted.predict_proba(world.X))


def test_another_process_gets_the_same_bits(fitted, world, saved, tmp_path):
    np.save(tmp_path / "X.npy", world.X)
    program = (
        "import sys, hashlib, numpy as np\nfrom pnp_gcd import PNPDiscoverer\n"
        "model, X = PNPDiscoverer.load(sys.argv[1]), np.load(sys.argv[2])\n"
        "print(hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest())"
    )
    command = [sys.executable, "-c", program, str(saved), str(tmp_path / "X.npy")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == hashlib.sha256(fitted.predict_proba(world.X).tobytes()).hexdigest()


def test_neither_save_nor_load_uses_pickle(fitted, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("pickle was used")

    for owner, names in ((pickle, ("dump", "dumps", "load", "loads")), (torch, ("save", "load"))):
        for name in names:
            monkeypatch.setattr(owner, name, refuse)
    assert again(fitted, tmp_path).n_clusters_ == 4


def test_the_folder_says_in_plain_words_what_wrote_it(saved):
    document = json.loads((saved / "model.json").read_text())
    assert document["format"] == "pnp_gcd.PNPDiscoverer"
    assert document["format_version"] == 1
    assert document["versions"]["numpy"] == np.__version__
    assert set(document["versions"]) == {"pnp_gcd", "torch", "scikit-learn", "numpy"}
    assert sorted(path.name for path in saved.iterdir()) == ["arrays.safetensors", "model.json"]


def test_a_model_of_format_1_is_still_read():
    model = PNPDiscoverer.load(FORMAT_1)
    expected = json.loads((FORMAT_1.parent / "format_1_answers.json").read_text())
    X = pd.DataFrame(expected["X"], columns=model.feature_names_in_)
    assert model.classes_.tolist() == expected["classes"]
    assert model.confirmed_classes_.tolist() == expected["confirmed"]
    assert model.predict(X).tolist() == expected["predict"]
    np.testing.assert_allclose(model.predict_proba(X), expected["predict_proba"], atol=1e-5)
    np.testing.assert_allclose(model.typicality(X), expected["typicality"], atol=5e-3)


PLAIN = (
    None, True, 0, -(10**40), 0.1, -0.0, np.nan, np.inf, -np.inf, "", "\udc80\n\0", (1, (2.5, None)),
    [1, [2]], np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("a b"), np.float64(np.nan), Path("a/b"),
    np.array([[1, 2], [3, 4]], dtype=np.int16), np.array(3.5), {"a": (1, {"b": np.nan})},
)  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=ascii)
def test_a_plain_value_survives_json(value):
    assert_same(from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False))), value)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"x", 10**300, {1: 2}, {"$tuple": 1}, 1j, np.datetime64("now")]
)
def test_what_is_no_plain_value_is_refused(value):
    with pytest.raises(TypeError):
        to_plain(value)


# --- where it is written -----------------------------------------------------------------------------------


def test_an_existing_path_is_left_alone_without_overwrite(fitted, saved):
    before = (saved / "model.json").read_bytes()
    with pytest.raises(FileExistsError, match="pass overwrite=True to replace"):
        fitted.save(saved)
    assert (saved / "model.json").read_bytes() == before


def test_overwrite_replaces_a_saved_model_even_a_damaged_one(fitted, world, saved):
    other = fit(world, ["cat", "dog"])
    other.save(saved, overwrite=True)
    assert_same_model(PNPDiscoverer.load(saved), other, world.X)
    (saved / "arrays.safetensors").write_bytes(b"damaged")
    fitted.save(saved, overwrite=True)
    assert_same_model(PNPDiscoverer.load(saved), fitted, world.X)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("content", [{"notes.txt": "mine"}, {"model.json": '{"of": "another tool"}'}])
def test_overwrite_refuses_a_folder_that_is_no_saved_model(fitted, tmp_path, content):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text)
    with pytest.raises(FileExistsError, match="only a folder with nothing but a saved model is overwritten"):
        fitted.save(folder, overwrite=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == content


def test_overwrite_refuses_a_saved_model_with_other_files_in_it(fitted, saved):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds notes\.txt"):
        fitted.save(saved, overwrite=True)
    assert (saved / "notes.txt").read_text() == "mine"


def test_overwrite_refuses_a_file_and_takes_an_empty_folder(fitted, world, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file"):
        fitted.save(tmp_path / "file", overwrite=True)
    (tmp_path / "empty").mkdir()
    fitted.save(tmp_path / "empty", overwrite=True)
    assert_same_model(PNPDiscoverer.load(tmp_path / "empty"), fitted, world.X)


def test_a_link_to_a_folder_stays_a_link(fitted, world, saved):
    link = saved.with_name("link")
    link.symlink_to(saved)
    fitted.save(link, overwrite=True)
    assert link.is_symlink()
    assert_same_model(PNPDiscoverer.load(link), fitted, world.X)


def test_a_missing_parent_and_an_unfitted_model_are_told(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="Make it first"):
        fitted.save(tmp_path / "no" / "model")
    with pytest.raises(NotFittedError):
        PNPDiscoverer().save(tmp_path / "model")
    with pytest.raises(ValueError, match="fitted on feature vectors and has no backbone"):
        fitted.save(tmp_path / "model", include_backbone=True)
    assert not list(tmp_path.iterdir())


def fail_at(monkeypatch, name, nth, error):
    real, calls = getattr(os, name), []

    def call(*args):
        calls.append(args)
        if len(calls) == nth:
            raise error
        return real(*args)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize(
    ("name", "nth"), [("fsync", 1), ("fsync", 2), ("mkdir", 1), ("rename", 1), ("rename", 2)]
)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_previous_model_and_nothing_else(
    fitted, world, saved, monkeypatch, name, nth, error
):
    other = fit(world, ["cat", "dog"])
    with monkeypatch.context() as patched:
        patched.setattr("pnp_gcd.model_files.swap", lambda one, other: False)  # as on other systems
        fail_at(patched, name, nth, error)
        with pytest.raises(type(error)):
            other.save(saved, overwrite=True)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]
    assert_same_model(PNPDiscoverer.load(saved), fitted, world.X)


def test_overwrite_is_one_step_where_the_system_can_swap(fitted, world, saved, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "inside").touch()
    if not swap(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system swaps no folders")
    assert (tmp_path / "b" / "inside").exists()
    assert not (tmp_path / "a" / "inside").exists()
    assert not swap(tmp_path / "a", tmp_path / "nowhere")
    other = fit(world, ["cat", "dog"])
    monkeypatch.setattr(os, "rename", None)  # there is no moment without a model
    other.save(saved, overwrite=True)
    assert_same_model(PNPDiscoverer.load(saved), other, world.X)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "model"]


@pytest.mark.parametrize(("name", "nth"), [("fsync", 1), ("fsync", 2), ("rename", 1)])
def test_a_failure_leaves_nothing_where_nothing_was(fitted, tmp_path, monkeypatch, name, nth):
    fail_at(monkeypatch, name, nth, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        fitted.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_an_overwrite_that_a_power_cut_ended_tells_where_the_model_is(fitted, world, saved):
    aside = saved.with_name(".model.0123abcd.previous")
    saved.rename(aside)
    with pytest.raises(FileNotFoundError, match=r"rename .*\.model\.0123abcd\.previous"):
        PNPDiscoverer.load(saved)
    aside.rename(saved)
    assert_same_model(PNPDiscoverer.load(saved), fitted, world.X)


def test_a_parameter_that_cannot_be_written_is_told_before_anything_is(world, tmp_path):
    for name, value in {"temperature": -1.0, "teacher_momentum": (2, 1), "missing_label": []}.items():
        with pytest.raises((ValueError, TypeError), match=name):
            fit(world).set_params(**{name: value}).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


# --- damaged and forged files ------------------------------------------------------------------------------


def rewrite(folder, change):
    """Change a model's document and arrays, and make all digests right again: a forgery."""
    document = json.loads((folder / "model.json").read_text())
    arrays = load_file(folder / "arrays.safetensors")
    change(document, arrays)
    data = save({name: np.array(array, order="C") for name, array in arrays.items()})
    (folder / "arrays.safetensors").write_bytes(data)
    document["files"]["arrays.safetensors"] = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    document.pop("sha256", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    document = {"sha256": hashlib.sha256(text.encode()).hexdigest()} | document
    (folder / "model.json").write_text(json.dumps(document))


def test_a_rewritten_document_with_the_right_digests_is_read(fitted, world, saved):
    rewrite(saved, lambda document, arrays: None)
    assert_same_model(PNPDiscoverer.load(saved), fitted, world.X)


def set_at(path, value):
    """Return a change of the document, at a path of keys."""

    def change(document, arrays):
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def set_array(name, value):
    def change(document, arrays):
        arrays[name] = value(arrays[name]) if callable(value) else value

    return change


def drop_array(name):
    return lambda document, arrays: arrays.pop(name)


def set_new_classes(values, dtype="<i8"):
    return set_at(["content", "novel_classes"], {"dtype": dtype, "values": values})


FORGED = {
    "a newer format": (set_at(["format_version"], 2), "of format 2, written by pnp_gcd .* Upgrade pnp_gcd"),
    "no format version": (set_at(["format_version"], "1"), "format_version='1' is none"),
    "another format": (set_at(["format"], "else"), "is not of a saved PNPDiscoverer"),
    "a strange file": (set_at(["files", "../../secret"], {"bytes": 1, "sha256": ""}), "its list of files"),
    "no content": (set_at(["content"], []), "it holds no content"),
    "an unknown parameter": (set_at(["content", "parameters", "run"], "rm"), "run are not known"),
    "a wrong parameter": (set_at(["content", "parameters", "temperature"], -1), "temperature"),
    "a wrong pair": (set_at(["content", "parameters", "teacher_momentum"], [2, 1]), "teacher_momentum"),
    "a marker that is none": (set_at(["content", "parameters", "missing_label"], [1]), "missing_label"),
    "an unknown value": (set_at(["content", "parameters", "verbose"], {"$run": "1"}), r"\$run: 1 is no"),
    "too many known classes": (set_at(["content", "n_known"], 9), "n_known=9 is none"),
    "an unknown dtype": (set_new_classes([2, 3], "|V8"), r"dtype '\|V8' is none"),
    "huge labels": (set_new_classes(["a"] * 99, "<U9999999"), "bytes"),
    "a value too large": (set_new_classes([2, 300], "|i1"), "int8"),
    "a text that is cut": (set_new_classes(["ab", "c"], "<U1"), "<U1"),
    "a name beside many": (set_new_classes(["a" * 10**6] + ["b"] * 10**4, "<U1000000"), "bytes"),
    "long rows": (
        set_at(["content", "rows", "labels_"], {"dtype": "<U5000000", "values": ["0", "1"]}), "labels of",
    ),
    "a list as a label": (set_new_classes([[1], 2], "|O"), "labels"),
    "texts beside numbers": (set_new_classes(["a", "b"], "|O"), "sorted"),
    "a class twice": (set_new_classes([3, 3]), "occurs twice"),
    "a class too many": (set_new_classes([2, 3, 4]), "each of the 5 classes"),
    "a wrong type": (set_at(["content", "values", "_sharpness"], "2"), "_sharpness=2 is of another type"),
    "no sharpness": (set_at(["content", "values", "_sharpness"], {"$float": "nan"}), "_sharpness=nan is not"),
    "a falling interval": (
        set_at(["content", "values", "n_clusters_interval_"], {"$tuple": [5, 3]}), "two rising whole numbers",
    ),
    "a wrong lift": (set_at(["content", "geometry", "lift"], -1.0), r"lift=-1\.0 must be 0 or more"),
    "a wrong whitening": (set_at(["content", "geometry", "whitening"], "black"), "whitening='black'"),
    "wrong columns": (set_at(["content", "n_features_in"], 7), "n_features_in=7 is not 6"),
    "an output that is none": (set_at(["content", "set_output"], "exe"), "set_output=exe is none"),
    "confirmed by a number": (set_at(["content", "is_confirmed"], [0, 1]), "is_confirmed must tell"),
    "a missing part": (lambda document, arrays: document["content"].pop("rows"), "KeyError: 'rows'"),
    "a missing array": (drop_array("homes"), "the array homes is missing"),
    "missing weights": (drop_array("encoder.norm.bias"), "norm.bias are in one of both only"),
    "weights too many": (set_array("encoder.more", np.zeros(1)), "more are in one of both only"),
    "other weights": (set_array("encoder.norm.bias", np.zeros(3, np.float32)), r"norm.bias of the encoder"),
    "a wide layer": (set_array("encoder.expand.weight", np.zeros((4, 1), np.float32)), "is needed"),
    "NaN weights": (set_array("encoder.norm.bias", lambda a: a * np.nan), "not finite"),
    "a wrong shape": (set_array("geometry.axes", lambda a: a[:, :, None]), r"geometry\.axes is float32 of"),
    "a wrong precision": (set_array("prototypes", lambda a: a.astype(np.float64)), "prototypes is float64"),
    "a class beyond": (set_array("prototype_classes", lambda a: a + 1), "needs a prototype"),
    "a home beyond": (set_array("homes", lambda a: a * 2), "needs a part of the fit"),
    "a row beyond": (set_array("labels_", lambda a: a + 9), "codes of rows go beyond the 2 labels"),
    "a falling scale": (set_array("usual_closeness", lambda a: a[::-1]), "usual_closeness must rise"),
    "an empty scale": (set_array("usual_closeness", lambda a: a[:0]), "usual_closeness must rise"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_model_is_refused_by_name(saved, kind):
    change, told = FORGED[kind]
    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=told):
        PNPDiscoverer.load(saved)


def test_what_is_missing_or_no_folder_is_told(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        PNPDiscoverer.load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="a saved model is a folder"):
        PNPDiscoverer.load(saved / "model.json")
    with pytest.raises(ModelFileError, match=r"has no model\.json"):
        PNPDiscoverer.load(tmp_path)
    (saved / "arrays.safetensors").unlink()
    with pytest.raises(ModelFileError, match="the file is missing"):
        PNPDiscoverer.load(saved)


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
def test_a_pipe_in_place_of_a_file_does_not_hang(saved, name):
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(ModelFileError, match="no plain file"):
        PNPDiscoverer.load(saved)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 2}', "9" * 5000, '{"format": "\u00fc"}'],
    ids=["empty", "list", "open", "deep", "NaN", "twice", "long", "not ASCII"],
)
def test_a_document_that_is_no_json_of_ours_is_refused(saved, text):
    (saved / "model.json").write_text(text)
    with pytest.raises(ModelFileError):
        PNPDiscoverer.load(saved)


def damage(data, rng):
    """Return bytes with some flipped, cut off, left out, or doubled."""
    place = int(rng.integers(len(data)))
    kind = rng.integers(4)
    if kind == 0:
        return data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]
    if kind == 1:
        return data[:place]
    length = int(rng.integers(1, 9))
    return data[:place] + (data[place : place + length] * 2 if kind == 2 else b"") + data[place + length :]


def check_damaged(folder, n_trials, seed):
    """Damage a model in many ways: it is refused, or is the same model."""
    rng = np.random.default_rng(seed)
    original = PNPDiscoverer.load(folder)
    X = np.random.default_rng(0).normal(0, 8, (9, original.n_features_in_))
    files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    n_refused = 0
    for _ in range(n_trials):
        path = list(files)[int(rng.integers(len(files)))]
        path.write_bytes(damage(files[path], rng))
        try:
            assert_same_model(PNPDiscoverer.load(folder), original, X)
        except ModelFileError:
            n_refused += 1
        path.write_bytes(files[path])
    return n_refused


NASTY = (
    None, True, -1, 0, 10**30, 0.5, 1e308, "", "\0", "auto", "../..", [], {}, [[]], {"$tuple": []},
    {"$float": "nan"}, {"$numpy": ["<i8", 2**63]}, {"$path": "\0"},
    {"$array": {"dtype": "<f8", "values": [], "shape": [0, 10**12]}}, {"dtype": "<U1", "values": []},
)  # fmt: skip


def forge(document, arrays, rng):
    """Put something unlikely somewhere into the content, or into an array."""
    if rng.random() < 0.4:
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        array = arrays[name]
        changes = (
            lambda: arrays.pop(name),
            lambda: arrays.update({name: array[: len(array) // 2]}),
            lambda: arrays.update({name: array.astype(np.int64 if array.dtype.kind == "f" else np.float32)}),
            lambda: arrays.update({name: array * 0}),
            lambda: arrays.update({name: array * -1000}),
            lambda: arrays.update({name: array[::-1].copy()}),
            lambda: arrays.update({name: array[None]}),
        )
        changes[int(rng.integers(len(changes)))]()
        return
    place = document["content"]
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(rng.integers(len(keys)))]
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            break
        place = inner
    if rng.random() < 0.2:
        place.pop(key)
    else:
        place[key] = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])


def check_forged(folder, n_trials, seed):
    """Forge a model in many ways: it is refused, or it answers without an error."""
    rng = np.random.default_rng(seed)
    X = np.random.default_rng(0).normal(0, 8, (9, PNPDiscoverer.load(folder).n_features_in_))
    files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    n_refused = 0
    for _ in range(n_trials):
        rewrite(folder, lambda document, arrays: forge(document, arrays, rng))
        try:
            model = PNPDiscoverer.load(folder)
        except ModelFileError:
            n_refused += 1
        else:
            for method in ANSWERS:
                assert len(getattr(model, method)(X)) == len(X)
            assert len(model.predict(X, reject_below=0.01)) == len(model.confirm(X)) == len(X)
        for path, data in files.items():
            path.write_bytes(data)
    return n_refused


QUIET = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")


@pytest.fixture
def small_model(tmp_path):
    return Path(shutil.copytree(FORMAT_1, tmp_path / "small"))


@QUIET
def test_damage_is_told_or_does_no_harm(small_model):
    assert check_damaged(small_model, 300, seed=0) > 250


@QUIET
def test_a_forgery_is_told_or_does_no_harm(small_model):
    assert 100 < check_forged(small_model, 400, seed=0) < 400


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_much_damage_and_many_forgeries_are_told_or_do_no_harm(small_model, seed):
    check_damaged(small_model, 2000, seed)
    check_forged(small_model, 2000, seed)
