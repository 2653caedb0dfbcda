"""``pnp-gcd bench`` and ``pnp-gcd analyse`` as a user types them."""

import argparse
import json
import sys

import numpy as np
import pytest

from pnp_gcd import cli
from pnp_gcd.benchmark import METHODS, Run
from pnp_gcd.benchmark.analyses import ANALYSES
from pnp_gcd.benchmark.command import add_data_arguments, read_settings
from pnp_gcd.benchmark.settings import RunSettings
from pnp_gcd.benchmark.studies import Answered, Study, find_shared_classes, name_best
from pnp_gcd.datasets import DATASETS


@pytest.fixture(scope="module")
def points(tmp_path_factory, world):
    path = tmp_path_factory.mktemp("data") / "points.npz"
    np.savez(path, X=world.X[:160], y=world.y[:160])
    return str(path)


def run(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


# --- bench -------------------------------------------------------------------------------------------------


def test_bench_prints_a_line_for_each_run_and_a_mean_and_goes_on_where_it_stopped(capsys, points, tmp_path):
    command = (
        "bench",
        "arrays",
        "--data",
        points,
        "--method",
        "k-means",
        "--seeds",
        "0,1",
        "--out",
        tmp_path,
    )
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()[1:4]] == ["0", "1", "mean"]
    assert len(list(tmp_path.glob("points-k_means-seed*.json"))) == 2
    _, out, _ = run(capsys, *command)
    assert out.count("kept from") == 2
    code, out, _ = run(capsys, *command, "--again")
    assert "kept" not in out


def test_bench_writes_what_it_was_told_into_the_record(capsys, points, tmp_path):
    run(
        capsys,
        *("bench", "arrays", "--data", points, "--method", "k-means", "--out", tmp_path, "--set", "n_init=2"),
        *("--known", "0.75", "--labelled", "3", "--unseen", "0.2", "--split-seed", "4", "--threads", "1"),
    )
    (path,) = tmp_path.glob("*.json")
    settings = json.loads(path.read_text())["settings"]
    assert settings["parameters"] == {"n_init": 2}
    assert settings["split"] == {"seed": 4, "known": 0.75, "labelled": 3, "unseen": 0.2}
    assert settings["n_threads"] == 1
    assert json.loads(path.read_text())["split"]["n_labelled"] == 9


def test_a_method_that_fails_is_told_and_the_others_run(capsys, points, tmp_path):
    code, out, err = run(
        capsys,
        *("bench", "arrays", "--data", points, "--method", "infomap-all,k-means", "--out", tmp_path),
        *("--set", "n_init=2"),
    )
    assert code == 1
    assert "infomap-all, seed 0, did not run" in err
    assert "n_init" in err
    assert "k-means" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench"], "no data set is named"),
        (["bench", "nowhere"], "name='nowhere' is no data set. Pass one of digits"),
        (["bench", "digits", "--method", "magic"], "method='magic' is unknown. Pass one of pnp"),
        (["bench", "cub200"], "root=None says not where"),
        (["bench", "--report", "no/such/folder"], "does not exist"),
        (["bench", "--repeat", "no_such_file.json"], "is no record"),
        (["analyse", "magic", "digits"], "analysis='magic' is unknown"),
        (["analyse", "losses"], "no data set is named"),
    ],
)
def test_bad_arguments_say_what_to_pass(capsys, arguments, message):
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert message in err


@pytest.mark.parametrize(
    "arguments", [["--set", "max_iter"], ["--seeds", "0,x"], ["--seeds", "-1"], ["--set", "1a=3"]]
)
def test_arguments_that_cannot_be_read_are_refused_at_once(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["bench", "digits", *arguments])
    assert "such as" in capsys.readouterr().err


def read(*arguments, method="pnp"):
    parser = argparse.ArgumentParser()
    add_data_arguments(parser)
    return read_settings(parser.parse_args(["folder", "--data", "x", *arguments]), method, seed=0)


def test_options_of_images_reach_the_method_or_the_features():
    trained = read("--backbone", "b", "--weights", "w", "--image-size", "64")
    assert trained.parameters == {"backbone": "b", "backbone_weights": "w", "image_size": 64}
    assert trained.features is None
    paper = read("--weights", "w", "--image-size", "64", method="pnp-paper")
    assert paper.parameters == {"backbone_weights": "w", "image_size": 64}
    frozen = read("--frozen", "--weights", "none", method="pnp-paper")
    assert frozen.features == {"backbone": "vit_base_patch16_224.dino", "weights": None, "image_size": None}
    assert not frozen.parameters
    peer = read("--backbone", "b", "--unit", method="k-means")
    assert peer.features == {"scale": "unit", "backbone": "b", "weights": "auto", "image_size": None}
    assert read("--embedder", "tfidf", "--unit").features == {"scale": "unit", "embedder": "tfidf"}
    assert read().features is None


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (["--weights", "w"], "pnp"),
        (["--image-size", "64"], "k-means"),
        (["--frozen"], "pnp"),
        (["--embedder", "tfidf", "--backbone", "b"], "pnp"),
    ],
)
def test_options_without_effect_are_refused(options, method):
    with pytest.raises(ValueError, match="--backbone"):
        read(*options, method=method)


def test_the_list_names_every_data_set_and_method(capsys):
    _, out, _ = run(capsys, "bench", "--list")
    for name in [*DATASETS, *METHODS]:
        assert f"  {name} " in out


def test_a_record_is_repeated_bit_for_bit_and_a_changed_one_is_told(capsys, points, tmp_path):
    run(capsys, "bench", "arrays", "--data", points, "--method", "k-means", "--out", tmp_path)
    (path,) = tmp_path.glob("*.json")
    code, out, _ = run(capsys, "bench", "--repeat", path)
    assert code == 0
    assert "the same, bit for bit" in out
    record = json.loads(path.read_text())
    record["scores"]["all"] += 0.01
    path.write_text(json.dumps(record))
    code, out, _ = run(capsys, "bench", "--repeat", path)
    assert code == 1
    assert "scores.all" in out


def test_a_report_is_written_from_the_records(capsys, points, tmp_path):
    run(capsys, "bench", "arrays", "--data", points, "--method", "k-means", "--out", tmp_path)
    code, out, _ = run(capsys, "bench", "--report", tmp_path)
    assert code == 0
    assert "k-means" in out
    assert (tmp_path / "report.md").exists()
    assert "<html" in (tmp_path / "report.html").read_text()


# --- analyses ----------------------------------------------------------------------------------------------


class CannedBench:
    """Answers every run at once: a third of the rows wrong, otherwise without potential prototypes."""

    def __init__(self, folder):
        self.out, self.n_runs = folder, 0

    def with_features(self):
        return self

    def run(self, settings):
        self.n_runs += 1
        truth = np.repeat(np.arange(6), 10)
        found = truth.copy()
        if settings.parameters.get("potential_prototypes", "trainable") is None:
            found[::3] = (found[::3] + 1) % 6
        path = self.out / f"{settings.file_stem('x')}.json"
        features = np.eye(6)[truth] + np.random.default_rng(0).normal(scale=0.1, size=(60, 6))
        np.savez(
            path.with_suffix(".npz"), found=found, truth=truth, known_classes=[0, 1, 2], features=features
        )
        right = float(np.mean(found == truth))
        scores = {"all": right, "known": right, "novel": None, "n_clusters": 6, "n_true": 6, "auroc": None}
        return Run({"scores": scores, "settings": settings.to_json(), "seconds": {"fit": 1.0}}, path, True)


@pytest.fixture
def study(tmp_path):
    return Study(CannedBench(tmp_path), [RunSettings("digits"), RunSettings("arrays", "b.npz")], [0, 1])


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "clustering-time"])
def test_every_analysis_gives_a_whole_table_and_a_picture(study, name, tmp_path):
    outcome = ANALYSES[name].run(study)
    assert outcome.rows
    assert all(len(row) == len(outcome.header) for row in outcome.rows)
    outcome.draw().savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_ablations_say_when_the_full_method_is_not_the_best_row(study):
    notes = ANALYSES["potential-prototypes"].run(study).notes
    assert "digits: the full method is the best row." in notes
    good, bad = ({"scores": {"all": score}} for score in (0.8, 0.7))
    results = {"digits": {"less": [Run(good, None, True)], "full": [Run(bad, None, True)]}}
    assert name_best(results) == ["digits: “less” is 10.0 points ahead of it."]


def test_bias_is_counted_over_classes_that_both_variants_found(study):
    truth = np.array([0, 0, 1, 1, 2, 2])
    first = Answered(np.array([0, 0, 1, 1, 1, 1]), truth, np.array([0]))  # nothing of class 2
    second = Answered(np.array([0, 0, 5, 5, 6, 6]), truth, np.array([0]))
    assert find_shared_classes([first, second]).tolist() == [0, 1]
    rows = {row[:2]: row[2:] for row in ANALYSES["inter-class-bias"].run(study).rows}
    assert rows["digits", "with potential prototypes"] == ("0.0", "0.0", "0.0", "0.0")
    without = [float(cell) for cell in rows["digits", "without potential prototypes"]]
    assert sum(without) == pytest.approx(100 / 3, abs=0.2)


def test_runs_of_one_analysis_are_not_asked_for_twice(study):
    ANALYSES["overlap"].run(study)
    assert study.bench.n_runs == 9 * 2 * 2


def test_the_command_writes_table_and_picture_and_keeps_the_records(capsys, points, tmp_path):
    command = ("analyse", "potential-prototypes", "arrays", "--data", points, "--out", tmp_path)
    code, out, err = run(capsys, *command, "--set", "max_iter=1")
    assert code == 0, err
    assert "Potential prototypes: none, frozen, trainable" in out
    ours, theirs = out.split("Published, not run here")
    assert ours.count("\n| ") == theirs.count("\n| ") == 5  # the header, its line and three variants
    assert (tmp_path / "analyses" / "potential-prototypes.png").exists()
    assert len(list((tmp_path / "analyses" / "runs").glob("*.json"))) == 3
    _, again, err = run(capsys, *command, "--set", "max_iter=1")
    assert again == out
    assert err.count("kept from") == 3


def test_clustering_is_timed_for_the_pool_and_for_all_rows(capsys, points, tmp_path):
    code, out, err = run(capsys, "analyse", "clustering-time", "arrays", "--data", points, "--out", tmp_path)
    assert code == 0, err
    cells = [cell.strip() for cell in out.splitlines()[6].split("|")[1:-1]]
    assert cells[0] == "points"
    assert int(cells[1]) < int(cells[3])
    assert float(cells[5]) > 0


def test_a_peer_of_a_method_that_trains_a_network_sees_its_features():
    base = RunSettings(
        "folder", "x", parameters={"backbone": "test_vit", "backbone_weights": None, "max_iter": 2}
    )
    peer = base.with_method("k-means", {"n_init": 2})
    assert peer.features == {"backbone": "test_vit", "weights": None, "image_size": None}
    assert peer.parameters == {"n_init": 2}


def test_an_analysis_divides_the_rows_by_the_seed_it_is_told(study):
    seeds = []
    reported = study._replace(
        split_seed=7, report=lambda label, run: seeds.append(run.record["settings"]["split"]["seed"])
    )
    ANALYSES["memory"].run(reported)
    assert set(seeds) == {7}


def test_two_data_sets_of_one_name_are_refused(capsys, points, tmp_path):
    code, _, err = run(capsys, "analyse", "memory", "arrays", "--data", points, points, "--out", tmp_path)
    assert code == 1
    assert "two data sets alike: points, points" in err


def test_an_analysis_that_cannot_draw_says_so_before_it_runs(capsys, points, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(capsys, "analyse", "memory", "arrays", "--data", points, "--out", tmp_path)
    assert code == 1
    assert 'pip install "pnp-gcd[plots]"' in err
    assert not list(tmp_path.iterdir())


def test_analyses_are_listed(capsys):
    _, out, _ = run(capsys, "analyse", "list")
    assert len(out.splitlines()) == len(ANALYSES) == 11
