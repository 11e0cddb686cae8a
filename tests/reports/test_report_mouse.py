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
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from report_heights import Opened, heights
from report_makers import many_flows
from report_page import VIEW, Page, Point, distance, frame_in, loneliest
from sample_sets import VARIED

pytestmark = pytest.mark.xdist_group("report-mouse")

LOOKED_AT = 3  # points of each panel
NEAR = 8.0  # pixels within which the mouse can mean another point
BINS = ("throughput", "acked")


@pytest.fixture(scope="module", params=VARIED, ids=lambda path: path.name)
def opened(request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Each sample's report."""
    trace = wiretale.analyze(request.param)
    path = trace.report(tmp_path_factory.mktemp("report") / "report.html")
    tab = browser.new_page(viewport=VIEW)
    tab.set_default_timeout(90_000)
    page = Page(tab).open(path).whole_flow()
    flow = int(page.page.evaluate("document.body.dataset.flow"))
    yield Opened(page, trace, path, flow, {row["frame"]: row for row in trace.packets([flow]).rows()})
    tab.close()


def check_point(opened: Opened, point: Point, points: list[Point], tooltip: str) -> None:
    """Whether a tooltip is that of a point, and the point where the tables say."""
    if point.trace == "least":
        return  # a level, which has no packets of its own
    assert tooltip, f"no tooltip at {point}"
    if point.trace.startswith(BINS):
        assert re.search(r"bit/s (?:IP [→←]|acknowledged)", tooltip) and frame_in(tooltip) is not None, (point, tooltip)
        return
    frame = frame_in(tooltip)
    near = {other.frame for other in points if other.panel == point.panel and distance(point, other) < NEAR}
    assert frame in near, (point, tooltip)
    if near != {point.frame}:
        return
    seconds, height = opened.at(point)
    width, tall = opened.pixel_size(point.panel)
    base = int(opened.page.page.evaluate("data.base"))
    if frame in opened.packets:
        assert abs((opened.packets[frame]["time_ns"] - base) / 1e9 - seconds) <= 2 * width, (point, tooltip)
    expected = [opened.on_axis(point.panel, value) for value in heights(opened, point, frame)]
    assert any(abs(value - height) <= 2 * tall for value in expected), (point, tooltip, height, expected)


def test_a_report_opens_offline_and_every_panel_answers_the_mouse(opened: Opened) -> None:
    points = opened.page.drawn()
    for panel in {point.panel for point in points}:
        in_panel = [point for point in points if point.panel == panel]
        for point in loneliest(in_panel, LOOKED_AT):
            check_point(opened, point, in_panel, opened.page.hover(point))
    assert opened.page.complaints == [] and opened.page.requests == [opened.path.as_uri()]


def test_a_click_gives_a_filter_for_the_frame_or_the_bin(opened: Opened) -> None:
    for panel in {point.panel for point in opened.page.drawn()}:
        opened.page.page.evaluate("choose({ frame: null })")  # the dock of the frame before may lie over the panel
        in_panel = [point for point in opened.page.drawn() if point.panel == panel]
        (point,) = loneliest(in_panel, 1)
        text = "document.getElementById('packet-filter').textContent"
        opened.page.page.evaluate(f"{text} = ''")
        opened.page.click(point)
        if point.trace.startswith(BINS):
            bin_filter = opened.page.until(f"{text}.includes('time_epoch') && {text}", 5)
            assert re.search(r"&& frame\.time_epoch >= \d+\.\d{9} && frame\.time_epoch < \d+\.\d{9}$", bin_filter)
        else:
            near = [f"frame.number == {other.frame}" for other in in_panel if distance(point, other) < NEAR]
            opened.page.until(f"{json.dumps(near)}.includes({text})", 5)


def test_a_box_zooms_both_axes_and_back_undoes_it(opened: Opened) -> None:
    page, axis = opened.page, "yaxis"
    page.page.evaluate(f"location.hash = '#flow={opened.flow}'")
    page.until("!location.hash.includes('frame') && choice.frame === null")
    page.drawn()
    ranges = page.range(), page.range(axis)
    corners = []
    for name, (start, end) in zip(("xaxis", axis), ranges, strict=True):
        corners.append([page.pixel(name, start + (end - start) * share) for share in (0.3, 0.7)])
    (left, right), (bottom, top) = corners
    page.drag((left, top), (right, bottom))
    for name, (start, end) in zip(("xaxis", axis), ranges, strict=True):
        expected = [start + (end - start) * share for share in (0.3, 0.7)]
        assert page.range(name) == pytest.approx(expected, abs=(end - start) * 0.01), name
    assert re.fullmatch(rf"#flow={opened.flow}&t=[-\d.]+&y=\w+:[-\d.]+", page.hash())
    page.page.go_back()
    page.until(f"location.hash === '#flow={opened.flow}'")
    page.until(f"Math.abs(document.getElementById('plot')._fullLayout.xaxis.range[0] - {ranges[0][0]}) < 1e-9")
    assert (page.range(), page.range(axis)) == ranges


def test_packets_in_the_page_are_those_of_the_table(opened: Opened) -> None:
    trace, page = opened.trace, opened.page.page
    packets = trace.packets(trace.flows.column("flow"))
    listed = page.evaluate("data.packets.flows")
    assert sorted(listed) == trace.flows.column("flow")
    loaded = page.evaluate(
        "(({who, time, frame, size, sequence, ack, window, flags, unique, rtt, known, ip, sacks}) => "
        "[who, time, frame, size, sequence, ack, window, flags, unique, rtt, known, ip, "
        "[...who].map((w, i) => sacks.get(i) || [])].map(a => [...a]))(tables.packets)"
    )
    base = int(page.evaluate("data.base"))
    for row, *values in zip(packets.rows(), *loaded, strict=True):
        who, seconds, frame, size, sequence, ack, window, flags, unique, rtt, known_bits, ip_bytes, sacks = values
        assert (listed[who // 2], who % 2, frame) == (row["flow"], row["direction"], row["frame"])
        assert abs(seconds * 1e9 + base - row["time_ns"]) < 1000
        assert size == row["payload_bytes"]
        for value, column, bit in (
            (sequence, "sequence", 1),
            (ack, "acknowledged", 2),
            (window, "window", 4),
            (flags, "flags", 8),
        ):
            assert (row[column] is not None) == bool(known_bits & bit)
            assert not known_bits & bit or value == row[column]
        assert ip_bytes == row["ip_bytes"]
        blocks = [[row[f"sack{n}_start"], row[f"sack{n}_end"]] for n in ("", 2, 3, 4)]
        assert sacks == [block for block in blocks if block[0] is not None]
        assert row["unique_bytes"] is None or unique == row["unique_bytes"]
        assert row["rtt_ns"] is None or abs(rtt * 1e6 - row["rtt_ns"]) < 1


@pytest.mark.parametrize("further", [[], ["vlan_ipv6.pcap"]], ids=["one", "two"])
def test_a_frame_of_several_files_has_the_name_of_its_file(
    page: Page, samples: Path, tmp_path: Path, further: list[str]
) -> None:
    trace = wiretale.analyze(*(samples / name for name in ["tcp_losses.pcap", *further]))
    (flow,) = [row["flow"] for row in trace.flows.rows() if row["source_port"] == 40110]
    page.open(trace.report(tmp_path / "report.html"), f"#flow={flow}")
    points = page.drawn()
    for trace_name in ("data", "ack", "rtt0", "lost", "fast_retransmission"):
        (point,) = loneliest([point for point in points if point.trace == trace_name], 1)
        assert ("of tcp_losses.pcap" in page.hover(point)) == bool(further), trace_name
        page.click(point)
        page.until("document.getElementById('packet-filter').textContent.startsWith('frame.number')")
        assert page.page.inner_text("#packet-file") == ("in tcp_losses.pcap" if further else "")
    assert page.complaints == []


@needs.TSHARK
def test_the_filter_of_a_bin_selects_its_packets(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    points = [point for point in page.drawn() if point.trace == "throughput0"]
    point = min(points, key=lambda candidate: candidate.y)
    page.page.mouse.click(point.x + 3, point.y)
    page.until("!document.getElementById('packet').hidden")
    bin_filter = page.page.inner_text("#packet-filter") + " && tcp.dstport == 5201"
    start, end = (int(time.replace(".", "")) for time in re.findall(r"time_epoch [<>]=? (\d+\.\d{9})", bin_filter))
    in_bin = [row for row in trace.packets([0]).rows() if row["direction"] == 0 and start <= row["time_ns"] < end]
    assert in_bin and point.value == pytest.approx(
        8e9 * sum(row["ip_bytes"] for row in in_bin) / (end - start), rel=1e-6
    )
    fields = ["tshark", "-r", str(samples / "tcp_losses.pcap"), "-Y", bin_filter, "-T", "fields", "-e", "ip.len"]
    lengths = subprocess.run(fields, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    assert sum(map(int, lengths)) == sum(row["ip_bytes"] for row in in_bin) and len(lengths) == len(in_bin)


@pytest.mark.parametrize(("bin_", "average"), [(0, 1), (0.001, 4), (0.1, 1)])
def test_bins_of_a_view_hold_its_packets(page: Page, samples: Path, tmp_path: Path, bin_: float, average: int) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    zoomed = "".join(
        f"&toggled={name}%3A{value}"
        for name, value in (("bin", bin_), ("average", average))
        if value > (name == "average")
    )
    page.open(trace.report(tmp_path / "report.html"), f"#flow=0&t=0.05-0.3{zoomed}")
    width = page.page.evaluate("shownBin()")
    assert width == bin_ or (not bin_ and 0.25 / 160 <= width <= 0.25 / 12)
    base = int(page.page.evaluate("data.base"))
    packets = [row for row in trace.packets([0]).rows() if row["direction"] == 0]
    starts, rates = page.page.evaluate("[view.all.throughput0.x, view.all.throughput0.y].map(list => [...list])")
    assert starts[0] <= 0.05 and starts[-1] >= 0.3
    for start, rate in zip(starts[:-1], rates[:-1], strict=True):
        begin, end = start - (average - 1) * width, start + width
        in_bin = [row for row in packets if begin <= (row["time_ns"] - base) / 1e9 + 1e-9 < end]
        assert rate == pytest.approx(8 * sum(row["ip_bytes"] for row in in_bin) / (average * width), rel=1e-6, abs=1), (
            start
        )


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
    assert page.page.inner_text("#count") == "200 of 3,000"
    assert page.page.locator("tr[data-flow='2900']").count() == 0
    page.page.fill("#find", "10.1.11.151:22900")
    assert page.page.inner_text("#count") == "1 of 3,000"
    page.page.click("tr[data-flow='2900']")
    page.until("document.body.dataset.flow === '2900'")
    assert page.hash() == "#flow=2900&find=10.1.11.151%3A22900"
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
    assert page.page.inner_text("#count") == "1" and len(page.frames("data")) == 1


def test_a_link_opens_a_flow_that_is_not_listed(page: Page, many: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(many).report(tmp_path / "report.html"), "#flow=2900")
    assert page.page.evaluate("document.body.dataset.flow") == "2900"
    assert "10.1.11.151:22900" in page.page.inner_text("#h-flow")
    assert page.page.inner_text("#note") == "" and len(page.frames("data")) == 1
    page.page.fill("#find", "10.1.11")
    assert page.page.inner_text("#count") == "250 of 3,000; the first 200 are listed"
    page.page.click("#more")
    assert page.page.locator("#flows tbody tr").count() == 250


def test_every_flow_in_the_page_is_that_of_the_tables(opened: Opened) -> None:
    from wiretale.analyzer.display_filter import flow_filter
    from wiretale.analyzer.findings.model import flow_str

    listed = opened.page.page.evaluate(
        "[...tables.flows.number.keys()].map(row => ({...flowAt(row), filter: displayFilter(row), bytes: tables.flows.bytes[row],"
        " rtt: tables.flows.rtt[row], lasted: tables.flows.lasted[row]}))"
    )
    assert len(listed) == len(opened.trace.flows)
    for row, flow in zip(opened.trace.flows.rows(), listed, strict=True):
        assert (flow["flow"], flow["name"], flow["filter"]) == (row["flow"], flow_str(row), flow_filter(row))
        assert (flow["packets"], flow["bytes"], flow["path"]) == (row["packets"], row["wire_bytes"], row["path"] or "")
        if row["handshake_rtt_ns"] is not None:
            assert flow["rtt"] == pytest.approx(row["handshake_rtt_ns"], rel=1e-4)


def test_the_list_and_the_terminal_have_the_same_words_for_problems(opened: Opened, wiretale_run: Any) -> None:
    done = wiretale_run("analyze", opened.trace.inputs[0], "--flows", "50", env={"COLUMNS": "400"})
    listed = opened.page.page.evaluate(
        """() => {
            const column = [...document.querySelectorAll("#flows th")].findIndex(head => head.dataset.key === "problems");
            const rows = [...document.querySelectorAll("#flows tbody tr")];
            return rows.map(row => [row.dataset.flow, row.cells[column]?.textContent]);
        }"""
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
