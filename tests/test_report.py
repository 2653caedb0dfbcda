"""The page of what was found: what it holds, what it escapes, what it refuses."""

import base64
import hashlib
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from _fake_model import HOSTILE, FakeModel
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from pnp_gcd import PNPDiscoverer
from pnp_gcd.metrics import named_accuracy, prediction_bias, split_cluster_accuracy
from pnp_gcd.report import NamesFile, read_names, write_report
from pnp_gcd.report.choosing import choose_colours, choose_doubtful, choose_middle
from pnp_gcd.report.describing import describe_columns, describe_texts, split_words
from pnp_gcd.report.items import read_items
from pnp_gcd.report.judging import read_given
from pnp_gcd.report.packing import to_safe_json


@pytest.fixture(scope="module")
def world():
    X, y = make_blobs(300, n_features=6, centers=5, random_state=0)
    names = np.array(["ant", "bee", "cow", "dog", "emu"])[y]
    has_label = (y < 3) & (np.arange(300) % 2 == 0)
    model = PNPDiscoverer(max_iter=1, random_state=0).fit(X[has_label], names[has_label], X[~has_label])
    return model, X[~has_label], names[~has_label]


@pytest.fixture(scope="module")
def page(world, tmp_path_factory):
    model, X, truth = world
    items = [f"a {name} in row {row}" for row, name in enumerate(truth)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(model, X, path, items=items, truth=truth).read_text(encoding="utf-8")


def data_of(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def write(model, X, tmp_path, **options):
    return data_of(write_report(model, X, tmp_path / "r.html", **options).read_text(encoding="utf-8"))


def unpack(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), dtype="<" + packed["type"])


# --- what the page holds ------------------------------------------------------------------------------


def test_every_row_has_the_class_that_predict_gives_it(world, page):
    model, X, _ = world
    data = data_of(page)
    labels = np.array([one["label"] for one in data["classes"]])
    assert (labels[unpack(data["rows"]["code"])] == model.predict(X)).all()


def test_probabilities_survive_to_four_digits(world, page):
    model, X, _ = world
    expected = model.predict_proba(X).max(axis=1)
    assert abs(unpack(data_of(page)["rows"]["p"]) / 65535 - expected).max() < 1e-4


def test_the_page_counts_rows_below_a_limit_as_the_model_does(tmp_path):
    around = [np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 0.499995, 0.9]
    model = FakeModel(
        ("a", "b", "c"), probabilities=np.array([[p, (1 - p) / 2, (1 - p) / 2] for p in around])
    )
    model.fit()
    seen = model.inspect(np.zeros((5, 1)))
    typicality = np.array([np.nextafter(0.01, 0), 0.01, 0.010001, 0.009999, 0.0])
    data = write(model, np.zeros((5, 1)), tmp_path, inspection=seen._replace(typicality=typicality))
    is_unsure = unpack(data["rows"]["p"]) / 65535 < data["limits"]["unsure"]
    assert is_unsure.tolist() == [p < 0.5 for p in around]
    assert sum(one["nUnsure"] for one in data["classes"]) == is_unsure.sum()
    is_far = unpack(data["rows"]["typicality"]) / 65535 < data["limits"]["far"]
    assert is_far.tolist() == (typicality < 0.01).tolist()


def test_the_number_of_classes_that_was_asked_for_is_told_as_it_was(tmp_path):
    model = FakeModel().fit()
    assert write(model, np.zeros((4, 1)), tmp_path)["nAsked"] is None
    model.n_clusters = 3  # two of which are one class now
    assert write(model, np.zeros((4, 1)), tmp_path, overwrite=True)["nAsked"] == 3


def test_a_card_counts_its_rows_and_shows_only_its_own(world, page):
    data = data_of(page)
    codes = unpack(data["rows"]["code"])
    for code, one in enumerate(data["classes"]):
        assert one["size"] == (codes == code).sum()
        assert {codes[row] for row in one["typical"] + one["doubtful"]} <= {code}
        assert not set(one["typical"]) & set(one["doubtful"])


def test_known_classes_are_told_from_novel_ones(world, page):
    model, _, _ = world
    known = {one["label"] for one in data_of(page)["classes"] if one["isKnown"]}
    assert known == set(model.known_classes_)


def test_a_novel_class_of_texts_is_described_by_its_own_word(page):
    data = data_of(page)
    novel = [one for one in data["classes"] if not one["isKnown"]]
    assert {trait[0] for one in novel for trait in one["traits"][:2]} >= {"dog", "emu"}


def test_scores_are_those_of_the_metrics(world, page):
    model, X, truth = world
    told = data_of(page)["truth"]
    found, known = model.predict(X), model.known_classes_
    assert told["accuracy"] == list(split_cluster_accuracy(truth, found, known))
    assert told["named"] == list(named_accuracy(truth, found, known))
    assert told["bias"] == list(prediction_bias(truth, found, known))
    assert sum(entry[2] for entry in told["counts"]) == len(truth)


def test_rows_without_a_truth_are_left_out_of_the_score(world, tmp_path):
    model, X, truth = world
    some = truth.astype(object)
    some[:50] = None
    told = write(model, X, tmp_path, truth=some)["truth"]
    assert told["nRows"] == len(truth) - 50
    assert (unpack(told["rowCodes"])[:50] == -1).all()


# --- rows that had a label ------------------------------------------------------------------------------

# Rows 0, 1 and 2 are most likely a dog, a cat and new; row 3 is a dog for certain.
LABELLED = np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.25, 0.45], [0.01, 0.98, 0.01]])


def write_labelled(tmp_path, given, **options):
    model = FakeModel(("cat", "dog", "novel_0"), 2, LABELLED).fit()
    return write(model, np.zeros((4, 1)), tmp_path, given=given, **options)


def test_a_row_that_had_a_label_is_shown_under_it_with_the_probability_of_it(tmp_path):
    data = write_labelled(tmp_path, ["cat", None, "dog", None])
    assert unpack(data["rows"]["code"]).tolist() == [0, 0, 1, 1]
    assert abs(unpack(data["rows"]["p"]) / 65535 - [0.2, 0.6, 0.25, 0.98]).max() < 1e-4
    assert unpack(data["rows"]["second"]).tolist() == [1, 1, 2, 0]
    assert [one["size"] for one in data["classes"]] == [2, 2, 0]
    assert data["classes"][0]["confidence"] == pytest.approx(0.4)
    assert set(data["classes"][1]["typical"]) == {2, 3}
    assert unpack(data["given"]).tolist() == [1, 0, 1, 0]


def test_a_row_that_had_a_label_is_never_in_doubt(tmp_path):
    without = write_labelled(tmp_path, None)
    assert set(without["doubtful"]) == {0, 1, 2}
    assert [one["nUnsure"] for one in without["classes"]] == [0, 0, 1]
    data = write_labelled(tmp_path, ["cat", None, "dog", None], overwrite=True)
    assert data["doubtful"] == [1]
    assert [one["nUnsure"] for one in data["classes"]] == [0, 0, 0]
    assert not {0, 2} & {row for one in data["classes"] for row in one["doubtful"]}


def test_scores_are_those_of_the_rows_that_had_no_label(world, tmp_path):
    model, X, truth = world
    is_given = np.arange(len(X)) % 3 == 0
    is_given &= np.isin(truth, model.known_classes_)
    given = np.where(is_given, truth, "-1")
    told = write(model, X, tmp_path, truth=truth, given=given)["truth"]
    found, known = model.predict(X)[~is_given], model.known_classes_
    assert told["accuracy"] == list(split_cluster_accuracy(truth[~is_given], found, known))
    assert told["named"] == list(named_accuracy(truth[~is_given], found, known))
    assert (told["nRows"], told["nGiven"]) == ((~is_given).sum(), is_given.sum())
    assert sum(entry[2] for entry in told["counts"]) == told["nRows"]
    assert told["nFound"] == len(set(found))


@pytest.mark.parametrize("gap", [None, np.nan, -1, "-1"])
def test_any_missing_label_means_that_a_row_had_none(gap, tmp_path):
    given = np.array(["cat", gap, gap, gap], dtype=object)
    assert unpack(write_labelled(tmp_path, given)["given"]).tolist() == [1, 0, 0, 0]


def test_minus_one_beside_the_class_one_is_a_gap_unless_it_is_a_class():
    assert read_given(FakeModel((1, 2)).fit(), [1, -1, -1]).tolist() == [0, -1, -1]
    assert read_given(FakeModel((-1, 1), 2).fit(), [1, -1, None]).tolist() == [1, 0, -1]


def test_no_label_at_all_is_as_if_none_had_been_passed(tmp_path):
    assert write_labelled(tmp_path, [None] * 4) == write_labelled(tmp_path, None, overwrite=True)


def test_a_picture_that_was_skipped_has_no_class_whatever_its_label(tmp_path):
    model = FakeModel(probabilities=np.array([[np.nan, np.nan], [0.9, 0.1]])).fit()
    data = write(model, np.zeros((2, 1)), tmp_path, given=["cat", None])
    assert unpack(data["rows"]["code"]).tolist() == [-1, 0]
    assert data["given"] is None


def test_history_and_calibration_are_there_with_every_column(world, page):
    model, _, _ = world
    data = data_of(page)
    assert set(data["history"]["columns"]) == set(model.history_[0])
    assert len(data["calibration"]["rows"]) == len(model.calibration_)


def test_near_classes_measure_rows_that_could_be_in_either(tmp_path):
    probabilities = np.array([[0.8, 0.2, 0], [0.4, 0.6, 0], [0, 0.1, 0.9]])
    model = FakeModel(("a", "b", "c"), 1, probabilities).fit()
    near = write(model, np.zeros((3, 2)), tmp_path)["classes"][0]["near"]
    assert near[0][:2] == [1, 0.3]  # a row gives 0.2 to b, a row of b gives 0.4 to a


def test_the_same_call_writes_the_same_bytes(world, tmp_path):
    model, X, _ = world
    first, second = (write_report(model, X, tmp_path / name) for name in ("1.html", "2.html"))
    assert first.read_bytes() == second.read_bytes()


def test_a_class_that_a_person_has_named_is_marked(tmp_path):
    model = FakeModel().fit()
    model.confirmed_classes_ = np.array(["cat", "novel_0"])
    assert all(one["isConfirmed"] for one in write(model, np.zeros((4, 2)), tmp_path)["classes"])


# --- nothing from elsewhere ---------------------------------------------------------------------------


def test_only_the_page_s_own_script_and_style_may_run(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_names_no_other_file(page):
    without_data = re.sub(r'(?s)<script type="application/json".*?</script>', "", page)
    addresses = re.findall(r"https?://[^\s'\"]+", without_data)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # the name of a language, never fetched
    assert not re.search(
        r"(?i)<(link|iframe|object|embed|base)\b|\bsrc\s*=\s*\"|@import|url\(h", without_data
    )


def test_scripts_make_no_markup_of_text():
    assets = Path(write_report.__globals__["__file__"]).parent / "assets"
    for path in assets.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", path.read_text()
        )


# --- strings of users ---------------------------------------------------------------------------------


def test_hostile_strings_come_back_unchanged_and_close_no_element(tmp_path):
    model = FakeModel(tuple(HOSTILE[:4]), 2).fit()
    path = write_report(model, np.zeros((8, 2)), tmp_path / "r.html", items=HOSTILE, title=HOSTILE[0])
    page = path.read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "<img" not in page
    data = data_of(page)
    assert [one["label"] for one in data["classes"]] == HOSTILE[:4]
    assert data["items"]["all"][:6] == HOSTILE[:6]
    assert data["title"] == HOSTILE[0]
    assert "<title>&lt;/script&gt;" in page


def test_a_long_item_is_cut_and_a_short_one_is_not(tmp_path):
    data = write(FakeModel().fit(), np.zeros((2, 2)), tmp_path, items=["y" * 10_000, "z" * 250])
    assert data["items"]["shown"]["0"] == "y" * 599 + "…"
    assert data["items"]["all"] == ["y" * 299 + "…", "z" * 250]


@pytest.mark.parametrize("character", ["<", ">", "&", "\u2028", "\u2029", "\ud800", "\ufeff", "\x85"])
def test_json_escapes_what_html_would_read(character):
    text = to_safe_json({character: character})
    assert character not in text
    assert json.loads(text) == {character: character}
    text.encode("utf-8")


def test_a_number_that_is_none_becomes_null(tmp_path):
    model = FakeModel().fit()
    model.history_ = [{"epoch": 0.0, "total": float("nan"), "known": np.float32("inf")}]
    assert write(model, np.zeros((4, 2)), tmp_path)["history"]["rows"] == [[0.0, None, None]]


# --- items --------------------------------------------------------------------------------------------


def test_items_of_any_kind_are_recognised(tmp_path):
    import pandas as pd
    import polars as pl
    from PIL import Image

    picture = tmp_path / "one.png"
    Image.new("RGB", (60, 40)).save(picture)
    assert read_items(None, 2).kind == "ids"
    assert read_items([17, 4], 2).texts == ["17", "4"]
    assert read_items(np.array(["a", "b"]), 2).kind == "texts"
    assert read_items(pd.Series(["a", None]), 2).texts == ["a", "(missing)"]
    assert read_items(pl.Series(["a", None]), 2).texts == ["a", "(missing)"]
    assert read_items([picture, None], 2).kind == "images"
    assert read_items([str(picture)] * 2, 2).texts == ["one.png"] * 2
    assert read_items([Image.new("L", (4, 4))] * 2, 2).kind == "images"
    assert read_items(np.zeros((2, 8, 8), np.uint8), 2).kind == "images"
    assert read_items(np.zeros((2, 3)), 2).columns[1][0] == "column 1"
    for frame in (
        pd.DataFrame({"a": [1, None], "b": ["x", None]}),
        pl.DataFrame({"a": [1, None], "b": ["x", None]}),
    ):
        items = read_items(frame, 2)
        assert [items.cells(row, 8) for row in (0, 1)] == [["1", "x"], ["(missing)", "(missing)"]]


def test_gaps_of_pandas_own_types_are_gaps():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], dtype="Int64"),
            "t": pd.array(["x", None], dtype="string"),
            "d": pd.to_datetime(["2024-01-02", None]),
            "c": pd.Categorical(["k", None]),
            "b": pd.array([True, None], dtype="boolean"),
        }
    )
    items = read_items(frame, 2)
    assert items.cells(0, 8)[:2] == ["1", "x"]
    assert items.cells(0, 8)[2].startswith("2024-01-02")
    assert items.cells(1, 8) == ["(missing)"] * 5


def test_pictures_of_cards_are_on_the_page_and_broken_ones_are_not(tmp_path):
    from PIL import Image

    paths = [tmp_path / f"{row}.jpg" for row in range(4)]
    for path in paths[:3]:
        Image.new("RGB", (300, 200), "red").save(path)
    paths[3].write_bytes(b"no picture")
    data = write(FakeModel().fit(), np.zeros((4, 2)), tmp_path, items=paths)
    assert set(data["pictures"]["thumbnails"]) == {"0", "1", "2"}
    assert data["pictures"]["thumbnails"]["0"].startswith("data:image/jpeg;base64,")
    assert unpack(data["pictures"]["rows"]).tolist() == [0, 1, 2, 3]


def test_the_rows_of_an_image_model_are_its_items(tmp_path):
    model = FakeModel().fit()
    model.backbone = "a network"
    data = write(model, np.zeros((2, 8, 8), np.uint8), tmp_path)
    assert data["items"]["kind"] == "images"
    assert len(data["pictures"]["thumbnails"]) == 2


def test_a_dataset_is_asked_for_no_more_pictures_than_are_shown():
    class Dataset:
        asked: ClassVar[list[int]] = []

        def __len__(self):
            return 1000

        def __getitem__(self, place):
            self.asked.append(place)
            return np.zeros((4, 4), np.uint8), "label"

    items = read_items(Dataset(), 1000)
    assert items.kind == "images"
    assert max(Dataset.asked) < 50


def test_a_page_of_pictures_does_not_tell_where_they_lay(tmp_path):
    from PIL import Image

    folder = tmp_path / "secret-home" / "set"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(folder / name / "1.png")
    path = write_report(
        FakeModel().fit(),
        np.zeros((2, 2)),
        tmp_path / "r.html",
        items=[folder / "a/1.png", folder / "b/1.png"],
    )
    assert "secret-home" not in path.read_text()
    assert data_of(path.read_text())["items"]["all"] == ["a/1.png", "b/1.png"]


def test_a_table_shows_its_cells_and_is_described_by_its_columns(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"height": [1.0, 9.0, 1.1, 9.2], "colour": ["red", "blue", "red", "blue"]})
    data = write(FakeModel().fit(), np.zeros((4, 2)), tmp_path, items=frame)
    assert data["items"]["columns"] == ["height", "colour"]
    assert data["items"]["all"][1] == "9\x1fblue"
    assert {trait[0] for trait in data["classes"][1]["traits"]} == {"height high", "colour is blue"}


def test_items_too_many_to_fit_are_kept_for_cards_only(tmp_path, monkeypatch):
    monkeypatch.setattr("pnp_gcd.report.packing._TEXT_BUDGET", 500)
    data = write(FakeModel().fit(), np.zeros((100, 2)), tmp_path, items=[f"text {row}" for row in range(100)])
    assert data["items"]["all"] is None
    shown = {row for one in data["classes"] for row in one["typical"] + one["doubtful"]}
    assert {int(row) for row in data["items"]["shown"]} >= shown


# --- worlds at their edges ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("world_kind", ["no known class", "no novel class", "one row", "one class"])
def test_small_worlds_make_a_page(world_kind, tmp_path):
    X, y = make_blobs(90, n_features=4, centers=3, random_state=0)
    model = PNPDiscoverer(max_iter=0, random_state=0)
    if world_kind == "no known class":
        model.fit(X)
    elif world_kind == "one class":
        model.set_params(n_clusters=1).fit(X[y == 0], np.where(np.arange((y == 0).sum()) < 9, 4, -1))
    else:
        model.fit(X, y)
    rows = X[:1] if world_kind == "one row" else X
    data = write(model, rows, tmp_path, truth=None if world_kind == "no known class" else y[: len(rows)])
    assert data["nRows"] == len(rows)
    assert len(data["classes"]) == model.n_clusters_


def test_rows_that_were_skipped_break_nothing(tmp_path):
    probabilities = np.array([[0.9, 0.1], [np.nan, np.nan], [0.2, 0.8], [np.nan, np.nan]])
    model = FakeModel(probabilities=probabilities).fit()
    data = write(model, np.zeros((4, 2)), tmp_path, items=list("abcd"), truth=["cat", "cat", "dog", None])
    assert unpack(data["rows"]["code"]).tolist() == [0, -1, 1, -1]
    assert data["truth"]["nRows"] == 2
    assert not {1, 3} & {row for one in data["classes"] for row in one["typical"]}


@pytest.mark.parametrize("labels", [(3, 9), (2.0, 3.0), (False, True), (2**63, 2**63 + 1)])
def test_labels_that_are_no_strings_keep_their_type_in_the_file_of_names(labels, tmp_path):
    data = write(FakeModel(labels).fit(), np.zeros((4, 2)), tmp_path)
    keys = [json.loads(one["key"]) for one in data["classes"]]
    assert keys == list(labels)
    assert [type(key) for key in keys] == [type(label) for label in labels]


# --- what is refused, and what is left untouched ------------------------------------------------------


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_report(FakeModel().fit(), np.zeros((2, 2)), path)
    assert path.read_text() == "mine"
    write_report(FakeModel().fit(), np.zeros((2, 2)), path, overwrite=True)
    assert path.read_text().startswith("<!doctype html>")


def test_a_write_that_fails_leaves_no_part_of_a_page(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("mine")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pnp_gcd.atomic_files.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(FakeModel().fit(), np.zeros((2, 2)), path, overwrite=True)
    assert [child.name for child in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text() == "mine"


def test_a_missing_folder_is_told_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist. Make it first"):
        write_report(None, None, tmp_path / "no" / "r.html")
    with pytest.raises(IsADirectoryError, match=r"report\.html"):
        write_report(None, None, tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"items": ["a"]}, ValueError, "items has 1 entries, but X has 4 rows"),
        ({"items": "text"}, TypeError, "items is a str"),
        ({"items": {"a": 1}}, TypeError, "items is a dict"),
        ({"items": 3}, TypeError, "items is a int"),
        ({"truth": ["cat"]}, ValueError, "truth has 1 entries, but X has 4 rows"),
        ({"truth": [None] * 4}, ValueError, "holds no label"),
        ({"truth": [3] * 4}, ValueError, "as y_true spells them"),
        ({"given": ["cat"]}, ValueError, "given has 1 entries, but X has 4 rows"),
        (
            {"given": ["cat", "cow", None, 3]},
            ValueError,
            r"given holds \['cow', 3\], but the model's classes are",
        ),
        ({"given": ["cat"] * 4, "truth": ["cat"] * 4}, ValueError, "that had no label"),
        ({"title": 3}, TypeError, "title=3 must be a text"),
    ],
)
def test_what_cannot_be_shown_is_named(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        write_report(FakeModel().fit(), np.zeros((4, 2)), tmp_path / "r.html", **options)
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_asked_is_refused_with_what_to_pass(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(PNPDiscoverer(), np.zeros((2, 2)), tmp_path / "r.html")
    with pytest.raises(TypeError, match=r"pipe\[-1\]"):
        write_report(make_pipeline(PNPDiscoverer()), np.zeros((2, 2)), tmp_path / "r.html")


# --- choosing and describing --------------------------------------------------------------------------


def test_rows_to_label_come_from_many_classes_and_are_not_alike():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2, 3], 100)
    probability = np.where(codes == 0, 0.5, 0.7) + 0.01 * rng.random(400)
    features = rng.normal(size=(400, 30)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features[1] = features[0]
    chosen = choose_doubtful(codes, probability, 1 - probability, features)
    assert len(set(chosen)) == 60
    assert np.bincount(codes[list(chosen)]).min() >= 8
    assert len({0, 1} & set(chosen)) <= 1


def test_rows_that_are_sure_or_skipped_are_never_to_label():
    probability = np.array([0.99, np.nan, 0.6])
    chosen = choose_doubtful(np.array([0, -1, 0]), probability, 1 - probability, np.eye(3, dtype=np.float32))
    assert chosen == (2,)


def test_the_most_typical_rows_point_to_the_middle():
    angles = np.array([0.0, 0.1, 0.2, 1.5])
    features = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    assert choose_middle(np.zeros(4, dtype=np.int64), features, 1, 1)[0] == (2,)


def test_classes_side_by_side_differ_in_colour():
    places = np.column_stack([np.arange(20.0), np.zeros(20)]).astype(np.float32)
    colours = choose_colours(places, np.arange(20), 20)
    assert all(colours[code] != colours[code + 1] for code in range(19))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("丢失了信用卡", ["丢失", "失了", "了信", "信用", "用卡"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Straße, ÉCOLE!", ["strasse", "école"]),
        ("\ud800 \u202e 😀", []),
    ],
)
def test_words_of_any_script_are_told_apart(text, words):
    assert split_words(text) == words


def test_words_that_all_classes_share_describe_none():
    texts = ["the cat sleeps here"] * 5 + ["the dog sleeps here"] * 5
    traits = describe_texts(texts, np.repeat([0, 1], 5), 2)
    assert all("here" not in trait.text for one in traits for trait in one)
    assert "cat" in traits[0][0].text


@pytest.mark.parametrize("texts", [["", "", ""], ["!", "?", "."], ["\ud800"] * 3])
def test_texts_without_words_describe_nothing(texts):
    assert describe_texts(texts, np.array([0, 1, -1]), 2) == [[], []]


def test_columns_that_do_not_differ_describe_nothing():
    columns = [("constant", np.ones(4)), ("gaps", np.full(4, np.nan)), ("id", np.array(list("abcd"), object))]
    assert describe_columns(columns, np.array([0, 0, 1, 1]), 2) == [[], []]


# --- the file of names --------------------------------------------------------------------------------


def names_file(tmp_path, **entries):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"format": "pnp-gcd names", "version": 1, **entries}), encoding="utf-8")
    return path


def test_names_are_read_with_labels_of_any_type(tmp_path):
    path = names_file(tmp_path, rename=[[3, " orchid "], ["novel_1", "emu"]], merge=[[True, "a"], [5, 6.0]])
    assert read_names(path) == NamesFile({3: "orchid", "novel_1": "emu"}, [[True, "a"], [5, 6.0]])


def test_names_of_strings_may_be_an_object(tmp_path):
    assert read_names(names_file(tmp_path, rename={"novel_3": "orchid"})) == ({"novel_3": "orchid"}, [])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "other"}, "no file of names"),
        ({"version": 2}, "has version 2"),
        ({"version": True}, "has version True"),
        ({"more": 1}, "'more'"),
        ({"rename": [["a"]]}, "list of pairs"),
        ({"rename": 5}, "list of pairs"),
        ({"rename": [["a", " "]]}, "not blank"),
        ({"rename": [["a", 5]]}, "not blank"),
        ({"rename": [["a", "x" * 1001]]}, "1,001 characters"),
        ({"rename": [[None, "x"]]}, "class label must be"),
        ({"rename": [[["a"], "x"]]}, "class label must be"),
        ({"rename": [["a", "x"], ["a", "y"]]}, "more than once"),
        ({"rename": [["a", "x"], ["b", "x"]]}, "two classes get the name 'x'"),
        ({"merge": [["a"]]}, "two or more labels"),
        ({"merge": {}}, "two or more labels"),
        ({"merge": [["a", "b"], ["b", "c"]]}, "more than once"),
        ({"merge": [["a", "a"]]}, "more than once"),
        ({"merge": [["a", "b"]], "rename": [["a", "x"], ["b", "y"]]}, "'x' and 'y'"),
    ],
)
def test_a_file_of_names_that_contradicts_itself_is_refused(entries, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_names(names_file(tmp_path, **entries))


def test_merged_classes_may_share_a_name_which_is_told_once(tmp_path):
    path = names_file(tmp_path, merge=[["a", "b"]], rename=[["a", "x"], ["b", "x"]])
    assert read_names(path).rename == {"a": "x"}


def test_names_change_the_model_as_the_guide_says(world, tmp_path):
    model, X, _ = world
    model = pickle.loads(pickle.dumps(model))
    first, second = model.novel_classes_.tolist()
    names = read_names(names_file(tmp_path, rename=[[second, "bird"]], merge=[[first, second]]))
    n_rows = np.isin(model.predict(X), [first, second]).sum()
    model.rename_classes(names.rename)
    model.merge_classes([[names.rename.get(label, label) for label in group] for group in names.merge])
    assert model.novel_classes_.tolist() == ["bird"]
    (card,) = (one for one in write(model, X, tmp_path)["classes"] if one["label"] == "bird")
    assert card["isConfirmed"]
    assert card["size"] == n_rows


@pytest.mark.parametrize("content", ["", "[", "[" * 100_000, "NaN", '{"format": NaN}', "\x00"])
def test_what_is_no_json_is_refused(content, tmp_path):
    path = tmp_path / "names.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="names"):
        read_names(path)


def test_a_file_too_large_or_missing_is_refused(tmp_path):
    path = tmp_path / "names.json"
    with pytest.raises(FileNotFoundError, match="no file"):
        read_names(path)
    path.write_bytes(b" " * (10 * 2**20 + 1))
    with pytest.raises(ValueError, match="at most"):
        read_names(path)


# --- size, and what is installed ----------------------------------------------------------------------


def test_a_row_costs_few_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("pnp_gcd.report.gathering.project_rows", lambda rows, **_: rows[:, :2])
    sizes = [
        write_report(FakeModel().fit(), np.zeros((n, 2)), tmp_path / f"{n}.html").stat().st_size
        for n in (2000, 4000)
    ]
    assert (sizes[1] - sizes[0]) / 2000 < 25


@pytest.mark.slow
def test_the_wheel_holds_the_assets(tmp_path):
    build = pytest.importorskip("hatchling.builders.wheel")
    root = Path(write_report.__globals__["__file__"]).parents[2]
    if not (root / "pyproject.toml").exists():
        pytest.skip("an installed package cannot be built again")
    (wheel,) = build.WheelBuilder(str(root)).build(directory=str(tmp_path))
    held = {name for name in zipfile.ZipFile(wheel).namelist() if "report/assets" in name}
    assets = root / "pnp_gcd" / "report" / "assets"
    assert held == {path.relative_to(root).as_posix() for path in assets.iterdir()}


# --- colours --------------------------------------------------------------------------------------------

# How colours look to people without one kind of cone, in linear RGB (Machado, Oliveira and Fernandes, 2009).
VISIONS = {
    "all cones": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def to_linear(colours):
    values = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def to_lab(linear):
    xyz = np.clip(linear, 0, 1) @ TO_XYZ.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_classes_differ_to_everybody_and_stand_out(theme):
    style = (Path(write_report.__globals__["__file__"]).parent / "assets" / "page.css").read_text()
    rules = re.findall(r":root[^{]*\{(.*?)\}", style, re.DOTALL)[theme == "dark"]
    marks = to_linear(re.findall(r"--mark-\d: (#\w{6})", rules))
    assert len(marks) == 8
    for seen in VISIONS.values():
        lab = to_lab(marks @ np.array(seen).T)
        apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(8, 1)]
        assert apart.min() > 30
    surface = to_linear(re.findall(r"--surface: (#\w{6})", rules)) @ TO_XYZ[1]
    luminance = np.sort(np.stack([marks @ TO_XYZ[1], np.repeat(surface, 8)]), axis=0)
    assert ((luminance[1] + 0.05) / (luminance[0] + 0.05)).min() >= 3
