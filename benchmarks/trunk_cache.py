"""An epoch with kept activations against the published way, side by side in one run.

The published way: student and teacher each run the whole network on both views of every image, which are
read and drawn anew. Ours: the frozen trunk has run once per image and view; an epoch runs the last block on
kept activations, for the one token that is used. Losses, optimiser, EMA and batches are the same code.

    python benchmarks/trunk_cache.py                     # random weights, drawn pictures: time and memory
    python benchmarks/trunk_cache.py --folder DIR --weights FILE --quality
                                                         # pictures in sub-folders by class: also accuracy

``--quality`` fits three times per seed: with kept activations, with kept activations and an image represented
by its evaluation view alone, as ``cache_size=0`` has it, and with ``cache_size=0``, which takes long
(``--ways`` names fewer).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
import timm
import torch
from _common import hide_pictures, read_pictures, read_seeds
from torch import nn

from pnp_gcd import PNPDiscoverer
from pnp_gcd.activations import PictureLoader
from pnp_gcd.augmentations import Augmentation
from pnp_gcd.backbones import load_backbone
from pnp_gcd.clustering import GraphSettings
from pnp_gcd.encoders import ImageEncoder
from pnp_gcd.geometry import Geometry, fit_geometry, reduce_rows
from pnp_gcd.image_rows import ImageRows, ImageSettings, ImageSource
from pnp_gcd.images import read_images
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.probing import ProbeSettings
from pnp_gcd.rows import LearningPart
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.training import _Trainer
from pnp_gcd.views import TwoViews
from pnp_gcd.weights import load_weights


class WholeNetwork(nn.Module):
    """The network as published: every block on every token, in student and teacher alike."""

    def __init__(self, model: nn.Module, geometry: Geometry, hidden_width: int) -> None:
        super().__init__()
        self.model = model
        self.on_top = ImageEncoder(nn.Identity(), geometry, hidden_width)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map pixels to unit rows."""
        return self.on_top(self.model(pixels))


class PublishedSource:
    """Views are read and drawn in every epoch, and go through the whole network. See ``rows.Source``."""

    device = torch.device("cpu")

    def __init__(self, rows: ImageRows, start: np.ndarray, network: WholeNetwork) -> None:
        self.rows, self.start, self.network, self.n_drawn = rows, start, network, 0

    def make_encoder(self) -> nn.Module:
        """Return the whole network."""
        return self.network

    def learning_parts(self, encoder: WholeNetwork) -> list[LearningPart]:
        """Return the last block, and what is on top."""
        return [LearningPart(encoder.model, 0.2), LearningPart(encoder.on_top, 1.0)]

    def take(self, indices: torch.Tensor) -> TwoViews:
        """Read the images and draw two views of each."""
        self.n_drawn += 1
        loader, images, draw = self.rows.loader, self.rows.images, self.n_drawn
        views = [[loader.load(images, int(i), view, draw=draw) for i in indices] for view in (1, 2)]
        return TwoViews(*map(torch.stack, views))

    def encode(self, encoder: nn.Module) -> np.ndarray:
        """Return what is not needed here."""
        return self.start


def draw_pictures(n_pictures: int, size: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(n_pictures, size, size, 3), dtype=np.uint8)


def load_model(args) -> nn.Module:
    model = timm.create_model(args.backbone, pretrained=False, num_classes=0, img_size=args.size)
    if args.weights:
        load_weights(model, args.weights)
    model.eval().requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    return model


def time_epochs(trainer: _Trainer, n_epochs: int) -> list[float]:
    seconds = []
    for _ in range(n_epochs):
        started = time.perf_counter()
        for indices in trainer.batches:
            trainer.train_batch(indices, 0.05)
        seconds.append(time.perf_counter() - started)
    return seconds


def measure(way: str, args) -> None:
    """Print seconds per epoch of one way, seconds of the trunk, bytes kept and the peak of memory."""
    pictures = (
        read_pictures(args.folder).paths[: args.n_images]
        if args.folder
        else draw_pictures(args.n_images, args.size)
    )
    images = read_images(pictures)
    codes = np.where(np.arange(len(images)) % 4 == 0, np.arange(len(images)) // 4 % 8, -1)
    backbone = load_backbone(args.backbone, weights=args.weights, image_size=args.size)
    settings = TrainingSettings(max_iter=100, batch_size=128)
    loader = PictureLoader(backbone, Augmentation(args.size), 0)
    n_views = 2 if way == "kept" else 0
    started = time.perf_counter()
    with ImageRows.prepare(
        images, loader, ImageSettings(n_cached_views=n_views, cache_size=2**40 if n_views else 0)
    ) as rows:
        trunk_seconds = time.perf_counter() - started
        features = np.random.default_rng(0).normal(size=(len(images), backbone.tail.head.num_features))
        geometry = fit_geometry(reduce_rows(features), codes)
        source = (
            ImageSource(rows, geometry, settings, torch.Generator().manual_seed(0))
            if way == "kept"
            else PublishedSource(
                rows,
                geometry.apply(features),
                WholeNetwork(load_model(args), geometry, settings.hidden_width),
            )
        )
        seeds = np.random.SeedSequence(0).generate_state(4)
        trainer = _Trainer(source, codes, ProbeSettings(GraphSettings(8)), settings, seeds)
        epochs = time_epochs(trainer, args.epochs)
        kept = rows.store.n_bytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"RESULT {min(epochs):.3f} {trunk_seconds:.3f} {kept} {peak:.0f}")


def compare_time(args, argv: list[str]) -> None:
    found = {}
    for way in ("kept", "published"):  # each in a process of its own, for its peak of memory
        command = [sys.executable, __file__, *argv, "--way", way]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        line = next(line for line in out.splitlines() if line.startswith("RESULT"))
        found[way] = [float(part) for part in line.split()[1:]]
    (kept, trunk, n_bytes, peak), (published, _, _, peak_published) = found["kept"], found["published"]
    print(f"{args.backbone}, {args.size} px, {args.n_images} images, {torch.get_num_threads()} threads")
    print(f"published epoch       {published:8.2f} s   peak memory {peak_published:6.0f} MiB")
    on_disk = n_bytes / 2**20
    print(f"epoch on kept views   {kept:8.2f} s   peak memory {peak:6.0f} MiB, on disk {on_disk:.0f} MiB")
    print(f"ratio                 {published / kept:8.1f} x")
    per_view = trunk / 3
    for n_epochs, n_views in ((10, 4), (200, 4), (200, 8)):
        ours = per_view * (n_views + 1) + n_epochs * kept
        ratio = published * n_epochs / ours
        print(f"{n_epochs:3d} epochs, {n_views} views, with the trunk's one run: {ratio:.1f} x")


def compare_quality(args) -> None:
    paths, names = read_pictures(args.folder)
    classes = np.unique(names)
    table = {way: [] for way in args.ways}
    for seed in args.seeds:
        known, has_label = hide_pictures(names, np.random.default_rng(seed))
        for way in args.ways:
            ImageRows.is_averaged = way != "kept-one-view"
            model = PNPDiscoverer(
                backbone=args.backbone,
                backbone_weights=args.weights,
                image_size=args.size,
                cache_size=0 if way == "cache_size=0" else "64GB",
                random_state=seed,
            )
            started = time.perf_counter()
            model.fit(paths[has_label], names[has_label], paths[~has_label])
            seconds = time.perf_counter() - started
            score = split_cluster_accuracy(names[~has_label], model.unlabelled_labels_, known)
            table[way].append(100 * score.all)
            print(
                f"seed {seed} {way:13s} All {100 * score.all:.1f} Known {100 * score.known:.1f} "
                f"Novel {100 * score.novel:.1f} classes {model.n_clusters_} of {len(classes)}, "
                f"{seconds:.0f} s",
                flush=True,
            )
    for way, values in table.items():
        print(f"mean {way:13s} All {np.mean(values):.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="vit_small_patch14_dinov2")
    parser.add_argument("--weights", default=None)
    parser.add_argument("--size", type=int, default=126)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--n-images", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--seeds", type=read_seeds, default=[0])
    parser.add_argument(
        "--ways", type=lambda text: text.split(","), default=["kept", "kept-one-view", "cache_size=0"]
    )
    parser.add_argument("--way", choices=("kept", "published"), default=None)
    args = parser.parse_args()
    if args.way:
        measure(args.way, args)
        return
    compare_time(args, sys.argv[1:])
    if args.quality:
        compare_quality(args)


if __name__ == "__main__":
    main()
