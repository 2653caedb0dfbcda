"""The page in a real browser: what is drawn, what keys and clicks do, what is saved, what never leaves."""

import csv
import json
import os
import shutil
import time

import numpy as np
import pytest
from _fake_model import HOSTILE, FakeModel

from pnp_gcd.report import read_names, write_report

pytest.importorskip("selenium", reason="selenium drives the browser; it is in the extra test")
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with its chromedriver is here")

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
]
KINDS = ["cat", "dog", "novel_0", "novel_1", "novel_2"]
WORDS = ["purring", "barking", "swimming", "flying", "crawling"]
N_ROWS = 120


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory, downloads):
    options = Options()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    os.environ["SE_OFFLINE"] = "true"  # selenium must fetch no driver
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def page(folder):
    rng = np.random.default_rng(0)
    codes = np.arange(N_ROWS) % 5
    probabilities = np.full((N_ROWS, 5), 0.01)
    sure = np.where(np.arange(N_ROWS) % 10 == 7, 0.45, 0.6 + 0.36 * rng.random(N_ROWS))
    probabilities[np.arange(N_ROWS), codes] = sure
    probabilities[np.arange(N_ROWS), (codes + 1) % 5] = np.minimum(0.97 - sure, 0.3)
    probabilities[codes == 4] = [0.01, 0.01, 0.01, 0.42, 0.55]
    model = FakeModel(tuple(KINDS), 2, probabilities).fit()
    model.history_ = [
        {"epoch": float(e), "n_active": 5.0, "total": 5.0 - e, "seconds": 0.1} for e in range(4)
    ]
    model.calibration_ = [{"whitening": "within", "n_neighbors": 8, "score": 0.5}]
    texts = [f"something {WORDS[code]} number {row}" for row, code in enumerate(codes)]
    texts[4] = "=HYPERLINK(1)"
    truth = np.array(["cat", "dog", "emu", "fox", "owl"])[codes]
    return write_report(model, np.zeros((N_ROWS, 2)), folder / "page.html", items=texts, truth=truth)


@pytest.fixture
def opened(browser, page):
    browser.get_log("browser")
    show(browser, page)
    yield browser
    assert not list_errors(browser)


def list_errors(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def show(browser, path):
    browser.get(path.as_uri())
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script("return document.documentElement.dataset.ready")
    )
    settle(browser)


def settle(browser):
    """Wait until the next drawing is done."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def find(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser, selector):
    """Return what elements say, at one moment: a search may replace them."""
    script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText.trim())"
    return browser.execute_script(script, selector)


def card_names(browser):
    return texts(browser, ".card h3")


def count_pixels(browser, colour):
    """Return how many pixels of the map have the colour of a class, and how many are painted at all."""
    return browser.execute_script(
        """
        const canvas = document.getElementById('map-canvas');
        const style = getComputedStyle(document.documentElement);
        const wanted = style.getPropertyValue(`--mark-${arguments[0]}`).trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let [alike, painted] = [0, 0];
        for (let at = 0; at < pixels.length; at += 4) {
          if (pixels[at + 3]) painted += 1;
          const apart = [r, g, b].reduce((sum, value, of) => sum + Math.abs(pixels[at + of] - value), 0);
          if (pixels[at + 3] > 200 && apart < 12) alike += 1;
        }
        return [alike, painted];""",
        colour,
    )


def wait_for_file(folder, name):
    path = folder / name
    for _ in range(100):
        if path.exists() and not list(folder.glob("*.crdownload")):
            return path
        time.sleep(0.05)
    raise AssertionError(f"{name} was not saved: {os.listdir(folder)}")


def save_file(browser, folder, button, name):
    (folder / name).unlink(missing_ok=True)
    browser.execute_script("document.getElementById(arguments[0]).click()", button)
    return wait_for_file(folder, name)


def press(browser, key):
    ActionChains(browser).send_keys(key).perform()


# --- the map ------------------------------------------------------------------------------------------


def test_the_map_paints_marks_in_the_colours_of_all_classes(opened):
    for colour in range(5):
        alike, painted = count_pixels(opened, colour)
        assert alike > 30
    assert painted > 1000


def test_known_and_novel_classes_have_different_shapes(opened):
    paths = opened.execute_script(
        "return [...document.querySelectorAll('.legend-entry path')].map((path) => path.getAttribute('d'))"
    )
    assert len(paths) == 5
    assert len(set(paths)) == 2


def test_hovering_shows_the_item_its_class_and_its_probability(opened):
    canvas = find(opened, "#map-canvas")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    for dx in range(-300, 300, 6):  # marks lie somewhere on this line or beside it
        ActionChains(opened, duration=0).move_to_element_with_offset(canvas, dx, dx // 3).perform()
        if find(opened, "#tip").is_displayed():
            break
    else:
        opened.execute_script("document.getElementById('map-canvas').focus()")
        press(opened, Keys.ARROW_RIGHT)
    said = find(opened, "#tip").text
    assert "%" in said
    assert any(kind in said for kind in KINDS)
    assert any(word in said for word in WORDS)


def test_arrow_keys_step_from_row_to_row_and_enter_selects_the_class(opened):
    opened.execute_script("document.getElementById('map-canvas').focus()")
    press(opened, Keys.ARROW_RIGHT)
    first = find(opened, "#tip").text
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_DOWN):
        press(opened, key)
    assert find(opened, "#tip").is_displayed()
    assert first
    press(opened, Keys.ENTER)
    assert len(opened.find_elements(By.CSS_SELECTOR, ".legend-entry[aria-pressed='true']")) == 1
    press(opened, Keys.ESCAPE)
    assert not opened.find_elements(By.CSS_SELECTOR, ".legend-entry[aria-pressed='true']")


def test_a_tap_shows_the_row_and_its_class_alone(opened):
    opened.execute_script("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    place = opened.execute_script(
        """
        const canvas = document.getElementById('map-canvas');
        const { left, top, width, height } = canvas.getBoundingClientRect();
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const wanted = getComputedStyle(document.documentElement).getPropertyValue('--mark-0').trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
        for (let at = 0; at < pixels.length; at += 4) {
          if (pixels[at] === r && pixels[at + 1] === g && pixels[at + 2] === b && pixels[at + 3] === 255) {
            const [x, y] = [(at / 4) % canvas.width, Math.floor(at / 4 / canvas.width)];
            return { x: left + (x * width) / canvas.width, y: top + (y * height) / canvas.height };
          }
        }"""
    )
    touch = "Input.dispatchTouchEvent"
    opened.execute_cdp_cmd(touch, {"type": "touchStart", "touchPoints": [place]})
    opened.execute_cdp_cmd(touch, {"type": "touchEnd", "touchPoints": []})
    assert find(opened, "#tip").is_displayed()
    (chosen,) = opened.find_elements(By.CSS_SELECTOR, ".legend-entry[aria-pressed='true']")
    assert chosen.text.split()[0] in find(opened, "#tip").text


def test_a_selected_class_alone_keeps_its_colour(opened):
    before = [count_pixels(opened, colour)[0] for colour in range(5)]
    opened.execute_script("document.querySelector('.legend-entry').click()")
    settle(opened)
    after = [count_pixels(opened, colour)[0] for colour in range(5)]
    assert sum(n > 30 for n in after) == 1
    assert sum(after) < sum(before) / 2


def test_buttons_and_wheel_zoom_and_reset_brings_all_back(opened):
    start = count_pixels(opened, 0)
    opened.execute_script("document.getElementById('zoom-in').click()")
    settle(opened)
    assert count_pixels(opened, 0) != start
    opened.execute_script("document.getElementById('zoom-reset').click()")
    settle(opened)
    assert count_pixels(opened, 0) == start
    opened.execute_script(
        "document.getElementById('map-canvas').dispatchEvent("
        "new WheelEvent('wheel', {deltaY: -400, clientX: 300, clientY: 300, cancelable: true}))"
    )
    settle(opened)
    assert count_pixels(opened, 0) != start


# --- cards --------------------------------------------------------------------------------------------


def test_cards_are_filtered_by_kind(opened):
    opened.execute_script("document.querySelector('input[value=novel]').click()")
    assert sorted(card_names(opened)) == ["novel_0", "novel_1", "novel_2"]
    opened.execute_script("document.querySelector('input[value=known]').click()")
    assert sorted(card_names(opened)) == ["cat", "dog"]


def test_cards_are_sorted_as_asked(opened):
    Select(find(opened, "#sort")).select_by_value("name")
    assert card_names(opened) == KINDS
    Select(find(opened, "#sort")).select_by_value("doubtful")
    assert card_names(opened)[0] == "novel_2"
    sure = [int(text.split("%")[0]) for text in texts(opened, ".confidence .small")]
    assert sure == sorted(sure)
    Select(find(opened, "#sort")).select_by_value("confidence")
    assert card_names(opened)[-1] == "novel_2"


def test_a_slash_starts_a_search_that_finds_rows_and_escape_ends_it(opened):
    press(opened, "/")
    assert opened.switch_to.active_element.get_attribute("id") == "search"
    press(opened, "swimming")
    WebDriverWait(opened, 5).until(lambda b: card_names(b) == ["novel_0"])
    assert "24 rows match" in find(opened, "#found").text
    settle(opened)
    assert sum(count_pixels(opened, colour)[0] > 30 for colour in range(5)) == 1
    press(opened, Keys.ARROW_DOWN)
    assert opened.switch_to.active_element.get_attribute("class").startswith("card")
    press(opened, Keys.ENTER)
    assert "chosen" in opened.switch_to.active_element.get_attribute("class")
    press(opened, Keys.ESCAPE)
    assert len(card_names(opened)) == 5


def test_a_link_to_a_class_goes_to_its_card_even_when_it_was_filtered_out(opened):
    opened.execute_script("document.querySelector('input[value=known]').click()")
    link = next(
        element
        for element in opened.find_elements(By.CSS_SELECTOR, ".card .class-link")
        if "novel" in element.text
    )
    name = link.text
    opened.execute_script("arguments[0].click()", link)
    assert name in opened.switch_to.active_element.text


def test_a_class_that_could_be_the_same_is_said_to_be_so(opened):
    assert "Could be the same as" in find(opened, "#class-4").text
    assert "could be in either" in find(opened, "#class-4").text


def test_rows_of_a_table_stand_side_by_side(browser, folder):
    import pandas as pd

    frame = pd.DataFrame({"height": np.arange(8.0), "<b>kind</b>": list("abcdefgh")})
    show(browser, write_report(FakeModel().fit(), np.zeros((8, 2)), folder / "table.html", items=frame))
    lines = texts(browser, "#class-0 .side-by-side tr")
    assert sorted(lines[0].split()) == ["0", "2", "4", "6", "row"]
    assert sorted(lines[1].split()) == ["0", "2", "4", "6", "height"]
    assert sorted(lines[2].split()) == ["<b>kind</b>", "a", "c", "e", "g"]
    show(browser, folder / "table.html")
    browser.execute_script("document.getElementById('map-canvas').focus()")
    press(browser, Keys.ARROW_UP)
    assert "height" in find(browser, "#tip").text


def test_pictures_are_on_cards_and_beside_the_pointer(browser, folder):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 60, 60, 3)).astype(np.uint8)
    show(browser, write_report(FakeModel().fit(), np.zeros((40, 2)), folder / "pictures.html", items=pixels))
    script = "return [...document.querySelectorAll('.card img')].filter((i) => i.naturalWidth === 60).length"
    browser.execute_script(
        "document.querySelectorAll('img').forEach((image) => { image.loading = 'eager'; })"
    )
    WebDriverWait(browser, 5).until(lambda b: b.execute_script(script) >= 16)
    browser.execute_script("document.getElementById('map-canvas').focus()")
    press(browser, Keys.ARROW_UP)
    assert find(browser, "#tip .picture").size["width"] == 80


# --- what is saved ------------------------------------------------------------------------------------


def test_all_assignments_are_saved_as_csv_without_formulas(opened, downloads):
    path = save_file(opened, downloads, "save-all", "assignments.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == N_ROWS
    assert [line["class"] for line in lines] == [KINDS[row % 5] for row in range(N_ROWS)]
    assert lines[4]["item"] == "'=HYPERLINK(1)"
    assert lines[4]["probability"] == "0.55"
    assert lines[0]["truth"] == "cat"


def test_doubtful_rows_are_saved_with_room_for_a_label(opened, downloads):
    path = save_file(opened, downloads, "save-doubtful", "label_next.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) > 20
    assert {line["your_label"] for line in lines} == {""}
    assert len({line["class"] for line in lines}) == 5


def give_name(browser, code, name):
    field = find(browser, f"#class-{code} .name-field")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", field)
    field.clear()
    field.send_keys(name, Keys.ENTER)


def test_names_and_merges_are_saved_for_read_names(opened, downloads):
    assert not find(opened, "#decided").is_displayed()
    give_name(opened, 2, 'ott"er </script>')
    assert 'ott"er </script>' in card_names(opened)
    opened.execute_script("document.querySelector('#class-4 .same button.tiny').click()")
    assert "1 class named, 1 group marked as the same." in find(opened, "#decided-text").text
    names = read_names(save_file(opened, downloads, "save-names", "names.json"))
    assert names.rename == {"novel_0": 'ott"er </script>'}
    assert names.merge == [["novel_1", "novel_2"]]


def test_names_outlive_a_reload_and_can_be_undone(opened):
    give_name(opened, 3, "bat")
    opened.refresh()
    assert "bat" in card_names(opened)
    opened.execute_script("document.getElementById('forget-names').click()")
    assert "bat" not in card_names(opened)
    assert not find(opened, "#decided").is_displayed()


def test_a_name_that_another_class_has_is_refused_and_stays_to_be_mended(opened):
    give_name(opened, 3, "cat")
    assert "Another class has this name" in find(opened, "#class-3 .complaint").text
    assert find(opened, "#class-3 .name-field").get_attribute("value") == "cat"
    assert not find(opened, "#decided").is_displayed()


def test_a_name_being_written_is_kept_while_another_is_given(opened):
    field = find(opened, "#class-2 .name-field")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", field)
    field.send_keys("half a na")
    give_name(opened, 3, "bat")
    assert find(opened, "#class-2 .name-field").get_attribute("value") == "half a na"


def test_integers_larger_than_a_browser_counts_survive_in_the_file_of_names(browser, folder, downloads):
    labels = (2**53 + 1, 2**53 + 2)
    path = write_report(FakeModel(labels).fit(), np.zeros((6, 2)), folder / "large.html")
    show(browser, path)
    give_name(browser, 1, "orchid")
    saved = save_file(browser, downloads, "save-names", "names.json")
    assert read_names(saved).rename == {2**53 + 2: "orchid"}


# --- colours, widths, languages -----------------------------------------------------------------------


def test_dark_mode_follows_the_system_and_the_button(opened):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = opened.execute_script(ground)
    feature = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    WebDriverWait(opened, 5).until(lambda b: b.execute_script(ground) != light)
    dark = opened.execute_script(ground)
    opened.execute_script("document.getElementById('theme').click()")
    assert opened.execute_script(ground) == light
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    opened.execute_script("document.getElementById('theme').click()")
    assert dark == opened.execute_script(ground) != light


CONTRAST = """
const luminance = (colour) => {
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => linear(c / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const groundOf = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const ground = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(ground)) return ground;
  }
  return 'rgb(255, 255, 255)';
};
const poor = [];
for (const element of document.querySelectorAll('body *')) {
  const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!hasText || !element.getClientRects().length) continue;
  if (element.closest('script, noscript, option, select')) continue;
  const pair = [getComputedStyle(element).color, groundOf(element)].map(luminance);
  const [a, b] = pair.sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${element.tagName} ${element.textContent.slice(0, 30)}`);
}
return poor;"""


def test_all_text_stands_out_from_its_ground_in_light_and_dark(opened):
    assert opened.execute_script(CONTRAST) == []
    opened.execute_script("document.getElementById('theme').click()")
    assert opened.execute_script(CONTRAST) == []


@pytest.mark.parametrize("name", ["page.html", "hostile.html"])
def test_nothing_sticks_out_of_a_narrow_screen(browser, page, hostile, folder, name):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(browser, folder / name)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        assert count_pixels(browser, 0)[0] > 30
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def phone(browser, page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    show(browser, page)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_buttons_of_the_map_cover_no_mark_on_a_phone(phone):
    canvas, buttons = find(phone, "#map-canvas").rect, find(phone, ".map-buttons").rect
    assert buttons["y"] >= canvas["y"] + canvas["height"]
    assert find(phone, "#zoom-in").rect["height"] >= 44
    assert buttons["y"] + buttons["height"] <= find(phone, ".legend").rect["y"]


@pytest.fixture(scope="module")
def hostile(folder):
    model = FakeModel(tuple(HOSTILE), 2).fit()
    model.calibration_ = [{HOSTILE[0]: HOSTILE[1]}]
    model.history_ = [{"epoch": 0.0, HOSTILE[1]: 1.0}]
    truth = [*HOSTILE[:7], *HOSTILE[:7], "a", "b"]
    path = folder / "hostile.html"
    return write_report(model, np.zeros((16, 2)), path, items=HOSTILE * 2, truth=truth, title=HOSTILE[0])


def test_hostile_names_and_texts_stay_text(browser, hostile):
    browser.get_log("browser")
    show(browser, hostile)
    assert browser.execute_script("return document.querySelectorAll('script').length") == 2
    assert not browser.find_elements(By.CSS_SELECTOR, "img[src='x']")
    assert browser.title == HOSTILE[0]
    names = json.loads(
        browser.execute_script(  # the driver cannot pass halves of surrogate pairs on
            "return JSON.stringify([...document.querySelectorAll('.card h3 bdi')].map((e) => e.textContent))"
        )
    )
    assert set(HOSTILE) - {HOSTILE[6]} <= set(names)
    press(browser, "/")
    press(browser, "<img")
    WebDriverWait(browser, 5).until(lambda b: len(b.find_elements(By.CSS_SELECTOR, ".card")) < 8)
    assert not list_errors(browser)


def test_text_that_turns_its_direction_is_kept_apart(browser, hostile):
    show(browser, hostile)
    loose = browser.execute_script(
        """
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const loose = [];
        while (walker.nextNode()) {
          const node = walker.currentNode;
          const isApart = node.parentElement.closest('bdi, script');
          if (node.data.includes('\\u202e') && !isApart) loose.push(node.parentElement.tagName);
        }
        return loose;"""
    )
    assert loose == []


# --- nothing leaves -----------------------------------------------------------------------------------


def test_no_request_leaves_the_page(browser, page):
    browser.get_log("performance")
    show(browser, page)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert {address.split(":")[0] for address in asked} <= {"file", "data", "blob"}
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_policy_lets_no_other_script_run(browser, page):
    show(browser, page)
    ran = browser.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
        "document.body.append(script); return window.ran ?? null"
    )
    assert ran is None


def test_the_chart_and_the_confusion_are_drawn(opened):
    assert len(opened.find_elements(By.CSS_SELECTOR, "#history svg circle")) == 8
    assert "within" in find(opened, "#calibration").text
    painted = opened.execute_script(
        "const c = document.querySelector('.heat');"
        "const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        "return data.filter((value, at) => at % 4 === 3 && value).length"
    )
    assert painted > 1000
    opened.execute_script("document.querySelector('.heat').focus()")
    press(opened, Keys.ARROW_DOWN)
    assert "24 of 24 rows of cat found as cat" in find(opened, ".heat-said").text


def test_the_setting_that_was_chosen_is_marked_in_words(browser, folder):
    model = FakeModel().fit()
    lines = [("within", 8, 0.7), ("within", 16, 0.9), ("total", 16, 0.6), ("within", 16, 0.8)]
    model.calibration_ = [
        dict(zip(("whitening", "n_neighbors", "score"), line, strict=True)) for line in lines
    ]
    show(browser, write_report(model, np.zeros((4, 2)), folder / "settings.html"))
    assert texts(browser, "#calibration tbody td:first-child") == ["", "", "", "chosen"]
    assert texts(browser, "#calibration tr.best td:last-child") == ["90.0 %"]
    assert find(browser, "#calibration-hint").text.startswith("3 settings tried.")


def test_one_setting_is_told_in_the_singular(opened):
    assert find(opened, "#calibration-hint").text.startswith("1 setting tried.")


@pytest.fixture(scope="module")
def labelled(folder):
    probabilities = np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.25, 0.45], [0.01, 0.98, 0.01]])
    model = FakeModel(("cat", "dog", "novel_0"), 2, probabilities).fit()
    options = {"given": ["cat", None, "dog", None], "truth": ["cat", "cat", "emu", "dog"]}
    return write_report(model, np.zeros((4, 2)), folder / "labelled.html", **options)


def test_rows_that_had_a_label_are_said_to_and_are_left_out_of_doubt_and_scores(browser, labelled, downloads):
    show(browser, labelled)
    tiles = texts(browser, "#tiles .tile")
    assert any("2 had a label and are shown under it" in tile for tile in tiles)
    assert any(tile.startswith("0\nunsure") for tile in tiles)
    hint = find(browser, "#truth-body .hint").text
    assert "Scored on 2 rows whose true class was told; 2 rows that had a label were left out." in hint
    assert texts(browser, "#next-table tbody tr td:first-child") == ["1"]
    path = save_file(browser, downloads, "save-all", "assignments.csv")
    lines = list(csv.DictReader(path.open(encoding="utf-8-sig", newline="")))
    assert [(line["class"], line["labelled"]) for line in lines] == [
        ("cat", "yes"),
        ("cat", ""),
        ("dog", "yes"),
        ("dog", ""),
    ]


def test_every_control_has_a_name_and_focus_is_seen(opened):
    nameless = opened.execute_script(
        "const isNamed = (e) => e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label');"
        "return [...document.querySelectorAll('button, input, select, canvas, a')]"
        ".filter((e) => e.getClientRects().length && !isNamed(e)).map((e) => e.outerHTML)"
    )
    assert nameless == []
    press(opened, Keys.TAB)
    focused = opened.switch_to.active_element
    assert focused.text == "Skip to the classes"
    assert focused.value_of_css_property("outline-style") == "solid"
