"""Data to try category discovery on: some classes labelled, some hidden."""

from pnp_gcd.datasets.toy import DiscoverySplit, load_digits_split

__all__ = ["DiscoverySplit", "load_digits_split"]
