# SPDX-License-Identifier: Apache-2.0
"""Selections of a report: what the reader chooses by mouse, keys and links are the flows that SQL over the tables finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from one_queue import through_one_queue
from plain_wire import ACK, RST, SYN, Connection, Wire
from report_page import Page
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate
from wiretale.reports.html import analyze, timeline
from wiretale.reports.time_account import PARTS

pytestmark = pytest.mark.xdist_group("selection")

DESK = {"width": 1440, "height": 900}
CHOSEN = "Array.from(selectedRows(), row => tables.flows.number[row])"
LISTED = "[...document.querySelectorAll('#flows tbody tr[data-flow]')].map(row => Number(row.dataset.flow))"
WAITED = " + ".join(f"time_{part}_ns" for part in PARTS if part not in ("idle", "unknown"))
# A value of each facet, and the condition for it.
FACETS = {
    "host:10.1.1.2": "source = '10.1.1.2' OR destination = '10.1.1.2'",
    "client:10.1.1.3": "source = '10.1.1.3'",
    "server:10.1.2.4": "destination = '10.1.2.4'",
    "port:443": "destination_port = 443",
    "application:tcp": "coalesce(application, protocol) = 'tcp'",
    "cause:1": "flow IN (SELECT flow FROM cause_flows WHERE cause = 1)",
    "part:queue": f"time_queue_ns >= 0.1 * ({WAITED})",
    "verdict:spurious": "flow IN (SELECT flow FROM directions WHERE spurious_retransmissions > 0)",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[wiretale.Trace, Path]:
    """Twenty flows through a queue, and ten short ones to another port, one after the other."""
    folder = tmp_path_factory.mktemp("selection")
    wire, _ = through_one_queue(20, 20e6, 60, 2.0)
    for number in range(10):
        talk = Connection(wire, port=30000 + number, ends=(f"10.3.0.{number + 1}", "10.4.0.1"), server_port=443)
        talk.open(2500.0 + 100 * number).data(2540.0 + 100 * number, 0, 1000)
        talk.ack(2560.0 + 100 * number, 1000)
    trace = wiretale.analyze(wire.write(folder / "capture.pcap"))
    return trace, trace.report(folder / "report.html")


@pytest.fixture
def desk(page: Page, report: tuple[wiretale.Trace, Path]) -> Iterator[Page]:
    page.page.set_viewport_size(DESK)
    yield page.open(report[1])
    assert page.complaints == []


def flows_where(trace: wiretale.Trace, condition: str) -> list[int]:
    return [flow for (flow,) in trace.query(f"SELECT flow FROM flows WHERE {condition} ORDER BY flow").fetchall()]


def seconds(trace: wiretale.Trace, time: float) -> int:
    first_ns: int = min(ns for ns in trace.interfaces.column("first_ns") if ns is not None)
    return first_ns + int(time * 1e9)


# Whether the menu of facets is not cut off: its last line is what the mouse meets there.
IN_SIGHT = """(() => {
  const { x, bottom } = document.querySelector('#facets > div').getBoundingClientRect();
  return Boolean(document.elementFromPoint(x + 20, bottom - 4)?.closest('#facets'));
})()"""


@pytest.mark.parametrize("facet", FACETS)
def test_a_facet_of_the_menu_selects_what_sql_finds(
    desk: Page, report: tuple[wiretale.Trace, Path], facet: str
) -> None:
    flows = flows_where(report[0], FACETS[facet])
    assert 0 < len(flows) <= 30
    desk.page.click("#facets summary")
    assert desk.page.evaluate(IN_SIGHT)
    offered = desk.page.locator(f'#facets [data-only="{facet}"]')
    if offered.count():
        offered.click()
    else:  # not among the first of its kind
        desk.page.keyboard.press("Escape")
        desk.page.fill("#find", facet.replace(" ", "_"))
        desk.page.press("#find", "Enter")
    desk.until("location.hash.includes('only=')")
    assert desk.page.evaluate(CHOSEN) == flows == sorted(desk.page.evaluate(LISTED))
    assert int(desk.page.evaluate("document.body.dataset.flow")) in flows  # so that the plots are of one of them
    assert desk.page.inner_text("#selected-count").startswith(f"{len(flows)} of 30 flows")
    link = desk.page.url
    desk.page.click("#chips .chip")
    desk.until("!location.hash.includes('only=')")
    assert len(desk.page.evaluate(CHOSEN)) == 30 and not desk.page.is_visible("#chips")
    desk.page.goto(link)
    desk.until("location.hash.includes('only=')")
    desk.until("!document.getElementById('chips').hidden")
    assert desk.page.evaluate(CHOSEN) == flows


def test_values_of_a_facet_are_alternatives_and_facets_restrict_each_other(
    desk: Page, report: tuple[wiretale.Trace, Path]
) -> None:
    desk.open(report[1], "#only=client:10.1.1.1&only=client:10.1.1.2&only=client:10.3.0.1&only=port:443&find=10.4.")
    assert desk.page.evaluate(CHOSEN) == flows_where(report[0], "source = '10.3.0.1'")
    desk.page.click("#chips [aria-label='remove port 443']")
    desk.page.click("#chips [aria-label*='10.4.']")
    desk.until("!location.hash.includes('find=')")
    assert desk.page.evaluate(CHOSEN) == flows_where(report[0], "source IN ('10.1.1.1', '10.1.1.2', '10.3.0.1')")


def test_bar_and_causes_are_of_the_selected_flows(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    trace = report[0]
    desk.open(report[1], "#only=client:10.1.1.2&only=client:10.1.1.3")
    parts = [part for part, _ in desk.page.evaluate("data.times.parts")]
    sums = ", ".join(f"sum(time_{part}_ns) AS {part}" for part in parts)
    (row,) = trace.query(f"SELECT {sums} FROM flows WHERE source IN ('10.1.1.2', '10.1.1.3')").fetchall()
    times = dict(desk.page.evaluate("[...selectedTimes().sums]"))
    assert times == {part: pytest.approx(ns or 0, rel=1e-4) for part, ns in zip(parts, row, strict=True)}
    assert desk.page.inner_text("#time-base").endswith("in 2 selected flows")
    of_cause = {place: set(cause["flows"]) for place, cause in enumerate(desk.page.evaluate("data.causes"), 1)}
    expected = [place for place, flows in of_cause.items() if flows & set(desk.page.evaluate(CHOSEN))]
    shown = "[...document.querySelectorAll('li.finding')].filter(item => !item.classList.contains('beside'))"
    assert desk.page.evaluate(f"{shown}.map(item => Number(item.dataset.place))") == expected
    desk.open(report[1], "#only=client:10.3.0.1")
    assert desk.page.evaluate(f"{shown}.length") < len(of_cause) and desk.page.is_visible("#causes-note")


def test_the_brush_selects_the_flows_of_its_range(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    place = desk.page.locator("#timeline").bounding_box()
    assert place is not None
    left, width, y = place["x"] + 52, place["width"] - 52, place["y"] + 30
    desk.page.locator("#timeline").scroll_into_view_if_needed()
    desk.drag((left + 0.8 * width, y), (left + 0.9 * width, y))
    desk.until("location.hash.includes('during=')")
    low, high = desk.page.evaluate("choice.during")
    lives = f"epoch_ns(first_ns) <= {seconds(report[0], high)} AND epoch_ns(last_ns) >= {seconds(report[0], low)}"
    flows = flows_where(report[0], lives)
    assert 2 <= len(flows) <= 6 and desk.page.evaluate(CHOSEN) == flows == sorted(desk.page.evaluate(LISTED))
    assert int(desk.page.evaluate("document.body.dataset.flow")) in flows
    desk.page.click(f"#flows tr[data-flow='{flows[1]}']")  # its plots have the range of the brush
    desk.until(f"document.body.dataset.flow === '{flows[1]}'")
    assert desk.page.evaluate("[choice.range, choice.during]") == [[low, high], [low, high]]


def test_a_range_without_a_packet_of_the_flow_says_so(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    desk.open(report[1], "#flow=0&t=2.9-3.1")
    assert desk.page.is_visible("#empty") and not desk.page.is_visible("#stack")
    assert desk.page.inner_text("#empty-words").startswith("Flow 0 has no packet in 2.90–3.10 s: it lasts from")
    assert "Infinity" not in desk.page.inner_text("main")
    desk.page.click("#empty-whole")
    desk.until("!document.getElementById('stack').hidden")
    assert not desk.page.is_visible("#empty")
    desk.open(report[1], "#only=port:9")
    assert desk.page.inner_text("#selected-count").startswith("None of 30 flows") and not desk.page.is_visible(
        "#h-flow"
    )
    assert desk.page.inner_text("#flows tbody") == "No flow is in this selection."
    assert desk.page.inner_text("#causes-note") == "No cause is of this selection."


# --- the timeline of the selection


def bins_where(trace: wiretale.Trace, page: Page, column: str, condition: str) -> list[float]:
    """Sums of a column of series in the bins of the timeline, of the flows with a condition."""
    start, width, count = page.page.evaluate("[data.timeline.start, traffic.width, traffic.rates.length]")
    start_ns, width_ns = round(start * 1e9) + seconds(trace, 0), round(width * 1e9)
    low, high = f"{start_ns} + bin * {width_ns}", f"{start_ns} + (bin + 1) * {width_ns}"
    begin, end = "epoch_ns(start_ns)", "epoch_ns(start_ns) + width_ns"
    rows = trace.query(
        f"SELECT bin, sum({column} * (least({end}, {high}) - greatest({begin}, {low})) / width_ns)"
        f" FROM series, range({count}) AS bins(bin) WHERE {begin} < {high} AND {end} > {low}"
        f" AND flow IN (SELECT flow FROM flows WHERE {condition}) GROUP BY bin"
    ).fetchall()
    sums = dict(rows)
    return [float(sums.get(bin, 0)) for bin in range(count)]


BYTES = "Array.from(%s, rate => rate * traffic.width / 8)"


@pytest.mark.parametrize(
    ("link", "condition"),
    [
        ("#only=port:443", "destination_port = 443"),
        ("#find=10.1.1.2", "source = '10.1.1.2' OR source LIKE '10.1.1.2_'"),
    ],
)
def test_the_timeline_draws_the_selected_flows(
    desk: Page, report: tuple[wiretale.Trace, Path], link: str, condition: str
) -> None:
    desk.open(report[1], link)
    flows = flows_where(report[0], condition)
    assert desk.page.inner_text("#h-traffic") == f"Traffic of {len(flows)} flows"
    drawn = desk.page.evaluate(BYTES % "drawnTraffic().rates")
    assert drawn == pytest.approx(bins_where(report[0], desk, "bytes", condition), rel=1e-4, abs=0.01)
    ids = ", ".join(map(str, flows))
    (lost,) = (
        report[0]
        .query(
            "SELECT count(*) FROM events WHERE place IN ('upstream', 'downstream') AND spurious IS NOT TRUE"
            f" AND kind LIKE '%retransmission' AND flow IN ({ids})"
        )
        .fetchall()
    )
    assert desk.page.evaluate("drawnTraffic().lost.reduce((a, b) => a + b, 0)") == lost[0]
    before = desk.page.evaluate("document.querySelector('#timeline .steps').getAttribute('d')")
    desk.page.click("#chips .chip")
    desk.until("document.getElementById('h-traffic').textContent === 'All traffic'")
    assert desk.page.evaluate("document.querySelector('#timeline .steps').getAttribute('d')") != before
    assert desk.page.evaluate("drawnTraffic().rates === traffic.rates")


def test_the_timeline_stacks_by_a_facet(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    desk.page.select_option("#stack-by", "server")
    desk.until("location.hash.includes('stack=server')")
    layers = desk.page.evaluate("drawnTraffic().layers.map(({ words, facet }) => [words, facet])")
    servers = [
        server
        for (server,) in report[0]
        .query("SELECT destination FROM flows GROUP BY destination ORDER BY sum(wire_bytes) DESC, min(flow)")
        .fetchall()
    ]
    assert layers[-1] == [f"{len(servers) - 5} others", ""] and [words for words, _ in layers[:5]] == servers[:5]
    for place, server in enumerate(servers[:5]):
        drawn = desk.page.evaluate(BYTES % f"drawnTraffic().layers[{place}].rates")
        expected = bins_where(report[0], desk, "bytes", f"destination = '{server}'")
        assert drawn == pytest.approx(expected, rel=1e-4, abs=0.01)
    total = desk.page.evaluate(
        "Array.from(traffic.rates, (_, i) => drawnTraffic().layers.reduce((sum, layer) => sum + layer.rates[i], 0))"
    )
    assert total == pytest.approx(desk.page.evaluate("[...traffic.rates]"), rel=1e-4, abs=1)
    desk.page.click(f"#traffic-legend [data-only='server:{servers[1]}']")  # a layer selects its flows
    desk.until("location.hash.includes('only=')")
    assert desk.page.evaluate(CHOSEN) == flows_where(report[0], f"destination = '{servers[1]}'")
    assert [facet for _, facet in desk.page.evaluate("drawnTraffic().layers.map(one => [one.words, one.facet])")] == [
        f"server:{servers[1]}"
    ]
    desk.page.go_back()
    desk.page.go_back()
    desk.until("!location.hash.includes('stack=')")
    assert desk.page.evaluate("drawnTraffic().layers.length") == 0


def test_a_cause_of_many_flows_selects_and_stacks_all_of_them(page: Page, tmp_path: Path) -> None:
    """A server refuses 300 connections, and another one takes 20."""
    wire = Wire()
    for number in range(320):
        talk = Connection(wire, port=2000 + number, server_port=80 if number % 16 == 0 else 81)
        if talk.server_port == 80:
            talk.open(10.0 * number).data(10.0 * number + 30, 0, 1000).ack(10.0 * number + 50, 1000)
        else:
            talk.send(10.0 * number, 0, -1, flags=SYN).send(10.0 * number + 20, 1, -1, flags=RST | ACK, ack=0)
    trace = wiretale.analyze(wire.write(tmp_path / "capture.pcap"))
    refused = flows_where(trace, "destination_port = 81")
    of_cause = "flow IN (SELECT flow FROM cause_flows WHERE cause = 1)"
    assert len(refused) == 300 and trace.causes[0]["code"] == "refused" and flows_where(trace, of_cause) == refused
    page.open(trace.report(tmp_path / "report.html"), "#only=cause:1")
    assert page.page.evaluate(CHOSEN) == refused
    assert page.page.inner_text("#selected-count").startswith("300 of 320 flows")
    page.open(tmp_path / "report.html", "#stack=cause")
    first, other = page.page.evaluate("drawnTraffic().layers.map(({ words, rates }) => [words, [...rates]])")
    assert first[0].startswith("1 ") and "not among" not in other[0] and page.complaints == []
    for (_, rates), condition in ((first, of_cause), (other, "destination_port = 80")):
        drawn = [rate * page.page.evaluate("traffic.width") / 8 for rate in rates]
        assert drawn == pytest.approx(bins_where(trace, page, "bytes", condition), rel=1e-4, abs=0.01)


def test_values_of_the_timeline_stand_beside_the_pointer(desk: Page, report: tuple[wiretale.Trace, Path]) -> None:
    desk.open(report[1], "#stack=port")
    desk.page.locator("#timeline").scroll_into_view_if_needed()
    place = desk.page.locator("#timeline").bounding_box()
    bin, rate, x = desk.page.evaluate(
        "(() => { const i = traffic.rates.indexOf(Math.max(...traffic.rates));"
        " return [i, prefixed(traffic.rates[i], 'bit/s'), trafficX(traffic.from + (i + 0.5) * traffic.width)]; })()"
    )
    assert place is not None
    desk.page.mouse.move(place["x"] + x, place["y"] + 30)
    tip = desk.page.inner_text("#timeline-tip").split("\n")
    moment = desk.page.evaluate(
        "i => momentText(Math.max(traffic.from + i * traffic.width, traffic.first), traffic.from + (i + 1) * traffic.width)",
        bin,
    )
    assert tip[:2] == [moment, f"{rate} in all"] and any(line.endswith(" 80") for line in tip[2:]), tip
    desk.page.mouse.move(2, 2)
    assert not desk.page.is_visible("#timeline-tip")


def test_sums_of_flows_are_bounded(report: tuple[wiretale.Trace, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    trace = report[0]
    start, width, bins = min(trace.series.column("start_ns")), 10_000_000, 400
    flows, places, (sizes, packets) = trace.series._flow_sums(["bytes", "packets"], start, width, bins, 10_000)
    assert list(zip(flows, places, strict=True)) == sorted(set(zip(flows, places, strict=True)))
    assert sum(packets) == pytest.approx(trace.series.total("packets"))
    (sums,) = trace.series._time_sums(["bytes"], start, width, bins)
    by_bin = [0.0] * bins
    for place, size in zip(places, sizes, strict=True):
        by_bin[place] += size
    assert by_bin == pytest.approx(list(sums))
    assert trace.series._flow_sums(["bytes"], start, width, bins, len(flows) - 1) is None
    for wrong in (([], width, bins, 9), (["bytes"], 0, bins, 9), (["bytes"], width, 0, 9), (["bytes"], width, bins, 0)):
        with pytest.raises(ValueError):
            trace.series._flow_sums(wrong[0], start, *wrong[1:])
    monkeypatch.setattr(timeline, "SUMS_MOST", len(flows) // 3)
    made = timeline.timeline(trace, 0)
    assert made is not None and made["by_flow"]["wider"] in (5, 10, 20)
    monkeypatch.setattr(timeline, "SUMS_MOST", 5)
    made = timeline.timeline(trace, 0)
    assert made is not None and made["by_flow"] is None


# --- statistics of a range


def inside(trace: wiretale.Trace, span: tuple[float, float], flows: list[int]) -> dict[str, Any]:
    """Packets, bytes, losses and sorted round trips (ms) of flows within a range, by SQL over the tables."""
    ids, (low, high) = ", ".join(map(str, flows)), (seconds(trace, end) for end in span)
    during = f"epoch_ns(time_ns) BETWEEN {low} AND {high} AND flow IN ({ids})"
    ((packets, size),) = trace.query(f"SELECT count(*), sum(ip_bytes) FROM packets WHERE {during}").fetchall()
    ((lost,),) = trace.query(
        f"SELECT count(*) FROM events WHERE {during} AND place IN ('upstream', 'downstream')"
        " AND spurious IS NOT TRUE AND kind LIKE '%retransmission'"
    ).fetchall()
    rtts = trace.query(f"SELECT rtt_ns / 1e6 FROM packets WHERE {during} AND rtt_ns IS NOT NULL ORDER BY 1").fetchall()
    return {"packets": packets, "bytes": size or 0, "lost": lost, "rtts": [rtt for (rtt,) in rtts]}


def waited(trace: wiretale.Trace, span: tuple[float, float], flows: list[int]) -> dict[str, int]:
    """The account of flows within a range, ns by part, by SQL over the table of spans."""
    low, high = (seconds(trace, end) for end in span)
    begin, end = f"greatest(epoch_ns(start_ns), {low})", f"least(epoch_ns(end_ns), {high})"
    sums = trace.query(
        f"SELECT part, sum({end} - {begin}) FROM time_spans WHERE {end} > {begin} AND part NOT IN ('idle', 'unknown')"
        f" AND flow IN ({', '.join(map(str, flows))}) GROUP BY part"
    )
    return dict(sums.fetchall())


@pytest.mark.parametrize(
    ("span", "only"), [((0.5, 0.9), ""), ((0.503, 0.5112), ""), ((0.2, 1.7), "10.1.1.2"), ((2.6, 2.7), "")]
)
def test_a_range_has_the_statistics_of_what_is_inside(
    desk: Page, report: tuple[wiretale.Trace, Path], span: tuple[float, float], only: str
) -> None:
    trace = report[0]
    desk.open(report[1], f"#during={span[0]}-{span[1]}" + (f"&only=client:{only}" if only else ""))
    desk.until("!document.getElementById('range-facts').hidden")
    facts = desk.page.evaluate("(() => { const f = rangeFacts(choice.during); return {...f, rtts: [...f.rtts]}; })()")
    expected = inside(trace, span, flows_where(trace, f"source = '{only}'" if only else "TRUE"))
    assert {name: facts[name] for name in ("packets", "bytes", "lost", "binned")} == {
        **{name: expected[name] for name in ("packets", "bytes", "lost")},
        "binned": 0,
    }
    assert facts["rtts"] == pytest.approx(expected["rtts"], rel=1e-6) and facts["packets"] > 0
    line_of_facts = desk.page.inner_text("#range-facts")
    assert show_count(expected["packets"]) in line_of_facts and show_bytes(expected["bytes"]) in line_of_facts
    assert show_rate(8 * expected["bytes"] / (span[1] - span[0])) in line_of_facts
    for percent in (50, 95, 99) if expected["rtts"] else ():
        at = max(0, math.ceil(percent / 100 * len(expected["rtts"])) - 1)
        assert show_duration(expected["rtts"][at] * 1e6) in line_of_facts, line_of_facts
    parts = dict(desk.page.evaluate("[...selectedTimes().sums]"))  # the bar has the account of the range
    accounted = waited(trace, span, desk.page.evaluate(CHOSEN))
    assert {name: ns for name, ns in parts.items() if ns} == {
        name: pytest.approx(ns, rel=1e-5, abs=2e3)
        for name, ns in accounted.items()  # the page has whole µs of each span
    }
    bar = desk.page.inner_text("#time-base")
    assert bar.startswith(show_duration(sum(accounted.values())) if accounted else "nobody waited"), bar


def test_flows_without_packets_are_counted_by_bins(
    page: Page, report: tuple[wiretale.Trace, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, most = report[0], 2000
    monkeypatch.setattr(analyze, "PACKETS_MOST", most)
    page.open(trace.report(tmp_path / "report.html"), "#during=0.5-0.9")
    whole_flows = page.page.evaluate("[...tables.packets.places.keys()]")
    assert 0 < len(whole_flows) < 20
    facts = page.page.evaluate("rangeFacts(choice.during)")
    exact = inside(trace, (0.5, 0.9), whole_flows)
    for name, column in (("packets", "packets"), ("bytes", "bytes")):
        sums = bins_where(trace, page, column, f"flow NOT IN ({', '.join(map(str, whole_flows))})")
        start, width = page.page.evaluate("[traffic.from, traffic.width]")
        shares = [min(0.9, start + (i + 1) * width) - max(0.5, start + i * width) for i in range(len(sums))]
        binned = sum(size * max(share, 0) / width for size, share in zip(sums, shares, strict=True))
        assert facts[name] == pytest.approx(exact[name] + binned, rel=1e-4, abs=1)
    assert facts["binned"] == 20 - len([flow for flow in whole_flows if flow < 20])
    assert "to the nearest bin" in page.page.inner_text("#range-facts")
