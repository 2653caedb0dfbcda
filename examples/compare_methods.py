"""Compare methods on one data set, with seeds, and write a report.

Half of scikit-learn's digits are hidden. Three methods look for them: PNPDiscoverer and Infomap, which are
told nothing, and k-means, which is told how many classes there are. Every run is a record; give a folder and
run this script twice, and the second time nothing is fitted. Put your own rows in place of the digits, from
an .npz file with arrays X and y: RunSettings("arrays", "rows.npz", ...).

    python examples/compare_methods.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from pnp_gcd.benchmark import Bench, RunSettings, SplitSettings, compare_records, repeat_run
from pnp_gcd.benchmark.reports import write_report

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
bench = Bench(folder)
records = []
for method in ("pnp", "infomap-all", "k-means"):
    for seed in (0, 1):
        settings = RunSettings("digits", method=method, seed=seed, split=SplitSettings(seed), n_threads=1)
        run = bench.run(settings)
        scores = run.record["scores"]
        print(
            f"{method:<12} seed {seed}  All {100 * scores['all']:.1f}  Novel {100 * scores['novel']:.1f}  "
            f"classes {scores['n_clusters']} of {scores['n_true']}, given {run.record['given']}"
        )
        records.append(run.record)

# A record is enough to repeat its run: the same answers, scores and choices, bit for bit.
again = repeat_run(records[-1])
print("repeated:", "the same" if not compare_records(records[-1], again) else "not the same")
print("report:", write_report(records, folder).html)
