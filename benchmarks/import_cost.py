"""What ``from pnp_gcd import PNPDiscoverer`` costs beside ``import sklearn``, each in fresh interpreters.

Prints the median seconds of both and their ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

N_RUNS = 5


OURS = "from pnp_gcd import PNPDiscoverer"


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    for statement in ("import sklearn", OURS):  # warm the disk cache
        seconds(statement)
    bare, ours, theirs = [], [], []
    for _ in range(N_RUNS):  # interleaved, so that a busy moment hits all alike
        bare.append(seconds("pass"))
        theirs.append(seconds("import sklearn"))
        ours.append(seconds(OURS))
    start_up = statistics.median(bare)
    sklearn, pnp_gcd = statistics.median(theirs), statistics.median(ours)
    print(f"interpreter alone {start_up:.3f} s, import sklearn {sklearn:.3f} s, pnp_gcd {pnp_gcd:.3f} s")
    net = (pnp_gcd - start_up) / (sklearn - start_up)
    print(f"ratio {pnp_gcd / sklearn:.2f}, without the interpreter's own start {net:.2f}")


if __name__ == "__main__":
    main()
