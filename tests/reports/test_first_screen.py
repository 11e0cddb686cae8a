# SPDX-License-Identifier: Apache-2.0
"""The first screen of a capture's report: the answer, the timeline and its brush, the findings by cause, the flows."""

from __future__ import annotations

import base64
import gzip
import re
from array import array
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import SAMPLES
from color_sight import SIGHTS, Color, contrast, difference, from_hex
from one_queue import through_one_queue
from plain_wire import Connection, Wire
from report_page import Page
from seen_words import seen_words
from wiretale.reports.html.finding_rows import finding_rows
from wiretale.reports.html.first_screen import findings
from wiretale.reports.html.offline_page import with_code
from wiretale.reports.html.timeline import bin_width, timeline
from wiretale.reports.time_account import time_account

pytestmark = pytest.mark.xdist_group("first-screen")


DESK = {"width": 1440, "height": 900}
FLOWS = 3000
DIFFERENT = 22  # CIEDE2000
ALIKE = (("server", "network", "client", "transfer"), ("sender", "receiver", "network", "accent"))


def fifty_flows(path: Path) -> Path:
    """Fifty flows through one full queue."""
    wire, _ = through_one_queue(50, 40e6, 100, 3.0)
    return wire.write(path)


def many_flows(path: Path) -> Path:
    """Connections of few packets, of which one in a hundred has a timeout."""
    wire = Wire()
    for number in range(FLOWS):
        ends = (f"10.1.{number // 250}.{number % 250 + 1}", f"10.2.0.{number % 5 + 1}")
        talk = Connection(wire, port=20000 + number, ends=ends).open(number * 1.0)
        for at in (30.0, 430.0) if number % 100 == 5 else (30.0,):
            talk.data(number + at, 0, 1400)
        talk.ack(number + at + 20.0, 1400)
    return wire.write(path)


CAPTURES = {
    "one": lambda path: SAMPLES / "tcp_losses.pcap",
    "fifty": fifty_flows,
    "many": many_flows,
}


@pytest.fixture(scope="module", params=CAPTURES)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[wiretale.Trace, Path]:
    """Captures of one flow, of fifty and of thousands, with their reports."""
    folder = tmp_path_factory.mktemp(request.param)
    trace = wiretale.analyze(CAPTURES[request.param](folder / "capture.pcap"))
    return trace, trace.report(folder / "report.html")


def test_the_list_of_findings_skips_no_number() -> None:
    trace = wiretale.analyze(SAMPLES / "tcp_losses.pcap", SAMPLES / "timeouts.pcap")
    listed = findings(trace, finding_rows(trace, 0, served=False))
    numbers = [member["number"] for entry in (*listed["causes"], *listed["others"]) for member in entry["members"]]
    assert sorted(numbers) == list(range(1, len(trace.findings) + 1))


def test_what_heads_the_page_is_told_once_even_with_what_else_happened() -> None:
    """A note is followed by what happened, and several of one kind by how many there are."""
    longer = 0
    for path in sorted(SAMPLES.rglob("*.pcap*")):
        trace = wiretale.analyze(path)
        sentences = [entry["sentence"] for entry in findings(trace, finding_rows(trace, 0, served=False))["causes"]]
        assert not any(sentence and sentence in trace.answer.sentence for sentence in sentences), path
        longer += bool(sentences) and sentences[0] == "" and trace.answer.sentence.count(". ") > 0
    assert longer >= 3


@pytest.fixture
def desk(page: Page, report: tuple[wiretale.Trace, Path]) -> Iterator[Page]:
    """The report of each, in a window of 1440 × 900."""
    page.page.set_viewport_size(DESK)
    yield page.open(report[1])
    assert page.complaints == []


def box(page: Page, selector: str) -> dict[str, float]:
    corners: dict[str, float] = page.page.locator(selector).bounding_box()
    return corners


def drag_over(page: Page, start: float, end: float) -> None:
    """Drags over shares of the timeline with the mouse."""
    place = box(page, "#timeline")
    left, width, y = place["x"] + 52, place["width"] - 52, place["y"] + 30
    page.drag((left + start * width, y), (left + end * width, y))


def span(page: Page) -> tuple[float, float]:
    """The range of the link, in seconds."""
    matched = re.search(r"[#&]t=([-\d.]+?)-([\d.]+)", page.hash())
    assert matched, page.hash()
    return float(matched[1]), float(matched[2])


def test_the_answer_fits_the_first_screen(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    """With the widest common font, DejaVu Sans."""
    desk.page.add_style_tag(content="body { font-family: 'DejaVu Sans' !important; }")
    assert desk.page.inner_text("#answer") == report[0].answer.sentence
    account = time_account(report[0])
    with_time = ["#time"] if account else []
    for selector in ("#answer", ".judged", "#traffic", *with_time, "#findings", "#flow-list"):
        place = box(desk, selector)
        assert place["height"] > 0 and place["y"] >= 0 and place["y"] + place["height"] <= 900, (selector, place)
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= DESK["width"]
    assert desk.page.inner_text("main").count(report[0].answer.sentence) == 1
    assert (
        desk.page.evaluate("traffic.first") == 0
    )  # times on the page count from the first packet, as those of the timeline
    assert account is None or desk.page.inner_text("#time .sub").startswith(account.base)  # as in the terminal
    listed = desk.page.locator(".finding:not([data-late])").count()
    assert 1 <= listed <= 5 and desk.page.locator(".finding").count() <= 10


def test_a_report_names_no_folder_of_its_maker(report: tuple[wiretale.Trace, Path]) -> None:
    text, path = report[1].read_text("utf-8"), Path(report[0].inputs[0])
    assert path.is_absolute() and str(path.parent) not in text and f"wiretale cut {path.name}" in text


def test_the_default_flow_is_that_of_the_first_finding(desk: Page) -> None:
    numbers = [int(link.get_attribute("data-show")) for link in desk.page.locator(".finding .cost [data-show]").all()]
    flows = [desk.page.evaluate(f"data.findings[{number - 1}].cited_flow") for number in numbers]
    first = next((flow for flow in flows if flow is not None), 0)
    assert int(desk.page.evaluate("document.body.dataset.flow")) == first


def stalled(path: Path, moments: tuple[int, ...]) -> Path:
    """A transfer of 200 segments, some of which come again after 400 ms."""
    wire, now = Wire(), 30.0
    talk = Connection(wire, port=20000).open(0.0)
    for number in range(200):
        talk.data(now, 1400 * number, 1400)
        if number in moments:
            now += 400.0
            talk.data(now, 1400 * number, 1400)
        talk.ack(now + 20.0, 1400 * (number + 1))
        now += 25.0
    return wire.write(path)


@pytest.mark.parametrize("moments", [(100,), (50, 150)])
def test_a_page_opens_at_a_single_span_or_at_the_whole_flow(
    page: Page, tmp_path: Path, moments: tuple[int, ...]
) -> None:
    trace = wiretale.analyze(stalled(tmp_path / "stalled.pcap", moments))
    page.open(trace.report(tmp_path / "report.html"))
    seen = page.page.evaluate("choice.range")
    again = [0.001 * (30 + 25 * number + 400 * (place + 1)) for place, number in enumerate(moments)]
    if len(moments) == 1:
        assert seen and seen[0] < again[0] - 0.4 and again[0] < seen[1] and seen[1] - seen[0] < 2
    else:
        assert seen is None
    shapes = page.page.evaluate("document.getElementById('plot')._fullLayout.shapes.map(({ name, x0 }) => [name, x0])")
    marks = [x for name, x in shapes if name == "cited"]
    assert all(any(x == pytest.approx(time) for x in marks) for time in again), (marks, again)
    assert page.page.inner_text("#shown") == "Cause 1: Losses at the end of a burst"


def test_the_brush_chooses_a_range_and_back_undoes_it(desk: Page) -> None:
    start, end = desk.page.evaluate("[traffic.from, traffic.to]")
    desk.whole_flow()
    before = desk.hash()
    drag_over(desk, 0.25, 0.5)
    low, high = span(desk)
    pixel = (end - start) / 1000
    assert low == pytest.approx(start + (end - start) / 4, abs=2 * pixel)
    assert high == pytest.approx(start + (end - start) / 2, abs=2 * pixel)
    assert desk.range() == pytest.approx([low, high])
    edges = box(desk, "#brush")
    assert edges["width"] == pytest.approx((box(desk, "#timeline")["width"] - 52) / 4, abs=12)  # with its grips
    drag_over(desk, 0.5, 0.75)  # from its right edge
    assert span(desk) == pytest.approx((low, start + 0.75 * (end - start)), abs=2 * pixel)
    desk.page.go_back()
    desk.until(f"document.getElementById('timeline').dataset.range === '{low} {high}'")
    desk.page.go_back()
    desk.until(f"location.hash === '{before}'")
    assert not desk.page.is_visible("#brush")


def test_the_brush_answers_keys(desk: Page) -> None:
    start, end = desk.page.evaluate("[traffic.from, traffic.to]")
    desk.whole_flow()
    desk.page.focus("#timeline")
    desk.page.keyboard.press("+")
    desk.until("location.hash.includes('t=')")
    low, high = span(desk)
    assert high - low == pytest.approx((end - start) / 2)
    desk.page.keyboard.press("ArrowRight")
    desk.until(f"!location.hash.includes('t={low:g}-')")
    assert span(desk)[1] - span(desk)[0] == pytest.approx(high - low) and span(desk)[0] > low
    desk.page.keyboard.press("0")
    desk.until("!location.hash.includes('t=')")


def test_a_pin_shows_its_finding(desk: Page) -> None:
    pins = desk.page.locator("#pins .pin")
    assert pins.count() >= 1
    edges = sorted((place["x"], place["x"] + place["width"]) for pin in pins.all() if (place := pin.bounding_box()))
    assert all(left[1] <= right[0] for left, right in pairwise(edges))  # none covers another
    listed = desk.page.locator(".finding > .pin").all_inner_texts()
    assert listed == [str(place) for place in range(1, len(listed) + 1)]  # in the order of the list
    place = pins.first.get_attribute("data-finding")
    at, line = pins.first.bounding_box(), box(desk, "#pins .pin-span >> nth=0")
    first, last, edge = desk.page.evaluate(
        "number => { const {from, to} = data.findings[number - 1];"
        " const left = document.getElementById('timeline').getBoundingClientRect().x;"
        " return [from, to ?? from, traffic.to].map(time => trafficX(time) + left); }",
        int(place),
    )
    assert at["x"] + at["width"] / 2 == pytest.approx(min(first, edge - 14), abs=1)  # at the first frame
    assert [line["x"], line["x"] + line["width"]] == pytest.approx([first, max(first + 2, last)], abs=1)
    desk.page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    desk.until("location.hash.includes('finding=')")
    number = re.search(r"finding=(\d+)", desk.hash())
    numbers = desk.page.get_attribute(f"#cause-{place}", "data-numbers").split()
    assert number and number[1] in numbers
    assert desk.page.locator(".finding.on").get_attribute("id") == f"cause-{place}"
    assert desk.page.locator(".finding.on > .pin").inner_text() == pins.first.inner_text()
    assert box(desk, "#flow-view")["y"] < 450


def test_groups_hold_every_flow_and_the_search_reaches_all(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    flows = report[0].flows
    for group, column in (("client", "source"), ("server", "destination"), ("port", "destination_port")):
        desk.page.click(f"[data-group='{group}']")
        desk.until(f"location.hash.includes('group={group}')")
        counts = desk.page.evaluate(
            "groupsOf(listedRows(), GROUPINGS[choice.group]).map(one => [one.rows.length, one.bytes])"
        )
        assert sum(count for count, _ in counts) == len(flows)
        assert sum(size for _, size in counts) == sum(flows.column("wire_bytes"))
        assert len(counts) == len(set(flows.column(column)))
    last = flows.rows(len(flows) - 1)[0]
    desk.page.fill("#find", f"{last['source']}:{last['source_port']}")
    desk.until("document.querySelectorAll('#groups tr.group').length === 1")
    desk.page.click("#groups tr.group")
    desk.page.click(f"#groups tr[data-flow='{len(flows) - 1}']")
    desk.until(f"document.body.dataset.flow === '{len(flows) - 1}'")
    while re.search("group=|find=", before := desk.hash()):
        desk.page.go_back()
        desk.until(f"location.hash !== {before!r}")
    desk.until("!document.getElementById('flows').hidden")
    assert desk.page.input_value("#find") == "" and desk.page.is_visible("#flows")


def test_the_list_says_whose_time_its_bars_show(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    timed, flows = len(report[0].transfers.turns.waiting), len(report[0].flows)
    note = desk.page.locator("#times-note")
    assert note.is_visible() == (0 < timed < flows)
    if note.is_visible():
        assert f"of {timed:,} of {flows:,} flows" in note.inner_text()


def test_paper_has_ten_findings_in_full_and_closes_them_afterwards(
    desk: Page, report: tuple[wiretale.Trace, Path]
) -> None:
    visible = "[...document.querySelectorAll('#findings .evidence')].filter(one => one.checkVisibility()).length"
    for event, media in (("beforeprint", "print"), ("afterprint", "screen")):
        desk.page.evaluate(f"dispatchEvent(new Event('{event}'))")
        desk.page.emulate_media(media=media)
        desk.until(f"document.documentElement.classList.contains('paper') === {str(media == 'print').lower()}")
        if media == "print":
            assert 1 <= desk.page.evaluate(visible) <= 10
            printed = desk.page.evaluate(
                "[...document.querySelectorAll('#findings .brief')].map(one => one.checkVisibility())"
            )
            assert all(printed) and len(printed) >= len(report[0].findings) - 10
    assert desk.page.evaluate(visible) == 0 and desk.page.locator("#findings details[open]").count() == 0


def test_commands_within_advice_are_code() -> None:
    assert with_code("Run `a < b` on <host>.") == "Run <code>a &lt; b</code> on &lt;host&gt;."


def test_a_phone_needs_no_sideways_scroll(desk: Page) -> None:
    desk.page.set_viewport_size({"width": 390, "height": 844})
    desk.until("document.querySelector('#timeline svg').getBoundingClientRect().width <= 390", 10)
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390


def numbers(text: str, code: str) -> array[Any]:
    return array(code, gzip.decompress(base64.b64decode(text)))


def test_the_timeline_has_all_traffic_and_every_loss(report: tuple[wiretale.Trace, Path]) -> None:
    trace, _ = report
    made = timeline(trace, 0)
    assert made is not None
    rates, lost = numbers(made["rates"], "f"), numbers(made["lost"], "I")
    assert sum(rates) * made["width"] / 8 == pytest.approx(trace.directions.total("ip_bytes"), rel=1e-3)
    assert sum(lost) == sum(trace.directions.total(name) for name in ("lost_upstream", "lost_downstream"))
    assert len(rates) == len(lost) <= 362


def test_bins_have_round_widths() -> None:
    assert [bin_width(ns) for ns in (1, 360_000_000, 360_000_001, 3_450_000_000, 420 * 10**9)] == [
        *(1_000_000, 1_000_000, 2_000_000, 10_000_000, 2_000_000_000)
    ]


def test_sums_over_time_spread_a_row_over_its_bin(samples: Path) -> None:
    series = wiretale.analyze(samples / "tcp_losses.pcap").series
    rows = series.rows()
    start, width = min(row["start_ns"] for row in rows), rows[0]["width_ns"]
    (bins,), (halves,) = (series._time_sums(["bytes"], start, width // parts, 1000 * parts) for parts in (1, 2))
    assert {row["width_ns"] for row in rows} == {width} and sum(bins) == series.total("bytes")
    assert [a + b for a, b in zip(halves[::2], halves[1::2], strict=True)] == pytest.approx(bins.tolist())
    assert bins[0] == sum(row["bytes"] for row in rows if row["start_ns"] == start)
    (ticks,) = series._time_sums(["bytes"], start - 1, 1, 2)  # a time since 1970 is exact to 1 ns
    assert ticks[0] == 0 < ticks[1] == pytest.approx(bins[0] / width)
    for wrong in (("bytes", 0, 1), ("bytes", 1, 0), ("bytes", 1, 10**6), ("flow_name", 1, 1)):
        with pytest.raises((ValueError, KeyError)):
            series._time_sums([wrong[0]], start, wrong[1], wrong[2])


# --- how much there is to read

WORDS_MOST = 150
# Captures whose first screens have the most words, of all samples and of 36 that others made.
WORDY = ("capture_drops.pcapng", "timeouts.pcap", "mirror_router.pcap", "reordering.pcap")
WORDY_SHARED = (
    *("cases/tls_sgt.pcap", "cases/discard.solaris.dmp.gz", "cases/psc.fddi.dmp.gz", "cases/http_espn_fail.pcapng"),
    *("field/acks-lost-behind-server.pcap", "questions/duplex_mismatch.pcap.gz", "questions/incast.pcap.gz"),
)


def test_the_first_screen_has_at_most_150_words(desk: Page) -> None:
    assert 40 < len(seen_words(desk)) <= WORDS_MOST


@pytest.mark.parametrize("name", [*WORDY, *WORDY_SHARED])
def test_the_first_screen_of_a_wordy_capture_has_at_most_150_words(page: Page, name: str, tmp_path: Path) -> None:
    capture = SAMPLES / name if name in WORDY else needs.shared("labelled") / name
    page.page.set_viewport_size(DESK)
    page.open(wiretale.analyze(capture).report(tmp_path / "report.html"))
    words = seen_words(page)
    assert 40 < len(words) <= WORDS_MOST, words


# --- colors


def token(page: Page, name: str) -> Color:
    return from_hex(
        page.page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
    )


def test_colors_of_one_plot_differ_for_every_sight(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    papers = set()
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        texts = ("ink", "muted", "network-text", "accent")
        colors = {name: token(page, name) for name in {"bg", *texts, *(name for names in ALIKE for name in names)}}
        papers.add(colors["bg"])
        for names in ALIKE:
            for sight in [first for first in SIGHTS if first != "tritanopia"]:
                for first, second in combinations(names, 2):
                    seen = difference(colors[first], colors[second], sight)
                    assert seen >= DIFFERENT, (scheme, sight, first, second)
        for name in texts:
            assert contrast(colors[name], colors["bg"]) >= 4.5, (scheme, name)
    assert len(papers) == 2


def test_layers_of_the_timeline_that_touch_differ_for_every_sight(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        stack = [token(page, f"stack-{number}") for number in range(1, 7)]
        touching = [*pairwise(stack), *zip(stack, stack[2:], strict=False)]  # one between them may be empty
        for sight in [first for first in SIGHTS if first != "tritanopia"]:
            assert min(difference(first, second, sight) for first, second in touching) >= 14, (scheme, sight)
