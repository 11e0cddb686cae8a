# SPDX-License-Identifier: Apache-2.0
"""Flows over each other in the report: with the real mouse and keys, on flows whose rates, delays and sizes are known."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wiretale
from color_sight import SIGHTS, contrast, difference, from_hex
from plain_wire import Connection, Wire
from report_page import VIEW, Page, frame_in
from transfer_wires import lossy

pytestmark = pytest.mark.xdist_group("report-overlay")

SEGMENT = 1210  # bytes, with 40 of headers 10,000 bits of IP
BOTH = "#flow=0&with=2"
PAPER_PX = 703  # A4 less margins of 12 mm, at 96 dots an inch
DIFFERENT, STANDS_OUT = 19, 3
PAPERS = {"light": "#ffffff", "dark": "#10161c"}


class Kind(NamedTuple):
    """A steady transfer: begin of its handshake, time between segments, round trip, in ms."""

    begin: float
    gap: float
    trip: float
    count: int

    @property
    def first_data(self) -> float:
        return self.begin + self.trip + 10


FAST, SLOW = Kind(0.25, 2, 20, 800), Kind(500.75, 4, 40, 400)  # 5 and 2.5 Mbit/s
KINDS = {0: FAST, 2: SLOW}
DATAGRAM, DATAGRAMS, BETWEEN = 722, 400, 3.0  # 750 bytes of IP every 3 ms: 2 Mbit/s
FURTHER = 8  # flows of one datagram each


def steady(wire: Wire, port: int, kind: Kind) -> None:
    talk = Connection(wire, port).open(kind.begin, kind.trip)
    for n in range(kind.count):
        at = kind.first_data + n * kind.gap
        talk.data(at, n * SEGMENT, SEGMENT).ack(at + kind.trip, (n + 1) * SEGMENT)


def known_flows(path: Path) -> Path:
    wire = Wire()
    steady(wire, 40001, FAST)
    for n in range(DATAGRAMS):
        wire.udp(300 + n * BETWEEN, bytes(DATAGRAM))
    steady(wire, 40002, SLOW)
    for n in range(FURTHER):
        wire.udp(1000 + n, bytes(100), port=4001 + n)
    return wire.write(path)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overlay")
    return wiretale.analyze(known_flows(folder / "flows.pcap")).report(folder / "report.html")


@pytest.fixture(scope="module")
def tab_of_all(browser: Any) -> Iterator[Page]:
    opened = browser.new_page(viewport=VIEW)
    yield Page(opened)
    opened.close()


@pytest.fixture
def tab(tab_of_all: Page) -> Page:
    return tab_of_all.clear()


def overlaid(page: Page) -> list[int]:
    """The flows of the legend."""
    flows = page.page.evaluate("[...document.querySelectorAll('#with-list li')].map(one => Number(one.dataset.flow))")
    return list(flows)


def at_value(page: Page, panel: str, seconds: float, value: float) -> tuple[str, str]:
    """The tip and the values in the head if the mouse is at a time and a value of a panel."""
    page.page.evaluate("document.getElementById('plot').scrollIntoView()")
    axis = page.panel(panel)
    page.page.mouse.move(2, 2)
    page.page.mouse.move(page.pixel("xaxis", seconds), page.pixel(axis, value), steps=2)
    page.until("document.querySelector('.cross-tip')")
    tip = "document.querySelector('.cross-tip').textContent"
    head = f"document.querySelector('.panel-head[data-panel={panel}] .value').textContent"
    return page.page.evaluate(tip), page.page.evaluate(head)


RETRANSMITTED = "#flow=0&with=1,2"  # of timeouts.pcap, where each of three flows loses segments


def test_retransmissions_of_each_flow_are_marked(tab: Page, samples: Path, tmp_path: Path) -> None:
    truth = json.loads((samples / "timeouts.truth.json").read_text())["frames"]
    tab.open(wiretale.analyze(samples / "timeouts.pcap").report(tmp_path / "report.html"), RETRANSMITTED)
    for flow in (0, 1, 2):
        of_flow = {int(frame): packet["verdict"] for frame, packet in truth.items() if packet["flow"] == flow}
        expected = [frame for frame, verdict in of_flow.items() if verdict.endswith("retransmission")]
        assert expected and sorted(tab.frames(f"retransmitted@{flow}")) == sorted(expected)
        marks = {point.frame: point for point in tab.drawn() if point.trace == f"retransmitted@{flow}"}
        tip = tab.hover(marks[expected[0]])
        assert of_flow[expected[0]].replace("_", " ") in tip and f"flow {flow} " in tip
        assert frame_in(tip) == expected[0]
    tab.page.locator(".panel-legend button", has_text="retransmitted").click()
    tab.until("location.hash.includes('toggled=retransmitted')")
    assert not [point for point in tab.drawn() if point.trace.startswith("retransmitted")]
    assert tab.complaints == []


def amount(text: str, flow: int) -> float:
    """The value of a flow in a head, such as 2.4 Mbit/s flow 2, without its prefix."""
    matched = re.search(rf"([\d.]+) ([kM]?)(?:bit/s|B|ms|bytes) flow {flow}\b", text)
    assert matched, text
    return float(matched[1]) * {"": 1, "k": 1e3, "M": 1e6}[matched[2] if "ms" not in matched[0] else ""]


def test_curves_have_the_rates_of_the_flows(tab: Page, report: Path) -> None:
    tab.open(report, BOTH + "&toggled=bin:0.1")
    for flow, kind in KINDS.items():
        rate = (SEGMENT + 40) * 8 / kind.gap * 1000
        tip, head = at_value(tab, "rate", 1.25, rate)
        assert f"flow {flow} " in tip and "of IP →" in tip
        assert amount(head, flow) == pytest.approx(rate, rel=0.01)
    assert tab.complaints == []


@pytest.mark.parametrize("flow", KINDS)
def test_curves_have_the_positions_flights_and_round_trips(tab: Page, report: Path, flow: int) -> None:
    tab.open(report, BOTH)
    kind, at = KINDS[flow], 1.3005
    sent = (int((at * 1000 - kind.first_data) // kind.gap) + 1) * SEGMENT
    tip, head = at_value(tab, "sequence", at, sent)
    assert f"flow {flow} " in tip and re.search(r"segment [\d,]+ \+ 1,210", tip)
    assert amount(head, flow) == pytest.approx(sent, abs=2 * SEGMENT)
    in_flight = kind.trip / kind.gap * SEGMENT
    _, head = at_value(tab, "flight", at, in_flight)
    assert amount(head, flow) == pytest.approx(in_flight, abs=1.1 * SEGMENT)
    tip, head = at_value(tab, "rtt", at, kind.trip)
    assert f"flow {flow} " in tip and amount(head, flow) == pytest.approx(kind.trip, rel=0.01)


def test_a_flow_without_sequence_numbers_has_its_payload(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0&with=1&toggled=bin:0.1")
    tip, head = at_value(tab, "sequence", 1.2, 300 * DATAGRAM)
    assert "flow 1 " in tip and amount(head, 1) == pytest.approx(300 * DATAGRAM, rel=0.01)
    assert amount(at_value(tab, "rate", 1.05, 2e6)[1], 1) == pytest.approx(2e6, rel=0.03)
    assert "flow 1" not in at_value(tab, "rtt", 1.0, 20)[1]


def test_time_since_the_first_packet_begins_at_zero(tab: Page, report: Path) -> None:
    tab.open(report, BOTH)
    lines = "document.getElementById('plot').data.filter(one => one.meta.startsWith('sequence'))"
    begins = f"Object.fromEntries({lines}.map(one => [one.meta, one.x[0]]))"
    apart = tab.page.evaluate(begins)
    assert apart["sequence@2"] - apart["sequence@0"] == pytest.approx((SLOW.first_data - FAST.first_data) / 1e3)
    tab.page.click("#with-time [data-time=relative]")
    tab.until("location.hash.includes('toggled=relative')")
    near = tab.until(f"(x => x['sequence@2'] < 0.1 ? x : null)({begins})")
    assert near["sequence@2"] - near["sequence@0"] == pytest.approx((SLOW.trip - FAST.trip) / 1e3)
    ticks = tab.page.evaluate("[...document.querySelectorAll('#plot .xtick text')].map(one => one.textContent)")
    assert ticks[0] == "0.0 s"
    assert "times since the first packet of each flow" in tab.page.inner_text("#view-note")
    tip, head = at_value(tab, "rate", FAST.begin / 1e3 + 1, 2.5e6)
    assert "flow 2 " in tip and "1.0" in tip and amount(head, 2) == pytest.approx(2.5e6, rel=0.05)
    tab.page.click("#with-time [data-time=capture]")
    tab.until(f"({begins})['sequence@2'] > 0.5")


def test_ctrl_and_shift_and_the_box_overlay_a_flow_and_back_undoes(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0")
    assert not tab.page.locator("#with").is_visible()
    tab.page.click("#flows tr[data-flow='2'] td:nth-child(2)", modifiers=["Control"])
    tab.until("location.hash === '#flow=0&with=2'")
    tab.page.click("#flows tr[data-flow='1'] td:nth-child(2)", modifiers=["Shift"])
    tab.until("location.hash === '#flow=0&with=2,1'")
    assert tab.page.evaluate("getSelection().toString()") == ""
    tab.page.check("#flows tr[data-flow='3'] .with-box")
    tab.until("location.hash === '#flow=0&with=2,1,3'")
    assert overlaid(tab) == [0, 2, 1, 3]
    assert tab.page.evaluate("document.body.dataset.flow") == "0"
    tab.page.go_back()
    tab.until("location.hash === '#flow=0&with=2,1'")
    tab.until("document.querySelectorAll('#with-list li').length === 3")
    assert not tab.page.is_checked("#flows tr[data-flow='3'] .with-box")
    tab.page.uncheck("#flows tr[data-flow='2'] .with-box")
    tab.until("location.hash === '#flow=0&with=,1'")  # the color of flow 1 stays
    assert overlaid(tab) == [0, 1]
    tab.page.click("#flows tr[data-flow='2'] td:nth-child(2)")
    tab.until("location.hash === '#flow=2'")
    assert not tab.page.locator("#with").is_visible()
    assert tab.complaints == []


def colors_of(page: Page) -> dict[str, str]:
    of = "Object.fromEntries(document.getElementById('plot').data.map(one => [one.meta, one.line.color + one.marker.symbol]))"
    colors: dict[str, str] = page.page.evaluate(of)
    return colors


def test_a_flow_keeps_its_color_while_others_leave_and_when_it_is_chosen(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0&with=1,2")
    before = colors_of(tab)
    assert len(set(before.values())) == 3
    tab.page.click("#with-list [data-flow='1'] .remove")
    tab.until("document.querySelectorAll('#with-list li').length === 2")
    after = colors_of(tab)
    assert after == {key: value for key, value in before.items() if not key.endswith("@1")}
    tab.page.click("#with-list [data-flow='2'] .name")
    tab.until("document.body.dataset.flow === '2'")
    assert tab.hash() == "#flow=2&with=0,,2" and colors_of(tab) == after
    tab.page.click("#with-list [data-flow='2'] .remove")
    tab.until("location.hash === '#flow=0'")
    tab.until("document.body.dataset.flow === '0'")
    assert not tab.page.locator("#with").is_visible()


def test_eight_flows_are_the_most(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0&with=1,2,3,4,5,6")
    assert len(overlaid(tab)) == 7
    tab.page.check("#flows tr[data-flow='7'] .with-box")
    tab.until("document.querySelectorAll('#with-list li').length === 8")
    assert tab.page.is_disabled("#flows tr[data-flow='8'] .with-box")
    before = tab.hash()
    tab.page.click("#flows tr[data-flow='8'] td:nth-child(2)", modifiers=["Control"])
    tab.page.wait_for_timeout(300)
    assert tab.hash() == before and len(overlaid(tab)) == 8


@pytest.mark.parametrize(
    ("fragment", "flows"),
    [
        ("#flow=0&with=0", []),
        ("#flow=0&with=2,2,0", [2, 0]),
        ("#flow=0&with=x,2,-1,99999999999999999999", [0, 2]),
        ("#flow=0&with=1,2,3,4,5,6,7,8,9", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("#flow=0&with=999", [0, 999]),
    ],
)
def test_an_edited_link_is_obeyed_as_far_as_it_can_be(tab: Page, report: Path, fragment: str, flows: list[int]) -> None:
    tab.open(report, fragment)
    tab.until("document.body.dataset.flow === '0'")
    assert overlaid(tab) == flows and tab.complaints == []
    if 999 in flows:
        assert "not in the page" in tab.page.inner_text("#with-list [data-flow='999']")
        tab.page.click("#with-list [data-flow='999'] .remove")
        tab.until("document.getElementById('with').hidden")


def test_a_click_chooses_the_packet_and_its_flow(tab: Page, report: Path) -> None:
    tab.open(report, BOTH + "&t=1-1.2")
    kind, number = SLOW, 150
    at = (kind.first_data + number * kind.gap) / 1e3
    at_value(tab, "sequence", at + 0.0001, (number + 1) * SEGMENT)
    frame = re.search(r"frame (\d+)", tab.page.inner_text(".cross-tip"))
    assert frame
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.until(f"location.hash.includes('frame={frame[1]}')")
    assert tab.hash() == f"#flow=2&frame={frame[1]}&with=0,2&t=1-1.2"
    tab.until("document.getElementById('h-frame').textContent === 'Frame " + frame[1] + "'")
    assert f"{number * SEGMENT:,}" in tab.page.inner_text(f"#packet-rows tr[data-frame='{frame[1]}']")
    assert tab.page.inner_text("#packet-filter") == f"frame.number == {frame[1]}"
    tab.page.go_back()
    tab.until(f"location.hash === '{BOTH}&t=1-1.2'")
    assert tab.complaints == []


def test_keys_reach_boxes_legend_and_times(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0")
    tab.page.focus("#flows tr[data-flow='0']")
    tab.page.keyboard.press("ArrowDown")
    second = tab.page.evaluate("document.activeElement.dataset.flow")
    tab.page.keyboard.press("Control+Enter")
    tab.until(f"location.hash === '#flow=0&with={second}'")
    tab.page.keyboard.press("ArrowDown")
    third = tab.page.evaluate("document.activeElement.dataset.flow")
    tab.page.keyboard.press("Shift+Enter")
    tab.until(f"location.hash === '#flow=0&with={second},{third}'")
    assert tab.page.locator("#with-list button[tabindex='0']").count() == 1
    tab.page.focus("#with-time [aria-pressed=true]")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    tab.until("location.hash.includes('toggled=relative')")
    tab.page.focus("#with-list button[tabindex='0']")
    tab.page.keyboard.press("End")
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-label')") == f"remove flow {third}"
    tab.page.keyboard.press("Enter")
    tab.until("document.querySelectorAll('#with-list li').length === 2")
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-label')") == f"remove flow {second}"
    tab.page.focus("#plot")
    tab.page.keyboard.press("ArrowRight")
    tab.until("document.querySelector('.cross-tip')")
    assert "flow 0" in tab.page.inner_text(".cross-tip")


def test_distributions_compare_the_flows(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0&with=1,2&toggled=distributions")
    tab.until("document.querySelectorAll('#distribution-plots .cartesianlayer').length > 2")
    plots = tab.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#distribution-plots figure')].map(one =>"
        " [one.querySelector('b').textContent, {words: one.querySelector('span').textContent, traces: one.lastChild.data}]))"
    )
    trips, between = plots["Round trip"], plots["Time between packets"]
    assert [trace["meta"] for trace in trips["traces"]] == [0, 2] and [
        trace["meta"] for trace in between["traces"]
    ] == [
        0,
        1,
        2,
    ]
    assert f"median 20 ms of {FAST.count + 1} (flow 0), median 40 ms of {SLOW.count + 1} (flow 2)" in trips["words"]
    for trace, gap in zip(between["traces"], (FAST.gap, BETWEEN, SLOW.gap), strict=True):
        assert trace["x"] == pytest.approx([gap] * len(trace["x"]), abs=1e-6)
    assert len({trace["line"]["color"] + trace["marker"]["symbol"] for trace in between["traces"]}) == 3
    tab.page.click("#with-list [data-flow='2'] .remove")
    tab.until("document.querySelector('#distribution-plots figure').lastChild.data.length === 1")


def of_port(frame: bytes, port: int) -> bytes:
    """The TCP frame between port 80 and another one."""
    ends = [port if end == 40000 else end for end in struct.unpack("!HH", frame[34:38])]
    return frame[:34] + struct.pack("!HH", *ends) + frame[38:]


def test_losses_of_flows_are_side_by_side(tab: Page, tmp_path: Path) -> None:
    wire = lossy(60, count=300)
    wire.packets += [(ms + 7.0, of_port(frame, 40007)) for ms, frame in lossy(50, count=300).packets]
    trace = wiretale.analyze(wire.write(tmp_path / "losses.pcap"))
    lost = [
        sum(row["lost_downstream"] or 0 for row in trace.directions.rows() if row["flow"] == flow) for flow in (0, 1)
    ]
    assert lost == [4, 5]  # each alone
    tab.open(trace.report(tmp_path / "report.html"), "#flow=0&with=1&toggled=distributions")
    tab.until("document.querySelectorAll('#distribution-plots .barlayer .trace').length > 1")
    of_runs = "one => one.querySelector('b').textContent === 'Losses in a row'"
    bars = f"[...document.querySelectorAll('#distribution-plots figure')].find({of_runs}).lastChild"
    assert tab.page.evaluate(f"{bars}.data.map(one => [one.meta, one.x, one.y])") == [[0, ["1"], [4]], [1, ["1"], [5]]]
    assert tab.page.evaluate(f"new Set({bars}.data.map(one => one.marker.pattern.shape)).size") == 2
    assert tab.complaints == []


def test_a_flow_without_packets_in_the_page_says_so_and_has_its_columns(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = known_flows(tmp_path / "flows.pcap")
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", 2 * FAST.count + 3)
    tab.open(wiretale.analyze(capture).report(tmp_path / "report.html"), BOTH)
    assert tab.page.evaluate("[...tables.packets.places.keys()]") == [0]
    lack = tab.page.inner_text("#with-list [data-flow='2'] .lack")
    assert lack.startswith("packets not in the page: least and greatest of each ")
    assert tab.page.locator("#with-list [data-flow='0'] .lack").count() == 0
    assert amount(at_value(tab, "rate", 1.25, 2.5e6)[1], 2) == pytest.approx(2.5e6, rel=0.1)
    tab.page.click("#with-list [data-flow='2'] .copy")
    command = str(tab.until("document.body.dataset.copied"))
    assert command.startswith("wiretale analyze") and "tcp port 40002" in command and "flow-2.html" in command


def test_sizes_and_hidden_panels_are_in_the_link(tab: Page, page: Page, report: Path) -> None:
    tab.open(report, "#flow=0")
    tab.page.evaluate("document.getElementById('plot').scrollIntoView()")
    place = "view.stack.places[view.used.findIndex(one => one.name === name)]"
    height = f"(name => {{ const at = {place}; return at ? at.bottom - at.plot : 0; }})"
    edge = tab.page.locator(".panel-size").nth(1).bounding_box()
    assert edge and tab.page.evaluate(f"{height}('flight')") == 84
    x, y = edge["x"] + 300, edge["y"] + 3
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x, y + 60, steps=4)
    tab.page.mouse.up()
    tab.until("location.hash === '#flow=0&size=flight:144'")
    tab.page.click("#panel-list summary")
    tab.page.uncheck("#panel-list [data-panel=rtt]")
    tab.until("location.hash === '#flow=0&toggled=panel%3Artt&size=flight:144'")
    page.visit(tab)
    page.until(f"{height}('flight') === 144")
    assert page.page.evaluate(f"{height}('rtt')") == 0
    page.page.evaluate("location.hash = '#flow=0&with=2&size=flight:9999&size=nosuch:50&size=rate:x'")
    page.until(f"{height}('flight') === 2000")
    assert page.page.evaluate(f"{height}('rate')") == 72
    tab.page.go_back()
    tab.until(f"{height}('rtt') > 0")
    tab.page.go_back()
    tab.until(f"{height}('flight') === 84")
    assert tab.hash() == "#flow=0"


def test_keys_resize_a_panel_in_one_step(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0")
    tab.page.focus("#overlay [tabindex='0']")
    tab.page.keyboard.press("End")
    label = "document.activeElement.getAttribute('aria-label')"
    assert tab.page.evaluate(label) == "Height of Time"  # a lane below the panels
    tab.page.keyboard.press("ArrowLeft")
    assert tab.page.evaluate(label) == "Height of Round trip"
    for height in (74, 84):
        tab.page.keyboard.press("ArrowDown")
        tab.until(f"location.hash === '#flow=0&size=rtt:{height}'")
        tab.until(f"{label} === 'Height of Round trip' && document.activeElement.ariaValueNow === '{height}'")
    assert tab.page.locator("#overlay [tabindex='0']").count() == 1
    tab.page.go_back()
    tab.until("location.hash === '#flow=0'")


def test_packets_are_under_the_mouse_after_the_list_was_sorted(tab: Page, report: Path) -> None:
    tab.open(report, "#flow=0")
    tab.page.click("#flows th[data-key=name] button")
    tab.page.focus("#plot")
    tab.page.keyboard.press("ArrowRight")
    assert "frame 1" in str(tab.until("document.querySelector('.cross-tip')?.textContent"))


@pytest.mark.parametrize("scheme", PAPERS)
def test_colors_of_flows_differ_for_everybody(tab: Page, report: Path, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme)
    tab.open(report)
    colors = [from_hex(first) for first in tab.page.evaluate("Object.values(flowColors())")]
    assert len(colors) == 8
    for color in colors:
        assert contrast(color, from_hex(PAPERS[scheme])) >= STANDS_OUT
    for sight in SIGHTS:
        for first, second in combinations(colors, 2):
            assert difference(first, second, sight) >= DIFFERENT, (sight, first, second)


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
def test_overlaid_flows_are_for_everybody(browser: Any, report: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = Page(opened).open(report, "#flow=0&with=1,2,999&toggled=distributions")
    page.until("document.querySelectorAll('#distribution-plots .cartesianlayer').length > 0")
    opened.evaluate(files(axe).joinpath("axe.min.js").read_text("utf-8") + ";0")
    violations = opened.evaluate("axe.run('main').then(r => r.violations.map(v => [v.impact, v.id]))")
    assert [violation for violation in violations if violation[0] in ("serious", "critical")] == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:
        sizes = "[...document.querySelectorAll('#with button:not([disabled])')].map(one => one.getBoundingClientRect().height)"
        assert min(opened.evaluate(sizes)) >= 32
    opened.close()


def test_paper_has_the_legend_without_its_buttons(tab: Page, report: Path) -> None:
    tab.open(report, BOTH)
    tab.page.set_viewport_size({"width": PAPER_PX, "height": 1000})
    tab.page.emulate_media(media="print")
    tab.until("document.documentElement.classList.contains('paper')")
    tab.until(f"document.querySelector('#plot svg').getBoundingClientRect().right <= {PAPER_PX}")
    assert tab.page.locator("#with-list .name").count() == 2 and tab.page.locator("#with-list .name").first.is_visible()
    for name in ("#with-list .remove", "#with-time", ".with-box"):
        assert not tab.page.locator(name).first.is_visible()


def test_a_saved_picture_has_heads_and_the_legend_of_its_flows(tab: Page, report: Path, tmp_path: Path) -> None:
    tab.open(report, BOTH)
    with tab.page.expect_download() as download:
        tab.page.click("#save-picture")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    names = tab.page.evaluate("[...document.querySelectorAll('#with-list .name')].map(name => name.textContent)")
    titles = tab.page.evaluate("[...document.querySelectorAll('.panel-head h3')].map(title => title.textContent)")
    colors = tab.page.evaluate(
        "[0, 2].map(flow => getComputedStyle(document.querySelector(`#with-list [data-flow='${flow}'] path`)).stroke)"
    )
    assert path.name == "flow-0.svg" and len(names) == 2 and len(titles) >= 3
    tab.page.goto(path.as_uri())
    texts = tab.page.evaluate(
        "[...document.querySelectorAll('text')].map(text => [text.textContent, ...['left', 'top', 'right', 'bottom']"
        ".map(side => text.getBoundingClientRect()[side])])"
    )
    words = " ".join(text for text, *_ in texts)
    assert all(part in words for name in names for part in re.split(r"(?<=flow \d)", name)) and not re.search(
        r"×|Save", words
    )
    assert all(title in words for title in titles)
    wide, high = tab.page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
    assert all(left >= 0 and top >= 0 and right <= wide and bottom <= high for _, left, top, right, bottom in texts)
    assert set(colors) <= set(
        tab.page.evaluate("[...document.querySelectorAll('path')].map(path => path.getAttribute('stroke'))")
    )
    assert not re.search(r"var\(--|<script|foreignObject", path.read_text()) and tab.complaints == []
