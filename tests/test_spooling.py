"""Rows in pieces, rows on disk."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import make_blobs

from pnp_gcd import PNPDiscoverer, spool
from pnp_gcd.labelling import score_classes


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, lambda X: pa.table(pd.DataFrame(X))])
def test_chunks_of_any_kind_come_back_in_their_order(tmp_path, kind):
    X = np.random.default_rng(0).normal(size=(50, 3))
    rows = spool((kind(part) for part in np.split(X, [7, 7, 30])), tmp_path / "rows.npy")
    assert isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, X.astype(np.float32))
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), rows)


def test_batches_of_a_parquet_file_are_chunks(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    pq.write_table(pa.table({str(i): X[:, i] for i in range(3)}), tmp_path / "rows.parquet")
    batches = pq.ParquetFile(tmp_path / "rows.parquet").iter_batches(batch_size=16)
    np.testing.assert_array_equal(spool(batches, tmp_path / "rows.npy", dtype=np.float64), X)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "chunks held no rows"),
        (
            [np.zeros((2, 3)), np.zeros((2, 4))],
            r"Chunk 1 has shape \(2, 4\). Pass chunks of shape \(rows, 3\)",
        ),
        ([np.zeros(3)], r"Chunk 0 has shape \(3,\)"),
    ],
)
def test_chunks_that_make_no_table_are_refused(tmp_path, chunks, message):
    with pytest.raises(ValueError, match=message):
        spool(chunks, tmp_path / "rows.npy")


@pytest.fixture(scope="module")
def world():
    X, y = make_blobs(2500, 6, centers=5, cluster_std=1.5, random_state=1)
    X, known = X.astype(np.float32), y < 2
    return X, PNPDiscoverer(max_iter=1, random_state=0).fit(X[known], y[known], X[~known])


def test_rows_on_disk_are_fitted_and_named_as_rows_in_memory(tmp_path, world):
    X, model = world
    rows = spool([X], tmp_path / "rows.npy")
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    in_memory, on_disk = (
        PNPDiscoverer(max_samples=600, max_iter=1, random_state=0).fit(part) for part in (X, rows)
    )
    np.testing.assert_array_equal(in_memory.labels_, on_disk.labels_)


def test_classes_of_blocks_are_those_of_the_scores(world):
    X, model = world
    best = model.classes_[model.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), best)
    np.testing.assert_array_equal(
        np.concatenate([model.predict(part) for part in np.split(X, [3, 900])]), best
    )


def test_rows_whose_classes_come_close_are_compared_in_double_precision(world, monkeypatch):
    X, model = world
    calls = []
    monkeypatch.setattr("pnp_gcd.labelling._CLOSE", np.inf)
    monkeypatch.setattr(
        "pnp_gcd.labelling.score_classes",
        lambda rows, *rest: calls.append(len(rows)) or score_classes(rows, *rest),
    )
    exact = model.predict(X)
    assert sum(calls) >= len(X)
    monkeypatch.undo()
    np.testing.assert_array_equal(exact, model.predict(X))


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs(400, n_features=8, centers=5, random_state=0)
    has_label = (y < 3) & (np.arange(400) % 2 == 0)
    model = PNPDiscoverer(max_iter=1, random_state=0)
    return model.fit(X[has_label], y[has_label], X[~has_label]), X


ANSWERS = ["predict", "predict_proba", "decision_function", "transform", "novelty_score", "typicality"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", ANSWERS)
def test_arrays_on_disk_are_answered_in_pieces_as_in_memory(fitted, tmp_path, monkeypatch, name, dtype):
    from pnp_gcd import fitted as module

    model, X = fitted
    X = np.tile(X, (5, 1)).astype(dtype)
    np.save(tmp_path / "rows.npy", X)
    expected = getattr(model, name)(X)
    read, largest = module.FittedDiscoverer._read_rows, []

    def watch(self, rows, *given):
        largest.append(len(rows))
        return read(self, rows, *given)

    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 512 * 8)
    monkeypatch.setattr(module.FittedDiscoverer, "_read_rows", watch)
    found = getattr(model, name)(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    assert largest == [512, 512, 512, 464]
    np.testing.assert_array_equal(found, expected)


def test_a_number_that_is_none_is_found_in_a_later_piece(fitted, tmp_path, monkeypatch):
    from pnp_gcd import fitted as module

    model, X = fitted
    X = np.tile(X, (3, 1))
    X[1100, 3] = np.nan
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 512 * 8)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.load(tmp_path / "rows.npy", mmap_mode="r"))


@pytest.mark.parametrize("name", ["predict", "novelty_score", "typicality"])
def test_answers_of_a_number_a_row_hold_no_features_of_all_rows(fitted, tmp_path, name):
    model, X = fitted
    n_rows = 60_000
    np.save(tmp_path / "rows.npy", np.tile(X, (n_rows // len(X), 1)).astype(np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    getattr(model, name)(rows[:9000])  # imports are not counted
    tracemalloc.start()
    getattr(model, name)(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_rows * 8 * 4  # a few numbers a row; the features alone are 8 columns, the scores 5


def test_a_fit_on_an_array_on_disk_holds_the_sample_and_not_the_rows(tmp_path):
    n_rows, n_columns = 40_000, 64
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 6
    np.save(
        tmp_path / "rows.npy", rng.normal(size=(6, n_columns))[y] * 2 + rng.normal(size=(n_rows, n_columns))
    )
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    labels = np.where((y < 4) & (np.arange(n_rows) % 3 == 0), y, -1)
    PNPDiscoverer(max_iter=0, max_samples=300, random_state=0).fit(rows[:4000], labels[:4000])
    tracemalloc.start()
    PNPDiscoverer(max_iter=0, max_samples=300, random_state=0).fit(rows, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # rows are encoded 16,384 at a time, in double precision a few times over
    assert peak < 16_384 * n_columns * 8 * 4 + n_rows * 100 < 2 * rows.nbytes
