"""A report of many rows: its size, the seconds to write it, and to open it where a browser is at hand.

    python benchmarks/report_size.py [--rows 100000] [--items texts|images|none] [--out FILE]

Rows are drawn around 200 directions, half of them known; a text or a picture for each is made up. Opening
needs chromium, chromedriver and selenium, and is timed until the map is drawn; so are a search and a zoom.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from pnp_gcd import PNPDiscoverer
from pnp_gcd.report import write_report

N_CLASSES = 200
N_FEATURES = 64
N_FITTED = 6000


def make_rows(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    centres = rng.normal(size=(N_CLASSES, N_FEATURES))
    codes = rng.integers(N_CLASSES, size=n_rows)
    return (centres[codes] + 0.7 * rng.normal(size=(n_rows, N_FEATURES))).astype(np.float32), codes


def make_items(kind: str, codes: np.ndarray, rng: np.random.Generator):
    if kind == "images":
        colours = rng.integers(256, size=(N_CLASSES, 1, 1, 3))
        noise = rng.integers(-40, 40, size=(len(codes), 16, 16, 3))
        return np.clip(colours[codes] + noise, 0, 255).astype(np.uint8)
    if kind == "texts":
        words = np.array([f"word{place}" for place in range(2000)])
        drawn = rng.integers(2000, size=(len(codes), 15))
        drawn[:, :3] = codes[:, None] * 5 + rng.integers(5, size=(len(codes), 3))
        return [" ".join(words[row]) for row in drawn]
    return None


def time_opening(path: Path) -> dict[str, float] | None:
    """Return seconds until the page is drawn, and until it has answered; None without a browser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None
    if not (chromium and driver):
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={profile}")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.set_script_timeout(120)
            return {
                "open": _time(lambda: (browser.get(path.as_uri()), _draw(browser, ""))),
                "zoom": _time(lambda: _draw(browser, "document.getElementById('zoom-in').click();")),
                "search": _time(
                    lambda: _draw(
                        browser,
                        "const box = document.getElementById('search'); box.value = 'word12';"
                        "box.dispatchEvent(new Event('input'));",
                        wait=300,
                    )
                ),
            }
        finally:
            browser.quit()


def _draw(browser, script: str, wait: int = 0) -> None:
    """Run a script and wait until what it changed has been drawn."""
    browser.execute_async_script(
        f"{script} setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(arguments[0])), {wait})"
    )


def _time(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--items", choices=["texts", "images", "none"], default="texts")
    parser.add_argument("--out", type=Path, default=None, help="keep the page here")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X, codes = make_rows(args.rows, rng)
    part = np.arange(min(N_FITTED, args.rows))
    has_label = (codes[part] % 2 == 0) & (part % 2 == 0)
    model = PNPDiscoverer(max_iter=0, random_state=0)
    model.fit(X[part][has_label], codes[part][has_label], X[part][~has_label])
    items = make_items(args.items, codes, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = args.out or Path(folder) / "report.html"
        seconds = _time(lambda: write_report(model, X, path, items=items, truth=codes, overwrite=True))
        print(f"{args.rows:,} rows, {model.n_clusters_} classes, items: {args.items}")
        print(f"{path.stat().st_size / 1e6:.1f} MB, written in {seconds:.1f} s")
        opened = time_opening(path)
        if opened is None:
            print("not opened: no chromium with chromedriver and selenium here")
        else:
            print(", ".join(f"{name} {value:.1f} s" for name, value in opened.items()))


if __name__ == "__main__":
    main()
