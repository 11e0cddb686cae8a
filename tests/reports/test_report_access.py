# SPDX-License-Identifier: Apache-2.0
"""Every report for everybody: keys, screen readers (axe-core), color blindness, dark mode, paper; and the mouse in
the figures of comparisons, experiments and labs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import SAMPLES
from color_sight import SIGHTS, Color, ciede2000, contrast, difference, from_hex
from page_faults import violations
from report_makers import REPORTS
from report_page import VIEW, Page, Point, loneliest
from wiretale.reports.html import figures

pytestmark = pytest.mark.xdist_group("report-access")

STOPS_MOST = 38
PAPER_PX = 703  # A4 less margins of 12 mm, at 96 dots an inch
LIMITS = tuple(f"part-{name}" for name in ("client", "server", "network", "network-deep", "transfer", "transfer-deep"))
DIFFERENT = 20
PAGES_MOST = 8
SCHEMES = ("light", "dark")
PAPERS = {"light": "#ffffff", "dark": "#10161c"}
# Windows, themes, and the rules of axe-core that depend on them.
LOOKS: tuple[tuple[int, int, str, tuple[str, ...]], ...] = (
    (1440, 900, "light", ()),
    (1440, 900, "dark", ("color-contrast",)),
    (390, 844, "light", ("scrollable-region-focusable", "target-size")),
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each kind."""
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in REPORTS.items()}


@pytest.fixture(scope="module", params=REPORTS)
def tab(request: pytest.FixtureRequest, browser: Any, reports: dict[str, Path]) -> Iterator[Page]:
    """Each report, open."""
    tab = browser.new_page(viewport=VIEW)
    tab.set_default_timeout(90_000)
    yield Page(tab).open(reports[request.param])
    tab.close()


def window(page: Page, width: int, height: int, scheme: str = "light") -> Page:
    """The report on a screen in a window of this size, as soon as its figures fit."""
    page.page.set_viewport_size({"width": width, "height": height})
    page.page.emulate_media(color_scheme=scheme, media="screen")
    page.until(f"document.documentElement.className === '' && {LEGENDS}.every(([, , , more]) => more === 0)", 20)
    return page


@pytest.fixture
def opened(tab: Page) -> Page:
    """Each report, whatever the test before did with its window."""
    return window(tab, VIEW["width"], VIEW["height"])


def plots(page: Page) -> list[str]:
    """Ids of the plots."""
    identifiers: list[str] = page.page.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot')].map(plot => plot.id)"
    )
    return identifiers


# --- the mouse in every figure


def numbers_in(tooltip: str) -> list[float]:
    """Numbers as pages write them, 1,234, 976.5k and 62.3 kB, with the prefix taken as part of the number and of its unit."""
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "m": 1e-3, "µ": 1e-6}
    pairs = re.findall(r"(-?\d[\d,]*\.?\d*) ?([kMGmµ]?)B?(?![A-Za-z])", tooltip.replace("−", "-").replace("bit/s", ""))
    return [float(number.replace(",", "")) * factor for number, unit in pairs for factor in (1, scale[unit])]


def shows(tooltip: str, point: Point, points: list[Point]) -> bool:
    """Whether a tooltip has the value of a point, or of the next one of its line: the nearest packet may be in that one's bin."""
    line = sorted((each for each in points if each.trace == point.trace), key=lambda each: each.x)
    at = line.index(point)
    values = [each.value for each in line[max(at - 1, 0) : at + 2] if each.value is not None]
    return any(abs(number - value) <= 0.02 * abs(value) + 1e-6 for number in numbers_in(tooltip) for value in values)


def test_every_panel_answers_the_mouse(opened: Page) -> None:
    for plot in plots(opened):
        if plot.startswith("sankey"):
            continue
        points = opened.drawn(plot)
        assert points, plot
        for panel in {point.panel for point in points}:
            in_panel = [point for point in points if point.panel == panel]
            (point,) = loneliest(in_panel, 1)
            tooltip = opened.hover(point, plot)
            assert tooltip, (plot, point)
            if point.value is not None:
                assert shows(tooltip, point, in_panel), (plot, point, tooltip)
    assert opened.complaints == []


def test_stages_and_losses_of_a_diagram_answer_the_mouse(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["compare"])
    page.page.evaluate("document.getElementById('sankey0').scrollIntoView()")
    areas = page.page.evaluate(
        "[...document.querySelectorAll('#sankey0 .js-fill')].map(area => area.getBoundingClientRect())"
        ".map(box => [box.x + box.width / 2, box.y + box.height / 2])"
    )
    texts, tooltip = set(), "document.querySelector('#sankey0 .hoverlayer').textContent"
    for x, y in areas:
        page.page.mouse.move(2, 2)
        page.until(f"!{tooltip}")
        page.page.mouse.move(x, y, steps=2)
        texts.add(page.until(tooltip))
    words = " ".join(texts)
    assert "600" in words and "went on" in words and "lost" in words


def test_every_trial_can_be_shown_and_the_chosen_button_is_pressed(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["experiment"])
    medians, per_trial = (
        page.page.locator(".choices button", has_text=text).first for text in ("medians", "per trial")
    )
    assert medians.get_attribute("aria-pressed") == "true" and per_trial.get_attribute("aria-pressed") == "false"
    lines = "document.querySelectorAll('#figure-1 .scatterlayer .js-line').length"
    drawn = page.page.evaluate(lines)
    per_trial.click()
    page.until(f"{lines} > {drawn}")
    assert medians.get_attribute("aria-pressed") == "false" and per_trial.get_attribute("aria-pressed") == "true"


# --- keys


def test_a_report_has_few_tab_stops(page: Page, opened: Page) -> None:
    page.visit(opened)
    seen = (
        "((e, all) => { if (e === document.body) return 0; if (all.has(e)) return -1; all.add(e); return all.size; })"
    )
    page.page.evaluate("window.stops = new Set()")
    stops = 0
    while stops <= STOPS_MOST:
        page.page.keyboard.press("Tab")
        if page.page.evaluate(f"{seen}(document.activeElement, window.stops)") <= 0:
            break
        stops += 1
    assert 0 < stops <= STOPS_MOST
    kinds = page.page.evaluate("[...window.stops].map(e => e.tagName + '.' + e.className)")
    assert any("js-plotly-plot" in kind for kind in kinds), kinds


def test_rows_are_reached_by_arrows_and_the_plot_by_keys(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["analyze"])
    focused = "document.activeElement.dataset.flow"
    page.page.focus("#find")
    for _ in range(40):
        page.page.keyboard.press("Tab")
        if page.page.evaluate(focused):
            break
    first = page.page.evaluate(focused)
    page.page.keyboard.press("ArrowDown")
    second = page.page.evaluate(focused)
    assert first and second and first != second
    page.page.keyboard.press("Enter")
    page.until(f"document.body.dataset.flow === '{second}'")
    for _ in range(10):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "plot":
            break
    before = page.range()
    page.page.keyboard.press("+")
    page.until("location.hash.includes('&t=')")
    start, end = page.range()
    assert end - start == pytest.approx((before[1] - before[0]) / 2)
    frames = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageDown"):
        page.page.keyboard.press(key)
        frames.append(page.page.evaluate("Number(document.querySelector('.cross-tip b').textContent.slice(6))"))
    order = page.page.evaluate("Array.from(taken.order, row => tables.packets.frame[row])")
    places = [order.index(frame) for frame in frames]
    assert [place - places[0] for place in places[:3]] == [0, 1, 0]
    assert places[3] == min(len(order) - 1, places[0] + 25)
    page.page.keyboard.press("Escape")
    assert page.page.locator(".cross-tip").count() == 0
    start, end = page.range()
    page.page.keyboard.press("Shift+ArrowRight")
    page.until(f"document.getElementById('plot')._fullLayout.xaxis.range[0] > {start}")
    assert page.range()[0] == pytest.approx(start + (end - start) / 4)
    page.page.keyboard.press("0")
    page.until(f"location.hash === '#flow={second}'")
    assert page.range() == pytest.approx(before)


def focus_of(page: Page) -> str:
    """The element with the focus: its id, or its name."""
    return str(page.page.evaluate("document.activeElement.id || document.activeElement.tagName"))


def test_a_slash_begins_a_search(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["analyze"], "#flow=7&find=10.1.0")
    page.page.focus("#plot")
    page.page.keyboard.press("/")
    assert focus_of(page) == "find" and page.page.input_value("#find") == "10.1.0"
    page.page.keyboard.type("a/b?")  # in the search, it is a letter, and replaces what is there
    assert page.page.input_value("#find") == "a/b?" and not page.page.evaluate("document.getElementById('keys').open")


def test_a_question_mark_lists_the_keys(opened: Page) -> None:
    page = opened
    place = page.page.evaluate("document.querySelector('.js-plotly-plot[tabindex]').id")
    page.page.focus(f"#{place}")
    before = page.hash()
    for key in ("Escape", "?", "Enter"):
        page.page.keyboard.press("?")
        listed = page.page.get_by_role("dialog", name="Keys")
        assert listed.is_visible() and "?" in listed.inner_text()
        for _ in range(3):  # the focus stays inside
            assert page.page.evaluate("document.getElementById('keys').contains(document.activeElement)")
            page.page.keyboard.press("Shift+Tab")
            if focus_of(page) == "BODY":  # the browser itself is between the last and the first stop
                page.page.keyboard.press("Shift+Tab")
        for other in ("n", "/", "ArrowRight", "0"):
            page.page.keyboard.press(other)
        assert listed.is_visible() and page.hash() == before
        page.page.keyboard.press(key)
        page.until("!document.getElementById('keys').open", 5)
        assert focus_of(page) == place
    page.page.locator(".show-keys").first.click()
    assert listed.is_visible()
    page.page.mouse.click(3, 3)  # beside it
    assert not listed.is_visible() and page.complaints == []


def test_the_listed_keys_are_those_of_the_page(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["analyze"])
    page.page.keyboard.press("?")
    page.page.keyboard.press("Escape")
    opened = page.page.evaluate("choice.finding")
    page.page.keyboard.press("n")
    first = page.until(f"choice.finding > {opened} && choice.finding")
    page.page.keyboard.press("n")
    page.until(f"choice.finding > {first}")
    page.page.keyboard.press("p")
    page.until(f"choice.finding === {first}")
    frame = page.page.evaluate("choice.frame")
    page.page.focus("#plot")
    page.page.keyboard.press("PageDown")
    page.page.keyboard.press("Enter")
    page.until(f"choice.frame !== {frame}")
    frame = page.page.evaluate("choice.frame")
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("Enter")
    page.until(f"choice.frame < {frame}")


# --- screen readers


def test_axe_finds_nothing(opened: Page) -> None:
    for width, height, scheme, rules in LOOKS:
        assert violations(window(opened, width, height, scheme), rules) == [], (width, scheme)


# --- colors


def test_differences_of_colors_are_those_of_the_formula() -> None:
    """Pairs 1, 7, 17 and 25 of the test data of Sharma, Wu, Dalal."""
    assert ciede2000((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert ciede2000((50, 0, 0), (50, -1, 2)) == pytest.approx(2.3669, abs=1e-4)
    assert ciede2000((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)
    assert ciede2000((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)) == pytest.approx(1.2644, abs=1e-4)


def color_of(page: Page, kind: str) -> Color:
    """The color that the page gives a part of the time account."""
    text = page.page.evaluate(
        "kind => { const part = document.createElement('span'); part.className = kind;"
        " document.body.append(part); const color = getComputedStyle(part).backgroundColor;"
        " part.remove(); return color; }",
        kind,
    )
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", text)[:3])
    return red, green, blue


def test_the_color_blind_can_distinguish_limits(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["analyze"])
    papers = set()
    for scheme in SCHEMES:
        page.page.emulate_media(color_scheme=scheme)
        papers.add(page.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        colors = {kind: color_of(page, kind) for kind in LIMITS}
        if scheme == "dark":  # on white, light ones have an edge
            assert min(contrast(color, from_hex(PAPERS[scheme])) for color in colors.values()) >= 3, colors
        for sight in SIGHTS:
            for first, second in combinations(LIMITS, 2):
                assert difference(colors[first], colors[second], sight) >= DIFFERENT, (scheme, sight, first, second)
    assert len(papers) == len(SCHEMES)


def test_colors_of_figures_are_those_of_the_page_and_stand_out_from_either_paper(
    page: Page, reports: dict[str, Path]
) -> None:
    page.open(reports["compare"])
    written = [figures.SENDER, figures.RECEIVER, figures.NETWORK, figures.SERVER, figures.MUTED, *figures.SEVERAL]
    for scheme, paper in PAPERS.items():
        page.page.emulate_media(color_scheme=scheme)
        painted = page.page.evaluate("colors => inOwnColors(colors)", written)
        for before, color in zip(written, painted, strict=True):
            assert contrast(from_hex(color), from_hex(paper)) >= 3, (scheme, before, color)
        assert (painted == written) == (scheme == "light") and len(set(painted)) == len(written)


def test_tables_of_pages_of_several_captures_fit_a_phone(page: Page, reports: dict[str, Path]) -> None:
    for name in ("compare", "diff", "experiment", "sessions", "lab"):
        window(page.open(reports[name]), 390, 844)
        wide = "[...document.querySelectorAll('table')].filter(one => one.scrollWidth > one.parentElement.clientWidth).length"
        assert page.page.evaluate(f"document.querySelectorAll('table').length > 0 && {wide}") == 0, name


def test_frames_and_flows_of_two_captures_open_in_their_reports(page: Page, reports: dict[str, Path]) -> None:
    folder = reports["compare"].parent
    wiretale.analyze(folder / "sender.pcap").report(folder / "sender.html")
    page.open(reports["compare"]).page.locator("a[href='sender.html#frame=6']").click()
    page.until("document.body.dataset.ready && document.getElementById('h-frame').textContent === 'Frame 6'")
    wiretale.analyze(SAMPLES / "timeouts.pcap").report(reports["diff"].parent / "timeouts.html")
    page.open(reports["diff"], "#flow=1&t=0.1-0.5")
    address = page.page.locator("#packets a").get_attribute("href")
    assert re.fullmatch(r"timeouts\.html#flow=\d&t=0\.1-0\.5", address)
    page.page.locator(".signed a").first.click()
    page.until(
        "document.body.dataset.ready && location.hash.includes('finding=') && document.querySelector('.finding.on')"
    )


def test_a_page_begins_with_its_answer_and_names_no_folder(reports: dict[str, Path]) -> None:
    answers = {
        "compare": "Blocks of run 31, sender → receiver: 90 of 600 (15%) did not arrive",
        "diff": "B is slower",
        "experiment": "udp+12 was fastest at",
        "lab": "narrow: latency is not as published.",
    }
    for name, path in reports.items():
        text = path.read_text().partition('<script type="application/octet-stream"')[0]
        head = text.partition('<h1 id="answer">')[2].partition("</h1>")[0]
        assert head and answers.get(name, "") in head
        assert str(path.parent) not in text and str(Path.home()) + "/" not in text, name


def test_a_dark_page_has_no_white_buttons(page: Page, reports: dict[str, Path]) -> None:
    page.page.emulate_media(color_scheme="dark")
    page.open(reports["experiment"])
    assert page.page.locator(".updatemenu-button").count() == 0
    script = "[...document.querySelectorAll('button, .modebar')].map(b => getComputedStyle(b).backgroundColor)"
    for text in page.page.evaluate(script):
        red, green, blue, *alpha = (float(part) for part in re.findall(r"[\d.]+", text))
        assert alpha == [0] or min(red, green, blue) < 200, text
    pressed, other = (
        page.page.evaluate(
            f"getComputedStyle(document.querySelector('.choices [aria-pressed={state}]')).backgroundColor"
        )
        for state in ("true", "false")
    )
    assert pressed != other


# --- paper


def test_paper_has_all_of_every_time_axis(opened: Page) -> None:
    page = window(opened, PAPER_PX, 1000)
    wide = page.page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.width")
    page.page.emulate_media(media="print")
    page.until("[...document.querySelectorAll('.js-plotly-plot')].every(plot => plot._fullLayout.width === 680)", 20)
    parts = page.page.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot .main-svg, .xtick text, table, #timeline svg')]"
        ".map(e => e.getBoundingClientRect())"
        ".map(box => [box.left, box.right, box.height])"
    )
    assert parts and all(left >= -1 and right <= PAPER_PX + 1 for left, right, height in parts if height)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= PAPER_PX
    assert (
        page.page.evaluate("document.querySelector('main').getBoundingClientRect().width") == 680
    )  # as wide as the figures
    assert all(right <= 681 for left, right, height in parts if height)
    page.page.emulate_media(media="screen")
    page.until(f"document.querySelector('.js-plotly-plot')._fullLayout.width === {wide}", 20)


def test_paper_names_the_rows_that_it_leaves_out_only_where_it_does(opened: Page) -> None:
    page = opened
    page.page.emulate_media(media="print")
    page.until("document.documentElement.className === 'paper'")
    for cut, named in page.page.evaluate(
        "[...document.querySelectorAll('.printed')].map(note => [note.closest('section').querySelectorAll('tbody tr')"
        ".length > 40, note.checkVisibility()])"
    ):
        assert named == cut


# --- windows of another size

# Of every figure: whether its legend ends above its panels, and whether it is as wide as its place.
LEGENDS = """[...document.querySelectorAll('.js-plotly-plot')].map(plot => {
  const legend = plot.querySelector('.legend')?.getBoundingClientRect(), top = plot.getBoundingClientRect().y;
  return [plot.id, legend ? legend.bottom - top : 0, plot._fullLayout._size.t, plot._fullLayout.width - plot.clientWidth];
})"""


def check_legends(page: Page) -> None:
    """No legend covers data."""
    for plot, legend, panels, _ in page.page.evaluate(LEGENDS):
        assert legend <= panels, (plot, legend, panels)


@pytest.mark.parametrize("width", [1280, 390])
def test_printing_takes_few_pages_and_legends_keep_off_the_data(opened: Page, width: int) -> None:
    page = window(opened, width, 900)
    check_legends(page)
    page.page.evaluate(
        f"window.widths = []; window.legends = null; addEventListener('beforeprint', () => {{ window.legends = {LEGENDS}; }});"
        "new MutationObserver(() => window.widths.push("
        "[...document.querySelectorAll('.js-plotly-plot')].map(plot => plot._fullLayout.width)"
        ")).observe(document.documentElement, {attributes: true})"
    )
    pdf = page.page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= PAGES_MOST
    assert [680] * len(plots(page)) in page.page.evaluate("window.widths")
    for plot, legend, panels, _ in page.until("window.legends"):
        assert legend <= panels, (plot, legend, panels)
    page.until("document.documentElement.className === ''", 10)
    check_legends(page)


def test_figures_follow_the_width_of_the_window(opened: Page) -> None:
    for width in (700, 390, 1280):
        window(opened, width, 900)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        check_legends(opened)
    assert opened.complaints == []


def test_a_phone_shows_whole_names_in_the_legends_of_a_comparison(page: Page, reports: dict[str, Path]) -> None:
    page.page.set_viewport_size({"width": 360, "height": 800})
    page.open(reports["compare"])
    ends = page.page.evaluate(
        "[...document.querySelectorAll('.legendtext')].map(name => [name.textContent, name.getBoundingClientRect().right,"
        " name.closest('.js-plotly-plot').getBoundingClientRect().right])"
    )
    assert ends and all(right <= place for _, right, place in ends), ends
