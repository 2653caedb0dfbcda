"""Run methods on data sets and write records; go on where a series was interrupted.

Knows files and settings. What happens in a run is in ``one_run``.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pnp_gcd.benchmark.embedding import digest_inputs, embed_dataset
from pnp_gcd.benchmark.methods import find_method
from pnp_gcd.benchmark.one_run import build_for, list_parameters, run_once
from pnp_gcd.benchmark.records import digest_data, digest_texts, read_record, write_arrays, write_record
from pnp_gcd.benchmark.settings import RunSettings
from pnp_gcd.datasets import DiscoveryDataset, load_dataset
from pnp_gcd.exceptions import DiscoveryWarning

__all__ = ["Bench", "Run", "use_threads"]


class Run(NamedTuple):
    """A record, its file, and whether it was made now or found finished."""

    record: dict[str, Any]
    path: Path
    is_new: bool


class _Loaded(NamedTuple):
    dataset: DiscoveryDataset
    sha256: str


class Bench:
    """Runs settings one after the other, and loads each data set once.

    Parameters
    ----------
    out : str or path
        Folder of records. A run whose record is there is not done again.
    again : bool, default=False
        Run even then.
    look_in : str, path or None, default=None
        Another folder of records; a run whose record is there is not done either.
    keep_features : bool, default=False
        Keep the pool's learnt features beside the record, of methods that have ``transform``.
    verbose : int, default=0
        1 shows the progress of each fit on standard error.

    Examples
    --------
    >>> import tempfile
    >>> from pnp_gcd.benchmark import Bench, RunSettings
    >>> bench = Bench(tempfile.mkdtemp())
    >>> run = bench.run(RunSettings("digits", method="k-means"))
    >>> run.record["given"], run.record["scores"]["n_clusters"], run.is_new
    ('the number of classes', 10, True)
    >>> bench.run(RunSettings("digits", method="k-means")).is_new
    False
    """

    def __init__(
        self,
        out: str | Path,
        *,
        again: bool = False,
        look_in: str | Path | None = None,
        keep_features: bool = False,
        verbose: int = 0,
    ) -> None:
        self.out = Path(out)
        self.look_in = None if look_in is None else Path(look_in)
        self.again = again
        self.keep_features = keep_features
        self.verbose = verbose
        self._loaded: dict[str, _Loaded] = {}
        self._embedded: dict[str, DiscoveryDataset] = {}

    def with_features(self) -> Bench:
        """Return a bench on the same data and folder that keeps learnt features.

        Returns
        -------
        Bench
        """
        bench = copy.copy(self)
        bench.keep_features = True
        return bench

    def run(self, settings: RunSettings) -> Run:
        """Run one method once, or read the record of the run that was.

        Parameters
        ----------
        settings : RunSettings

        Returns
        -------
        Run
        """
        find_method(settings.method)
        settings = RunSettings.from_json(settings.to_json())  # as it will be read back
        with use_threads(settings.n_threads):
            loaded = self._load(settings)
            inputs = digest_inputs(settings.parameters, settings.features)
            name = f"{settings.file_stem(digest_texts(loaded.sha256, *sorted(inputs.values())))}.json"
            path = self.out / name
            done = self._find_done(settings, loaded.dataset.preset, name)
            if done is not None:
                return done
            record, arrays = run_once(
                settings,
                self._embed(settings, loaded),
                cache_dir=str(self.out / "activations"),
                keep_features=self.keep_features,
                verbose=self.verbose,
            )
        record["data"] = {"sha256": loaded.sha256, **record["data"], "inputs_sha256": inputs}
        write_arrays(arrays, path.with_suffix(".npz"))
        write_record(record, path)
        return Run(record, path, is_new=True)

    def run_all(self, settings: Iterable[RunSettings]) -> Iterator[Run]:
        """Run settings in their order; each record is written before the next begins.

        Parameters
        ----------
        settings : iterable of RunSettings

        Yields
        ------
        Run
        """
        for each in settings:
            yield self.run(each)

    def load(self, settings: RunSettings) -> DiscoveryDataset:
        """Return the data set as the method will see it: images, or features.

        Parameters
        ----------
        settings : RunSettings

        Returns
        -------
        DiscoveryDataset
        """
        return self._embed(settings, self._load(settings))

    def check(self, settings: RunSettings) -> None:
        """Raise what is wrong with the data or the method's name before anything runs.

        Parameters
        ----------
        settings : RunSettings
        """
        find_method(settings.method)
        self._load(settings)

    def _find_done(self, settings: RunSettings, preset: str | None, name: str) -> Run | None:
        """Return the run that was, if its files are whole and its parameters are still what they would be."""
        for path in () if self.again else dict.fromkeys((self.out / name, (self.look_in or self.out) / name)):
            if not path.exists():
                continue
            try:
                record = read_record(path)
                with np.load(path.with_suffix(".npz")) as arrays:
                    is_whole = not self.keep_features or "features" in arrays.files
            except (OSError, ValueError, zipfile.BadZipFile) as error:
                warnings.warn(f"Run again, as it cannot be read: {error}", DiscoveryWarning, stacklevel=3)
                continue
            if is_whole and record["parameters"] == _list_parameters_now(settings, preset, record):
                return Run(record, path, is_new=False)
        return None

    def _load(self, settings: RunSettings) -> _Loaded:
        key = repr((settings.dataset, settings.data, settings.data_options))
        if key not in self._loaded:
            # The package's own loader, which reads files and downloads nothing.
            dataset = load_dataset(settings.dataset, settings.data, **settings.data_options)  # nosec B615
            self._loaded[key] = _Loaded(dataset, digest_data(dataset, settings.data))
        return self._loaded[key]

    def _embed(self, settings: RunSettings, loaded: _Loaded) -> DiscoveryDataset:
        if settings.features is None:
            return loaded.dataset
        key = repr((loaded.sha256, settings.features))
        if key not in self._embedded:
            self._embedded[key] = embed_dataset(
                loaded.dataset,
                settings.features,
                data_digest=loaded.sha256,
                cache=self.out / "features",
                renew=self.again,
                verbose=self.verbose,
            )
        return self._embedded[key]


def _list_parameters_now(
    settings: RunSettings, preset: str | None, record: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the parameters that the run would have today, or None if it could not be built."""
    has_images = record["data"].get("kind") == "images"
    n_true = record["parameters"].get("n_clusters")
    try:
        return list_parameters(build_for(settings, has_images=has_images, preset=preset, n_true=n_true))
    except (TypeError, ValueError):
        return None


@contextlib.contextmanager
def use_threads(n_threads: int) -> Iterator[None]:
    """Let torch and the numerical libraries use so many threads, and put back what was."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        torch.set_num_threads(before)
