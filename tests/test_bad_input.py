"""Every line of docs/bad_input.md is tried here, or names the test that tries it."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import make_world
from scipy.sparse import csr_array
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils._param_validation import InvalidParameterError

from pnp_gcd import PNPDiscoverer
from pnp_gcd.exceptions import (
    BackboneError,
    BadImageError,
    DiscoveryWarning,
    EmptyGraphError,
    FeatureScaleWarning,
    LabelWarning,
)
from pnp_gcd.images import read_images
from pnp_gcd.model_selection import (
    ClassHoldoutSplit,
    DiscoveryScorer,
    KeepUnlabelled,
    Transductive,
)

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "bad_input.md"
QUICK = {"max_iter": 1, "n_neighbors": 5, "whitening": None, "hidden_width": 8, "random_state": 0}
WORLD = make_world(60, 3, 2, width=4)
X, Y = WORLD.stacked
POOL = WORLD.rest


def fit(rows=X, y=Y, pool=None, **changes):
    return PNPDiscoverer(**{"n_clusters": 3} | QUICK | changes).fit(rows, y, pool)


def predict(rows):
    return fit().predict(rows)


def put(value, array=X):
    array = array.copy()
    array[0, 0] = value
    return array


def raises(error, match, *calls):
    """Return a case: each call raises that."""

    def case():
        for call in calls:
            with pytest.raises(error, match=match):
                call()

    return case


def warns(warning, call):
    def case():
        with pytest.warns(warning):
            call()

    return case


def fine(*calls):
    """Return a case: each call goes through, without a warning of ours, and has a class for every row."""

    def case():
        with warnings.catch_warnings():
            warnings.simplefilter("error", DiscoveryWarning)
            for call in calls:
                model = call()
                assert np.isin(model.labels_, model.classes_).all()

    return case


def all_known():
    model = fit(*WORLD.labelled, n_clusters=9)
    assert model.classes_.tolist() == [0, 1]
    return model


def gaps(marker):
    return np.where(Y < 0, None, Y).astype(object) if marker is None else [marker if v < 0 else v for v in Y]


def unused():
    labels = pd.Series(pd.Categorical(gaps(None), categories=[0, 1, 7]))
    model = fit(y=labels)
    assert model.known_classes_.tolist() == [0, 1]
    return model


def folds(splitter, y=Y):
    return list(splitter.split(X, y))


def wrapped(y=Y, estimator=None, rows=X, **changes):
    settings = {"missing_label": "auto"} | changes
    return Transductive(estimator or PNPDiscoverer(3, **QUICK), **settings).fit(rows, y)


def failing_fold():
    """A fit that fails only when it is asked: the search tells it, and goes on."""
    model = Transductive(PNPDiscoverer(3, **QUICK | {"n_neighbors": 500}), lazy=True)
    y = np.where(Y < 0, 1, Y)
    with pytest.warns(UserWarning, match="n_neighbors=500"):
        assert np.isnan(cross_val_score(model, X, y, cv=2)).all()
    with pytest.raises(ValueError, match="n_neighbors=500"):
        cross_val_score(model, X, y, cv=2, error_score="raise")


def see(images, y=None, **changes):
    settings = {"backbone": "test_vit", "backbone_weights": None, "image_size": 32, "device": "cpu"}
    return PNPDiscoverer(**QUICK | settings | changes).fit(images, y)


GREY = np.zeros((12, 32, 32, 3), dtype=np.uint8)
NO_WEIGHTS = {f"{term}_weight": 0.0 for term in ("distillation", "supervised", "unsupervised", "known")}
FRAME = pd.DataFrame(X, columns=list("abcd"))
CASES = {
    "Rows": {
        "NaN or infinity in X": raises(
            ValueError, "Input X contains", lambda: fit(put(np.nan)), lambda: fit(put(np.inf)),
            lambda: predict(put(np.nan)),
        ),
        "NaN or infinity in the pool": raises(
            ValueError, "X_unlabelled cannot be used", lambda: fit(pool=put(np.nan, POOL))
        ),
        "very large or very small": fine(
            lambda: fit(X * 1e25), lambda: fit(X * 1e-25), lambda: fit(X + 1e9)
        ),
        "values beyond 1e32": raises(ValueError, "X holds", lambda: fit(X * 1e40), lambda: fit(X * 1e-40)),
        "dates or spans": raises(
            TypeError, "X holds datetime64", lambda: fit(X.astype("M8[s]")),
            lambda: predict(X.astype("M8[s]")),
        ),
        "rows of several lengths": raises(ValueError, "inhomogeneous", lambda: fit([[1.0, 2.0], [1.0]] * 30)),
        "X without columns": raises(ValueError, "0 feature", lambda: fit(X[:, :0])),
        "pool or `predict` rows of another width": raises(
            ValueError, "3 features.*4", lambda: fit(pool=POOL[:, :3]), lambda: predict(X[:, :3])
        ),
        "sparse X or pool": raises(
            TypeError, "[Ss]parse", lambda: fit(csr_array(X)), lambda: fit(pool=csr_array(POOL))
        ),
        "complex numbers, text": raises(
            ValueError, "Complex|could not convert", lambda: fit(X + 1j), lambda: fit(np.full(X.shape, "a"))
        ),
        "lists, integer": fine(
            lambda: fit(X.tolist()), lambda: fit((9 * X).astype(int)), lambda: fit(X.astype(np.float16)),
            lambda: fit(X.astype(object)),
        ),
        "X of one axis": raises(ValueError, "[Rr]eshape", lambda: fit(X[:, 0])),
        "X of three axes with one view": raises(
            ValueError, "shape", lambda: fit(X[:, None]), lambda: fit(np.stack([X[:, None]] * 2, axis=1))
        ),
        "X of three axes, pool of two": raises(
            ValueError, "shape", lambda: fit(np.stack([X, X], axis=1), pool=POOL)
        ),
        "one row": raises(ValueError, "minimum of 2", lambda: fit(X[:1], Y[:1])),
        "0 rows in `predict`": raises(ValueError, "minimum of 1", lambda: predict(X[:0])),
        "pool of 0 rows": raises(ValueError, "X_unlabelled has 0 rows", lambda: fit(pool=POOL[:0])),
        "pool `None`, all rows labelled": fine(all_known),
        "pool of one row": fine(lambda: fit(pool=POOL[:1])),
        "pool on another scale": warns(
            FeatureScaleWarning, lambda: fit(*WORLD.labelled, pool=POOL * 1000 + 5000)
        ),
        "identical rows, zero rows": fine(
            lambda: fit(np.concatenate([X, X]), np.concatenate([Y, Y])),
            lambda: fit(X * 0), lambda: fit(X * 0 + 7), lambda: fit(X * 0 + 1e-40)
        ),
        "DataFrame pool with other columns": raises(
            ValueError, "feature names", lambda: fit(FRAME, pool=FRAME[list("dcba")])
        ),
        "DataFrame X, array pool": warns(UserWarning, lambda: fit(FRAME, pool=POOL)),
        "a tuple of two arrays": raises(ValueError, "exactly one array", lambda: fit(pool=(POOL, POOL))),
    },
    "Folds and searches": {
        "`ClassHoldoutSplit` or": raises(
            ValueError, "y=None", lambda: folds(ClassHoldoutSplit(2), None),
            lambda: folds(KeepUnlabelled(2), None),
        ),
        "fewer than two known": raises(
            ValueError, "hiding one needs 2", lambda: folds(ClassHoldoutSplit(2), np.minimum(Y, 0))
        ),
        "`hidden` that leaves": raises(
            ValueError, "hidden=(2|0|1.5|True)", lambda: folds(ClassHoldoutSplit(hidden=2)),
            lambda: folds(ClassHoldoutSplit(hidden=0)), lambda: folds(ClassHoldoutSplit(hidden=1.5)),
            lambda: folds(ClassHoldoutSplit(hidden=True)),
        ),
        "integer labels of which": raises(
            ValueError, "missing_label=-1", lambda: folds(ClassHoldoutSplit(2), np.where(Y < 0, -1, Y + 1))
        ),
        "`groups` for": warns(
            UserWarning,
            lambda: list(ClassHoldoutSplit(2).split(X, np.array(["a", "b", "-1"])[Y], np.ones(len(Y)))),
        ),
        "`Transductive` without": raises(
            ValueError, "requires y|no label", lambda: wrapped(None), lambda: wrapped(Y * 0 - 1)
        ),
        "`Transductive` and its estimator": raises(
            ValueError, "missing_label=None of Transductive and missing_label='auto'",
            lambda: wrapped(np.where(Y < 0, None, Y - 1), missing_label=None),
        ),
        "string labels for": raises(
            ValueError, "takes integers only",
            lambda: wrapped(np.array(["a", "b", "-1"])[Y], LabelSpreading()),
        ),
        "a DataFrame in `fit`": raises(
            TypeError, "beside the rows of fit", lambda: wrapped(rows=FRAME, lazy=True).predict(X),
            lambda: wrapped(lazy=True).predict(FRAME),
        ),
        "a parameter of the wrong kind": raises(
            InvalidParameterError, "n_clusters",
            lambda: wrapped(estimator=PNPDiscoverer("many"), lazy=True),
        ),
        "a fit that fails": failing_fold,
        "`metric` of": raises(
            ValueError, "metric='old' must be one of all", lambda: DiscoveryScorer("old")(fit(), X, Y)
        ),
    },
    "Images": {
        "a file that is missing": "test_image_mode.py::test_missing_files_are_told_before_the_trunk_runs",
        "a truncated or": "test_images.py::test_a_file_that_cannot_be_read_is_named",
        "a pipe, a device": raises(
            BadImageError, "/dev/zero is no plain file", lambda: read_images(["/dev/zero"]).open(0)
        ),
        "PostScript or": "test_fuzzing.py::test_a_picture_that_would_start_a_program_is_not_opened",
        "a picture of more pixels": "test_images.py::test_a_file_that_cannot_be_read_is_named",
        "any of these": "test_image_mode.py::test_damaged_images_are_skipped_on_request",
        "no readable image left": (
            "test_image_mode.py::test_a_known_class_without_any_readable_image_is_an_error"
        ),
        "arrays of other shapes": raises(
            ValueError, "shape", *(lambda n=n: see(np.zeros((12, 32, 32, n), np.uint8)) for n in (1, 2, 4)),
            lambda: see(np.zeros((3, 32))),
        ),
        "pixels of another": raises(ValueError, "int64", lambda: see(GREY.astype(int))),
        "float pixels below": raises(
            ValueError, r"from (nan|-?\d).* to", lambda: see(GREY - 0.5), lambda: see(GREY + 2.0),
            lambda: see(GREY * np.nan),
        ),
        "images of several": "test_images.py::test_images_of_several_sizes_may_come_together",
        "one path or one": raises(TypeError, "Pass a list", lambda: see("one.jpg"), lambda: see({"a.jpg"})),
        "None, NaN or": raises(
            BadImageError, "image 1 of X",
            *(lambda item=item: read_images([GREY[0], item]).open(1) for item in (None, np.nan, 3)),
        ),
        "the same picture": "test_image_mode.py::test_the_same_picture_twice_counts_once_wherever_it_stands",
        "a backbone that timm": raises(
            BackboneError, "Did you mean", lambda: see(GREY, backbone="test_vitt")
        ),
        "weights that cannot be": "test_backbones.py::test_a_download_that_fails_says_what_else_to_pass",
        "a file of weights": (
            "test_backbones.py::test_damaged_and_missing_files_are_named",
            "test_backbones.py::test_a_file_that_would_execute_code_is_refused",
        ),
        "weights of another": (
            "test_backbones.py::test_weights_of_another_architecture_are_refused",
            "test_backbones.py::test_keys_that_do_not_fit_are_named",
        ),
        "`image_size` that": raises(BackboneError, "Pass 32 or 48", lambda: see(GREY, image_size=40)),
        "more `n_trainable_blocks`": (
            "test_backbones.py::test_more_blocks_than_there_are_is_an_error",
            "test_backbones.py::test_a_network_that_passes_more_than_activations_is_refused",
        ),
        "`cache_size` that": raises(
            ValueError, "cache_size='much'|device='abacus'", lambda: see(GREY, cache_size="much"),
            lambda: see(GREY, device="abacus"),
        ),
        "a `cache_dir` whose": "test_image_mode.py::test_a_folder_whose_notes_are_damaged_is_filled_anew",
        "`read_image_folder` on": "test_image_mode.py::test_folders_that_cannot_be_read_say_what_is_wrong",
    },
    "Labels": {
        "y of another length": raises(ValueError, "inconsistent numbers", lambda: fit(y=Y[:-1])),
        "y with markers only": raises(ValueError, "y holds no label", lambda: fit(y=np.full(len(X), -1))),
        "`y=None`": fine(lambda: fit(y=None)),
        "y of only": warns(LabelWarning, lambda: fit(y=np.where(Y == 1, 1, -1))),
        "y of shape (n, 1)": warns(DataConversionWarning, lambda: fit(y=Y[:, None])),
        "y of shape (n, 2)": raises(ValueError, "1d|shape", lambda: fit(y=np.stack([Y, Y], axis=1))),
        "numbers beside strings": raises(TypeError, "sorted", lambda: fit(y=[*Y[:-1].tolist(), "a"])),
        "fractions": raises(ValueError, "Unknown label type", lambda: fit(y=Y + 0.5)),
        "infinity in y": raises(ValueError, "infinity", lambda: fit(y=np.where(Y == 0, np.inf, 1.0))),
        "dates": raises(
            TypeError, "strings", lambda: fit(y=Y.astype("M8[D]")),
            lambda: fit(y=np.where(Y < 0, np.datetime64("NaT"), Y.astype("M8[D]"))),
        ),
        "bytes, complex": raises(
            (TypeError, ValueError), "y|label", lambda: fit(y=Y.astype("S3")), lambda: fit(y=Y + 1j),
            lambda: fit(y=[[1, 2]] * len(X)),
        ),
        "None, NaN": fine(lambda: fit(y=gaps(None)), lambda: fit(y=gaps(np.nan)), lambda: fit(y=gaps(pd.NA))),
        "categories that no row has": fine(unused),
        "booleans": fine(lambda: fit(y=[None if v < 0 else bool(v) for v in Y])),
        "one known class": fine(lambda: fit(y=np.where(Y == 0, 0, -1))),
        "a list as `missing_label`": raises(TypeError, "missing_label", lambda: fit(missing_label=[-1])),
        "`X_labelled=` beside X": raises(
            TypeError, "X_labelled", lambda: PNPDiscoverer(**QUICK).fit(X, Y, X_labelled=X)
        ),
        "`score` on rows without": raises(ValueError, "no label", lambda: fit().score(X, Y * 0 - 1)),
    },
    "Parameters": {
        "`n_clusters` below": raises(ValueError, "n_clusters=1 is below the 2", lambda: fit(n_clusters=1)),
        "`n_clusters` asks": raises(ValueError, "n_clusters=99 asks", lambda: fit(n_clusters=99)),
        "`n_clusters` where every row": fine(all_known),
        "`n_neighbors` not below": raises(ValueError, "n_neighbors=60 needs", lambda: fit(n_neighbors=60)),
        '`cluster_on="unlabelled"`': fine(
            lambda: fit(*WORLD.labelled, POOL[:4], cluster_on="unlabelled", n_neighbors="auto")
        ),
        "`similarity_threshold` above every": raises(
            EmptyGraphError, "similarity_threshold=1", lambda: fit(similarity_threshold=1.0)
        ),
        "`similarity_threshold` below 0": raises(
            ValueError, "similarity_threshold", lambda: fit(similarity_threshold=1.5)
        ),
        "more clusters than the memory": (
            "test_prober.py::test_the_memory_grows_by_the_spare_rows_when_clusters_outnumber_it",
            "test_training.py::test_a_memory_too_small_for_the_clusters_grows_with_one_warning",
        ),
        "a number out of range": raises(ValueError, "batch_size", lambda: fit(batch_size=0)),
        "`teacher_temperature` or": raises(
            ValueError, "teacher_temperature", lambda: fit(teacher_temperature=(1, -1))
        ),
        "`teacher_momentum` not": raises(ValueError, "momentum", lambda: fit(teacher_momentum=(1, 0))),
        "a temperature below": raises(ValueError, "temperature", lambda: fit(temperature=5e-324)),
        "all loss weights 0": raises(ValueError, "weight", lambda: fit(max_iter=0, **NO_WEIGHTS)),
        "`reject_below` not": raises(ValueError, "reject_below=2", lambda: fit().predict(X, reject_below=2)),
        "`predict` before `fit`": raises(NotFittedError, "not fitted", lambda: PNPDiscoverer().predict(X)),
    },
    "Several processes": {
        "`process_group` in a": "test_distributed.py::test_without_torchrun_a_group_says_how_to_start_one",
        "workers with other": "test_distributed.py::test_workers_that_were_given_something_else_are_told_so",
        "rows or labels of one": (
            "test_distributed.py::test_an_error_of_one_worker_is_everybody_s_and_the_next_fit_goes_on",
        ),
        '`device="cuda"`': "test_distributed.py::test_a_backbone_computes_where_every_worker_can",
        "fewer images": "test_distributed.py::test_fewer_images_than_workers_are_refused",
        "a worker that": "test_distributed.py::test_a_fit_goes_on_after_a_worker_was_killed",
    },
}  # fmt: skip


def read_page():
    """Return the first cells of the tables of the page, by section."""
    lines, section = {}, None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("| input"):
            lines.setdefault(section, []).append(re.split(r" \| ", line[2:])[0])
    return lines


def test_the_page_has_no_section_without_cases():
    assert list(read_page()) == list(CASES)


@pytest.mark.parametrize("section", CASES)
def test_every_line_of_the_page_has_a_case(section):
    lines, cases = read_page()[section], list(CASES[section])
    assert len(lines) > 5
    for line in lines:
        assert sum(line.startswith(case) for case in cases) == 1 or line in cases, line
    assert len(lines) == len(cases)


def test_a_test_that_a_line_names_is_there():
    for cases in CASES.values():
        for case in cases.values():
            for place in (case,) if isinstance(case, str) else () if callable(case) else case:
                file, name = place.split("::")
                assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE), place


TRIED = [
    (section, name) for section, cases in CASES.items() for name, case in cases.items() if callable(case)
]


@pytest.mark.parametrize(("section", "name"), TRIED, ids=[name[:40] for _, name in TRIED])
@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.DiscoveryWarning")
def test_bad_input_gets_what_the_page_says(section, name):
    CASES[section][name]()
