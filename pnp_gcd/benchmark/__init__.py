"""The paper's benchmarks: methods on data sets, records, reports and analyses."""

from pnp_gcd.benchmark.methods import METHODS
from pnp_gcd.benchmark.records import read_record, read_records
from pnp_gcd.benchmark.repeating import compare_records, repeat_run
from pnp_gcd.benchmark.running import Bench, Run
from pnp_gcd.benchmark.settings import RunSettings, SplitSettings

__all__ = [
    "METHODS",
    "Bench",
    "Run",
    "RunSettings",
    "SplitSettings",
    "compare_records",
    "read_record",
    "read_records",
    "repeat_run",
]
