"""Rows in pieces, rows on disk."""

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
