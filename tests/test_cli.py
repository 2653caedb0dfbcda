"""The command line, run as a user runs it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pnp_gcd
from pnp_gcd import cli
from pnp_gcd.commands import demo as demo_command
from pnp_gcd.datasets import load_digits_split


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pnp_gcd", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def demo():
    return run("demo", "--seed", "0", "--json")


def test_demo_prints_json_alone_on_standard_output(demo):
    assert demo.returncode == 0, demo.stderr
    record = json.loads(demo.stdout)
    assert record["version"] == pnp_gcd.__version__
    assert record["seed"] == 0
    assert record["true_classes"] == 10
    assert len(record["known_classes"]) == 5
    assert record["n_labelled"] + record["n_unlabelled"] + record["n_unseen"] == 1797


def test_demo_beats_k_means_that_is_told_the_number(demo):
    discovered, clustered = json.loads(demo.stdout)["results"]
    for result in (discovered, clustered):
        for name in ("all", "known", "novel", "unseen"):
            assert 0 <= result[name] <= 1
        assert result["seconds"] > 0
    assert discovered["is_estimated"]
    assert not clustered["is_estimated"]
    assert clustered["classes"] == 10
    assert 8 <= discovered["classes"] <= 12
    assert discovered["all"] >= clustered["all"] + 0.05


def test_demo_shows_progress_on_standard_error(demo):
    assert "epoch 4/4" in demo.stderr


def test_version_is_the_packages():
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout.strip() == f"pnp-gcd {pnp_gcd.__version__}"


def test_without_a_command_help_goes_to_standard_error():
    result = run()
    assert result.returncode == 2
    assert result.stdout == ""
    assert "demo" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["discovr"], "Did you mean discover?"),
        (["xyz"], "invalid choice: 'xyz'"),
        (["merge", "found", "a", "b", "--forc"], "unrecognized arguments: --forc. Did you mean --force?"),
        (["merge", "found", "a", "b", "--ot=x"], "unrecognized arguments: --ot=x. Did you mean --out?"),
        (["merge", "found", "a", "b", "--qqqq"], "unrecognized arguments: --qqqq\n"),
        (["discover", "--out", "x"], "one of the arguments --images --embeddings --table is required"),
        (["predict", "found", "x", "--reject-below", "2"], "must be a number from 0 to 1"),
        (["demo", "--seed", "-3"], "must be an integer from 0"),
        (["demo", "--seed", "one"], "'one' must be an integer from 0"),
    ],
)
def test_wrong_arguments_exit_with_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("n_known=0 is too few"), 1, "pnp-gcd: error: n_known=0 is too few"),
        (ValueError("two\nlines"), 1, "pnp-gcd: error: two lines"),
        (MemoryError(), 1, "the memory is full"),
        (BrokenPipeError(), 0, ""),
        (
            ValueError(
                "Check the network, or pass backbone_weights= the path of a file, or None for random weights."
            ),
            1,
            "or pass --backbone-weights FILE, or --backbone-weights none for random weights.",
        ),
        (
            ValueError('backbone_weights="w.pth" cannot be read'),
            1,
            '--backbone-weights "w.pth" cannot be read',
        ),
        (ImportError("No module named 'infomap'"), 1, "No module named 'infomap'"),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(error, code, message, monkeypatch, capsys):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(demo_command, "_run_demo", fail)
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    assert cli.main(["demo"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_an_interrupt_while_commands_are_imported_exits_with_130(monkeypatch, capsys):
    def fail():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_build_parser", fail)
    assert cli.main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_ctrl_c_while_scikit_learn_is_imported_ends_without_a_traceback(tmp_path):
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")
    root = str(Path(pnp_gcd.__file__).parents[1])
    # As the installed script does: the package, then its command.
    program = "import sys; from pnp_gcd.cli import main; sys.argv[1:] = ['demo']; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])},
    )
    assert ran.returncode in (130, -signal.SIGINT), ran.stderr  # a shell says 130 to both
    assert ran.stderr == "\npnp-gcd: interrupted.\n"


def test_the_package_imports_what_it_offers_when_asked():
    program = (
        "import sys, pnp_gcd\n"
        "assert not {'sklearn', 'torch', 'numpy'} & set(sys.modules)\n"
        "assert pnp_gcd.metrics.__name__ == 'pnp_gcd.metrics' and not hasattr(pnp_gcd, 'nothing')\n"
        "from pnp_gcd import *\n"
        "assert {*pnp_gcd.__all__, 'exceptions'} <= set(dir(pnp_gcd))\n"
        "print(PNPDiscoverer.__name__, ImageEmbedder.__name__, pool.__name__, spool.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["PNPDiscoverer", "ImageEmbedder", "pool", "spool"]


def test_the_wording_that_is_translated_is_the_librarys():
    """If it changes there, its translation has to change too."""
    root = Path(pnp_gcd.__file__).parent
    assert (
        "backbone_weights= the path of a file, or None for random weights"
        in (root / "backbones.py").read_text()
    )
    assert "merge_classes([[{name!r}, …]])" in (root / "curation.py").read_text()


def test_the_table_is_aligned_and_says_what_it_shows():
    split = load_digits_split(random_state=0)
    results = [
        demo_command._Result("PNPDiscoverer", 0.9, 0.95, 0.85, 0.88, 11, True, 12.3),
        demo_command._Result("k-means, told 10", 0.8, 0.7, 0.85, 0.79, 10, False, 0.2),
    ]
    report = demo_command._format_report(split, 10, results).splitlines()
    table = report[2:5]
    assert len({len(line) for line in table}) == 1
    assert table[1].split() == ["PNPDiscoverer", "90.0", "95.0", "85.0", "88.0", "11", "of", "10", "12.3"]
    assert "found 11 (truly 10)" in " ".join(report)
    assert "10.0 points more" in " ".join(report)


def test_fewer_rows_right_is_said_too():
    worse = demo_command._Result("PNPDiscoverer", 0.7, 0.7, 0.7, 0.7, 10, True, 1.0)
    better = demo_command._Result("k-means, told 10", 0.8, 0.8, 0.8, 0.8, 10, False, 1.0)
    assert "10.0 points fewer" in demo_command._say_what_it_shows(10, worse, better)


def test_help_needs_no_heavy_import():
    code = (
        "import sys; from pnp_gcd.cli import main\n"
        "assert main([]) == 2\n"
        "print([name for name in ('torch', 'timm', 'faiss', 'infomap') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
