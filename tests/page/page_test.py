"""The page in Chromium: each part by the pointer and by keys alone, pixels beside NumPy, and what no page may do.

page_test.py BRECCIA AXE.JS FOLDER [NAME...]: pictures of the page go into FOLDER.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import colours
import numpy as np
import repository
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
VIEWS = ["", "?view=node&path=/temperature", "?view=node&path=/photo", "?view=node&path=/series",
         "?view=node&path=/stations", "?view=node&path=/", "?view=node&path=/cells",
         "?view=diff&a=v1.0&path=/temperature", "?view=diff", "?view=sizes",
         "?view=open&path=/temperature", "?view=node&path=/nothing"]
expect.set_options(timeout=15_000)
TESTS: list[Callable[["Look"], None]] = []


def test(function: Callable[["Look"], None]) -> Callable[["Look"], None]:
    TESTS.append(function)
    return function


class Look:
    """A browser on a server; whatever goes wrong in a page is a fault."""

    def __init__(self, browser: Browser, breccia: str, files: list[pathlib.Path], axe: str, shots: pathlib.Path):
        self.browser = browser
        self.breccia = breccia
        self.file, self.long = files
        self.url = ""
        self.axe = axe
        self.shots = shots
        self.faults: list[str] = []

    def watch(self, page: Page, url: str) -> None:
        origin = "/".join(url.split("/")[:3])
        page.on("pageerror", lambda e: self.faults.append(f"error: {e}"))
        page.on("dialog", lambda d: self.faults.append(f"dialog: {d.message}"))
        page.on("console", lambda m: self.faults.append(f"console: {m.text}")
                if m.type in ("error", "warning") and "willReadFrequently" not in m.text else None)
        page.on("request", lambda r: None if r.url.startswith((origin, "data:", "blob:"))
                else self.faults.append(f"foreign request: {r.url}"))

    @contextmanager
    def page(self, query: str = "", width: int = 1280, height: int = 900, url: str = "",
             ready: str = "body[data-ready]", **options: object) -> Iterator[Page]:
        context: BrowserContext = self.browser.new_context(
            viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        page.set_default_timeout(15_000)
        self.watch(page, url or self.url)
        page.add_init_script("document.addEventListener('securitypolicyviolation', "
                             "e => console.error('policy: ' + e.violatedDirective))")
        try:
            page.goto((url or self.url) + query)
            if options.get("java_script_enabled", True):
                page.wait_for_selector(ready)
            yield page
        finally:
            context.close()

    def go(self, page: Page, query: str, script: bool = True) -> None:
        page.goto(self.url + query)
        if script:
            page.wait_for_selector("body[data-ready]")

    def shot(self, page: Page, name: str, at: str = "body") -> None:
        """Takes a picture for docs/, which must stay small."""
        size = page.viewport_size
        if size and size["width"] > 1000:
            page.set_viewport_size({"width": 1040, "height": 760})
        page.locator(at).first.evaluate("e => e.scrollIntoView({block: 'start', behavior: 'instant'})")
        path = self.shots / f"page-{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size < 150_000, path.stat().st_size
        if size:
            page.set_viewport_size(size)


# ---- helpers ---------------------------------------------------------------------


def pixels(page: Page, selector: str) -> np.ndarray:
    """Returns the colour in the middle of each element of a picture."""
    flat = page.eval_on_selector(selector, """canvas => {
        const {sx, sy, w, h} = canvas.dataset, out = [];
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        for (let y = 0; y < +h; y++)
            for (let x = 0; x < +w; x++) {
                const at = ((y * sy + (sy >> 1)) * canvas.width + x * sx + (sx >> 1)) * 4;
                out.push(data[at], data[at + 1], data[at + 2]);
            }
        return [+h, +w, out];
    }""")
    height, width, values = flat
    return np.array(values, dtype=np.uint8).reshape(height, width, 3)


def until(page: Page, selector: str, text: str) -> None:
    expect(page.locator(selector).first).to_contain_text(text)


def type_limits(page: Page, low: str, high: str) -> None:
    for name, value in (("low", low), ("high", high)):
        page.fill(f".controls [name={name}]", value)
        page.keyboard.press("Enter")
        page.locator(f".controls [name={name}]").blur()


def tab_to(page: Page, selector: str, most: int = 150) -> None:
    """Presses Tab until an element has the focus."""
    for _ in range(most):
        if page.evaluate("s => document.activeElement?.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def rows_of(page: Page, selector: str) -> dict[str, str]:
    """Returns the rows of a table of names and values."""
    rows = page.locator(selector).locator("tr").all()
    return {r.locator("th").first.inner_text(): r.locator("td").first.inner_text() for r in rows
            if r.locator("td").count()}


def march() -> np.ndarray:
    """Returns March of /temperature as the newest version has it."""
    packed = repository.packed(2)
    packed[10:20, 30:50] += 150
    packed[40, 2] += 90
    return np.where(packed == -32768, np.nan, packed * 0.01 + 273.15)


# ---- the first screen ------------------------------------------------------------


@test
def first_screen(look: Look) -> None:
    with look.page() as page:
        assert page.title().startswith("climate")
        until(page, "main", "A made-up climate.")
        until(page, "main", "Store the sparse array smaller")
        until(page, "#sound", "yes: ")
        assert rows_of(page, "main table")["Commits"] == "6"
        assert page.locator("#preview canvas").count() == 1
        until(page, "#preview", "elements at")
        until(page, ".tree", "6 × 45 × 72 int16")
        page.click(".tree a:has-text('temperature')")
        page.wait_for_selector("#viewer canvas")
        assert "path=/temperature" in page.url
        assert page.title() == "climate · Data · /temperature"
        page.go_back()
        until(page, "main", "A made-up climate.")
        page.click("#tabs a:has-text('Sizes')")
        until(page, "main", "What the bytes are for")
        look.go(page, "?rev=main~3")
        until(page, "#preview", "every 20th")
        look.shot(page, "overview")


@test
def tree_is_filtered_and_ordered(look: Look) -> None:
    with look.page() as page:
        page.fill("#tree-filter", "spar")
        visible = [a.inner_text() for a in page.locator(".tree a").all() if a.is_visible()]
        assert visible == ["/", "sparse"], visible
        page.fill("#tree-filter", "")
        page.select_option("#tree-order", "size")
        names = page.locator(".tree > li > ul > li > a").all_inner_texts()
        assert names[:3] == ["large", "cells/", "temperature"], names
        page.select_option("#tree-order", "last")
        assert page.locator(".tree > li > ul > li > a").first.inner_text() == "series"


@test
def counts_come_later_where_they_take_long(look: Look) -> None:
    def slow(route: Route) -> None:
        body = route.fetch().text()
        assert "</tbody></table>" in body
        route.fulfill(body=body.replace("<p>To open it elsewhere", '<p id="counts"></p><p>To open'),
                      content_type="text/html; charset=utf-8")

    with look.page() as page:
        page.route(look.url + "?view=overview", slow)
        page.goto(look.url + "?view=overview")
        expect(page.locator("#totals th:has-text('Commits')")).to_have_count(2)
        assert page.locator("#totals tr:has-text('Commits') td").last.inner_text() == "6"


# ---- timeline --------------------------------------------------------------------


@test
def timeline_by_pointer(look: Look) -> None:
    with look.page() as page:
        until(page, "#rows li >> nth=4", "/temperature")
        until(page, "#rows li >> nth=4", "6 chunks")
        until(page, "#rows li >> nth=1", "merge")
        until(page, "#rows li >> nth=2", "branch calibration")
        until(page, "#rows li >> nth=5", "tag v1.0")
        assert page.locator("#rows svg.lanes line").count() >= 10
        page.click("#rows li >> nth=5 >> .pick")
        page.click("#rows li >> nth=3 >> .pick")
        page.wait_for_selector("table.changes")
        assert "view=diff" in page.url
        ids = [r.get_attribute("data-id") for r in page.locator("#rows li").all()]
        assert f"a={ids[5]}" in page.url and f"b={ids[3]}" in page.url, page.url
        until(page, "table.changes", "/temperature")


@test
def timeline_by_keys(look: Look) -> None:
    with look.page() as page:
        ids = [r.get_attribute("data-id") for r in page.locator("#rows li").all()]
        tab_to(page, ".msg")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        assert page.evaluate("document.activeElement.closest('li').dataset.id") == ids[1]
        page.keyboard.press("c")
        until(page, "#status", "is chosen")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("c")
        page.wait_for_selector("table.changes")
        assert f"a={ids[3]}" in page.url and f"b={ids[1]}" in page.url, page.url
        tab_to(page, ".msg")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**rev={ids[1]}**")
        until(page, "#where", ids[1][:8])


@test
def timeline_is_filtered(look: Look) -> None:
    with look.page() as page:
        page.fill("#filter", "GRACE")
        page.keyboard.press("Enter")
        expect(page.locator("#rows li")).to_have_count(1)
        until(page, "#rows", "Correct March")
        page.fill("#filter", "nothing at all")
        page.click("#timeline button:has-text('Find')")
        until(page, "#rows", "No commit is here")


@test
def several_files_and_older_commits(look: Look) -> None:
    with server(look.breccia, look.file, look.long) as url, look.page(url=url, ready="a") as page:
        page.click("a:has-text('long')")
        page.wait_for_selector("body[data-ready]")
        expect(page.locator("#rows li")).to_have_count(50)
        page.click(".older")
        expect(page.locator("#rows li")).to_have_count(60)
        until(page, "#rows li >> nth=59", "Write number 0")
        until(page, "#rows li >> nth=57", "branch early")
        assert page.locator(".older").count() == 0
        assert page.evaluate("document.activeElement.textContent") == "Write number 9"
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        page.wait_for_url("**file=long**rev=**")
        page.wait_for_selector("body[data-ready]")
        until(page, "main", "Write number 10")
        page.click(".tree a[href*='path=/a']")
        until(page, ".readout", "= ")
        page.fill("#filter", "number 1")
        page.keyboard.press("Enter")
        expect(page.locator("#rows li")).to_have_count(11)


# ---- arrays ----------------------------------------------------------------------


@test
def pixels_are_those_of_numpy(look: Look) -> None:
    with look.page("?view=node&path=/temperature") as page:
        page.fill("[aria-label='time, index']", "2")
        page.keyboard.press("Enter")
        until(page, ".summary", "[2,0:45,0:72]")
        until(page, ".readout", "2026-03-16")
        type_limits(page, "240", "300")
        for name, table in (("viridis", colours.viridis()), ("grey", colours.grey()),
                            ("diverging", colours.diverging())):
            page.select_option("[name=map]", name)
            values = march()
            there = ~np.isnan(values)
            shown = pixels(page, ".stage canvas")
            wanted = colours.shade(np.nan_to_num(values), 240, 300, table)
            assert shown.shape == wanted.shape, (shown.shape, wanted.shape)
            assert np.array_equal(shown[there], wanted[there]), name
            assert set(map(tuple, shown[~there].tolist())) <= {(150, 150, 150), (215, 215, 215)}
        page.select_option("[name=map]", "cividis")
        shown = pixels(page, ".stage canvas")
        coldest = np.unravel_index(np.nanargmin(march()), march().shape)
        assert shown[coldest].sum() < shown[np.unravel_index(np.nanargmax(march()), march().shape)].sum()
        page.select_option("[name=limits]", "2")
        values = march()[~np.isnan(march())]
        low, high = (float(page.input_value(f"[name={n}]")) for n in ("low", "high"))
        assert abs(low - np.quantile(values, 0.02)) < 0.1, low
        assert abs(high - np.quantile(values, 0.98)) < 0.1, high


@test
def numbers_are_those_of_numpy(look: Look) -> None:
    with look.page("?view=node&path=/temperature") as page:
        page.fill("[aria-label='time, index']", "2")
        page.keyboard.press("Enter")
        until(page, ".summary", "[2,0:45,0:72]")
        facts, values = rows_of(page, ".numbers table >> nth=0"), march()
        assert int(facts["Elements"]) == values.size
        assert abs(float(facts["Least"]) - np.nanmin(values)) < 1e-3
        assert abs(float(facts["Greatest"]) - np.nanmax(values)) < 1e-3
        assert abs(float(facts["Mean"]) - np.nanmean(values)) < 1e-3
        assert int(facts["NaN or missing"]) == int(np.isnan(values).sum())
        assert int(facts["Fill value"]) == 15
        page.click(".numbers summary")
        counts = [int(r.locator("td").nth(1).inner_text()) for r in page.locator(".numbers details tbody tr").all()]
        wanted, _ = np.histogram(values[~np.isnan(values)], bins=24)
        assert sum(counts) == wanted.sum() and np.abs(np.array(counts) - wanted).max() <= 2, counts
        page.click("details.whole summary")
        until(page, ".whole", "19440")
        page.check("[name=raw]")
        until(page, ".summary", "without a number")
        assert int(rows_of(page, ".numbers table >> nth=0")["NaN or missing"]) == 0
        assert rows_of(page, ".numbers table >> nth=0")["Least"] == "-32768"


@test
def array_by_keys(look: Look) -> None:
    """Sliders, axes, cursor, zoom, table, blame, without a pointer."""
    with look.page("?view=node&path=/temperature") as page:
        tab_to(page, "[aria-label='time, slider']")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        until(page, ".summary", "[2,0:45,0:72]")
        tab_to(page, "[aria-label='time, by coordinate']")
        page.keyboard.type("2026-05")
        page.keyboard.press("Enter")
        until(page, ".summary", "[4,0:45,0:72]")
        page.fill("[aria-label='time, index']", "2")
        page.keyboard.press("Enter")
        until(page, ".summary", "[2,0:45,0:72]")
        tab_to(page, ".stage canvas")
        for _ in range(12):
            page.keyboard.press("ArrowDown")
        for _ in range(3):
            page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("ArrowRight")
        until(page, ".readout", "[2, 12, 31] time 2026-03-16 00:00:00, lat -40 degrees_north, lon 155 degrees_east")
        until(page, ".readout", f"= {float(f'{march()[12, 31]:.7g}'):g}"[:8])
        tab_to(page, "[name=blame]")
        page.keyboard.press("Enter")
        until(page, ".blamed", "Grace Hopper")
        tab_to(page, "details.values summary")
        page.keyboard.press("Enter")
        shown = page.locator(".values td.cursor").inner_text()
        assert abs(float(shown) - march()[12, 31]) < 1e-3, shown
        tab_to(page, "#tabs a")
        tab_to(page, ".stage canvas")
        page.keyboard.press("+")
        until(page, ".summary", "36 × 23 elements")
        page.keyboard.press("-")
        until(page, ".summary", "72 × 45 elements")
        page.select_option("[name=y]", label="time (6)")
        until(page, ".summary", "72 × 6 elements")
        page.keyboard.press("Tab")
        page.select_option("[name=x]", label="lat (45)")
        until(page, ".summary", "45 × 6 elements")


@test
def pointer_reads_and_keeps(look: Look) -> None:
    with look.page("?view=node&path=/sparse") as page:
        box = page.locator(".stage canvas").bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] * 0.505, box["y"] + box["height"] * 0.305)
        until(page, ".readout", "[30, 50] = 410")
        page.mouse.click(box["x"] + box["width"] * 0.055, box["y"] + box["height"] * 0.055)
        until(page, ".readout", "[5, 5] = NaN")


@test
def chunks_lie_over_the_picture(look: Look) -> None:
    with look.page("?view=node&path=/sparse") as page:
        page.select_option("[name=chunks]", "there")
        until(page, ".chunktable summary", "4 of 25 chunks here are stored")
        assert page.locator(".stage svg rect.chunk").count() == 25
        assert page.locator(".stage svg rect.chunk.none").count() == 21
        page.select_option("[name=chunks]", "ratio")
        page.click(".chunktable summary")
        until(page, ".chunktable", "times")
        page.select_option("[name=chunks]", "last")
        page.wait_for_selector(".chunktable th:has-text('Last commit')", state="attached")
        page.click("[name=in]")
        until(page, ".chunktable summary", "chunks here")


@test
def history_of_an_array(look: Look) -> None:
    with look.page("?view=node&path=/temperature") as page:
        page.fill("[aria-label='time, index']", "2")
        page.keyboard.press("Enter")
        until(page, ".summary", "[2,0:45,0:72]")
        page.click("details.history summary")
        expect(page.locator(".strip canvas")).to_have_count(3)
        until(page, ".history table", "Import the first six months")
        page.wait_for_selector(".history .spark")


@test
def pictures_of_other_kinds(look: Look) -> None:
    with look.page("?view=node&path=/photo") as page:
        y, x = np.mgrid[0:64, 0:96]
        wanted = np.stack([x * 2, y * 3, 255 - x], axis=-1).astype(np.uint8)
        wanted[4:8, 10:20, 1] = 255
        assert np.array_equal(pixels(page, ".stage canvas"), wanted)
        until(page, ".readout", "0, 0, 255")
        look.go(page, "?view=node&path=/cells")
        until(page, ".summary", "800 × 800 elements")
        until(page, ".summary", "level 1 of the picture")
        page.select_option("[name=chunks]", "there")
        until(page, ".chunktable summary", "16 of 16 chunks here are stored")
        for _ in range(2):
            page.click("[name=in]")
        until(page, ".summary", "400 × 400 elements of /cells at [600:1000,600:1000], every element")
        look.go(page, "?view=node&path=/series")
        assert page.locator(".plot polyline").count() >= 1
        page.locator(".plotbox input").focus()
        page.keyboard.press("ArrowRight")
        until(page, ".readout", f"[1] = {np.cos(1 / 25):.7g}")
        look.go(page, "?view=node&path=/stations")
        until(page, ".stage", "<img src=x onerror=alert(1)>")
        page.fill("[aria-label='Which element along axis 0']", "1")
        page.click("[name=blame]")
        until(page, ".blamed", "[1]: ")
        until(page, ".blamed", "Ada Lovelace")
        look.go(page, "?view=node&path=/labels")
        until(page, ".summary", "12 × 32 elements")
        page.click("[name=later]")
        until(page, ".stage tbody tr >> nth=25", "far below")
        page.click("[name=earlier]")
        until(page, ".summary", "[0:32,0:12]")
        look.go(page, "?view=node&path=/one")
        until(page, ".readout", "[] = 9007199254740993")
        look.go(page, "?view=node&path=/records")
        assert page.locator(".stage thead th").all_inner_texts() == ["axis 0", "id", "height"]
        until(page, ".stage tbody tr >> nth=0", "2.5")
        look.go(page, "?view=node&path=/time")
        until(page, ".readout", "2026-01-16 00:00:00")
        look.go(page, "?view=node&path=" + urllib.request.quote(repository.HOSTILE))
        assert pixels(page, ".stage canvas").shape == (3, 4, 3)


@test
def a_finer_picture_comes_in_parts(look: Look) -> None:
    with look.page("?view=node&path=/large") as page:
        until(page, ".summary", "1024 × 1024 elements")
        type_limits(page, "0", "5000")
        at = np.arange(0, 5120, 5)
        wanted = colours.shade((at[:, None] + at[None, :]) / 2.0, 0, 5000, colours.viridis())
        assert np.array_equal(pixels(page, ".stage canvas"), wanted)


@test
def times_are_those_of_the_command(look: Look) -> None:
    with server(look.breccia, look.long) as url, look.page(url=url) as page:
        for name, units in repository.CALENDARS.items():
            path = f"/calendars/{name}"
            said = subprocess.run([look.breccia, "read", str(look.long), path, "--decode", "--json"],
                                  capture_output=True, check=True, text=True).stdout
            wanted = [t.replace("T", " ") for t in json.loads(said)["data"]]
            raw = page.evaluate("async path => Array.from((await ask('slice', {path})).raw)", path)
            shown = page.evaluate("([units, name, raw]) => raw.map(timeOf(units, name))", [units, name, raw])
            assert shown == wanted, (name, [p for p in zip(raw, shown, wanted) if p[1] != p[2]])


# ---- two versions ----------------------------------------------------------------


@test
def two_versions(look: Look) -> None:
    with look.page("?view=diff&a=v1.0&path=/temperature") as page:
        facts = rows_of(page, "#differ table >> nth=0")
        assert facts["Elements"] == "201 changed, 0 added, 0 removed", facts
        assert facts["Differences as stored"].startswith("at most 150"), facts
        until(page, "#differ", "air temperature at 2 m")
        boxes = page.locator(".boxed button").all_inner_texts()
        assert boxes == ["[2, 10:20, 30:50] · 200 elements", "[2, 40, 2] · 1 element"], boxes
        until(page, "#differ .summary", "200 elements of them differ, by at most 1.5.")
        assert page.locator("#differ .stage canvas").count() == 3
        shown = pixels(page, "#differ .stage figure:nth-child(3) canvas")
        assert tuple(shown[15, 30]) == (140, 10, 35) and tuple(shown[0, 0]) == (247, 247, 247), shown[0, 0]
        look.shot(page, "compare", "#differ .boxed")
        page.click(".boxed button >> nth=1")
        until(page, "#differ .summary", "1 element of them differs")
        page.click("[name=whole]")
        until(page, "#differ .summary", "201 elements of them differ")
        page.select_option("[name=mode]", "wipe")
        page.locator("[name=wipe]").focus()
        page.keyboard.press("End")
        assert page.locator(".wipe canvas").nth(1).evaluate("c => c.style.clipPath").startswith("inset(0")
        page.select_option("[name=mode]", "blink")
        page.click("button:has-text('Blink')")
        expect(page.locator(".stage p span")).to_have_text("old", timeout=5000)
        expect(page.locator(".stage p span")).to_have_text("new", timeout=5000)


@test
def two_versions_by_keys(look: Look) -> None:
    with look.page("?view=diff") as page:
        tab_to(page, "[name=a]")
        page.keyboard.type("v1.0")
        tab_to(page, "form.pair button")
        page.keyboard.press("Enter")
        page.wait_for_selector("table.changes a:has-text('/temperature')")
        tab_to(page, "table.changes a[href*='temperature']")
        page.keyboard.press("Enter")
        until(page, "#differ .summary", "elements of them differ")
        tab_to(page, "#differ .stage canvas")
        page.keyboard.press("PageDown")
        until(page, "#differ .readout", "difference")


@test
def storage_and_uncommitted_changes_are_named(look: Look) -> None:
    with look.page("?view=diff&path=/sparse") as page:
        until(page, "#differ", "storage only: no value differs")
        until(page, "table.changes", "storage only")
        assert page.locator("#differ canvas").count() == 0
        look.go(page, "?view=diff&b=:uncommitted&path=/temperature")
        until(page, "#differ", "100 changed")
        until(page, "#differ .summary", "elements of them differ")
        look.go(page, "?view=diff&a=v1.0&path=/photo")
        until(page, "#differ .summary", "40 elements of them differ")
        assert tuple(pixels(page, "#differ .stage figure:nth-child(3) canvas")[4, 12]) == (140, 10, 35)
        look.go(page, "?view=diff&path=" + urllib.request.quote(repository.HOSTILE) + "&a=v1.0")
        until(page, "#differ", "added")
        until(page, "#differ", "not in this version")


# ---- sizes, elsewhere --------------------------------------------------------------


@test
def sizes(look: Look) -> None:
    with look.page() as page:
        tab_to(page, "#tabs a[href*='sizes']")
        page.keyboard.press("Enter")
        until(page, "main", "By array, over all versions")
        until(page, "main table >> nth=1", "/cells/0")
        assert page.locator("main table").nth(2).locator("tbody tr").count() == 6
        until(page, "main table >> nth=3", "newest 1")
        page.click("main table >> nth=1 >> a:has-text('/photo')")
        until(page, ".summary", "96 × 64 elements of /photo")


@test
def open_elsewhere(look: Look) -> None:
    with look.page() as page:
        page.click(".tree a:has-text('temperature')")
        page.wait_for_selector("#viewer canvas")
        tab_to(page, "#tabs a[href*='open']")
        page.keyboard.press("Enter")
        until(page, "main", "gdalinfo")
        url = page.locator("code.url").inner_text()
        with urllib.request.urlopen(url + "/zarr.json") as reply:
            assert json.load(reply)["shape"] == [6, 45, 72]
        assert "zarr3%3A%2F%2F" in (page.get_attribute("#neuroglancer", "href") or "")
        assert "source=http" in (page.get_attribute("#vizarr", "href") or "")
        assert page.locator("main pre").count() == 6


# ---- what no page may do ---------------------------------------------------------------


@test
def axe_finds_nothing(look: Look) -> None:
    for scheme in ("light", "dark"):
        with look.page(color_scheme=scheme) as page:
            for query in VIEWS:
                look.go(page, query)
                if "temperature" in query and "node" in query:
                    page.select_option("[name=chunks]", "last")
                    page.wait_for_selector(".chunktable", state="attached")
                    # The table of chunks comes anew with each picture, so that the summaries cannot be clicked by number.
                    page.evaluate("document.querySelectorAll('.viewer details').forEach(e => { e.open = true; })")
                    page.wait_for_selector(".history table")
                page.evaluate(look.axe)
                result = page.evaluate("async () => (await axe.run()).violations.map("
                                       "v => `${v.id}: ${v.help}: ${v.nodes[0].html}`)")
                assert result == [], (scheme, query, result)


@test
def narrow_and_wide(look: Look) -> None:
    for width in (320, 2560):
        with look.page(width=width, height=700) as page:
            for query in VIEWS:
                look.go(page, query)
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (width, query, wide)
                small = page.evaluate("""[...document.querySelectorAll('button, input, select, #tabs a')]
                    .filter(e => e.offsetParent && Math.min(e.getBoundingClientRect().height,
                        e.getBoundingClientRect().width) < 20).map(e => e.outerHTML.slice(0, 100))""")
                assert small == [], (width, query, small)
            if width == 320:
                look.go(page, "?view=node&path=/temperature&rev=main~3")
                page.wait_for_selector(".stage canvas")
                look.shot(page, "narrow", "main")


@test
def dark_and_calm(look: Look) -> None:
    with look.page("?view=node&path=/temperature&rev=main~3", color_scheme="dark", reduced_motion="reduce") as page:
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, back[4:-1].split(","))) < 60, back
        page.fill("[aria-label='time, index']", "2")
        page.keyboard.press("Enter")
        until(page, ".summary", "[2,0:45,0:72]")
        page.select_option("[name=chunks]", "last")
        page.wait_for_selector(".chunktable", state="attached")
        look.shot(page, "array", "main")
        look.go(page, "?view=diff&a=v1.0&path=/temperature")
        page.select_option("[name=mode]", "blink")
        page.click("button:has-text('Swap')")
        until(page, ".stage p", "new")
        page.wait_for_timeout(1800)
        until(page, ".stage p", "new")


@test
def without_a_script(look: Look) -> None:
    with look.page(java_script_enabled=False) as page:
        assert page.locator("#rows li").count() == 6
        assert page.locator(".tree a").count() == 18
        until(page, "main table", "Commits")
        assert not page.locator("#tree-filter").is_visible()
        page.click(".tree a:has-text('temperature')")
        until(page, "main", "First elements")
        page.click("#rows li >> nth=4 >> .pick")
        until(page, "table.changes", "/temperature")
        page.fill("#filter", "March")
        page.click("#timeline button")
        assert page.locator("#rows li").count() == 1
        look.go(page, "?view=sizes", False)
        until(page, "main", "By commit")


@test
def names_of_others_are_text(look: Look) -> None:
    with look.page() as page:
        until(page, ".tree", "<script>alert('path')<")
        until(page, "#rows", "<script>alert('author')</script>")
        until(page, "#rows", "<img src=x onerror=alert('message')>")
        assert page.locator("main img, #rows img, #rows script, .tree script").count() == 0
        page.click(".msg:has-text('onerror')")
        page.wait_for_selector("body[data-ready]")
        until(page, "main", "<img src=x onerror=alert('message')>")
        assert page.locator("script").count() == 1


@test
def errors_are_told(look: Look) -> None:
    before = list(look.faults)
    with look.page("?view=diff&a=nothing") as page:
        until(page, "main", "nothing")
    with look.page("?view=node&path=/temperature") as page:
        page.route("**/api/slice*", lambda route: route.fulfill(status=413, body='{"error": "too much"}'))
        page.click("[name=in]")
        until(page, ".summary", "too much")
    look.faults = before  # the browser reports the answers that this test made


# ---- running -----------------------------------------------------------------------------


@contextmanager
def server(breccia: str, *files: pathlib.Path) -> Iterator[str]:
    process = subprocess.Popen([breccia, "serve", *map(str, files)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        line = process.stdout.readline()
        yield line[line.index("http"):].split()[0]
    finally:
        process.terminate()
        process.wait(10)


def run(look: Look, names: list[str]) -> int:
    passed = failed = 0
    for one in TESTS:
        if names and one.__name__ not in names:
            continue
        look.faults = []
        try:
            one(look)
            assert not look.faults, look.faults
            passed += 1
        except Exception:
            failed += 1
            print(f"{one.__name__}:", traceback.format_exc(limit=3), look.faults[:5], sep="\n")
    print(f"{passed} passed, {failed} failed")
    return failed


def main() -> int:
    breccia, axe, shots, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        files = [make(breccia, pathlib.Path(folder)) for make in (repository.build, repository.build_long)]
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=root)
        look = Look(browser, breccia, files, pathlib.Path(axe).read_text(), pathlib.Path(shots))
        with server(breccia, look.file) as look.url:
            failed = run(look, names)
        browser.close()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
