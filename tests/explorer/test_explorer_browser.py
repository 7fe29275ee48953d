"""The page in headless Chromium: what a reader does, and what the picture then shows."""

from __future__ import annotations

import csv
import json
import time

import httpx2
import pytest

from resolvent.explorer.guard import ASKING
from resolvent.explorer.view import ANGLES, NUMBERS

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
START = "f=relu&align=0.5&snr=2"
PICTURE = "id => JSON.stringify(document.getElementById(id).data?.map(t => [t.x, t.y, t.z, t.line?.color]))"


class Page:
    """A page of the explorer, with what it asked for and complained of."""

    def __init__(self, browser, url, view=START, **options):
        self.context = browser.new_context(**({"viewport": WIDE} | options))
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url.strip("/"))
        self.page = self.context.new_page()
        self.url, self.asked, self.complaints = url, [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else 0
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(f"{url}#{view}")
        self.shown("curve", "phase", "card")

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def shown(self, *names):
        """Wait until the panels have been drawn."""
        for name in names:
            self.page.wait_for_selector(f"#{name}-chart[data-drawn]", timeout=30_000)

    def picture(self, name="curve"):
        return self.page.evaluate(PICTURE, f"{name}-chart")

    def changed(self, before, name="curve", by=""):
        """The picture once it is another one."""
        return self.until(lambda: (now := self.picture(name)) != before and now, by)

    def until(self, condition, by=""):
        deadline = time.monotonic() + 20.0
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{by} never came; complaints {self.complaints}"
            self.page.wait_for_timeout(20)
        return found

    def close(self):
        """Nothing went wrong on the way, and nothing left the machine."""
        self.context.close()
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith((self.url, "data:", "blob:"))] == []


@pytest.fixture
def opened(browser, server):
    """Open pages; each is closed and checked at the end."""
    pages = []

    def open_page(view=START, **options):
        pages.append(Page(browser, server.url, view, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def curve_of(server, query):
    reply = httpx2.get(f"{server.url}api/curve?{query}", headers={ASKING: "1"})
    return reply.json()["y"]


def test_every_slider_changes_the_picture_by_keyboard_and_by_typing(opened):
    reader = opened("f=relu&align=0.5&snr=2&label_mean=0.2&key_cos=0.5&query_cos=0.4&over=snr")
    for name, number in NUMBERS.items():
        if name == "beta":
            reader.page.fill("#f", "softmax")
        before = reader.picture()
        if name == "snr":
            reader.page.select_option("#over", "skip")
        if name == "key_norm":
            reader.page.check("#weights-apart")
        if name == "skip":
            reader.page.select_option("#over", "ratio")
        if name in ("snr", "key_norm", "beta", "skip"):
            before = reader.changed(before, by=f"what precedes {name}")
        reader.page.focus(f"#{name}")
        reader.page.keyboard.press("PageDown" if name == "ratio" else "PageUp")
        moved = reader.changed(before, by=name)
        reader.page.fill(f"#{name}-value", str(number.low + 0.43 * (number.high - number.low)))
        reader.changed(moved, by=name)


def test_the_weights_come_together_or_apart(opened):
    reader = opened("over=align&x=align&y=snr&align=1")
    assert not reader.page.is_visible("#key_cos")
    before = reader.picture()
    reader.page.check("#weights-apart")
    reader.changed(before)
    assert not reader.page.is_visible("#align")
    assert all(reader.page.is_visible(f"#{name}") for name in ANGLES)
    assert reader.page.input_value("#over") == "key_cos"
    assert reader.page.input_value("#x") == "key_cos"
    assert reader.page.is_hidden("#problem")


def test_boxes_menus_and_the_nonlinearity_change_the_picture(opened):
    reader = opened()
    reader.shown("spectrum")
    page = reader.page
    for act, name in [
        (lambda: page.fill("#f", "t*tanh(t) + t"), "curve"),
        (lambda: page.fill("#f", "gelu"), "card"),
        (lambda: page.uncheck("#centred"), "card"),
        (lambda: page.check("#keep_diagonal"), "curve"),
        (lambda: page.select_option("#over", "ratio"), "curve"),
        (lambda: page.select_option("#error", "train"), "phase"),
        (lambda: page.select_option("#x", "align"), "phase"),
        (lambda: page.select_option("#y", "align"), "phase"),
        (lambda: page.check("#centred"), "card"),
        (lambda: page.select_option("#matrix", "attention"), "spectrum"),
    ]:
        before = reader.picture(name)
        act()
        reader.changed(before, name)
    assert page.input_value("#x") == "snr"  # the axes were swapped
    page.check("#log")
    reader.until(lambda: page.evaluate("document.getElementById('curve-chart').layout.yaxis.type") == "log")
    page.click("#reset")
    reader.until(lambda: "#" not in page.url or page.url.endswith("#"))


def test_a_wrong_expression_is_said_and_put_right(opened):
    reader = opened()
    reader.page.fill("#f", "import os")
    reader.page.wait_for_selector("#problem:not([hidden])")
    assert "\n" not in reader.page.inner_text("#problem")
    reader.page.fill("#f", "erf")
    reader.page.wait_for_selector("#problem", state="hidden")
    reader.complaints[:] = [
        c for c in reader.complaints if "400 (Bad Request)" not in c
    ]  # Chromium reports it


def test_a_link_reproduces_the_view(opened):
    first = opened()
    first.page.select_option("#over", "snr")
    first.page.fill("#ridge-value", "0.75")
    first.page.fill("#f", "maximum(t, -t/4)")
    first.page.select_option("#y", "ridge")
    first.page.check("#log")
    for part in ("ridge=0.75", "log=1", "maximum"):
        first.until(lambda part=part: part in first.page.url)
    first.page.click("#code summary")
    first.page.click("#copy-link")
    link = first.page.evaluate("navigator.clipboard.readText()")
    assert link == first.page.url
    second = opened(link.split("#")[1])
    first.shown("spectrum")
    second.shown("spectrum")
    for name in ("curve", "phase", "card", "spectrum"):
        first.until(lambda name=name: first.picture(name) == second.picture(name))
    assert second.page.input_value("#f") == "maximum(t, -t/4)"
    assert second.page.input_value("#ridge-value") == "0.75"
    assert second.page.is_checked("#log")
    before = second.picture()
    second.page.evaluate("location.hash = 'over=ratio&snr=3'")
    second.changed(before)
    assert second.page.input_value("#snr-value") == "3"


def test_twenty_quick_drags_leave_the_last_state(opened, server):
    reader = opened("align=0.5")
    drag = """async () => {
        const range = document.getElementById("snr");
        for (let k = 1; k <= 20; k++) {
            range.value = k * 0.4;
            range.dispatchEvent(new Event("input", { bubbles: true }));
            await new Promise((next) => setTimeout(next, 7));
        }
    }"""
    reader.page.evaluate(drag)
    reader.page.wait_for_selector('#curve-chart[data-drawn="snr=8&align=0.5"]')
    reader.page.wait_for_timeout(300)
    expected = curve_of(server, "snr=8&align=0.5")
    drawn = reader.page.evaluate("document.getElementById('curve-chart').data.slice(0, 4).map(t => t.y)")
    assert drawn == [expected[m][e] for m in ("attention", "linear") for e in ("test", "train")]
    assert reader.page.input_value("#snr-value") == "8"
    curves = [url for url in reader.asked if "/api/curve" in url]
    assert len(curves) <= 21
    assert reader.page.evaluate("performance.getEntriesByName('redraw').length") >= 2


def test_measured_points_arrive_one_by_one_and_can_be_cancelled(opened, server):
    reader = opened("over=snr&n=16&draws=2&align=0.5")
    page = reader.page
    page.click("#measure")
    page.wait_for_selector('#measured:text-is("9 points")')
    marks = "document.getElementById('curve-chart').data.filter(t => t.error_y).map(t => t.y.length)"
    reader.until(lambda: page.evaluate(marks) == [9, 9, 9, 9])
    page.wait_for_selector("#progress", state="hidden")
    page.click("#code summary")
    assert "simulate={" in page.inner_text("#python")
    page.fill("#ridge-value", "0.5")
    reader.until(lambda: page.evaluate(marks) == [])
    assert "simulate={" not in page.inner_text("#python")
    page.fill("#n", "2048")
    page.fill("#draws", "50")
    page.click("#measure")
    page.click("#cancel")
    page.wait_for_selector('#measured:has-text("cancelled")')
    reader.until(lambda: not server.jobs.running)


def test_a_click_in_the_phase_diagram_goes_there(opened):
    reader = opened()
    page = reader.page
    page.locator("#phase-chart").scroll_into_view_if_needed()
    box = page.locator("#phase-chart .nsewdrag").bounding_box()
    before = reader.picture()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.3 * box["height"])
    reader.changed(before)
    ratio, snr = (float(page.input_value(f"#{name}-value")) for name in ("ratio", "snr"))
    assert 2 < ratio < 6
    assert 6 < snr < 8


@pytest.mark.parametrize("panel", ["curve", "phase", "spectrum", "card"])
def test_panels_are_exported(opened, server, panel, tmp_path):
    reader = opened()
    reader.shown(panel)
    files = {}
    for kind in ("png", "svg", "csv"):
        with reader.page.expect_download() as download:
            reader.page.click(f"#{panel}-{kind}")
        assert download.value.suggested_filename == f"resolvent-{panel}.{kind}"
        download.value.save_as(tmp_path / kind)
        files[kind] = (tmp_path / kind).read_bytes()
    assert files["png"].startswith(b"\x89PNG\r\n")
    assert len(files["png"]) > 5000
    assert files["svg"].startswith(b"<svg")
    rows = list(csv.reader(files["csv"].decode().splitlines()))
    assert len({len(row) for row in rows}) == 1
    if panel == "curve":
        expected = curve_of(server, START)
        assert [float(row[2]) for row in rows[1:]] == expected["attention"]["test"]


def test_code_is_copied(opened):
    reader = opened()
    reader.page.click("#code summary")
    for name, start in (("python", "import numpy as np"), ("command", "resolvent sweep --over ridge=")):
        reader.page.click(f"#copy-{name}")
        reader.page.wait_for_selector('#copied:text-is("copied")')
        assert reader.page.evaluate("navigator.clipboard.readText()").startswith(start)


def test_own_tokens_are_dropped(opened, tokens_csv):
    reader = opened("align=1&draws=3")
    page = reader.page
    drop = """text => {
        const data = new DataTransfer();
        data.items.add(new File([text], "words.csv"));
        const event = new DragEvent("drop", { bubbles: true, dataTransfer: data });
        document.getElementById("drop").dispatchEvent(event);
    }"""
    page.evaluate(drop, tokens_csv.decode())
    page.wait_for_selector("#tokens-chart .scatterlayer .trace", timeout=30_000)
    assert "n 40, p 6" in page.inner_text("#estimate")
    page.click("#use")
    assert float(page.input_value("#ratio-value")) == 0.15
    page.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    page.wait_for_selector("#tokens-problem:not([hidden])", timeout=30_000)
    assert "one column named label" in page.inner_text("#tokens-problem")


def test_it_fits_a_phone_and_keeps_its_controls_reachable(opened):
    reader = opened(viewport=NARROW, has_touch=True)
    page = reader.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = """() => [...document.querySelectorAll("main *")]
        .filter(e => e.offsetParent && !e.closest("pre, .chart"))
        .filter(e => e.getBoundingClientRect().right > 360.5).map(e => e.tagName + "#" + e.id)"""
    assert page.evaluate(outside) == []
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    controls = page.evaluate(
        "[...document.querySelectorAll('input, select, button, summary')]"
        ".filter(e => e.checkVisibility() && e.type !== 'radio').map(e => e.id)"
    )
    assert {c for c in controls if c} <= reached


def test_it_follows_the_dark_mode_and_does_not_need_colour(opened):
    reader = opened(color_scheme="light")
    look = """[getComputedStyle(document.body).backgroundColor,
        document.getElementById("curve-chart").layout.paper_bgcolor]"""
    light = reader.page.evaluate(look)
    before = reader.picture()
    reader.page.emulate_media(color_scheme="dark")
    reader.changed(before)
    assert all(a != b for a, b in zip(light, reader.page.evaluate(look), strict=True))
    dashes = reader.page.evaluate(
        "document.getElementById('curve-chart').data.slice(0, 4).map(t => t.line.dash)"
    )
    assert len(set(dashes)) == 4


def test_formulas_are_typeset(opened):
    reader = opened()
    formulas = reader.page.evaluate(
        "[...document.querySelectorAll('[data-tex]')].map(e => e.querySelector('math') !== null)"
    )
    assert len(formulas) > 10
    assert all(formulas)
    assert json.loads(reader.picture("card"))


def test_softmax_has_its_beta_and_no_spectrum_of_k(opened):
    reader = opened("align=0.5&keep_diagonal=1&centred=0&f=relu")
    page = reader.page
    assert page.is_hidden("#beta")
    page.fill("#f", "softmax")
    page.wait_for_selector("#beta")
    page.wait_for_selector('#card-title:has-text("softmax")')
    page.select_option("#matrix", "attention")
    page.wait_for_selector('#outliers:has-text("not symmetric")')
    assert page.is_hidden("#spectrum-chart")
    assert page.is_disabled("#centred")
    before = reader.picture("phase")
    page.select_option("#x", "beta")
    before = reader.changed(before, "phase")
    page.fill("#f", "tanh")
    reader.changed(before, "phase")
    assert page.input_value("#x") == "ratio"
    page.wait_for_selector("#spectrum-chart")
