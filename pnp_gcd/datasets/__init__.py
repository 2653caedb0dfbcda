"""Data to try category discovery on: some classes labelled, some hidden."""

from pnp_gcd.datasets.catalogue import DATASETS, load_dataset
from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.folders import ImageFolder, read_image_folder
from pnp_gcd.datasets.splits import DiscoveryData, DiscoverySplit, make_discovery_split
from pnp_gcd.datasets.tables import load_arrays, load_csv, load_image_folder
from pnp_gcd.datasets.toy import load_digits, load_digits_split

__all__ = [
    "DATASETS",
    "DiscoveryData",
    "DiscoveryDataset",
    "DiscoverySplit",
    "ImageFolder",
    "load_arrays",
    "load_csv",
    "load_dataset",
    "load_digits",
    "load_digits_split",
    "load_image_folder",
    "make_discovery_split",
    "read_image_folder",
]
