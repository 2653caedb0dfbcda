"""Where the time of an epoch goes: finding classes, matrix products, random numbers, the rest.

    OMP_NUM_THREADS=1 python benchmarks/profile_epoch.py [--data FILE.npz] [--intervals 1,3]

Without a file (arrays X and y) the rows are made up like embeddings of short texts: 13,090 of 384 columns, 77
classes. Fits two epochs; the second does not cluster, and torch's profiler watches it. Prints the seconds of
encoding and clustering, those of the batches, and what torch did in these, by kind. The watched epoch is a
little slower than others. With --intervals also whole fits by ``cluster_interval``: seconds and accuracy.
1 minute; 2 more an interval.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from _common import read_set, split_set, warm_up
from fit_time import make_text_like

from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.trainer import Trainer

KINDS = {
    "matrix products": ("mm", "addmm", "bmm", "linear", "matmul", "baddbmm"),
    "random numbers": ("normal_", "randn", "uniform_", "rand", "random_", "bernoulli_"),
    "exponentials and logarithms": ("_log_softmax", "_softmax", "logsumexp", "exp", "log", "gelu"),
    "their gradients": ("_log_softmax_backward_data", "_softmax_backward_data", "gelu_backward"),
    "rows by index": ("index", "index_select", "gather", "index_put_", "_index_put_impl_"),
    "copies": ("copy_", "cat", "clone", "contiguous", "_to_copy", "fill_", "zero_"),
    "sums and norms": ("sum", "mean", "linalg_vector_norm", "norm", "native_layer_norm", "amax", "max"),
}


def kind_of(name: str) -> str:
    plain = name.removeprefix("aten::")
    return next((kind for kind, names in KINDS.items() if plain in names), "other")


class Watch:
    """Stands in for ``Trainer.run_epoch`` and ``refresh`` and takes the time."""

    def __init__(self) -> None:
        self.run_epoch, self.refresh = Trainer.run_epoch, Trainer.refresh
        self.whole: list[float] = []
        self.refreshing: list[float] = []
        self.profile: Any = None

    def watch_epoch(self, trainer: Trainer, epoch: int) -> dict[str, float]:
        """Run an epoch; the second one under the profiler."""
        if epoch == 1:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as self.profile:
                row = self.run_epoch(trainer, epoch)
        else:
            row = self.run_epoch(trainer, epoch)
        self.whole.append(row["seconds"])
        return row

    def watch_refresh(self, trainer: Trainer, *, is_due: bool = True) -> dict[str, float]:
        """Encode, cluster and write prototypes."""
        began = time.perf_counter()
        out = self.refresh(trainer, is_due=is_due)
        self.refreshing.append(time.perf_counter() - began)
        return out


def profile(data: DiscoveryData, batch_size: int, seed: int) -> None:
    watch = Watch()
    Trainer.run_epoch = lambda trainer, epoch: watch.watch_epoch(trainer, epoch)  # type: ignore[method-assign]
    Trainer.refresh = lambda trainer, **given: watch.watch_refresh(trainer, **given)  # type: ignore[method-assign]
    try:
        model = PNPDiscoverer(max_iter=2, batch_size=batch_size, cluster_interval=2, random_state=seed)
        model.fit(data.X_labelled, data.y_labelled, data.X_unlabelled)
    finally:
        Trainer.run_epoch, Trainer.refresh = watch.run_epoch, watch.refresh  # type: ignore[method-assign]
    for epoch, name in enumerate(("epoch that clusters", "other epoch, watched")):
        whole, found = watch.whole[epoch], watch.refreshing[epoch]
        print(
            f"{name}: {whole:.2f} s, of which finding prototypes {found:.2f} s, batches {whole - found:.2f} s"
        )
    seconds: dict[str, float] = defaultdict(float)
    events = [event for event in watch.profile.key_averages() if event.key.startswith("aten::")]
    for event in events:
        seconds[kind_of(event.key)] += event.self_cpu_time_total / 1e6
    total = sum(seconds.values())
    print(f"in torch {total:.2f} s of {watch.whole[1]:.2f} s; the rest is Python and NumPy. Of torch's:")
    for kind, part in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"  {kind:<28} {part:6.2f} s  {100 * part / total:5.1f} %")
    print("the ten that took longest:")
    for event in sorted(events, key=lambda event: -event.self_cpu_time_total)[:10]:
        print(f"  {event.key:<36} {event.self_cpu_time_total / 1e6:6.2f} s  {event.count} calls")


def compare_intervals(data: DiscoveryData, intervals: list[int], seed: int) -> None:
    for interval in intervals:
        began = time.perf_counter()
        model = PNPDiscoverer(cluster_interval=interval, random_state=seed)
        model.fit(data.X_labelled, data.y_labelled, data.X_unlabelled)
        seconds = time.perf_counter() - began
        found = split_cluster_accuracy(data.y_unlabelled, model.unlabelled_labels_, data.known_classes)
        epochs = sum(row["seconds"] for row in model.history_)
        print(
            f"cluster_interval={interval}: fit {seconds:.1f} s, epochs {epochs:.1f} s, "
            f"All {100 * found.all:.1f} "
            f"Known {100 * found.known:.1f} Novel {100 * found.novel:.1f}, {model.n_clusters_} classes",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays X and y")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--intervals", default="", help="values of cluster_interval to compare")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = make_text_like(options.seed) if options.data is None else read_set(options.data)
    data = split_set(rows, options.seed, unseen=0.0)
    warm_up()
    profile(data, options.batch_size, options.seed)
    if options.intervals:
        compare_intervals(data, [int(part) for part in options.intervals.split(",")], options.seed)


if __name__ == "__main__":
    main()
