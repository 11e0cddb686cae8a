# SPDX-License-Identifier: Apache-2.0
"""Charts of captures with pauses of hours, of ARP and of pings; and text that a reader has enlarged."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from causes_turns import pinged
from checkout import SAMPLES
from crafted import write_timed
from neighbor_wire import ABSENT, GATEWAY, MACS, SERVER, announces, answers, asks
from page_faults import covered
from plain_wire import Connection, Wire
from report_page import Page
from wiretale.reports.html.answer_times import answer_times, moments
from wiretale.reports.html.timeline import pauses_in, timeline

pytestmark = pytest.mark.xdist_group("unusual-charts")

HOUR_MS = 3_600_000.0
# Multiplies sizes of text in all rules of the page.
GROW = """factor => {
  const grow = (rules) => { for (const rule of rules) {
    if (rule.cssRules?.length) grow(rule.cssRules);
    for (const name of rule.style ? ["font-size", "line-height"] : []) {
      const value = rule.style.getPropertyValue(name);
      if (value.endsWith("px")) rule.style.setProperty(name, `${parseFloat(value) * factor}px`);
    }
  } };
  for (const sheet of document.styleSheets) grow(sheet.cssRules);
}"""


def bursts(starts_ms: tuple[float, ...]) -> Wire:
    """A connection of 5 s at each time, with data each 100 ms."""
    wire = Wire()
    for number, start in enumerate(starts_ms):
        talk = Connection(wire, port=20_000 + number).open(start)
        for step in range(50):
            talk.data(start + 100 * step + 50, 1000 * step, 1000).ack(start + 100 * step + 60, 1000 * (step + 1))
    return wire


def test_pauses_are_long_ones_that_are_most_of_the_capture() -> None:
    second = 10**9
    assert pauses_in([1, *[0] * 98, 1], 60 * second) == [(1, 99)]
    assert pauses_in([1, *[0] * 98, 1], second // 10) == []  # ten seconds
    assert pauses_in([1, *[0] * 40, *[1] * 60], 60 * second) == []  # less than half
    assert pauses_in([*[0] * 50, 1, *[0] * 50], 60 * second) == [(0, 50), (51, 101)]


def test_a_timeline_without_its_pause_shows_both_bursts(page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(bursts((0.0, 5 * HOUR_MS)).write(tmp_path / "pause.pcap"))
    drawn = timeline(trace, trace.interfaces[0]["first_ns"])
    assert drawn and drawn["width"] <= 0.2 and len(drawn["pauses"]) == 1
    page.open(trace.report(tmp_path / "pause.html", frames=False))
    words = page.page.locator("#timeline").text_content()
    assert "pause" in words and "5 h 00 min" in words and "+2" in words
    assert "axis cut at a pause" in page.page.locator("#traffic-unit").text_content()
    assert covered(page) == []
    box = page.page.locator("#timeline").bounding_box()
    middle, right = box["x"] + box["width"] / 2 + 80, box["x"] + box["width"] - 2
    page.drag((middle, box["y"] + 30), (right, box["y"] + 30))
    page.until("document.querySelectorAll('#flows tbody tr').length === 1")
    brushed = [float(text) for text in page.page.locator("#timeline").get_attribute("data-range").split()]
    assert brushed[0] == pytest.approx(18_000, abs=3) and brushed[1] == pytest.approx(18_005, abs=1)


def test_a_capture_without_a_long_pause_has_one_scale() -> None:
    trace = wiretale.analyze(SAMPLES / "tcp_losses.pcap")
    drawn = timeline(trace, trace.interfaces[0]["first_ns"])
    assert drawn and drawn["pauses"] == []


def test_pings_and_arp_alone_have_a_chart_of_their_answers(page: Page, tmp_path: Path) -> None:
    pings = pinged(lambda number: 20.0 + number, lost=(3, 9)).write(tmp_path / "pings.pcap")
    requests_sent = [asks(float(at), target) for at, target in enumerate((SERVER, GATEWAY, ABSENT))]
    arp = write_timed(
        tmp_path / "arp.pcap",
        [*requests_sent, answers(0.002, SERVER), answers(1.004, GATEWAY), announces(30.0, SERVER, MACS[SERVER])],
    )
    for file, requests, answered, unanswered in ((pings, "40 pings", 38, 2), (arp, "3 ARP requests", 2, 1)):
        trace = wiretale.analyze(file)
        chart = answer_times(trace)
        assert chart and (chart["requests"], chart["unanswered"]) == (requests, unanswered)
        assert (chart["dots"].count("M"), chart["misses"].count("M")) == (answered, unanswered)
        page.open(trace.report(tmp_path / f"{file.stem}.html", frames=False))
        assert page.page.locator("#answer-times .dots").count() == 1 and covered(page) == []


def test_the_times_of_answers_read_as_those_of_the_timeline() -> None:
    assert [text for _, text in moments(5.27)] == ["0", "2", "4"]
    assert [text for _, text in moments(62.0)] == ["0", "0:15", "0:30", "0:45", "1:00"]
    assert [text for _, text in moments(10_320.0)] == ["0", "1:00:00", "2:00:00"]


def test_traffic_that_has_other_charts_has_none_of_answers() -> None:
    assert answer_times(wiretale.analyze(SAMPLES / "tcp_losses.pcap")) is None


@pytest.mark.parametrize("sample", ["capture_drops.pcapng", "zero_window.pcap", "findings/scan.pcap.gz"])
def test_numbers_and_words_do_not_collide_at_any_size_of_text(page: Page, tmp_path: Path, sample: str) -> None:
    page.open(wiretale.analyze(SAMPLES / sample).report(tmp_path / "report.html", frames=False))
    before = 1.0
    for factor in (1.0, 1.3, 2.0):
        page.page.evaluate(GROW, factor / before)
        before = factor
        for width in (1440, 390):
            page.page.set_viewport_size({"width": width, "height": 900})
            page.page.wait_for_timeout(400)
            assert covered(page) == [], (factor, width)


def test_a_short_capture_begins_at_its_first_packet_and_has_the_rate_of_its_data(page: Page, tmp_path: Path) -> None:
    """Bins are whole milliseconds; two answers within a microsecond are no rate of the flow."""
    talk = Connection(Wire()).data(0.7, 0, 1000)
    talk.ack(1.2, 1000).ack(1.201, 1000)
    talk.data(2.7, 1000, 1000)
    trace = wiretale.analyze(talk.wire.write(tmp_path / "short.pcap"))
    page.open(trace.report(tmp_path / "short.html", frames=False))
    begin, gutter, steps = page.page.evaluate("[trafficX(traffic.first), canvas.gutter, stepsOfTraffic()]")
    assert begin == gutter and page.page.evaluate("traffic.from < traffic.first")
    assert [step["left"] for step in steps] == sorted(step["left"] for step in steps) and steps[0]["left"] == gutter
    narrow, *wide = (step["right"] - step["left"] for step in steps)
    assert len(wide) == 2 and narrow < wide[0] and wide[0] == pytest.approx(wide[1])
    ((rate,),) = trace.query("SELECT throughput_bps FROM directions WHERE direction = 0").fetchall()
    assert page.page.evaluate("tables.flows.throughput[0]") == pytest.approx(rate, rel=1e-3)
