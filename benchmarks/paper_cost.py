"""What the paper's runs cost: passes of the network per run, divided by images per second.

    python benchmarks/paper_cost.py [--backbone vit_base_patch16_224.dino] [--images-per-second N] [--views 4]

Without ``--images-per-second`` the network's throughput is measured here, on the device PNPDiscoverer would
take, with random weights and 224 pixels. Reading and augmenting pictures is not counted, nor is clustering.

Passes, in images through the whole network:

- as published: in each of 200 epochs the pool once for its features, and every row four times in batches
  (student and teacher, two views each), and for the student's views backward through the last block of 12,
  twice the work of its forward pass;
- kept activations (PNPDiscoverer's default): once for the evaluation view and each kept view; epochs then
  run the last block alone: the same passes, a twelfth each.
"""

from __future__ import annotations

import argparse
import time

from pnp_gcd.benchmark.published import read_published

N_EPOCHS = 200
N_BLOCKS = 12


def count_passes(n_labelled: int, n_unlabelled: int, n_views: int) -> tuple[float, float]:
    """Return passes of the whole network as published, and with kept activations."""
    n_rows = n_labelled + n_unlabelled
    backward = 2 * 2 / N_BLOCKS
    epoch = n_unlabelled + n_rows * (4 + backward)
    last_block = n_unlabelled / N_BLOCKS + n_rows * (4 / N_BLOCKS + backward)
    return N_EPOCHS * epoch, n_rows * (1 + n_views) * (N_BLOCKS - 1) / N_BLOCKS + N_EPOCHS * last_block


def measure_throughput(backbone: str, batch_size: int = 16, seconds: float = 20.0) -> tuple[float, str]:
    """Return images per second of a forward pass, and the device."""
    import timm
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = timm.create_model(backbone, pretrained=False, num_classes=0).eval().to(device)
    pixels = torch.randn(batch_size, 3, 224, 224, device=device)
    n_images = 0
    with torch.inference_mode(), torch.autocast("cuda", enabled=device == "cuda"):
        network(pixels)
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            network(pixels)
            if device == "cuda":
                torch.cuda.synchronize()
            n_images += batch_size
        return n_images / (time.perf_counter() - began), device


def say_hours(hours: float) -> str:
    return (
        f"{60 * hours:.0f} min"
        if hours < 2
        else f"{hours:.0f} h"
        if hours < 100
        else f"{hours / 24:.0f} days"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backbone", default="vit_base_patch16_224.dino")
    parser.add_argument("--images-per-second", type=float)
    parser.add_argument("--views", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.images_per_second is None:
        throughput, device = measure_throughput(arguments.backbone)
        print(f"{arguments.backbone} on {device}: {throughput:.1f} images per second")
    else:
        throughput = arguments.images_per_second
        print(f"{arguments.backbone}: {throughput:.1f} images per second, as given")
    print(f"| data set | rows | as published | kept activations, {arguments.views} views |")
    print("| --- | --- | --- | --- |")
    for name, sizes in read_published()["datasets"].items():
        if sizes.get("n_labelled") is None:
            continue
        passes = count_passes(sizes["n_labelled"], sizes["n_unlabelled"], arguments.views)
        hours = [say_hours(count / throughput / 3600) for count in passes]
        print(f"| {name} | {sizes['n_labelled'] + sizes['n_unlabelled']} | {hours[0]} | {hours[1]} |")


if __name__ == "__main__":
    main()
