"""Runs of the benchmark: nothing leaks into a fit, nothing is lost, everything can be repeated."""

import dataclasses
import inspect
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch

from pnp_gcd.benchmark import (
    METHODS,
    Bench,
    RunSettings,
    SplitSettings,
    compare_records,
    one_run,
    read_record,
    read_records,
    repeat_run,
)
from pnp_gcd.benchmark.methods import Task, build_method
from pnp_gcd.benchmark.one_run import answer, run_once
from pnp_gcd.benchmark.records import describe_environment, digest_data, digest_labels, write_record
from pnp_gcd.benchmark.running import use_threads
from pnp_gcd.benchmark.scoring import pair_classes, score_answers
from pnp_gcd.datasets import DiscoveryData, DiscoveryDataset, load_arrays
from pnp_gcd.exceptions import DiscoveryWarning

RECORD_PARTS = (
    *("settings", "parameters", "given", "data", "split"),
    *("scores", "seconds", "environment", "started"),
)

QUICK = {
    "pnp": {"max_iter": 2},
    "pnp-paper": {"max_iter": 2, "n_neighbors": 10},
    "pnp-given-k": {"max_iter": 2},
    "simgcd": {"max_iter": 2},
    "simgcd-estimated": {"max_iter": 2},
}


@pytest.fixture(scope="module")
def points(tmp_path_factory, world):
    path = tmp_path_factory.mktemp("data") / "points.npz"
    np.savez(path, X=world.X[:200], y=np.array(["ant", "bee", "cow", "doe"])[world.y[:200]])
    return str(path)


def settings_for(points, method="k-means", **changes):
    return RunSettings("arrays", points, method=method, parameters=QUICK.get(method, {}), **changes)


@pytest.fixture(scope="module")
def pnp_run(points, tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("runs")).run(settings_for(points, "pnp"))


# --- leaks -------------------------------------------------------------------------------------------------


class Permuted(DiscoveryDataset):
    """The same rows in the same parts, with the truth of the pool and of unseen rows permuted."""

    def split(self, seed=0, **options):
        data = super().split(seed, **options)
        rng = np.random.default_rng(7)
        return dataclasses.replace(
            data, y_unlabelled=rng.permutation(data.y_unlabelled), y_unseen=rng.permutation(data.y_unseen)
        )


@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.DiscoveryWarning")
@pytest.mark.parametrize("method", METHODS)
def test_permuting_the_truth_of_unlabelled_rows_changes_nothing_but_the_scores(points, method):
    dataset = load_arrays(points)
    permuted = Permuted(**{field.name: getattr(dataset, field.name) for field in dataclasses.fields(dataset)})
    settings = settings_for(points, method)
    first, arrays = run_once(settings, dataset)
    second, other_arrays = run_once(settings, permuted)
    assert np.array_equal(arrays["found"], other_arrays["found"])
    assert np.array_equal(arrays["found_unseen"], other_arrays["found_unseen"])
    differing = {part for part in first if first[part] != second[part]}
    differing -= {"seconds", "started"}
    if "history" in differing:
        without = [[{**row, "seconds": 0} for row in record["history"]] for record in (first, second)]
        assert without[0] == without[1]
    assert differing - {"history"} == {"scores"}  # and the truth was in fact another one
    assert first["scores"]["n_clusters"] == second["scores"]["n_clusters"]


def test_a_fit_is_handed_labelled_rows_their_labels_and_rows_without_labels_alone():
    assert list(inspect.signature(answer).parameters) == [
        "model",
        "X_labelled",
        "y_labelled",
        "X_unlabelled",
        "X_unseen",
    ]


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.given == "nothing"])
def test_a_method_that_is_given_nothing_cannot_be_built_with_the_number_of_classes(method):
    with pytest.raises(ValueError, match="n_clusters=4 is given"):
        build_method(method, Task(False, None, 4, seed=0), {})


# --- records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pnp", "k-means", "simgcd"])
def test_a_record_alone_is_enough_to_repeat_the_run_exactly(points, tmp_path, method):
    run = Bench(tmp_path).run(settings_for(points, method, seed=3, split=SplitSettings(seed=1, known=0.75)))
    second = repeat_run(read_record(run.path))
    assert compare_records(run.record, second) == []
    assert second["sha256"] == run.record["sha256"]


def test_a_record_of_other_defaults_is_repeated_with_those_it_was_made_with(points, tmp_path):
    run = Bench(tmp_path).run(settings_for(points, "pnp"))
    record = read_record(run.path)
    record["parameters"]["max_iter"] = 1  # as if that version's default had been 1
    assert len(repeat_run(record)["history"]) == 1


def test_a_repeated_run_that_comes_out_otherwise_is_told(points, pnp_run):
    record = json.loads(json.dumps(pnp_run.record))
    record["settings"]["seed"] = 5
    told = compare_records(pnp_run.record, repeat_run(record))
    assert any(line.startswith("history") for line in told)


def test_data_that_have_changed_are_told(points, pnp_run, tmp_path):
    with np.load(points) as arrays:
        X, y = arrays["X"].copy(), arrays["y"]
    X[0, 0] += 1e-6
    np.savez(tmp_path / "points.npz", X=X, y=y)
    second = repeat_run(pnp_run.record, data=str(tmp_path / "points.npz"))
    assert any(line.startswith("data.sha256") for line in compare_records(pnp_run.record, second))


def test_data_that_have_moved_are_the_same(points, pnp_run, tmp_path):
    moved = tmp_path / "points.npz"
    moved.write_bytes(Path(points).read_bytes())
    assert compare_records(pnp_run.record, repeat_run(pnp_run.record, data=str(moved))) == []


def test_a_record_says_what_was_run_where_and_what_came_out(pnp_run):
    record = read_record(pnp_run.path)
    assert record["settings"]["method"] == "pnp"
    assert record["parameters"]["batch_size"] == 256
    assert record["given"] == "nothing"
    assert [row["epoch"] for row in record["history"]] == [0, 1]
    assert record["split"]["n_known"] == 2
    assert record["environment"]["packages"]["torch"] == version("torch")
    assert record["seconds"]["fit"] > 0
    parts = {"all", "known", "novel", "named", "unseen_all", "n_clusters", "n_true", "auroc"}
    assert set(record["scores"]) >= parts


def test_infinite_parameters_survive_json():
    settings = RunSettings("digits", parameters={"merge_threshold": float("inf"), "pair": (1, 2)})
    text = json.dumps(settings.to_json(), allow_nan=False)
    back = RunSettings.from_json(json.loads(text))
    assert back.parameters == {"merge_threshold": float("inf"), "pair": [1, 2]}
    model = build_method("pnp", Task(False, None, None, seed=0), {"teacher_temperature": [0.1, 0.2]})
    assert model.teacher_temperature == (0.1, 0.2)


def test_a_record_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "record.json"
    record = dict.fromkeys(RECORD_PARTS) | {"format": 1}
    write_record(record, path)
    with pytest.raises(ValueError, match="Out of range"):
        write_record(record | {"score": float("nan")}, path)
    assert read_record(path) == record
    assert os.listdir(tmp_path) == ["record.json"]


def test_files_that_are_no_records_are_passed_over_and_none_at_all_is_told(tmp_path):
    (tmp_path / "other.json").write_text('{"a": 1}')
    left_out = pytest.warns(DiscoveryWarning, match="other.json' is no record")
    with left_out, pytest.raises(ValueError, match="holds no record"):
        read_records(tmp_path)
    record = dict.fromkeys(RECORD_PARTS) | {"format": 1}
    write_record(record, tmp_path / "b.json")
    with pytest.warns(DiscoveryWarning, match="other.json"):
        assert read_records(tmp_path) == [record]
    with pytest.raises(ValueError, match="does not exist"):
        read_records(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["random_state", "verbose", "cache_dir"])
def test_parameters_of_the_run_are_no_parameters_of_the_method(points, tmp_path, name):
    with pytest.raises(ValueError, match=f"sets '{name}', which belongs to the run"):
        Bench(tmp_path).run(RunSettings("arrays", points, method="k-means", parameters={name: 3}))


def test_a_number_of_classes_among_the_parameters_is_a_gift_and_recorded_as_one(points, tmp_path):
    settings = RunSettings("arrays", points, method="pnp", parameters={"max_iter": 0, "n_clusters": 4})
    assert Bench(tmp_path).run(settings).record["given"] == "the number of classes"


def test_labels_are_known_by_value_and_order():
    assert digest_labels([1, 2]) == digest_labels(np.array([1, 2], dtype=np.int8))
    assert digest_labels([1, 2]) != digest_labels([2, 1])
    assert digest_labels([1, 2]) != digest_labels(["1", "2"])


def make_folder(root, content=b"12345"):
    root.mkdir()
    (root / "a.jpg").write_bytes(content)
    X, y = np.array([str(root / "a.jpg")]), np.array(["cat"])
    return DiscoveryDataset("set", "images", X, y, X[:0], y[:0], classes=y)


def test_images_are_known_by_name_and_content_wherever_the_folder_is(tmp_path):
    first = digest_data(make_folder(tmp_path / "one"), str(tmp_path / "one"))
    assert first == digest_data(make_folder(tmp_path / "two"), str(tmp_path / "two"))
    changed = make_folder(tmp_path / "three", b"54321")  # of the same size
    assert first != digest_data(changed, str(tmp_path / "three"))


def test_data_with_other_known_classes_are_other_data(points):
    dataset = load_arrays(points)
    digests = {digest_data(dataset, None)}
    for known in (["ant"], ["bee"]):
        digests.add(digest_data(dataclasses.replace(dataset, known_classes=np.array(known)), None))
    assert len(digests) == 3


def test_a_text_that_names_a_file_is_a_text(tmp_path):
    (tmp_path / "file").write_text("x")
    X, y = np.array([str(tmp_path / "file"), "no file at all"]), np.array(["a", "b"])
    assert digest_data(DiscoveryDataset("set", "texts", X, y, X[:0], y[:0], classes=y), str(tmp_path))


def test_the_environment_names_the_sources_by_digest():
    assert len(describe_environment()["sources_sha256"]) == 64


# --- resuming ----------------------------------------------------------------------------------------------


def test_an_interrupted_series_goes_on_where_it_stopped(points, tmp_path, monkeypatch):
    series = [settings_for(points, seed=seed) for seed in (0, 1, 2)]
    fits = []

    def interrupt_second(*arguments):
        fits.append(1)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return answer(*arguments)

    monkeypatch.setattr(one_run, "answer", interrupt_second)
    with pytest.raises(KeyboardInterrupt):
        list(Bench(tmp_path).run_all(series))
    assert len(list(tmp_path.glob("*.json"))) == 1
    runs = list(Bench(tmp_path).run_all(series))
    assert [run.is_new for run in runs] == [False, True, True]
    assert len(fits) == 4


def test_other_settings_or_other_data_are_another_run(points, tmp_path):
    bench = Bench(tmp_path)
    first = bench.run(settings_for(points))
    assert not bench.run(settings_for(points)).is_new
    assert bench.run(settings_for(points, split=SplitSettings(labelled=0.3))).path != first.path
    with np.load(points) as arrays:
        np.savez(tmp_path / "points.npz", X=arrays["X"][::-1], y=arrays["y"][::-1])
    assert Bench(tmp_path).run(settings_for(str(tmp_path / "points.npz"))).path != first.path


@pytest.mark.parametrize("damage", ["half a record", "half an archive", "no archive", "a part is missing"])
def test_a_damaged_record_is_told_and_run_again(points, tmp_path, damage):
    first = Bench(tmp_path).run(settings_for(points))
    if damage == "half a record":
        first.path.write_text(first.path.read_text()[:100])
    elif damage == "half an archive":
        first.path.with_suffix(".npz").write_bytes(first.path.with_suffix(".npz").read_bytes()[:60])
    elif damage == "no archive":
        first.path.with_suffix(".npz").unlink()
    else:
        record = json.loads(first.path.read_text())
        first.path.write_text(json.dumps({name: record[name] for name in ("format", "settings")}))
    with pytest.warns(DiscoveryWarning, match="Run again, as it cannot be read"):
        second = Bench(tmp_path).run(settings_for(points))
    assert second.is_new
    assert not Bench(tmp_path).run(settings_for(points)).is_new


def test_a_record_made_with_other_defaults_is_not_kept(points, tmp_path):
    first = Bench(tmp_path).run(settings_for(points))
    record = json.loads(first.path.read_text())
    record["parameters"]["n_init"] = 3  # as if that version's default had been 3
    first.path.write_text(json.dumps(record))
    assert Bench(tmp_path).run(settings_for(points)).is_new


def test_an_embedder_that_has_changed_is_another_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    table = ["text,label", *(f"{'ab'[place % 2] * (place % 2 + 2)},{place % 2}" for place in range(20))]
    (tmp_path / "texts.csv").write_text("\n".join(table))
    module = (
        "import numpy as np\n\ndef embed(texts):\n    return np.array([[len(t), {}] for t in texts], float)\n"
    )
    settings = RunSettings(
        *("csv", str(tmp_path / "texts.csv")),
        data_options={"text": "text"},
        features={"embedder": "letters_of_a_text:embed"},
        method="k-means",
    )
    paths = []
    for number in (1, 2):
        (tmp_path / "letters_of_a_text.py").write_text(module.format(number))
        monkeypatch.delitem(sys.modules, "letters_of_a_text", raising=False)
        paths.append(Bench(tmp_path / "out").run(settings).path)
    assert paths[0] != paths[1]
    assert len(list((tmp_path / "out" / "features").iterdir())) == 2


def test_again_runs_what_has_a_record(points, tmp_path):
    Bench(tmp_path).run(settings_for(points))
    assert Bench(tmp_path, again=True).run(settings_for(points)).is_new


def test_threads_are_as_asked_for_and_put_back():
    before = torch.get_num_threads()
    with use_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


# --- scores ------------------------------------------------------------------------------------------------


def make_data(y_unlabelled, y_unseen=()):
    rows, known = np.zeros((1, 1)), np.array(["a"])
    unseen = np.array(y_unseen, dtype="<U1")
    return DiscoveryData(rows, known, rows, np.array(y_unlabelled), rows, unseen, known)


def test_unseen_rows_are_paired_by_the_pool():
    data = make_data(["a", "a", "b", "b"], ["a", "b"])
    scores = score_answers(data, np.array(["a", "a", "n", "n"]), np.array(["n", "a"]), n_clusters=2)
    assert scores["all"] == 1.0
    assert scores["unseen_all"] == 0.0  # paired anew, both rows would be right


def test_a_known_class_without_rows_in_the_pool_means_itself():
    assert pair_classes(make_data(["b", "b"]), np.array(["n", "n"])) == {"a": "a", "n": "b"}


def test_scores_without_rows_are_none():
    scores = score_answers(make_data(["b"]), np.array(["n"]), np.array([], dtype="<U1"), n_clusters=2)
    assert scores["known"] is None
    assert scores["unseen_all"] is None
    assert scores["novel"] == 1.0


# --- images and texts --------------------------------------------------------------------------------------


def test_methods_see_features_of_images_and_the_features_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    is_light = np.arange(24) % 2
    images = rng.integers(0, 60, size=(24, 16, 16, 3)) + 180 * is_light[:, None, None, None]
    np.savez(tmp_path / "pictures.npz", X=images.astype("uint8"), y=np.array(["dark", "light"])[is_light])
    path = str(tmp_path / "pictures.npz")
    with pytest.raises(ValueError, match="is images.*--backbone"):
        Bench(tmp_path).run(RunSettings("arrays", path, method="k-means"))
    with pytest.raises(ValueError, match="needs a network"):
        Bench(tmp_path).run(RunSettings("arrays", path, method="pnp"))
    features = {"backbone": "test_vit", "weights": None, "image_size": 32}
    torch.manual_seed(0)
    run = Bench(tmp_path / "out").run(RunSettings("arrays", path, features=features, method="k-means"))
    assert run.record["scores"]["all"] is not None
    assert len(list((tmp_path / "out" / "features").glob("pictures-*.npz"))) == 1


def test_texts_need_an_embedder_and_rare_words_will_do(tmp_path):
    lines = ["text,label"]
    for place in range(40):
        animal = ("cat purrs softly", "dog barks loudly")[place % 2]
        lines.append(f"my {animal} every day {place % 5},{('cat', 'dog')[place % 2]}")
    (tmp_path / "pets.csv").write_text("\n".join(lines))
    settings = RunSettings("csv", str(tmp_path / "pets.csv"), data_options={"text": "text"}, method="k-means")
    with pytest.raises(ValueError, match="is texts.*--embedder"):
        Bench(tmp_path).run(settings)
    run = Bench(tmp_path).run(dataclasses.replace(settings, features={"embedder": "tfidf"}))
    assert run.record["data"]["kind"] == "features"
    assert run.record["scores"]["all"] == 1.0
    with pytest.raises(ValueError, match="embedder='nowhere:at_all' cannot be imported"):
        Bench(tmp_path).run(dataclasses.replace(settings, features={"embedder": "nowhere:at_all"}))


def test_feature_vectors_can_be_put_on_the_sphere_and_nothing_else(points, tmp_path):
    bench = Bench(tmp_path)
    loaded = bench.load(settings_for(points, features={"scale": "unit"}))
    np.testing.assert_allclose(np.linalg.norm(loaded.X, axis=1), 1, rtol=1e-6)
    with pytest.raises(ValueError, match="feature vectors already"):
        bench.run(settings_for(points, features={"embedder": "tfidf"}))
