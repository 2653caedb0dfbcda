"""Whole workflows inside scikit-learn: tables, texts and images in Pipelines, in searches, copied."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from conftest import make_world
from PIL import Image
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.fixes import parse_version

from pnp_gcd import ImageEmbedder, PNPDiscoverer, pool
from pnp_gcd.exceptions import WorkflowWarning
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive, discovery_scorer

LIBRARIES = {"pandas": pd, "polars": pl}
POLARS = pytest.param(
    "polars",
    marks=pytest.mark.skipif(
        parse_version(sklearn.__version__) < parse_version("1.7"),
        reason="scikit-learn 1.6 cannot select columns of newer polars",
    ),
)


def small(**changes):
    """Return a discoverer that clusters rows as they come, in a blink."""
    parameters = {
        "max_iter": 0,
        "n_neighbors": 8,
        "whitening": "soft-total",
        "resolution": 1.0,
        "random_state": 0,
    }
    return PNPDiscoverer(**parameters | changes)


def accuracy(truth, found, known):
    return split_cluster_accuracy(truth, found, known).all


@pytest.fixture(scope="module")
def world():
    return make_world(120)


# --- tables ------------------------------------------------------------------------------------------------


def make_table(library, n_rows=120):
    """Return a world as a table: numbers of very different size, and a string that says half of the class."""
    world = make_world(n_rows, width=4)
    columns = {f"size_{place}": world.X[:, place] * 10.0**place for place in range(4)}
    columns["shop"] = np.array(["north", "south"])[world.y % 2].tolist()
    return LIBRARIES[library].DataFrame(columns), world


def take(table, rows):
    return table[rows] if isinstance(table, pd.DataFrame) else table.filter(pl.Series(rows))


def make_table_pipeline():
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), [f"size_{place}" for place in range(4)]),
            (OneHotEncoder(), ["shop"]),
        ),
        small(),
    )


@pytest.mark.parametrize("library", ["pandas", POLARS])
def test_a_table_of_numbers_and_strings_is_stacked_encoded_and_discovered(library):
    table, world = make_table(library)
    X, y = pool(take(table, world.has_label), world.labelled[1], take(table, ~world.has_label))
    assert isinstance(X, LIBRARIES[library].DataFrame)
    pipe = make_table_pipeline().fit(X, y)
    assert accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]) == 1.0
    assert accuracy(world.y, pipe.predict(table), [0, 1]) == 1.0
    assert list(pipe.feature_names_in_) == list(table.columns)


@pytest.mark.parametrize("library", ["pandas", POLARS])
def test_a_search_with_hidden_classes_cuts_tables_by_rows(library):
    table, world = make_table(library)
    X, y = pool(take(table, world.has_label), np.array(["a", "b"])[world.labelled[1]], table)
    model = Transductive(make_table_pipeline(), lazy=True)
    search = GridSearchCV(
        model,
        {"estimator__pnpdiscoverer__n_neighbors": [8]},
        cv=ClassHoldoutSplit(2, random_state=0),
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ == 1.0
    assert list(search.best_estimator_.feature_names_in_) == list(table.columns)


def test_features_of_a_union_are_discovered_in(world):
    union = FeatureUnion([("scaled", StandardScaler()), ("reduced", PCA(3, random_state=0))])
    pipe = make_pipeline(union, small()).fit(*world.stacked)
    assert pipe[-1].n_features_in_ == world.X.shape[1] + 3
    assert accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]) == 1.0


FITS = []


class Counted(TransformerMixin, BaseEstimator):
    """Leaves rows as they are and counts its fits."""

    def fit(self, X, y=None):
        FITS.append(len(X))
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


def test_a_pipeline_with_memory_answers_the_same_and_fits_earlier_steps_once(world, tmp_path):
    FITS.clear()
    expected = make_pipeline(Counted(), small()).fit(*world.stacked).predict_proba(world.X)
    pipe = make_pipeline(Counted(), small(), memory=str(tmp_path))
    assert np.array_equal(pipe.fit(*world.stacked).predict_proba(world.X), expected)
    assert len(FITS) == 2
    pipe.set_params(pnpdiscoverer__temperature=0.2).fit(*world.stacked)
    assert len(FITS) == 2


def test_parameters_are_reached_and_cloned_through_nesting():
    pipe = Pipeline([("scale", StandardScaler()), ("discover", small())])
    outer = Transductive(pipe).set_params(
        estimator__discover__n_neighbors=5, estimator__scale__with_mean=False, lazy=True
    )
    assert pipe["discover"].n_neighbors == 5
    copied = clone(outer)
    assert copied.estimator is not pipe
    assert copied.lazy
    parameters = copied.get_params()
    assert parameters["estimator__discover__n_neighbors"] == 5
    assert parameters["estimator__scale__with_mean"] is False
    assert {f"estimator__discover__{name}" for name in small().get_params()} <= set(parameters)


@pytest.mark.parametrize("kind", ["pandas", POLARS])
def test_frames_between_steps_keep_their_column_names(world, kind):
    frame = pd.DataFrame(world.stacked[0], columns=list("abcdefgh"))
    pipe = make_pipeline(StandardScaler(), small()).set_output(transform=kind)
    pipe.fit(frame, world.stacked[1])
    assert list(pipe[-1].feature_names_in_) == list("abcdefgh")
    assert accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]) == 1.0
    out = pipe.transform(frame)
    assert type(out).__module__.startswith(kind)
    assert list(out.columns) == list(pipe.get_feature_names_out())


# --- metadata routing --------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed(step):
    return Pipeline([("step", step), ("discover", small())], transform_input=["X_unlabelled"])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: (rows,)], ids=["array", "one-tuple"])
def test_a_routed_pool_goes_through_the_steps_before_it(world, wrap):
    pipe = routed(StandardScaler()).fit(*world.labelled, X_unlabelled=wrap(world.rest))
    assert accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]) == 1.0
    assert accuracy(world.y, pipe.predict(world.X), [0, 1]) == 1.0


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: (rows,)], ids=["array", "one-tuple"])
def test_behind_steps_that_learn_nothing_a_routed_pool_equals_stacked_rows(world, wrap):
    stacked = make_pipeline(Normalizer(), small()).fit(*pool(*world.labelled, world.rest))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = routed(Normalizer()).fit(*world.labelled, X_unlabelled=wrap(world.rest))
    assert np.array_equal(pipe[-1].unlabelled_labels_, stacked[-1].unlabelled_labels_)
    assert np.array_equal(pipe.predict_proba(world.X), stacked.predict_proba(world.X))


@pytest.mark.usefixtures("routing")
def test_stacked_rows_need_no_routing_and_do_not_mind_it(world):
    pipe = make_pipeline(StandardScaler(), small()).fit(*world.stacked)
    assert accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]) == 1.0


@pytest.mark.usefixtures("routing")
def test_a_search_routes_the_whole_pool_through_the_pipeline(world):
    search = GridSearchCV(
        routed(StandardScaler()), {"discover__temperature": [0.1]}, cv=2, error_score="raise"
    )
    X, y = world.labelled
    with pytest.warns(WorkflowWarning, match="known classes"):  # which is all that these folds can judge
        search.fit(X, y, X_unlabelled=(world.rest[: len(X)],))
    assert search.best_score_ == 1.0
    assert len(search.best_estimator_["discover"].unlabelled_labels_) == len(X)


@pytest.mark.usefixtures("routing")
def test_a_search_by_hidden_classes_routes_the_pool_too(world):
    search = GridSearchCV(
        Transductive(routed(StandardScaler()), lazy=True),
        {"estimator__discover__temperature": [0.1]},
        cv=ClassHoldoutSplit(2, random_state=0),
        error_score="raise",
    ).fit(*world.labelled, X_unlabelled=(world.rest,))
    assert search.best_score_ > 0.9
    assert search.best_estimator_.estimator_["discover"].n_clusters_ == 4


# --- texts -------------------------------------------------------------------------------------------------

TOPICS = {
    "cooking": ["simmer", "onion", "garlic", "butter", "pan", "oven", "flour", "recipe", "sauce", "salt"],
    "sailing": ["sail", "mast", "wind", "harbour", "tide", "anchor", "deck", "keel", "rope", "buoy"],
    "stars": [
        "galaxy",
        "telescope",
        "orbit",
        "comet",
        "nebula",
        "planet",
        "lens",
        "moon",
        "eclipse",
        "dwarf",
    ],
    "garden": ["soil", "seed", "prune", "compost", "rose", "lawn", "spade", "hedge", "bulb", "weed"],
}
KNOWN_TOPICS = ["cooking", "sailing", "stars"]


def write_texts(n_each=24, seed=0):
    """Return sentences about four topics, as a list, and their topics."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(list(TOPICS), n_each)
    return ["the " + " and the ".join(rng.choice(TOPICS[topic], 7)) for topic in topics], topics


def make_text_pipeline(n_components=20):
    return Pipeline(
        [
            ("words", TfidfVectorizer(stop_words="english")),
            ("reduce", TruncatedSVD(n_components, random_state=0)),
            ("unit", Normalizer()),
            ("discover", small()),
        ]
    )


@pytest.fixture(scope="module")
def texts():
    """Texts with a topic, their topics, and texts without one: three lists and the truth of the last."""
    every, topics = write_texts()
    has_label = np.isin(topics, KNOWN_TOPICS) & (np.arange(len(topics)) % 2 == 0)
    with_topic = [text for text, is_in in zip(every, has_label, strict=True) if is_in]
    without = [text for text, is_in in zip(every, has_label, strict=True) if not is_in]
    return with_topic, topics[has_label].tolist(), without, topics[~has_label]


TEXT_KINDS = {
    "list": list,
    "array": np.array,
    "object array": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "polars": pl.Series,
    **(
        {"StringDType": lambda texts: np.array(texts, dtype="T")} if hasattr(np.dtypes, "StringDType") else {}
    ),
}


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_texts_in_any_container_are_stacked_one_a_row(kind):
    make = TEXT_KINDS[kind]
    X, y = pool(make(["one text", "another"]), ["a", "b"], make(["a third"]))
    assert X.shape == (3,)
    assert [str(text) for text in X] == ["one text", "another", "a third"]
    assert y.tolist() == ["a", "b", "-1"]


def test_one_long_text_does_not_make_room_for_all():
    X, _ = pool(["short"] * 500 + ["long " * 10_000], ["a"] * 501, ["short"] * 500)
    assert X.nbytes < 100_000


@pytest.mark.parametrize("kind", ["list", "pandas"])
def test_texts_go_through_one_pipeline_to_topics(texts, kind):
    make = TEXT_KINDS[kind]
    with_topic, topics, without, truth = texts
    pipe = make_text_pipeline().fit(*pool(make(with_topic), topics, make(without)))
    assert list(pipe.classes_) == ["cooking", "novel_0", "sailing", "stars"]
    assert accuracy(truth, pipe[-1].unlabelled_labels_, KNOWN_TOPICS) == 1.0
    new, new_topics = write_texts(5, seed=1)
    assert pipe.score(make(new), new_topics) == 1.0


@pytest.mark.parametrize("kind", ["list", "array", "polars"])
def test_transductive_takes_texts_in_fit_and_predict(texts, kind):
    make = TEXT_KINDS[kind]
    with_topic, topics, without, truth = texts
    model = Transductive(make_text_pipeline(), lazy=True).fit(make(with_topic), topics)
    assert model.score(make(without), truth) == 1.0
    assert set(model.predict(make(without))) == {*KNOWN_TOPICS, "novel_0"}


def test_a_search_by_hidden_topics_judges_the_steps_before_discovery(texts):
    with_topic, topics, without, truth = texts
    search = GridSearchCV(
        Transductive(make_text_pipeline(), lazy=True),
        {"estimator__reduce__n_components": [2, 20]},
        cv=ClassHoldoutSplit(2, hidden=1, random_state=0),
        scoring=discovery_scorer,
        refit="all",
        error_score="raise",
    ).fit(*pool(with_topic, topics, without))
    assert search.best_params_ == {"estimator__reduce__n_components": 20}
    found = search.best_estimator_.estimator_
    assert accuracy(truth, found["discover"].unlabelled_labels_, KNOWN_TOPICS) == 1.0
    new, new_topics = write_texts(5, seed=1)
    assert found.score(new, new_topics) == 1.0


def test_a_union_of_words_and_letters_is_searched_by_hidden_topics(texts):
    union = FeatureUnion(
        [("words", TfidfVectorizer()), ("letters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)))]
    )
    pipe = make_pipeline(union, TruncatedSVD(20, random_state=0), Normalizer(), small())
    search = GridSearchCV(
        Transductive(pipe, lazy=True),
        {"estimator__pnpdiscoverer__n_neighbors": [8]},
        cv=ClassHoldoutSplit(1, hidden=1, random_state=0),
        error_score="raise",
        refit=False,
    ).fit(*pool(*texts[:3]))
    assert search.cv_results_["mean_test_score"] > 0.9


# --- images ------------------------------------------------------------------------------------------------

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220), "yellow": (230, 210, 50)}
KNOWN_COLOURS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def pictures():
    """Squares of four colours on grey: pixels (80, 40, 40, 3), and the colour of each."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(list(COLOURS), 20))
    X = np.empty((len(y), 40, 40, 3), dtype=np.uint8)
    for picture, colour in zip(X, y, strict=True):
        picture[...] = rng.integers(90, 160)
        (top, left), side = rng.integers(2, 12, size=2), rng.integers(16, 26)
        shade = COLOURS[colour] + rng.normal(0, 10, size=3)
        picture[top : top + side, left : left + side] = np.clip(shade, 0, 255)
    return X, y, np.isin(y, KNOWN_COLOURS) & (np.arange(len(y)) % 2 == 0)


def make_image_pipeline(backbone="test_byobnet"):  # random weights of this one tell colours well
    embed = ImageEmbedder(backbone, backbone_weights=None, image_size=32, device="cpu")
    return make_pipeline(embed, small(n_neighbors=6))


@pytest.fixture(scope="module")
def paths(pictures, tmp_path_factory):
    """The same pictures as files, by name."""
    folder = tmp_path_factory.mktemp("pictures")
    names = [str(folder / f"{place}.png") for place in range(len(pictures[0]))]
    for picture, name in zip(pictures[0], names, strict=True):
        Image.fromarray(picture).save(name)
    return np.array(names)


@pytest.fixture(scope="module")
def fitted_on_pictures(pictures):
    X, y, has_label = pictures
    pipe = make_image_pipeline("test_vit")
    return pipe.fit(*pool(X[has_label], y[has_label], X[~has_label]))


def test_pictures_go_through_one_pipeline_to_classes(pictures):
    X, y, has_label = pictures
    pipe = make_image_pipeline().fit(*pool(X[has_label], y[has_label], X[~has_label]))
    assert list(pipe.classes_) == ["blue", "green", "novel_0", "red"]
    assert accuracy(y[~has_label], pipe[-1].unlabelled_labels_, KNOWN_COLOURS) == 1.0
    assert pipe.score(X, y) == 1.0


@pytest.mark.parametrize("make", [list, pd.Series], ids=["list", "pandas"])
def test_paths_go_through_one_pipeline_as_their_pixels_do(pictures, paths, fitted_on_pictures, make):
    X, y, has_label = pictures
    by_path = make_image_pipeline("test_vit").fit(
        *pool(make(paths[has_label]), y[has_label], make(paths[~has_label]))
    )
    assert np.array_equal(by_path.predict(make(paths)), fitted_on_pictures.predict(X))


@pytest.mark.parametrize("kind", ["pixels", "paths"])
def test_a_search_by_hidden_classes_takes_pictures(pictures, paths, kind):
    X, y, has_label = pictures
    rows = paths if kind == "paths" else X
    search = GridSearchCV(
        Transductive(make_image_pipeline(), lazy=True),
        {"estimator__pnpdiscoverer__n_neighbors": [6]},
        cv=ClassHoldoutSplit(1, hidden=1, random_state=0),
        error_score="raise",
    ).fit(*pool(rows[has_label], y[has_label], rows[~has_label]))
    assert search.best_score_ > 0.8
    assert not hasattr(search.best_estimator_, "n_features_in_")


def test_transductive_takes_pictures_of_another_size_than_those_of_fit(pictures):
    X, y, has_label = pictures
    model = Transductive(make_image_pipeline(), lazy=True)
    model.fit(list(map(Image.fromarray, X[has_label])), y[has_label])
    larger = [Image.fromarray(picture).resize((48, 48)) for picture in X[~has_label]]
    assert model.score(larger, y[~has_label]) > 0.9


# --- labels that -1 could be taken for ---------------------------------------------------------------------


def test_hiding_all_classes_but_class_one_does_not_make_minus_one_a_class():
    X, y = make_world(120, n_classes=4, n_known=3).stacked
    folds = ClassHoldoutSplit(3, hidden=2, random_state=0)  # in one of them only class 1 would be left
    for train, test in folds.split(X, y):
        score = Transductive(small(), lazy=True).fit(X[train], y[train]).score(X[test], y[test])
        assert score > 0.9


# --- copies ------------------------------------------------------------------------------------------------


def copy_by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


COPIES = {
    "joblib": copy_by_joblib,
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, folder: copy.deepcopy(model),
}


@pytest.fixture(scope="module")
def fitted_on_texts(texts):
    pipe = make_text_pipeline().set_params(discover__max_iter=1)
    return pipe.fit(*pool(*texts[:3]))


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", ["texts", "pictures"])
def test_a_copied_pipeline_gives_every_answer_of_the_first(request, texts, pictures, tmp_path, kind, way):
    pipe = request.getfixturevalue(f"fitted_on_{kind}")
    rows = texts[2] if kind == "texts" else pictures[0]
    copied = COPIES[way](pipe, tmp_path)
    assert np.array_equal(copied.predict(rows), pipe.predict(rows))
    assert np.array_equal(copied.predict_proba(rows), pipe.predict_proba(rows))


def test_a_cloned_pipeline_forgets_the_fit_and_finds_the_same_again(texts, fitted_on_texts):
    copied = clone(fitted_on_texts)
    assert not hasattr(copied[-1], "classes_")
    copied.fit(*pool(*texts[:3]))
    assert np.array_equal(copied.predict_proba(texts[2]), fitted_on_texts.predict_proba(texts[2]))


@pytest.mark.parametrize("way", COPIES)
def test_a_copied_transductive_gives_every_answer_of_the_first(world, tmp_path, way):
    model = Transductive(small()).fit(*world.labelled)
    copied = COPIES[way](model, tmp_path)
    assert np.array_equal(copied.predict(world.rest), model.predict(world.rest))
    assert np.array_equal(copied.estimator_.predict(world.rest), model.estimator_.predict(world.rest))


@pytest.mark.parametrize(
    ("wrap", "names"),
    [(make_pipeline, np.arange(4)), (Transductive, np.array(["a", "b", "c", "d"]))],
    ids=["pipeline", "transductive"],
)
def test_skops_writes_a_model_without_code_and_reads_it_back(world, wrap, names):
    io = pytest.importorskip("skops.io")
    X, y = world.labelled
    model = wrap(small(max_iter=1)).fit(*pool(X, names[y], world.rest))
    written = io.dumps(model)
    asked_about = io.get_untrusted_types(data=written)
    assert all(name.startswith("pnp_gcd.") for name in asked_about)
    read = io.loads(written, trusted=asked_about)
    ours, theirs = (getattr(either, "estimator_", either) for either in (model, read))
    assert np.array_equal(ours.predict_proba(world.X), theirs.predict_proba(world.X))
    assert np.array_equal(ours.predict(world.X), theirs.predict(world.X))


# --- notebooks ---------------------------------------------------------------------------------------------


def test_notebooks_show_estimators_with_what_was_set(world):
    pipe = make_pipeline(StandardScaler(), small(n_neighbors=7))
    shown = Transductive(pipe)._repr_html_()
    for name in ("Transductive", "StandardScaler", "PNPDiscoverer"):
        assert name in shown
    fitted = pipe.fit(*world.stacked)._repr_html_()
    assert "PNPDiscoverer" in fitted
    if parse_version(sklearn.__version__) >= parse_version("1.7"):
        assert "n_neighbors" in fitted


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="parameter help came with 1.9"
)
@pytest.mark.parametrize(
    ("model", "help_text"),
    [
        (PNPDiscoverer(), "0 clusters the features as they come"),
        (Transductive(PNPDiscoverer()), "then only remembers its rows"),
        (ImageEmbedder(), "Images that go through the network together"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_notebooks_show_the_help_of_each_parameter(model, help_text):
    shown = model._repr_html_()
    assert help_text in shown
    for name in model.get_params(deep=False):
        assert f"--doc-link-{name};" in shown
