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

from pnp_gcd import PNPDiscoverer
from pnp_gcd.exceptions import DiscoveryWarning, EmptyGraphError, FeatureScaleWarning, LabelWarning

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
            lambda: fit(X * 0), lambda: fit(X * 0 + 7)
        ),
        "DataFrame pool with other columns": raises(
            ValueError, "feature names", lambda: fit(FRAME, pool=FRAME[list("dcba")])
        ),
        "DataFrame X, array pool": warns(UserWarning, lambda: fit(FRAME, pool=POOL)),
        "a tuple of two arrays": raises(ValueError, "exactly one array", lambda: fit(pool=(POOL, POOL))),
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
        "more clusters than the memory": "test_prober.py",
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


@pytest.mark.parametrize("section", CASES)
def test_every_line_of_the_page_has_a_case(section):
    lines, cases = read_page()[section], list(CASES[section])
    assert len(lines) > 10
    for line in lines:
        assert sum(line.startswith(case) for case in cases) == 1 or line in cases, line
    assert len(lines) == len(cases)


TRIED = [
    (section, name) for section, cases in CASES.items() for name, case in cases.items() if callable(case)
]


@pytest.mark.parametrize(("section", "name"), TRIED, ids=[name[:40] for _, name in TRIED])
@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.DiscoveryWarning")
def test_bad_input_gets_what_the_page_says(section, name):
    CASES[section][name]()
