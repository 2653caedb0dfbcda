"""Take the pictures of docs/report.md: a report of digits in a browser. Writes report_*.png beside this file.

Run: ``python docs/figures/report.py``; it needs chromium, chromedriver and selenium (the extra ``test``).
"""

import base64
import shutil
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.report import write_report

HERE = Path(__file__).parent
# What is done on the page before a picture is taken: name, width, height, dark or light, script.
PICTURES = [
    (
        "map",
        1200,
        1100,
        "light",
        "const map = document.getElementById('map-canvas'); map.focus({preventScroll: true});"
        "const step = (key) => map.dispatchEvent(new KeyboardEvent('keydown', {key}));"
        "['ArrowUp', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft'].forEach(step);",
    ),
    ("cards", 1200, 900, "light", "document.getElementById('classes').scrollIntoView();"),
    (
        "names",
        1200,
        620,
        "light",
        "const field = document.querySelector('#class-5 .name-field');"
        "field.value = 'five'; field.form.requestSubmit();"
        "document.querySelector('#class-5 .decide').scrollIntoView({block: 'center'});",
    ),
    ("truth", 1200, 900, "dark", "document.getElementById('truth').scrollIntoView();"),
    ("phone", 360, 720, "dark", "document.getElementById('map').scrollIntoView();"),
]


def write_page(folder):
    """Fit on digits of which five are hidden, and write the report of the pool."""
    split = load_digits_split(random_state=0)
    model = PNPDiscoverer(random_state=0).fit(split.X_labelled, split.y_labelled, split.X_unlabelled)
    pictures = split.X_unlabelled.reshape(-1, 8, 8)
    return write_report(
        model,
        split.X_unlabelled,
        Path(folder) / "digits.html",
        items=pictures / pictures.max(),
        truth=split.y_unlabelled,
        title="Handwritten digits",
    )


def open_browser(profile):
    """Start a browser that asks nothing of a network."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def take_picture(browser, page, name, width, height, theme, script):
    """Open the page anew, do what the script says and save what is seen."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    browser.get(page.as_uri())
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto';" + script)
    time.sleep(1)
    path = HERE / f"report_{name}.png"
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(taken["data"]))
    Image.open(path).convert("RGB").save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main():
    """Take all pictures."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = write_page(folder)
        print(f"{page.name}: {page.stat().st_size / 1e6:.2f} MB")
        browser = open_browser(f"{folder}/profile")
        try:
            for picture in PICTURES:
                take_picture(browser, page, *picture)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
