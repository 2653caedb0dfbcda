"""Data to try category discovery on: some classes labelled, some hidden."""

from pnp_gcd.datasets.folders import ImageFolder, read_image_folder
from pnp_gcd.datasets.toy import DiscoverySplit, load_digits_split

__all__ = ["DiscoverySplit", "ImageFolder", "load_digits_split", "read_image_folder"]
