"""What the two fuzzers share: cases that run in processes of their own, watched from outside.

A case is a number: with the seed it makes the same bytes each time. A worker tells after each case how it
ended; one that says nothing for too long, twice, or dies, is told by the number of its case, and the next
worker goes on after it. In a worker an audit hook sees what the interpreter does: a program started, a
socket, a pickle, compiled code, a file outside of the case's folder are failures, whatever the case answers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What reading a file must never do.
_FORBIDDEN = (
    "compile",
    "exec",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.system",
    "pickle.find_class",
    "shutil.rmtree",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
)
_CHUNK = 10_000
# Seconds in which a worker has to have made its imports, and how often that is tried.
_START, _STARTS = 600.0, 3


@dataclass
class Watch:
    """Notes what the interpreter does while a case runs.

    Attributes
    ----------
    folder : Path
        Where the files of the case lie: others must not be opened.
    seen : list of str
    is_on : bool
    """

    folder: Path
    seen: list[str] = field(default_factory=list)
    is_on: bool = False

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event that a case must not cause."""
        if not self.is_on:
            return
        if event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments!r:.80}")
        elif event == "open" and not self._is_allowed(arguments):
            self.seen.append(f"open {arguments!r:.80}")

    def _is_allowed(self, arguments: tuple[Any, ...]) -> bool:
        path, _, flags = arguments
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if not isinstance(path, str) or (isinstance(flags, int) and flags & writes):
            return isinstance(path, int)  # a handle that is open already
        return path.startswith(str(self.folder)) or path.endswith((".py", ".pyc"))


def run_worker(
    case: Callable[[int, Path], str],
    undo: Callable[[int, Path], None],
    *,
    first: int,
    last: int,
    folder: Path,
    memory: int,
) -> None:
    """Run cases one by one and print a line of JSON for each: its number, how it ended, seconds.

    Parameters
    ----------
    case : callable
        Takes the number and a folder; returns a word for how it ended, or raises what is a bug.
    undo : callable
        Prepares the folder for a case, outside of the watch.
    first, last : int
    folder : Path
    memory : int
        Bytes of address space that a case may take beside what the worker has.
    """
    watch = Watch(folder)
    sys.addaudithook(watch.hook)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + memory, has + memory))
    print(json.dumps({"ready": True}), flush=True)
    for number in range(first, last):
        undo(number, folder)
        watch.seen.clear()
        start = time.perf_counter()
        why = ""
        watch.is_on = True
        try:
            outcome = case(number, folder)
        except BaseException as error:
            watch.is_on = False
            outcome, why = f"BUG {type(error).__name__}", traceback.format_exc()[-1500:]
        watch.is_on = False
        if watch.seen:
            outcome, why = "BUG watched", "; ".join(watch.seen[:5])
        line = {"case": number, "outcome": outcome, "seconds": time.perf_counter() - start, "why": why}
        print(json.dumps(line), flush=True)


@dataclass
class Result:
    """What the cases of a run came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    bugs: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_case: int = -1

    def add(self, line: dict[str, Any]) -> None:
        """Count a case."""
        self.outcomes[line["outcome"]] += 1
        if line["seconds"] > self.slowest:
            self.slowest, self.slowest_case = line["seconds"], line["case"]
        if line["outcome"].startswith("BUG"):
            self.bugs.append(line)


def _run_chunk(command: list[str], first: int, last: int, limit: float, result: Result) -> None:
    """Run cases ``first`` … ``last`` − 1 in workers; a new one after each death."""
    n_starts, silent = 0, -1
    while first < last:
        worker = subprocess.Popen(
            [*command, "--worker", str(first), str(last)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        why, is_ready = "", False
        with selectors.DefaultSelector() as ready, worker:
            assert worker.stdout is not None
            ready.register(worker.stdout, selectors.EVENT_READ)
            waits = _START  # the first case comes after the imports
            buffer = b""
            while True:
                if not ready.select(waits):
                    worker.kill()
                    why = f"no answer in {waits:g} s"
                    break
                data = os.read(worker.stdout.fileno(), 65536)
                if not data:
                    break
                *lines, buffer = (buffer + data).split(b"\n")
                for line in map(json.loads, lines):
                    is_ready = True
                    if "case" in line:
                        result.add(line)
                        first = line["case"] + 1
                waits = limit
            assert worker.stderr is not None
            told = worker.stderr.read().decode(errors="replace")[-1500:]
        n_starts = 0 if is_ready else n_starts + 1
        if 0 < n_starts < _STARTS:
            continue
        if not is_ready:
            raise RuntimeError(f"A worker did not get as far as its first case: {why or told}")
        if why and first != silent:  # a busy machine, perhaps: it gets a second chance
            silent = first
            continue
        if first < last:
            kind = "hang" if why else f"crash {worker.returncode}"
            result.add({"case": first, "outcome": f"BUG {kind}", "seconds": 0.0, "why": why or told})
            first += 1


def run_cases(command: list[str], n_cases: int, *, start: int, n_jobs: int, limit: float) -> Result:
    """Run all cases in chunks, some at once, and show how far they are."""
    result = Result()
    begun = time.perf_counter()
    chunks = [
        (first, min(first + _CHUNK, start + n_cases)) for first in range(start, start + n_cases, _CHUNK)
    ]
    with ThreadPoolExecutor(n_jobs) as jobs:
        waiting = [jobs.submit(_run_chunk, command, *chunk, limit, result) for chunk in chunks]
        for future in waiting:
            future.result()
            n_done, seconds = sum(result.outcomes.values()), time.perf_counter() - begun
            print(f"{n_done} cases, {len(result.bugs)} bugs, {seconds:.0f} s", file=sys.stderr, flush=True)
    return result


def tell(result: Result) -> int:
    """Print the counts and the bugs; return the exit code."""
    for outcome, n_cases in sorted(result.outcomes.items(), key=lambda item: -item[1]):
        print(f"{n_cases:8d}  {outcome}")
    print(f"slowest case {result.slowest_case}: {result.slowest:.2f} s")
    for bug in sorted(result.bugs, key=lambda bug: bug["case"])[:50]:
        print(f"\ncase {bug['case']}: {bug['outcome']}\n{bug['why']}")
    return 1 if result.bugs else 0


def make_parser(description: str, n_cases: int) -> argparse.ArgumentParser:
    """Return the arguments that both fuzzers take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=n_cases)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds that a case may take")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--bases", help=argparse.SUPPRESS)
    return parser


def work_in_temporary(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """Return a folder for files of cases, in memory where there is such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=prefix, dir=place)
