"""What the commands read and write, without a model."""

import csv
import io
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pnp_gcd.atomic_files import replace_file
from pnp_gcd.commands.bundles import read_words, write_words
from pnp_gcd.commands.cells import guard_cell, restore_cell, to_csv
from pnp_gcd.commands.items import read_items
from pnp_gcd.commands.label_files import read_folder_labels, read_labels, type_labels, type_like
from pnp_gcd.commands.outputs import StagedFolder, check_free
from pnp_gcd.commands.recipes import Recipe, read_recipe
from pnp_gcd.commands.sorting import name_folders, sort_images
from pnp_gcd.commands.summaries import summarise
from pnp_gcd.commands.tables import open_table
from pnp_gcd.text_features import WordFeatures, embed_sentences

EMBEDDINGS = Recipe("embeddings")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- cells -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "'=x", "''-"])
def test_no_cell_begins_as_a_formula_does(text):
    assert guard_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["", "rose", "'", "'n roll", "a=b", "1-2"])
def test_cells_that_are_no_formula_stay_as_they_are(text):
    assert guard_cell(text) == text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_any_text_comes_back_from_a_file_as_it_was(texts):
    file = io.StringIO(
        to_csv(["name", "text"], ([str(row), text] for row, text in enumerate(texts))), newline=""
    )
    rows = list(csv.reader(file, strict=True))[1:]
    assert [restore_cell(cell) for _, cell in rows] == texts


# --- folders of classes ------------------------------------------------------------------------------------


def test_classes_get_folder_names_that_no_system_refuses():
    names = name_folders(
        ["..", ".", "", "a/b", "a\\b", "nul", "COM1.txt", "x. ", "-rf", "a\0b\n", 7, "_no_class"]
    )
    assert list(names.values()) == [
        *("_", "_-2", "_-3", "a_b", "a_b-2", "_nul", "_COM1.txt", "x", "_-rf", "a_b_", "7", "_no_class-2")
    ]


@given(st.lists(st.text(), unique=True))
def test_no_two_classes_share_a_folder_and_none_leads_elsewhere(classes):
    names = name_folders(classes)
    assert len({name.casefold() for name in names.values()}) == len(classes)
    for name in names.values():
        assert name == Path(name).name
        assert name not in ("", ".", "..")
        assert len(name.encode()) < 200
        assert not set('<>:"/\\|?*') & set(name)


@pytest.mark.parametrize("by", ["copy", "link"])
def test_images_are_sorted_by_class_and_keep_their_names(tmp_path, by):
    paths = []
    for name in ("a/1.png", "b/1.png", "b/1.PNG", "b/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        paths.append(str(write(tmp_path / name, name)))
    sort_images(paths, ["x", "x", "x", None], tmp_path / "sorted", by=by)
    found = {
        str(path.relative_to(tmp_path / "sorted")): path.read_text() for path in tmp_path.rglob("sorted/*/*")
    }
    assert found == {
        "x/1.png": "a/1.png",
        "x/1-2.png": "b/1.png",
        "x/1-3.PNG": "b/1.PNG",
        "_no_class/2.png": "b/2.png",
    }
    assert all(path.is_symlink() == (by == "link") for path in tmp_path.rglob("sorted/*/*"))
    assert all(Path(path).exists() for path in paths)


# --- recipes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe("images"),
        Recipe("texts", "id", "text", None, "tfidf"),
        Recipe("texts", None, "text", None, os.path.abspath("model")),
        Recipe("table", None, None, ("a", "b")),
    ],
)
def test_a_recipe_comes_back_as_it_was(recipe):
    assert Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 1"),
        ({"kind": "sounds"}, "kind='sounds' must be one of images"),
        ({"kind": "images"}, "do not go together"),
        ({"embedder": "relative/folder"}, "embedder='relative/folder' do not go together"),
        ({"embedder": None}, "do not go together"),
        ({"text_column": 3}, "text_column=3 must be the name"),
        ({"columns": [1]}, "must be names of columns"),
        ({"more": 1}, "in place of"),
    ],
)
def test_a_recipe_that_was_tampered_with_is_refused(tmp_path, change, message):
    told = json.loads(Recipe("texts", "id", "text", None, "tfidf").to_json()) | change
    path = write(tmp_path / "inputs.json", json.dumps(told))
    with pytest.raises(ValueError, match=message) as caught:
        read_recipe(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\0"])
def test_a_recipe_that_is_no_json_object_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match="inputs.json"):
        read_recipe(write(tmp_path / "inputs.json", text))


# --- items -------------------------------------------------------------------------------------------------


def test_arrays_are_read_with_and_without_ids(tmp_path):
    X = np.arange(6, dtype=np.float16).reshape(3, 2)
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X, id=["a", "b", "c"], y=[0, 1, 2])
    np.savez(tmp_path / "one.npz", embeddings=X)
    plain, named, one = (read_items([tmp_path / name], EMBEDDINGS) for name in ("X.npy", "X.npz", "one.npz"))
    assert plain.ids == ["0", "1", "2"]
    assert named.ids == ["a", "b", "c"]
    assert named.recipe.id_column == "id"
    for items in (plain, named, one):
        assert items.rows.dtype == np.float32
        assert items.rows.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x93NUMPY\x01\x00v\x00{", "cannot be read as an array"),
        (b"PK\x03\x04 no zip", "cannot be read as an array"),
        (b"just text", "cannot be read as an array"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_files_that_are_no_arrays_are_refused(tmp_path, content, message, suffix):
    path = tmp_path / f"X{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_items([path], EMBEDDINGS)


def spoil(path, place, change):
    """Change bytes of a file from a place on."""
    content = bytearray(path.read_bytes())
    content[place : place + len(change)] = change
    path.write_bytes(content)


def test_damaged_arrays_are_refused_however_they_are_damaged(tmp_path):
    path = tmp_path / "X.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(40, 6)))
    spoil(path, 300, b"\xff" * 400)  # what zlib cannot unpack
    with pytest.raises(ValueError, match="cannot be read as an array"):
        read_items([path], EMBEDDINGS)
    path = tmp_path / "X.npy"
    np.save(path, np.ones((2, 3)))
    spoil(path, path.read_bytes().index(b")"), b"(")  # what is no expression
    with pytest.raises(ValueError, match="cannot be read as an array"):
        read_items([path], EMBEDDINGS)
    write_words(WordFeatures.fit(TEXTS), tmp_path / "words.npz")
    spoil(tmp_path / "words.npz", 60, b"\xff" * 40)
    with pytest.raises(ValueError, match=r"words.npz' cannot be read"):
        read_words(tmp_path / "words.npz")


class Trap:
    def __reduce__(self):
        return os.mkdir, ("trapped",)


@pytest.mark.parametrize("name", ["X.npy", "X.npz"])
def test_nothing_in_an_array_file_is_executed(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    objects = np.array([Trap()], dtype=object)
    (np.save if name == "X.npy" else np.savez)(tmp_path / name, objects, allow_pickle=True)
    with pytest.raises(ValueError, match="without arrays of objects"):
        read_items([tmp_path / name], EMBEDDINGS)
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.array([["a"]]), "type <U1"),
        (np.array([[0.0], [np.nan]]), "no finite numbers in row 1"),
    ],
)
def test_arrays_that_are_no_rows_of_numbers_are_refused(tmp_path, X, message):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=message):
        read_items([tmp_path / "X.npy"], EMBEDDINGS)


def test_a_table_of_embeddings_gives_its_numbers_and_keeps_id_and_label_out(tmp_path):
    path = write(tmp_path / "t.csv", "id,who,x,label,y\n7,ann,0.5,1,2\n8,bob,3,1,4e-1\n")
    items = read_items([path], EMBEDDINGS, label_column="label")
    assert items.ids == ["7", "8"]
    assert items.rows.tolist() == [[0.5, 2.0], [3.0, 0.4]]
    assert items.recipe.columns == ("x", "y")
    again = read_items([write(tmp_path / "u.csv", "y,x,z\n2,1,9\n")], items.recipe)
    assert again.rows.tolist() == [[1.0, 2.0]]
    assert again.ids == ["0"]


def test_parquet_is_read_like_csv_and_lists_are_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"id": ["a", "b"], "text": ["x", None], "v": [[1.0, 2.0], [3.0, 4.0]], "n": [5, 6]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    items = read_items([tmp_path / "t.parquet"], EMBEDDINGS)
    assert items.ids == ["a", "b"]
    assert items.rows.tolist() == [[1, 2, 5], [3, 4, 6]]
    texts = read_items([tmp_path / "t.parquet"], Recipe("texts", text_column="text", embedder="tfidf"))
    assert texts.rows == ["x", ""]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_items([tmp_path / "bad.parquet"], EMBEDDINGS)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "t.parquet", "")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "pnp-gcd\[parquet\]"'):
        open_table(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,x\na,1\na,2\n", {}, "'a' occurs twice: .*line 2, and .*line 3"),
        ("id,x\n,1\n", {}, "line 2, has no id"),
        ("x,y\n1,one\n2,\n", {}, None),
        ("x\n1\ntwo\n", {}, "'two' in line 3 of column 'x', no finite number"),
        ("x\n1\ninf\n", {}, "'inf' in line 3"),
        ("x\n1\n", {"id_column": "key"}, "--id-column 'key' is no column of .* which has 'x'"),
        ("id;x\na;1\nb;2\n", {}, None),
        ('"id, own";x\n"a,b";1\nc;2\n', {"id_column": "id, own"}, None),
        ("x;y\n0,5;1\n", {}, "'0,5' in line 2 of column 'x', no finite number. Write decimals with a point"),
        ("", {}, "is empty"),
        ("\n", {}, "is empty"),
        ("a\nb\n", {}, "no column of numbers"),
        ("x\n", {}, "0 rows"),
        ("x,x\n1,2\n", {}, "names that differ"),
        ("x,y\n1\n", {}, "1 cells in line 2"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_its_place(tmp_path, text, options, message):
    path = write(tmp_path / "t.csv", text)
    if message is None:
        assert read_items([path], EMBEDDINGS, **options).rows.tolist() == [[1.0], [2.0]]
        return
    with pytest.raises(ValueError, match=message):
        read_items([path], EMBEDDINGS, **options)


def test_a_table_in_another_encoding_is_told_how_spreadsheets_save_utf8(tmp_path):
    (tmp_path / "t.csv").write_bytes("id;Größe\na;1\n".encode("cp1252"))
    with pytest.raises(ValueError, match='no UTF-8: .*0xf6.*"CSV UTF-8"'):
        open_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "recipe", [Recipe("texts", None, "text", None, "tfidf"), Recipe("table", columns=("x",))]
)
def test_a_column_that_a_model_needs_is_not_asked_for_by_an_option(tmp_path, recipe):
    path = write(tmp_path / "t.csv", "body\nhello\n")
    with pytest.raises(ValueError, match="has no column '(text|x)', but 'body'.*rename yours") as caught:
        read_items([path], recipe, is_kept=True)
    assert "--" not in str(caught.value)
    with pytest.raises(ValueError, match="Name one of them: --(text-column|features)"):
        read_items([path], recipe)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    for name in ("X.npy", "t.csv"):
        (tmp_path / name).mkdir()
        with pytest.raises(FileNotFoundError, match="is a folder"):
            read_items([tmp_path / name], EMBEDDINGS)


def test_images_are_called_by_their_paths_in_the_folder(tmp_path):
    for name in ("b/2.png", "a.jpg", "b/.hidden.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    items = read_items([tmp_path], Recipe("images"))
    assert items.ids == ["a.jpg", "b/2.png"]
    files = read_items([tmp_path / "a.jpg"], Recipe("images"))
    assert files.ids == [(tmp_path / "a.jpg").as_posix()]
    with pytest.raises(FileNotFoundError, match="beside other items"):
        read_items([tmp_path / "a.jpg", tmp_path / "b"], Recipe("images"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no image"):
        read_items([tmp_path / "empty"], Recipe("images"))


def test_a_file_name_that_is_no_utf8_is_named_and_refused(tmp_path):
    try:
        open(os.fsencode(tmp_path) + b"/\xff.png", "wb").close()
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(ValueError, match=r"xff.png' is no UTF-8"):
        read_items([tmp_path], Recipe("images"))


# --- labels ------------------------------------------------------------------------------------------------


def test_labels_find_images_by_path_or_by_a_name_that_only_one_has(tmp_path):
    ids = ["a/1.jpg", "b/1.jpg", "b/2.jpg", "=x.jpg"]
    path = write(tmp_path / "l.csv", "id,label\na/1.jpg,cat\n.\\b\\1.jpg,dog\n2.jpg, dog \n'=x.jpg,'=cat\n")
    assert read_labels(path, ids, are_files=True) == ["cat", "dog", "dog", "=cat"]
    path = write(tmp_path / "m.csv", "id,label\n1.jpg,cat\n")
    with pytest.raises(ValueError, match=r"1 ids that no item has: '1.jpg' \(line 2\).*'a/1.jpg'"):
        read_labels(path, ids, are_files=True)


@pytest.mark.parametrize("name", ["nr", "id"])
def test_labels_are_found_under_the_likely_column_or_else_under_id(tmp_path, name):
    path = write(tmp_path / "l.csv", f"{name},label\na,rose\n")
    assert read_labels(path, ["a", "b"], likely_id_column="nr") == ["rose", None]


def test_no_option_is_blamed_that_was_not_passed(tmp_path):
    path = write(tmp_path / "l.csv", "key,class\na,rose\n")
    with pytest.raises(
        ValueError, match="l.csv' has no column 'id', but 'key', 'class'. Name .*: --id-column"
    ):
        read_labels(path, ["a"], likely_id_column="nr")
    with pytest.raises(ValueError, match="l.csv' has no column 'label'.* Name .*: --label-column"):
        read_labels(path, ["a"], id_column="key")


def test_empty_labels_and_minus_one_mean_none(tmp_path):
    path = write(tmp_path / "l.csv", "key,kind\n0,a\n1,\n2,-1\n3, \n")
    assert read_labels(path, list("01234"), id_column="key", label_column="kind") == ["a", *[None] * 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,label\n0,a\n0,b\n", "two labels for '0': 'a' in line 2, 'b' in line 3"),
        ("id,label\n9,a\n8,a\n7,a\n6,a\n", r"4 ids that no item has: '9' \(line 2\), '8' .*, …"),
        ("id,kind\n0,a\n", "has no column 'label'"),
        ("row,label\n0,a\n", "has no column 'id'"),
    ],
)
def test_labels_that_fit_no_item_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_labels(write(tmp_path / "l.csv", text), ["0", "1"])


def test_sub_folders_are_labels_but_for_the_unlabelled_one(tmp_path):
    for name in ("cat/1.png", "unlabelled/2.png", "dog/in/3.png", "4.png", "-1/5.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    items = read_items([tmp_path], Recipe("images"))
    labels = read_folder_labels(tmp_path, items.rows.tolist())
    assert dict(zip(items.ids, labels, strict=True)) == {
        "-1/5.png": None,
        "4.png": None,
        "cat/1.png": "cat",
        "dog/in/3.png": "dog",
        "unlabelled/2.png": None,
    }


def test_labels_are_integers_only_if_all_are():
    assert type_labels(["1", "-2", "10"]).tolist() == [1, -2, 10]
    for labels in (["1", "x"], ["007", "1"], ["-0", "1"], ["1.0"], ["9" * 30]):
        assert type_labels(labels).tolist() == labels
    assert type_like(np.array([1, 2]), ["3", None]) == [3, None]
    assert type_like(np.array(["1", "2"]), ["3", None]) == ["3", None]


# --- summaries ---------------------------------------------------------------------------------------------


def test_a_summary_of_many_classes_shows_the_largest_known_and_new_ones():
    classes = [
        {"class": f"{status} {size}", "status": status, "items": size, "labelled": 0}
        for status in ("known", "novel")
        for size in range(40, 0, -1)
    ]
    record = {"items": 9, "labelled": 1, "n_clusters": 80, "n_clusters_interval": [80, 80], "known": 40}
    record |= {"novel": 40, "without_class": 0, "classes": classes, "out": "found", "written": ["model"]}
    lines = summarise(record).splitlines()
    assert lines[0] == "9 items, 1 with a label: 80 classes, 40 known and 40 new."
    assert [line[:8] for line in lines[3:13]] == [f"known {size}" for size in range(40, 30, -1)]
    assert lines[13] == "… and 30 more that are known"
    assert [line[:8] for line in lines[14:34]] == [f"novel {size}" for size in range(40, 20, -1)]
    assert lines[34] == "… and 20 more that are novel"
    assert len({len(line) for line in lines[2:13]}) == 1


# --- writing -----------------------------------------------------------------------------------------------


def test_a_file_is_replaced_only_when_the_new_one_is_complete(tmp_path):
    path = write(tmp_path / "out.csv", "old")

    def fail(temporary):
        temporary.write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        replace_file(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]
    replace_file(path, lambda temporary: temporary.write_text("new"))
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == write(tmp_path / "usual", "").stat().st_mode & 0o777


def test_files_are_not_overwritten_unasked(tmp_path):
    path = write(tmp_path / "out.csv", "old")
    with pytest.raises(FileExistsError, match="pass --force"):
        check_free(path, force=False)
    check_free(path, force=True)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_free(tmp_path, force=True)
    with pytest.raises(FileNotFoundError, match="Make .* first"):
        check_free(tmp_path / "no" / "out.csv", force=False)


def test_a_staged_folder_appears_at_once_and_replaces_only_its_own_pieces(tmp_path):
    target = tmp_path / "found"
    with StagedFolder(target) as staged:
        write(staged.path / "a", "1")
        (staged.path / "m").mkdir()
        write(staged.path / "m" / "x", "1")
        assert not target.exists()
        staged.commit()
    write(target / "mine", "kept")
    with StagedFolder(target) as staged:
        (staged.path / "m").mkdir()
        write(staged.path / "m" / "y", "2")
        staged.commit(remove=["a", "b"])
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == ["m", "m/y", "mine"]
    assert os.listdir(tmp_path) == ["found"]


def test_what_is_not_committed_leaves_nothing_behind(tmp_path):
    def fill():
        with StagedFolder(tmp_path / "found") as staged:
            write(staged.path / "a", "1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert os.listdir(tmp_path) == []


def test_a_commit_that_fails_half_way_is_taken_back(tmp_path, monkeypatch):
    target = tmp_path / "found"
    target.mkdir()
    write(target / "a", "old a")
    write(target / "b", "old b")
    rename, calls = os.rename, []

    def fail_once(source, place):
        calls.append(place)
        if len(calls) == 4:
            raise OSError("no")
        rename(source, place)

    monkeypatch.setattr(os, "rename", fail_once)
    with StagedFolder(target) as staged:
        write(staged.path / "a", "new a")
        write(staged.path / "b", "new b")
        with pytest.raises(OSError, match="no"):
            staged.commit()
    assert (target / "a").read_text() == "old a"
    assert (target / "b").read_text() == "old b"
    assert os.listdir(tmp_path) == ["found"]


def test_an_interrupt_waits_for_a_commit(tmp_path, monkeypatch):
    target = tmp_path / "found"
    target.mkdir()
    write(target / "a", "old")
    rename = os.rename

    def interrupted(source, place):
        signal.raise_signal(signal.SIGINT)
        rename(source, place)

    monkeypatch.setattr(os, "rename", interrupted)
    with StagedFolder(target) as staged:
        write(staged.path / "a", "new")
        with pytest.raises(KeyboardInterrupt):
            staged.commit()
    assert (target / "a").read_text() == "new"


# --- texts -------------------------------------------------------------------------------------------------

TEXTS = ["a red rose", "one red tulip", "the blue sea", "the blue sky", "red and blue", "the rose"]


def test_word_features_come_back_from_arrays_bit_for_bit():
    features = WordFeatures.fit(TEXTS)
    again = WordFeatures.from_arrays(features.to_arrays())
    assert np.array_equal(again.transform(TEXTS), features.transform(TEXTS))
    assert np.array_equal(features.transform(TEXTS[:2]), features.transform(TEXTS)[:2])


def test_word_features_are_those_of_scikit_learn():
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit_transform(TEXTS)
    expected = TruncatedSVD(min(table.shape) - 1, random_state=0).fit_transform(table)
    np.testing.assert_allclose(WordFeatures.fit(TEXTS).transform(TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize("texts", [["red", "blue"], ["", ""], ["red rose", "red tulip"]])
def test_texts_without_words_in_common_are_refused(texts):
    with pytest.raises(ValueError, match="Pass more texts"):
        WordFeatures.fit(texts)


@pytest.mark.parametrize("change", [{"words": None}, {"rarity": np.ones(2)}, {"directions": np.ones((2, 3))}])
def test_damaged_word_features_are_refused(change):
    arrays = WordFeatures.fit(TEXTS).to_arrays() | change
    with pytest.raises(ValueError, match="no array words|words, but weights"):
        WordFeatures.from_arrays({name: array for name, array in arrays.items() if array is not None})


def test_a_folder_without_a_sentence_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="it has no modules.json"):
        embed_sentences(TEXTS, tmp_path)


@pytest.mark.parametrize(
    ("modules", "files", "message"),
    [
        ([{"path": "", "type": "evil.Model"}], [], "code of its own, evil.Model, which is not run"),
        ([{"path": "", "type": "sentence_transformers.models.Router"}], ["in/evil.py"], r"own, in.evil\.py"),
        ({"path": ""}, [], "its modules.json is none"),
    ],
)
def test_a_sentence_model_that_brings_code_is_refused_and_not_run(tmp_path, modules, files, message):
    write(tmp_path / "modules.json", json.dumps(modules))
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Model: pass\n")
    with pytest.raises(ValueError, match=message):
        embed_sentences(TEXTS, tmp_path)
    assert not (tmp_path / "ran").exists()


def test_sentence_models_say_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "modules.json", "[]")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r'pip install "pnp-gcd\[texts\]"'):
        embed_sentences(TEXTS, tmp_path)
