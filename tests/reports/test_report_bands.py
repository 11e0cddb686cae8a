# SPDX-License-Identifier: Apache-2.0
"""Where the time of a flow went as bands, and the waits of the chosen flow, in a real browser with the mouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import SAMPLES
from limited_talk import closed_window
from report_page import Page

LANES = """document.getElementById('plot').layout.shapes.filter(s => s.name.startsWith('part-'))
  .map(s => [s.name.slice(5), s.x0, s.x1, s.fillcolor])"""


class Made:
    def __init__(self, folder: Path) -> None:
        talk, self.full, self.opened = closed_window()
        trace = wiretale.analyze(talk.write(folder / "closed.pcap"))
        base = 1_700_000_000 * 10**9
        self.spans = [
            (row["part"], (row["start_ns"] - base) / 1e9, (row["end_ns"] - base) / 1e9)
            for row in trace.time_spans(0).rows()
        ]
        self.report = trace.report(folder / "report.html")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("bands"))


@pytest.fixture
def opened(page: Page, made: Made) -> Page:
    return page.open(made.report, "#flow=0")


def box(page: Page, selector: str) -> dict[str, float]:
    corners: dict[str, float] = page.page.evaluate(
        f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
        f" return {{x: b.x, y: b.y, width: b.width, height: b.height}}; }})(document.querySelector('{selector}'))"
    )
    assert corners["width"] > 40 and corners["height"] > 2, (selector, corners)
    return corners


def title_at(page: Page, selector: str, share: float, height: float = 0.5) -> str:
    """The words of an element with the mouse at a share of its width."""
    place = box(page, selector)
    page.page.mouse.move(place["x"] + share * place["width"], place["y"] + height * place["height"], steps=2)
    return str(page.page.evaluate(f"document.querySelector('{selector}').title"))


def hover_lane(page: Page, seconds: float) -> str:
    page.page.evaluate("document.querySelector('.band-legend').scrollIntoView({block: 'center'})")
    axis = page.panel("parts")
    x, y = page.pixel("xaxis", seconds), page.pixel(axis, 0.4)
    page.page.mouse.move(x, y - 40)
    page.page.mouse.move(x, y, steps=2)
    return str(page.page.evaluate("document.querySelector('.cross-tip').textContent"))


def test_the_lane_has_every_span_at_its_time(opened: Page, made: Made) -> None:
    drawn = opened.page.evaluate(LANES)
    assert [
        (kind, pytest.approx(start, abs=2e-6), pytest.approx(end, abs=2e-6)) for kind, start, end, _ in drawn
    ] == made.spans
    window = next((start, end) for kind, start, end, _ in drawn if kind == "window")
    assert window == (pytest.approx(made.full / 1e3, abs=1e-3), pytest.approx(made.opened / 1e3, abs=1e-3))
    assert opened.complaints == []


def test_the_mouse_over_the_lane_names_the_part(opened: Page, made: Made) -> None:
    tip = hover_lane(opened, (made.full + made.opened) / 2e3)
    assert "the receive window for 320 ms" in tip, tip
    value = opened.page.inner_text(".panel-head[data-panel=parts] .value")
    assert value == "the receive window"
    idle = next((start + end) / 2 for kind, start, end in made.spans if kind == "idle")
    assert "idle for" in hover_lane(opened, idle)


def test_the_legend_has_the_shares_of_the_view(opened: Page, made: Made) -> None:
    assert "the receive window" in opened.page.inner_text(".band-legend")
    start, end = made.full / 1e3 + 0.05, made.opened / 1e3 - 0.05
    opened.page.evaluate(f"choose({{range: [{start}, {end}]}})")
    opened.until("document.querySelector('.band-legend').textContent === 'the receive window 100%'")
    (lane,) = opened.page.evaluate(LANES)
    assert lane[:3] == ["window", start, end]


def test_both_directions_have_the_time_of_the_flow(opened: Page, made: Made) -> None:
    before = opened.page.evaluate(LANES)
    opened.page.click("#turn")
    opened.until("document.querySelector('.band-legend')")
    assert opened.page.evaluate(LANES) == before


def test_the_list_says_where_the_time_of_a_flow_went(opened: Page, made: Made) -> None:
    times = opened.page.get_attribute("#flows .mini", "aria-label").split(", ")
    assert any(text.startswith("window 320 ms") for text in times), times
    parts = {text.rpartition(" ")[0].rpartition(" ")[0] for text in times}
    assert opened.page.inner_text("#flows td.bars") in parts


def test_parts_that_share_a_color_fill_half_of_the_height(opened: Page) -> None:
    look = "document.getElementById('plot').layout.shapes.filter(s => s.name === 'part-%s').map(s => [s.y0, s.y1])"
    assert {tuple(shape) for shape in opened.page.evaluate(look % "idle")} == {(0, 0.5)}
    assert {tuple(shape) for shape in opened.page.evaluate(look % "window")} == {(0, 1)}


# --- the lane of waits ----------------------------------------------------------------------------------------------


def wait_words(page: Page, seconds: float) -> str:
    """The words of the timeline with the mouse in the lane of waits at a time."""
    page.page.evaluate("document.getElementById('timeline').scrollIntoView({block: 'center'})")
    at: dict[str, Any] = page.page.evaluate(
        "t => { const b = document.getElementById('timeline').getBoundingClientRect();"
        " const lane = document.querySelector('#timeline .wait').getBoundingClientRect();"
        " return {x: b.x + trafficX(t), y: lane.y + lane.height / 2}; }",
        seconds,
    )
    page.page.mouse.move(at["x"] - 3, at["y"])
    page.page.mouse.move(at["x"], at["y"], steps=2)
    return str(page.page.evaluate("document.querySelector('#timeline-tip .waits').textContent"))


def test_the_lane_shows_waits_for_server_and_client(page: Page, tmp_path: Path) -> None:
    """Requests at 0.1 s and every 0.92 s; the server takes 800 ms behind a round trip of 20 ms, the client pauses 100 ms."""
    report = wiretale.analyze(SAMPLES / "findings" / "slow-server.pcap.gz").report(tmp_path / "report.html")
    page.open(report, "#flow=0")
    assert wait_words(page, 0.5) == "0.12–0.92 s: waits for the server (800 ms)"
    assert wait_words(page, 0.97) == "0.92–1.02 s: waits for the client (100 ms)"
    assert page.page.inner_text("#traffic-legend").startswith("flow 0: server")
    assert page.page.evaluate("document.querySelectorAll('#timeline .wait').length") == 2


def test_the_lane_shows_stalls(page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(SAMPLES / "tcp_losses.pcap")
    row = next(row for row in trace.time_spans(0).rows() if row["part"] == "loss")
    page.open(trace.report(tmp_path / "report.html"), "#flow=0")
    base = int(page.page.evaluate("data.base"))
    assert "stalled or recovering" in wait_words(page, ((row["start_ns"] + row["end_ns"]) / 2 - base) / 1e9)


def test_the_lane_is_of_the_chosen_flow(page: Page, tmp_path: Path) -> None:
    report = wiretale.analyze(SAMPLES / "udp_blocks.pcap").report(tmp_path / "report.html")
    page.open(report)
    assert page.page.evaluate("document.querySelectorAll('#timeline .wait').length") == 0
    assert page.complaints == []
