"""Reports of benchmarks: what is averaged, what is compared, what the paper's numbers are."""

import copy
import json
import re
from html.parser import HTMLParser

import pytest

from pnp_gcd.benchmark.published import published_rows, read_published
from pnp_gcd.benchmark.records import read_records
from pnp_gcd.benchmark.reports import make_tables, to_html, to_markdown, write_report

DATASETS = {
    "cifar10",
    "cifar100",
    "imagenet100",
    "herbarium19",
    "cub200",
    "stanford_cars",
    "fgvc_aircraft",
    "oxford_pets",
}
K = "the number of classes"


def make_record(dataset="cub200", method="pnp", seed=0, *, given="nothing", scores=(), **changes):
    """Return a record; changes are of settings, or under the names of other parts."""
    record = {
        "format": 1,
        "settings": {
            "dataset": dataset,
            "data": None,
            "data_options": {},
            "features": None,
            "method": method,
            "parameters": {},
            "seed": seed,
            "split": {"seed": seed, "known": None, "labelled": 0.5, "unseen": None},
            "n_threads": 1,
        },
        "data": {"sha256": "d0", "kind": "images", "n_rows": 9, "n_classes": 4},
        "split": {"n_labelled": 3, "n_unlabelled": 6, "n_unseen": 2, "sha256": f"split {seed}"},
        "given": given,
        "parameters": {},
        "scores": {
            **{"all": 0.5, "known": 0.6, "novel": 0.4, "named": 0.5, "unseen_all": 0.5},
            **{"n_clusters": 4, "n_true": 4, "auroc": 0.9},
            **dict(scores),
        },
        "seconds": {"fit": 2.0, "predict": 0.1},
        "sha256": {"unlabelled": "a", "unseen": "b"},
        "environment": {"pnp_gcd": "0.1.0", "git": {"commit": "c0", "is_clean": True}},
        "started": "2026-01-01T00:00:00+00:00",
    }
    for name, value in changes.items():
        (record if name in record else record["settings"])[name] = value
    record["settings"]["parameters"] = dict(record["parameters"])
    return record


def find_table(tables, title="cub200"):
    return next(table for table in tables if table.title == title)


def read_rows(table):
    """Return rows as dicts of shown texts, by the row's name; runs and published rows apart."""
    names = [column.name for column in table.columns]
    runs, published = {}, {}
    for row in table.rows:
        shown = dict(zip(names, (cell.text for cell in row.cells), strict=True))
        (runs if shown["source"] == "run here" else published)[shown["method"], shown["given K"]] = shown
    return runs, published


def read_runs(records, title="cub200"):
    return read_rows(find_table(make_tables(records), title))[0]


def find_bold(records, title="cub200"):
    table = find_table(make_tables(records), title)
    names = [column.name for column in table.columns]
    return {
        (row.cells[0].text, name)
        for row in table.rows
        for name, cell in zip(names, row.cells, strict=True)
        if cell.is_best
    }


# --- means -------------------------------------------------------------------------------------------------


def test_mean_and_deviation_over_seeds_are_those_of_hand_numbers():
    records = [make_record(seed=seed, scores={"all": a}) for seed, a in enumerate((0.5, 0.6, 0.7))]
    (row,) = read_runs(records).values()
    assert (row["All"], row["runs"]) == ("60.0 ± 10.0", "3")  # n − 1; with n it would be 8.2


def test_one_run_has_no_deviation():
    (row,) = read_runs([make_record(scores={"all": 0.512})]).values()
    assert row["All"] == "51.2"


def test_classes_found_stand_beside_the_true_number():
    records = [make_record(seed=s, scores={"n_clusters": n, "n_true": 77}) for s, n in enumerate((80, 84))]
    (row,) = read_runs(records).values()
    assert row["classes"] == "82.0 ± 2.8 of 77"


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_what_no_run_has_is_a_dash(missing):
    (row,) = read_runs([make_record(scores={"auroc": missing})]).values()
    assert row["AUROC"] == "–"


def test_what_some_runs_lack_is_averaged_over_the_others_and_said():
    table = find_table(make_tables([make_record(seed=0), make_record(seed=1, scores={"auroc": None})]))
    ((_, row),) = read_rows(table)[0].items()
    assert row["AUROC"] == "0.900"
    assert "pnp: AUROC over 1 of 2 runs." in table.notes


# --- what may be averaged ----------------------------------------------------------------------------------


def test_runs_whose_defaults_differ_are_not_averaged():
    first, second = make_record(seed=0, scores={"all": 0.2}), make_record(seed=1, scores={"all": 0.8})
    first["parameters"], second["parameters"] = {"learning_rate": 0.1}, {"learning_rate": 0.3}
    rows = read_runs([first, second])
    assert sorted(row["All"] for row in rows.values()) == ["20.0", "80.0"]
    assert any("learning_rate=0.3" in name for name, _ in rows)


def test_a_part_of_the_data_is_told_to_be_not_comparable():
    whole = make_record("cub200", data={"sha256": "d0", "kind": "images", "n_classes": 200})
    whole["split"] = {"n_labelled": 1498, "n_unlabelled": 4496}
    part = make_record("cub200", data={"sha256": "d1", "kind": "images", "n_classes": 4})
    told = "Not the paper's data"
    assert told not in to_markdown(make_tables([whole]))
    assert told in to_markdown(make_tables([part]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"parameters": {"n_neighbors": 5}}, "n_neighbors=5"),
        ({"split": {"seed": 1, "known": 0.25, "labelled": 0.5, "unseen": None}}, "split.known=0.25"),
        ({"features": {"backbone": "vit"}}, "features.backbone=vit"),
        ({"data": {"sha256": "another", "kind": "images"}}, "data sha256=another"),
        ({"data_options": {"label": "x"}}, "data.label=x"),
        ({"data": {"sha256": "d0", "kind": "images", "inputs_sha256": {"weights": "w"}}}, "weights=w"),
    ],
)
def test_runs_told_different_things_are_rows_of_their_own_whose_names_say_what_differs(changes, told):
    first = make_record(seed=0, scores={"all": 0.2})
    if "features" in changes:
        first["settings"]["features"] = {"backbone": "resnet"}
    second = make_record(seed=1, scores={"all": 0.8})
    for name, value in changes.items():
        (second if name in second and name != "split" else second["settings"])[name] = value
    rows = read_runs([first, second])
    assert sorted(row["All"] for row in rows.values()) == ["20.0", "80.0"]
    assert [told in name for name, _ in rows].count(True) == 1


def test_rows_that_saw_images_and_features_are_told_apart():
    seen = {"sha256": "d0", "kind": "features"}
    records = [make_record(), make_record(features={"backbone": "vit"}, method="k-means")]
    records[1]["data"] = seen
    assert [name for name, _ in read_runs(records)] == ["pnp (on images)", "k-means (on features)"]


def test_long_values_that_begin_alike_do_not_look_alike():
    weights = ["/a/very/long/folder/with/many/parts/in/its/name/" + name for name in ("one.pt", "two.pt")]
    records = [make_record(parameters={"backbone_weights": path}) for path in weights]
    assert len(read_runs(records)) == 2


def test_where_the_data_lie_does_not_part_runs():
    records = [make_record("csv", seed=seed) for seed in (0, 1)]
    for folder, record in zip("ab", records, strict=True):
        record["settings"]["data"] = f"/{folder}/tickets.csv"
    (row,) = read_runs(records, "tickets").values()
    assert row["runs"] == "2"


def test_a_method_told_the_number_by_a_parameter_counts_as_given_it():
    assert [given for _, given in read_runs([make_record(parameters={"n_clusters": 4})])] == ["yes"]


@pytest.mark.parametrize(("answers", "said"), [("a", "the same answers"), ("z", "different answers")])
def test_a_seed_run_twice_counts_once_and_is_said(answers, said):
    again = make_record(scores={"all": 0.9}, started="2026-02-01T00:00:00+00:00")
    again["sha256"] = {"unlabelled": answers, "unseen": "b"}
    table = find_table(make_tables([again, make_record(scores={"all": 0.1})]))
    ((_, row),) = read_rows(table)[0].items()
    assert (row["All"], row["runs"]) == ("90.0", "1")
    assert any("seed 0 was run 2 times" in note and said in note for note in table.notes)


def test_an_average_over_versions_is_said():
    other = {"pnp_gcd": "0.1.0", "git": {"commit": "c1", "is_clean": False}}
    table = find_table(make_tables([make_record(seed=0), make_record(seed=1, environment=other)]))
    assert "pnp: averages runs of environments A, B, which differ in git.commit, git.is_clean." in table.notes
    table = find_table(make_tables([make_record(seed=0), make_record(seed=1)]))
    assert not any("environments" in note for note in table.notes)


def test_rows_over_different_seeds_are_said():
    records = [make_record(seed=0), make_record(seed=1), make_record(method="infomap-all", seed=0)]
    assert any("different seeds" in note for note in find_table(make_tables(records)).notes)
    assert not any("different seeds" in note for note in find_table(make_tables(records[::2])).notes)


# --- what is best ------------------------------------------------------------------------------------------


def test_the_best_is_bold_apart_for_methods_given_the_number_and_not():
    records = [
        make_record(method="pnp", scores={"all": 0.5}),
        make_record(method="infomap-all", scores={"all": 0.4}),
        make_record(method="k-means", scores={"all": 0.7}, given=K),
        make_record(method="simgcd", scores={"all": 0.8}, given=K),
    ]
    assert {name for name, column in find_bold(records) if column == "All"} == {"pnp", "simgcd"}


def test_published_rows_are_never_bold_and_never_beat_a_run():
    records = [
        make_record(method=name, scores={"all": a}) for name, a in (("pnp", 0.02), ("infomap-all", 0.01))
    ]
    assert {name for name, column in find_bold(records) if column == "All"} == {"pnp"}


def test_rows_of_another_split_do_not_compete():
    easy = {"seed": 0, "known": 0.75, "labelled": 0.5, "unseen": None}
    records = [make_record(scores={"all": 0.5}), make_record(method="infomap-all", scores={"all": 0.4})]
    easier = make_record(scores={"all": 0.9})
    easier["settings"]["split"] = easy
    assert {name for name, column in find_bold([*records, easier]) if column == "All"} == {"pnp"}


# --- beside the paper --------------------------------------------------------------------------------------


def test_published_rows_are_marked_and_of_that_data_set_only():
    tables = make_tables([make_record("cub200"), make_record("cifar10"), make_record("digits")])
    runs, published = read_rows(find_table(tables, "cub200"))
    assert list(runs) == [("pnp", "no")]
    assert published["PNP", "no"]["All"] == "67.4"
    assert all(row["source"].startswith("published: Table ") for row in published.values())
    assert read_rows(find_table(tables, "cifar10"))[1]["PNP", "no"]["All"] == "90.2"
    assert read_rows(find_table(tables, "digits"))[1] == {}
    sections = [row.section for row in find_table(tables, "cub200").rows]
    assert sum("Published, not run here" in section for section in sections) == len(published)


def test_tables_stand_in_the_papers_groups():
    tables = make_tables([make_record(name) for name in ("digits", "cifar10", "cub200")])
    assert [(table.group, table.title) for table in tables[:3]] == [
        ("Fine-grained data sets", "cub200"),
        ("Generic data sets and Herbarium 19", "cifar10"),
        ("Other data sets", "digits"),
    ]


def test_disagreements_of_the_paper_are_said_where_their_data_set_is_shown():
    tables = make_tables([make_record("cub200"), make_record("oxford_pets")])
    notes = find_table(tables, "cub200").notes
    assert any("67.4/69.2/66.5" in note and "62.2/75.4/55.6" in note for note in notes)
    assert not any("disagrees" in note for note in find_table(tables, "oxford_pets").notes)


def test_another_split_than_the_papers_is_said():
    split = {"seed": 0, "known": 0.25, "labelled": 0.5, "unseen": None}
    record = make_record()
    record["settings"]["split"] = split
    assert any("Not the paper's split" in note for note in find_table(make_tables([record])).notes)
    assert not any("Not the paper's split" in note for note in find_table(make_tables([make_record()])).notes)


# --- pages -------------------------------------------------------------------------------------------------

NASTY = "<script>alert(1)</script>|*a*`b`\\|_c_ & [d](e)\n# f"


class Outline(HTMLParser):
    """Collects tags and the texts of cells, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts, self.links = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def read_page(records):
    page, outline = to_html(make_tables(records)), Outline()
    outline.feed(page)
    assert outline.open == []
    return page, outline


def test_nasty_names_are_shown_by_html_and_not_obeyed():
    record = make_record(NASTY, NASTY, parameters={NASTY: NASTY}, environment={NASTY: NASTY})
    _, outline = read_page([record, make_record(NASTY, NASTY)])
    assert NASTY in outline.texts
    assert "script" not in {tag for tag, _ in outline.tags}
    assert not any(name.startswith("on") for _, attributes in outline.tags for name in attributes)


def test_nasty_names_leave_markdown_its_columns():
    text = to_markdown(make_tables([make_record(NASTY, NASTY)]))
    assert "<script>" not in text
    lines = [line for line in text.splitlines() if "alert(1)" in line]
    assert lines
    for line in lines:
        bare = re.sub(r"\\[|]", "", line)
        assert bare.startswith("#") or bare.count("|") in (12 + 1, 11 + 1)  # results, runs
    assert not any(line.startswith("# f") for line in text.splitlines())


def test_markdown_shows_nasty_names_as_they_are():
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(to_markdown(make_tables([make_record(method=NASTY)])))
    shown = ["".join(child.content for child in token.children) for token in tokens if token.type == "inline"]
    assert NASTY.replace("\n", " ") in shown


def test_the_page_needs_nothing_from_elsewhere():
    page, outline = read_page([make_record()])
    assert outline.links == []
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page


def test_every_table_of_the_page_has_a_caption_and_scopes():
    _, outline = read_page([make_record(), make_record("digits")])
    tags = [tag for tag, _ in outline.tags]
    assert tags.count("caption") == tags.count("table") == 4
    assert all("scope" in attributes for tag, attributes in outline.tags if tag == "th")


def test_a_report_is_written_as_both(tmp_path):
    records = [make_record()]
    before = copy.deepcopy(records)
    paths = write_report(records, tmp_path / "new")
    assert [path.name for path in paths] == ["report.md", "report.html"]
    assert all("67.4" in path.read_text(encoding="utf-8") for path in paths)
    assert records == before


def test_reports_of_the_same_records_are_the_same_in_any_order_of_seeds():
    records = [make_record(seed=seed, scores={"all": seed / 10}) for seed in range(3)]
    assert to_html(make_tables(records)) == to_html(make_tables(records[::-1]))


def test_settings_and_environments_are_told():
    tables = make_tables([make_record(seed=seed, parameters={"teacher": None}) for seed in (3, 5)])
    (row,) = find_table(tables, "Runs").rows
    shown = [cell.text for cell in row.cells]
    assert shown[2] == "3, 5"
    assert "teacher=none" in shown
    names = [row.cells[0].text for row in find_table(tables, "Environments").rows]
    assert names == ["pnp_gcd", "git.commit", "git.is_clean"]


def test_a_folder_without_records_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="Run .*bench"):
        write_report(read_records(tmp_path), tmp_path)
    with pytest.raises(ValueError, match="Run `pnp-gcd bench`"):
        write_report([], tmp_path)
    assert not list(tmp_path.iterdir())


def test_records_are_read_from_their_folder(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(make_record()))
    assert len(read_runs(read_records(tmp_path))) == 1


# --- the paper's numbers -----------------------------------------------------------------------------------


def all_scores():
    """Yield table, row, data set and scores of all that the paper's tables hold."""
    for label, table in read_published()["tables"].items():
        for row in table["rows"]:
            for dataset, scores in row.get("scores", {}).items():
                yield label, row, dataset, scores


def test_every_published_row_has_three_percents_or_none_at_all():
    for label, row, dataset, scores in all_scores():
        assert dataset in DATASETS, (label, row)
        assert len(scores) == 3, (label, row)
        assert scores == [None] * 3 or all(0 < score < 100 for score in scores), (label, row)


def test_published_tables_have_as_many_entries_as_the_paper():
    counts = {label: 0 for label in read_published()["tables"]}
    for label, _, _, scores in all_scores():
        counts[label] += sum(score is not None for score in scores)
    assert counts == {
        "tab:data_info": 0,
        "tab:ssb": 102,
        "tab:cch": 129,
        "tab:time": 0,
        "tab:ablat": 36,
        "tab:overlap": 36,
        "tab:ablat_losses": 30,
        "tab:fvt": 9,
        "tab:ssb_new": 153,
        "tab:cch_new": 177,
        "tab:ssb_new_new": 36,
    }
    assert [table["number"] for table in read_published()["tables"].values()] == list(range(1, 12))


@pytest.mark.parametrize(
    ("dataset", "method", "given_k", "scores"),
    [
        ("stanford_cars", "PNP", False, (57.3, 70.2, 51.1)),
        ("cub200", "InfoSieve", True, (69.4, 77.9, 65.2)),
        ("cifar10", "DCCL", False, (96.3, 96.5, 96.9)),
        ("cifar100", "PNP", False, (80.0, 81.7, 76.3)),
        ("herbarium19", "SimGCD", False, (39.7, 58.2, 29.7)),
        ("imagenet100", "UNO+", True, (70.3, 95.0, 57.9)),
        ("oxford_pets", "k-means", True, (77.1, 70.1, 80.7)),
        ("fgvc_aircraft", "SPTNet", True, (59.3, 61.8, 58.1)),
    ],
)
def test_published_rows_are_the_papers(dataset, method, given_k, scores):
    (row,) = [row for row in published_rows(dataset) if (row.method, row.given_k) == (method, given_k)]
    assert (row.all, row.known, row.novel) == scores


def test_sizes_times_and_counts_are_the_papers():
    published = read_published()
    assert set(published["datasets"]) == DATASETS
    herbarium = published["datasets"]["herbarium19"]
    assert (herbarium["n_known"], herbarium["n_classes"], herbarium["n_unlabelled"]) == (341, 683, 25400)
    times = {row["method"]: row["seconds"] for row in published["tables"]["tab:time"]["rows"]}
    assert times["DCCL"]["herbarium19"] == pytest.approx(24.78 * 60)
    assert times["PNP"]["cub200"] == 23
    counts = {str(entry["parameters"]["potential_prototypes"]): entry for entry in published["class_counts"]}
    assert [counts[name]["n_classes"] for name in ("None", "frozen", "trainable")] == [175, 183, 183]


def test_claims_follow_from_the_tables():
    claims = {claim["dataset"]: claim["value"] for claim in read_published()["claims"]}
    found = sorted(
        row.all for row in published_rows("stanford_cars") if not row.given_k and row.method != "SimGCD"
    )
    assert found[-1] - found[-2] == pytest.approx(claims["stanford_cars"])
    slow, fast = (row["seconds"]["herbarium19"] for row in read_published()["tables"]["tab:time"]["rows"])
    assert int(slow / fast) == claims["herbarium19"]


def disagreements(kind):
    return [entry for entry in read_published()["disagreements"] if entry["kind"] == kind]


def test_every_disagreement_is_between_places_that_differ():
    for entry in read_published()["disagreements"]:
        first, second = entry["places"]
        assert first["value"] != second["value"], entry
        assert first["where"], entry
        assert second["where"], entry


def test_disagreeing_numbers_stand_in_the_tables_that_are_named():
    for entry in disagreements("repeated"):
        for place in entry["places"]:
            for label in place["where"]:
                assert any(
                    (where, row["method"], dataset, scores)
                    == (label, entry["method"], entry["dataset"], place["value"])
                    for where, row, dataset, scores in all_scores()
                ), (entry, label)


def test_no_repeated_number_disagrees_beyond_those_recorded():
    recorded = {(entry["dataset"], entry["method"]) for entry in disagreements("repeated")}
    seen = {}
    for _, row, dataset, scores in all_scores():
        if "given_k" in row:
            seen.setdefault((dataset, row["method"], row["given_k"]), set()).add(tuple(scores))
    differing = {key[:2] for key, found in seen.items() if len(found) > 1}
    assert differing == {("cifar100", "PNP")} <= recorded


def test_recorded_means_are_those_of_known_and_novel_by_numbers_of_rows():
    sizes = read_published()["datasets"]
    for entry in disagreements("arithmetic"):
        all_, known, novel = entry["scores"]
        n_labelled, n_pool = sizes[entry["dataset"]]["n_labelled"], sizes[entry["dataset"]]["n_unlabelled"]
        percent = re.match(r"known (\d+) %", entry["about"])
        if percent:  # of CUB's 6000 rows; half of those of known classes have labels
            n_labelled = 6000 * int(percent[1]) / 200
            n_pool = 6000 - n_labelled
        share = n_labelled / n_pool
        printed, expected = (place["value"] for place in entry["places"])
        assert printed == all_
        assert expected == pytest.approx(share * known + (1 - share) * novel, abs=0.06)
        assert abs(printed - expected) > 0.2
        is_outside = not min(known, novel) <= all_ <= max(known, novel)
        assert is_outside == ("outside" in entry["about"])
