# SPDX-License-Identifier: Apache-2.0
"""Selections of a report: what the reader chooses by mouse, keys and links are the flows that SQL over the tables finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wiretale
from one_queue import through_one_queue
from plain_wire import Connection
from report_page import Page

pytestmark = pytest.mark.xdist_group("selection")

DESK = {"width": 1440, "height": 900}
CHOSEN = "Array.from(selectedRows(), row => tables.flows.number[row])"
LISTED = "[...document.querySelectorAll('#flows tbody tr[data-flow]')].map(row => Number(row.dataset.flow))"
# A value of each facet, and the condition for it.
FACETS = {
    "host:10.1.1.2": "source = '10.1.1.2' OR destination = '10.1.1.2'",
    "client:10.1.1.3": "source = '10.1.1.3'",
    "server:10.1.2.4": "destination = '10.1.2.4'",
    "port:443": "destination_port = 443",
    "application:tcp": "coalesce(application, protocol) = 'tcp'",
    "cause:1": "flow IN (SELECT flow FROM cause_flows WHERE cause = 1)",
    "part:queue": "time_queue_ns > 0",
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


@pytest.mark.parametrize("facet", FACETS)
def test_a_facet_of_the_menu_selects_what_sql_finds(
    desk: Page, report: tuple[wiretale.Trace, Path], facet: str
) -> None:
    flows = flows_where(report[0], FACETS[facet])
    assert 0 < len(flows) <= 30
    desk.page.click("#facets summary")
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
