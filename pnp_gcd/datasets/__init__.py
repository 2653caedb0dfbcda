"""Data to try category discovery on: some classes labelled, some hidden."""

from pnp_gcd.datasets.catalogue import DATASETS, load_dataset
from pnp_gcd.datasets.cifar import load_cifar10, load_cifar100
from pnp_gcd.datasets.class_folders import load_herbarium19, load_imagenet100
from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.folders import ImageFolder, read_image_folder
from pnp_gcd.datasets.photographs import (
    load_cub200,
    load_fgvc_aircraft,
    load_oxford_pets,
    load_stanford_cars,
)
from pnp_gcd.datasets.splits import DiscoveryData, DiscoverySplit, make_discovery_split
from pnp_gcd.datasets.tables import load_arrays, load_csv, load_image_folder
from pnp_gcd.datasets.texts import load_banking77, load_clinc150, load_stackoverflow
from pnp_gcd.datasets.toy import load_digits, load_digits_split

__all__ = [
    "DATASETS",
    "DiscoveryData",
    "DiscoveryDataset",
    "DiscoverySplit",
    "ImageFolder",
    "load_arrays",
    "load_banking77",
    "load_cifar10",
    "load_cifar100",
    "load_clinc150",
    "load_csv",
    "load_cub200",
    "load_dataset",
    "load_digits",
    "load_digits_split",
    "load_fgvc_aircraft",
    "load_herbarium19",
    "load_image_folder",
    "load_imagenet100",
    "load_oxford_pets",
    "load_stackoverflow",
    "load_stanford_cars",
    "make_discovery_split",
    "read_image_folder",
]
