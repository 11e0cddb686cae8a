# SPDX-License-Identifier: Apache-2.0
"""The report under a real mouse: tooltips and clicks at the pixels of drawn points, zooms, Back, links, the legend."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import CAPTURES
from plain_wire import Connection, Wire, sack
from report_makers import many_flows
from report_page import VIEW, Page, Point, distance, frame_in, loneliest

pytestmark = pytest.mark.xdist_group("report-mouse")

Row = dict[str, Any]
LOOKED_AT = 3  # points of each panel
NEAR = 8.0  # pixels within which the mouse can mean another point
BINS = ("throughput", "cumulative", "goodput")


@dataclass
class Opened:
    """A sample's report, and its tables."""

    page: Page
    trace: wiretale.Trace
    path: Path
    flow: int
    packets: dict[int, Row]

    def at(self, point: Point) -> tuple[float, float]:
        """Time and height of a point's pixel, by the axes that are shown."""
        axes = ("xaxis", point.panel.replace("y", "yaxis"))
        ranges = [self.page.range(axis) for axis in axes]
        ends = [[self.page.pixel(axis, value) for value in shown] for axis, shown in zip(axes, ranges, strict=True)]
        (left, right), (bottom, top) = ends
        (start, end), (low, high) = ranges
        return (
            start + (end - start) * (point.x - left) / (right - left),
            low + (high - low) * (point.y - bottom) / (top - bottom),
        )

    def pixel_size(self, panel: str) -> tuple[float, float]:
        """Seconds and heights of a pixel."""
        sizes = []
        for axis in ("xaxis", panel.replace("y", "yaxis")):
            shown = self.page.range(axis)
            sizes.append((shown[1] - shown[0]) / abs(self.page.pixel(axis, shown[1]) - self.page.pixel(axis, shown[0])))
        return sizes[0], sizes[1]


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.name)
def opened(request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Each sample's report."""
    trace = wiretale.analyze(request.param)
    path = trace.report(tmp_path_factory.mktemp("report") / "report.html")
    tab = browser.new_page(viewport=VIEW)
    tab.set_default_timeout(90_000)
    page = Page(tab).open(path)
    flow = int(page.page.evaluate("document.body.dataset.flow"))
    yield Opened(page, trace, path, flow, {row["frame"]: row for row in trace.packets([flow]).rows()})
    tab.close()


def lost_so_far(one: Opened, place: str, frame: int) -> list[float]:
    """Segments lost at a place until one is retransmitted in a frame."""
    lost = [row for row in one.trace.events.rows() if row["flow"] == one.flow and row["place"] == place]
    lost = [row for row in lost if row["kind"].endswith("retransmission") and not row["spurious"]]
    return [number for number, row in enumerate(lost, start=1) if row["frame"] == frame]


def packet_heights(row: Row) -> list[float]:
    """Heights at which a packet may be drawn: its position in the stream, its ACK, the window's edge, else its size."""
    if row["sequence"] is None and row["acknowledged"] is None:
        return [row["payload_bytes"]]
    found = [row["sequence"], row["acknowledged"], row["payload_bytes"]]
    if row["acknowledged"] is not None and row["window"] is not None:
        found.append(row["acknowledged"] + row["window"])
    return [value for value in found if value is not None]


def heights(one: Opened, point: Point, frame: int) -> list[float]:
    """Values of the tables at a frame for a trace of the figure."""
    name = point.trace
    if name in ("upstream", "downstream"):
        return lost_so_far(one, name, frame)
    if name in ("latency", "waited"):
        column = "latency_ns" if name == "latency" else "head_of_line_ns"
        return [block[column] / 1e6 for block in one.trace.blocks.rows() if block["last_frame"] == frame]
    if name in ("whole", "broken"):
        return [part["fragments"] for part in one.trace.datagrams.rows() if part["first_frame"] == frame]
    if name in ("rtt0", "rtt1"):
        return [one.packets[frame]["rtt_ns"] / 1e6]
    return packet_heights(one.packets[frame])


def check_point(one: Opened, point: Point, points: list[Point], tooltip: str) -> None:
    """Whether a tooltip is that of a point, and the point where the tables say."""
    assert tooltip, f"no tooltip at {point}"
    if point.trace.startswith(BINS):
        assert re.search(r"bit/s [→←]", tooltip), (point, tooltip)
        return
    frame = frame_in(tooltip)
    near = {other.frame for other in points if other.panel == point.panel and distance(point, other) < NEAR}
    assert frame in near, (point, tooltip)
    if near != {point.frame} or point.trace == "sack":
        return
    seconds, height = one.at(point)
    width, tall = one.pixel_size(point.panel)
    base = int(one.page.page.evaluate("data.base"))
    if frame in one.packets:
        assert abs((one.packets[frame]["time_ns"] - base) / 1e9 - seconds) <= 2 * width, (point, tooltip)
    assert any(abs(value - height) <= 2 * tall for value in heights(one, point, frame)), (point, tooltip, height)


def test_a_report_opens_offline_and_every_panel_answers_the_mouse(opened: Opened) -> None:
    points = opened.page.drawn()
    for panel in {point.panel for point in points}:
        own = [point for point in points if point.panel == panel]
        for point in loneliest(own, LOOKED_AT):
            check_point(opened, point, own, opened.page.hover(point))
    assert opened.page.complaints == [] and opened.page.requests == [opened.path.as_uri()]


def test_a_click_gives_a_filter_for_the_frame_or_the_bin(opened: Opened) -> None:
    points = opened.page.drawn()
    for panel in {point.panel for point in points}:
        own = [point for point in points if point.panel == panel]
        (point,) = loneliest(own, 1)
        opened.page.click(point)
        text = "document.getElementById('packet-filter').textContent"
        if point.trace.startswith(BINS):
            chosen = opened.page.until(f"{text}.includes('time_epoch') && {text}")
            assert re.search(r"&& frame\.time_epoch >= \d+\.\d{9} && frame\.time_epoch < \d+\.\d{9}$", chosen)
        else:
            near = [f"frame.number == {other.frame}" for other in own if distance(point, other) < NEAR]
            opened.page.until(f"{json.dumps(near)}.includes({text})", 5)


def test_a_box_zooms_both_axes_and_back_undoes_it(opened: Opened) -> None:
    page = opened.page
    points = page.drawn()
    panel = "y2" if any(point.panel == "y2" for point in points) else points[0].panel
    axis = panel.replace("y", "yaxis")
    whole = page.range(), page.range(axis)
    corners = []
    for name, (start, end) in zip(("xaxis", axis), whole, strict=True):
        corners.append([page.pixel(name, start + (end - start) * share) for share in (0.3, 0.7)])
    (left, right), (bottom, top) = corners
    page.drag((left, top), (right, bottom))
    for name, (start, end) in zip(("xaxis", axis), whole, strict=True):
        expected = [start + (end - start) * share for share in (0.3, 0.7)]
        assert page.range(name) == pytest.approx(expected, abs=(end - start) * 0.01), name
    assert re.fullmatch(rf"#flow={opened.flow}&t=[-\d.]+&y=\w+:[-\d.]+", page.hash())
    page.page.go_back()
    page.until(f"location.hash === '#flow={opened.flow}'")
    page.until(f"Math.abs(document.getElementById('plot')._fullLayout.xaxis.range[0] - {whole[0][0]}) < 1e-9")
    assert (page.range(), page.range(axis)) == whole


def test_packets_in_the_page_are_those_of_the_table(opened: Opened) -> None:
    trace, page = opened.trace, opened.page.page
    packets = trace.packets(trace.flows.column("flow"))
    listed = page.evaluate("data.packets.flows")
    assert sorted(listed) == trace.flows.column("flow")
    loaded = page.evaluate(
        "(({who, time, frame, size, sequence, ack, window, flags, unique, rtt, known}) => "
        "[who, time, frame, size, sequence, ack, window, flags, unique, rtt, known].map(a => [...a]))(state.packets)"
    )
    base = int(page.evaluate("data.base"))
    for row, *values in zip(packets.rows(), *loaded, strict=True):
        who, seconds, frame, size, sequence, ack, window, flags, unique, rtt, known = values
        assert (listed[who // 2], who % 2, frame) == (row["flow"], row["direction"], row["frame"])
        assert abs(seconds * 1e9 + base - row["time_ns"]) < 1000
        assert size == row["payload_bytes"]
        for value, column, bit in (
            (sequence, "sequence", 1),
            (ack, "acknowledged", 2),
            (window, "window", 4),
            (flags, "flags", 8),
        ):
            assert (row[column] is not None) == bool(known & bit)
            assert not known & bit or value == row[column]
        assert row["unique_bytes"] is None or unique == row["unique_bytes"]
        assert row["rtt_ns"] is None or abs(rtt * 1e6 - row["rtt_ns"]) < 1


@pytest.mark.parametrize("others", [[], ["vlan_ipv6.pcap"]], ids=["one", "two"])
def test_a_frame_of_several_files_has_the_name_of_its_file(
    page: Page, samples: Path, tmp_path: Path, others: list[str]
) -> None:
    trace = wiretale.analyze(*(samples / name for name in ["tcp_losses.pcap", *others]))
    (flow,) = [row["flow"] for row in trace.flows.rows() if row["source_port"] == 40110]
    page.open(trace.report(tmp_path / "report.html"), f"#flow={flow}")
    points = page.drawn()
    for trace_name in ("data", "ack", "rtt0", "downstream", "fast_retransmission"):
        (point,) = loneliest([point for point in points if point.trace == trace_name], 1)
        assert ("of tcp_losses.pcap" in page.hover(point)) == bool(others), trace_name
        page.click(point)
        page.until("document.getElementById('packet-filter').textContent.startsWith('frame.number')")
        assert page.page.inner_text("#packet-file") == ("in tcp_losses.pcap" if others else "")
    assert page.complaints == []


@needs.TSHARK
def test_the_filter_of_a_bin_selects_its_packets(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    bins = [row for row in trace.series.rows() if row["direction"] == 0]
    fullest = max(bins, key=lambda row: row["throughput_bps"])
    points = [point for point in page.drawn() if point.trace == "throughput0"]
    point = min(points, key=lambda one: one.y)
    page.page.mouse.click(point.x, point.y)
    page.until("!document.getElementById('packet').hidden")
    chosen = page.page.inner_text("#packet-filter") + " && tcp.dstport == 5201"
    fields = ["tshark", "-r", str(samples / "tcp_losses.pcap"), "-Y", chosen, "-T", "fields", "-e", "ip.len"]
    lengths = subprocess.run(fields, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    assert sum(map(int, lengths)) == fullest["bytes"] and len(lengths) == fullest["packets"]


# --- zooms


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steady data for 20 s, with a segment lost at 5 s and another at 15 s."""
    talk = Connection(Wire()).open()
    for number in range(2000):
        if number in (500, 1500):
            for late in range(1, 4):
                talk.ack(
                    10 * (number + late) + 9,
                    1000 * number,
                    options=sack((1000 * (number + 1), 1000 * (number + 1 + late))),
                )
            talk.data(10 * number + 41, 1000 * number, 1000)
        else:
            talk.data(100 + 10 * number, 1000 * number, 1000)
    path = tmp_path_factory.mktemp("lossy") / "lossy.pcap"
    return talk.wire.write(path)


def test_a_zoom_ranges_over_the_points_in_view(page: Page, lossy: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(lossy).report(tmp_path / "report.html"), "#flow=0&t=10-10.0501")
    drawn = [point for point in page.drawn() if point.trace == "data"]
    assert [point.frame for point in drawn] == sorted(point.frame for point in drawn) and 5 <= len(drawn) <= 6
    top, bottom = (page.pixel("yaxis2", value) for value in reversed(page.range("yaxis2")))
    share = (max(point.y for point in drawn) - min(point.y for point in drawn)) / (bottom - top)
    assert share > 0.8  # of the panel's height


def test_choices_in_the_legend_survive_a_zoom_and_another_flow(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    shown = "document.getElementById('plot')._fullData.find(t => t.meta === '{}').visible === {}"
    assert page.page.evaluate(shown.format("window", "'legendonly'"))
    for name, visible in (("window edge", "true"), ("acknowledged", "'legendonly'")):
        page.page.locator("#plot .legend .traces", has_text=name).locator(".legendtoggle").click()
        page.until(shown.format({"window edge": "window", "acknowledged": "ack"}[name], visible))
        page.page.wait_for_timeout(400)  # two clicks in short order are a double-click
    page.drawn()
    page.drag((page.pixel("xaxis", 0.1), 700), (page.pixel("xaxis", 0.3), 850))
    assert page.page.evaluate(shown.format("window", "true"))
    assert page.page.evaluate(shown.format("ack", "'legendonly'"))
    assert [point for point in page.drawn() if point.trace == "window"]


def test_an_edited_link_and_a_double_click_change_the_view(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "vlan_ipv6.pcap").report(tmp_path / "report.html"))
    first = page.hash()
    page.page.evaluate("location.hash = '#flow=3&t=0.01-0.02'")
    page.until("document.body.dataset.flow === '3'")
    assert page.range() == pytest.approx([0.01, 0.02]) and "Flow 3:" in page.page.inner_text("#h-flow")
    page.drawn()
    page.page.mouse.dblclick(page.pixel("xaxis", 0.015), page.pixel("yaxis", page.range("yaxis")[1] * 0.9))
    page.until("location.hash === '#flow=3'")
    assert page.range()[1] - page.range()[0] != pytest.approx(0.01)
    page.page.go_back()
    page.until("location.hash === '#flow=3&t=0.01-0.02'")
    page.page.go_back()
    page.until(f"location.hash === '{first}'")
    page.page.evaluate("location.hash = '#flow=77'")
    page.until("!document.getElementById('missing').hidden")
    assert "Flow 77" in page.page.inner_text("#missing")
    assert page.complaints == []


@pytest.mark.parametrize("fragment", ["#flow=%", "#flow=0&t=%zz"])
def test_a_link_that_was_cut_still_opens_the_page(page: Page, samples: Path, tmp_path: Path, fragment: str) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"), fragment)
    assert page.complaints == [] and page.points()
    notice = page.page.inner_text("#missing") if page.page.is_visible("#missing") else ""
    assert notice.startswith("Flow % of the link") == (fragment == "#flow=%")


def test_back_undoes_the_choice_of_a_flow_after_keys(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "vlan_ipv6.pcap").report(tmp_path / "report.html"))
    page.page.focus("#plot")
    page.page.keyboard.press("+")
    page.until("location.hash.includes('&t=')")
    zoomed = page.hash()
    page.page.focus("#flows tbody tr[tabindex='0']")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.until("!location.hash.includes('&t=')")
    page.page.go_back()
    page.until(f"location.hash === '{zoomed}'")


def test_panning_goes_on_after_the_first_pan(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    page.drawn()
    page.page.hover("#plot")
    page.page.click("#plot [data-val='pan']")
    width = page.range()[1] - page.range()[0]
    for _ in range(2):
        start = page.range()[0]
        middle, top = page.pixel("xaxis", sum(page.range()) / 2), page.pixel("yaxis2", sum(page.range("yaxis2")) / 2)
        page.drag((middle, top), (middle - 100, top))
        page.until(f"document.getElementById('plot')._fullLayout.xaxis.range[0] > {start}")
        assert page.range()[1] - page.range()[0] == pytest.approx(width)


def test_the_deepest_zoom_by_keys_is_a_link_that_opens(page: Page, samples: Path, tmp_path: Path) -> None:
    path = wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html")
    page.open(path)
    page.page.focus("#plot")
    for _ in range(45):
        page.page.keyboard.press("+")
    page.page.wait_for_timeout(500)
    shown, fragment = page.range(), page.hash()
    page.page.goto("about:blank")
    page.open(path, fragment)
    assert page.range() == pytest.approx(shown, abs=2e-9) and shown[1] - shown[0] < 1e-6


def test_a_copy_button_has_its_words_again_after_two_clicks(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    page.page.dblclick("#copy-flow")
    page.until("document.getElementById('copy-flow').textContent === 'copied'", 5)
    page.until("document.getElementById('copy-flow').textContent === 'copy filter'", 5)


# --- every flow of many


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 connections of few packets; the larger the number, the smaller."""
    return many_flows(tmp_path_factory.mktemp("many") / "many.pcap")


def in_window(page: Page, selector: str) -> bool:
    """Whether all of it can be seen without scrolling."""
    box, height = page.page.locator(selector).bounding_box(), page.page.evaluate("innerHeight")
    return bool(box["y"] >= 0 and box["y"] + box["height"] <= height)


def test_a_flow_that_is_chosen_comes_into_view(page: Page, many: Path, tmp_path: Path) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 900})
    page.open(wiretale.analyze(many).report(tmp_path / "report.html"))
    assert page.page.evaluate("scrollY") == 0 and not in_window(page, "#plot")
    page.page.click("tr[data-flow='7']")
    page.until("location.hash === '#flow=7'")
    assert in_window(page, "#h-flow")
    assert page.page.locator("#plot").bounding_box()["y"] < 300


def test_an_edited_link_brings_its_flow_or_the_notice_into_view(page: Page, many: Path, tmp_path: Path) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 900})
    path = wiretale.analyze(many).report(tmp_path / "report.html")
    page.open(path)
    assert page.page.evaluate("scrollY") == 0
    page.page.evaluate("location.hash = '#flow=900'")
    page.until("document.body.dataset.flow === '900' && scrollY > 0", 10)
    assert in_window(page, "#h-flow") and page.page.locator("#plot").bounding_box()["y"] < 300
    page.page.evaluate("location.hash = '#flow=77777'")
    page.until("!document.getElementById('missing').hidden")
    assert in_window(page, "#missing")
    page.page.go_back()
    page.until("location.hash === '#flow=900'")
    page.page.goto("about:blank")
    page.open(path, "#flow=77777")
    assert in_window(page, "#missing")


def test_the_row_that_has_the_focus_is_never_below_the_head(page: Page, many: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(many).report(tmp_path / "report.html"))
    page.page.focus("#flows tbody tr[tabindex='0']")
    for _ in range(30):
        page.page.keyboard.press("ArrowDown")
    for _ in range(25):
        page.page.keyboard.press("ArrowUp")
        row, head = page.page.evaluate(
            "[document.activeElement.getBoundingClientRect().top,"
            " document.querySelector('#flows thead th').getBoundingClientRect().bottom]"
        )
        assert row >= head


def test_search_and_links_reach_flows_that_are_not_listed(
    page: Page, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(many, tmp_path / "many.pcap")
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", 2000)
    page.open(wiretale.analyze("many.pcap", filter="tcp").report(tmp_path / "report.html"))
    assert page.page.inner_text("#count") == "200 of 3,000 flows"
    assert page.page.locator("tr[data-flow='2900']").count() == 0
    page.page.fill("#find", "10.1.11.151:22900")
    assert page.page.inner_text("#count") == "1 of 3,000 flows"
    page.page.click("tr[data-flow='2900']")
    page.until("document.body.dataset.flow === '2900'")
    assert page.hash() == "#flow=2900"
    assert in_window(page, "#h-flow") and in_window(page, "#copy-again")
    assert "not of this flow" in page.page.inner_text("#note")
    page.page.click("#copy-again")
    command = page.until("document.body.dataset.copied")
    assert command == (
        "wiretale analyze many.pcap --filter '(tcp) and (host 10.1.11.151 and host 10.2.0.1 and tcp port 22900 and "
        "tcp port 80)' --report flow-2900.html"
    )
    program = f"{shlex.quote(sys.executable)} -m wiretale"
    subprocess.run(command.replace("wiretale", program, 1), shell=True, cwd=tmp_path, timeout=120, check=True)
    page.open(tmp_path / "flow-2900.html")
    assert page.page.inner_text("#count") == "1 of 1 flow" and len(page.frames("data")) == 1


def test_a_link_opens_a_flow_that_is_not_listed(page: Page, many: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(many).report(tmp_path / "report.html"), "#flow=2900")
    assert page.page.evaluate("document.body.dataset.flow") == "2900"
    assert "10.1.11.151:22900" in page.page.inner_text("#h-flow")
    assert page.page.inner_text("#note") == "" and len(page.frames("data")) == 1
    page.page.fill("#find", "10.1.11")
    assert page.page.inner_text("#count") == "250 of 3,000 flows; the first 200 are listed"
    page.page.click("#more")
    assert page.page.locator("#flows tbody tr").count() == 250


def test_every_flow_in_the_page_is_that_of_the_tables(opened: Opened) -> None:
    from wiretale.analyzer.display_filter import flow_filter
    from wiretale.analyzer.findings.model import flow_str

    shown = opened.page.page.evaluate(
        "[...state.flows.number.keys()].map(row => ({...flowAt(row), filter: displayFilter(row), bytes: state.flows.bytes[row],"
        " rtt: state.flows.rtt[row], lasted: state.flows.lasted[row]}))"
    )
    assert len(shown) == len(opened.trace.flows)
    for row, flow in zip(opened.trace.flows.rows(), shown, strict=True):
        assert (flow["flow"], flow["name"], flow["filter"]) == (row["flow"], flow_str(row), flow_filter(row))
        assert (flow["packets"], flow["bytes"], flow["path"]) == (row["packets"], row["wire_bytes"], row["path"] or "")
        if row["handshake_rtt_ns"] is not None:
            assert flow["rtt"] == pytest.approx(row["handshake_rtt_ns"], rel=1e-4)


def test_the_list_and_the_terminal_have_the_same_words_for_problems(opened: Opened, wiretale_run: Any) -> None:
    done = wiretale_run("analyze", opened.trace.inputs[0], "--flows", "50", env={"COLUMNS": "400"})
    listed = opened.page.page.evaluate(
        "[...document.querySelectorAll('#flows tbody tr')].map(row => [row.dataset.flow, row.lastElementChild.textContent])"
    )
    for flow, trouble in listed:
        (line,) = re.findall(rf"^ +{flow}   .*$", done.stdout, re.MULTILINE)
        assert line.endswith(trouble) if trouble else not re.search(r"lost|reordered|duplicated$", line), (
            trouble,
            line,
        )


def test_numbered_datagrams_that_were_lost_are_problems(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "udp_blocks.pcap").report(tmp_path / "report.html"))
    trouble = page.page.inner_text("tr[data-flow='0'] td:last-child")
    assert trouble == "3 blocks lost, 1 block reordered, 2 blocks duplicated"
    assert page.page.inner_text("tr[data-flow='1'] td:last-child") == ""
