# SPDX-License-Identifier: Apache-2.0
"""Distributions of a flow in its report: computed from the packets of the page, against the tables and crafted losses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
from scapy.all import wrpcap

import wiretale
from checkout import SAMPLES
from report_page import VIEW, Page, loneliest
from talk import Talk
from wiretale.analyzer.units import show_duration

pytestmark = pytest.mark.xdist_group("report-distributions")

SEGMENT, RTT = 1000, 20.0
LOST = (10, 11, 12, 20)  # a run of three segments, and one alone
OPENED = "#flow=0&toggled=distributions"


def with_losses(path: Path) -> Path:
    """40 segments, 2 ms apart, captured at the sender; lost ones are retransmitted after the rest, then all is acknowledged."""
    talk = Talk().open(RTT)
    for n in range(40):
        talk.data(30 + 2 * n, n * SEGMENT)
        sack = (
            ((max([10, *(number + 1 for number in LOST if number < n)]) * SEGMENT, (n + 1) * SEGMENT),)
            if n > LOST[0]
            else ()
        )
        if n not in LOST:
            talk.ack(30 + 2 * n + RTT, min(n + 1, LOST[0]) * SEGMENT, *sack)
    for k, n in enumerate(LOST):
        talk.data(135 + k, n * SEGMENT)
    talk.ack(139 + RTT, 40 * SEGMENT)
    talk.packets.sort(key=lambda packet: float(packet.time))
    wrpcap(str(path), talk.packets)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[wiretale.Trace, Path]:
    folder = tmp_path_factory.mktemp("distributions")
    trace = wiretale.analyze(with_losses(folder / "losses.pcap"))
    return trace, trace.report(folder / "report.html")


@pytest.fixture
def opened(made: tuple[wiretale.Trace, Path], browser: Any) -> Iterator[Page]:
    tab = browser.new_page(viewport=VIEW)
    yield Page(tab).open(made[1], OPENED)
    tab.close()


def figures(page: Page) -> dict[str, dict[str, Any]]:
    """Title, words and points of each figure that is drawn."""
    page.until("document.querySelectorAll('#distribution-plots .js-plotly-plot .cartesianlayer').length > 0")
    plots: list[dict[str, Any]] = page.page.evaluate(
        "[...document.querySelectorAll('#distribution-plots figure')].map(one => ({title: one.querySelector('b').textContent,"
        " words: one.querySelector('span').textContent, x: one.lastChild.data[0].x, y: one.lastChild.data[0].y}))"
    )
    return {plot["title"]: plot for plot in plots}


def test_runs_of_losses_are_those_of_the_stream(opened: Page, made: tuple[wiretale.Trace, Path]) -> None:
    assert sum(row["lost_downstream"] or 0 for row in made[0].directions.rows()) == len(LOST)
    runs = figures(opened)["Losses in a row"]
    assert dict(zip(runs["x"], runs["y"], strict=True)) == {"1": 1, "2": 0, "3": 1}
    assert "2 runs, longest 3" in runs["words"] and opened.complaints == []


def test_times_are_those_of_the_tables(opened: Page, made: tuple[wiretale.Trace, Path]) -> None:
    trace, _ = made
    packets = trace.packets([0]).rows()
    plots = figures(opened)
    rtts = [row["rtt_ns"] / 1e6 for row in packets if row["rtt_ns"] is not None and row["direction"] == 1]
    assert f"median {show_duration(median_low(rtts) * 1e6)} of {len(rtts)}" in plots["Round trip"]["words"]
    assert plots["Round trip"]["x"][-1] == pytest.approx(max(rtts)) and plots["Round trip"]["y"][-1] == 100
    changes = [abs(b - a) for a, b in itertools.pairwise(rtts)]
    assert f"of {len(changes)}" in plots["Jitter"]["words"] and plots["Jitter"]["x"][-1] == pytest.approx(max(changes))
    sent = [row["time_ns"] for row in packets if row["payload_bytes"] and not row["direction"]]
    gaps = sorted((b - a) / 1e6 for a, b in itertools.pairwise(sent))
    assert plots["Time between packets"]["x"] == pytest.approx(gaps)
    assert plots["Time between losses"]["x"] == pytest.approx([1.0, 1.0, 1.0], abs=1e-3)


def test_the_range_in_view_is_that_of_the_samples(page: Page, made: tuple[wiretale.Trace, Path]) -> None:
    page.open(made[1], OPENED)
    before = figures(page)["Time between packets"]["words"]
    page.page.evaluate("choose({range: [0.029, 0.041]})")
    page.until("document.getElementById('distribution-note').textContent.startsWith('Of the range')")
    part = figures(page)
    assert "of 43" in before and "of 5" in part["Time between packets"]["words"]
    assert "Losses in a row" not in part


def test_numbers_that_no_block_has_are_runs(page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(SAMPLES / "udp_blocks.pcap")
    page.open(trace.report(tmp_path / "report.html"), OPENED)
    plots = figures(page)
    runs = plots["Losses in a row"]
    assert (
        sum(int(x) * y for x, y in zip(runs["x"], runs["y"], strict=True)) == 3
    )  # two and one (sample_pcaps/README.md)
    delays = [row["latency_ns"] for row in trace.blocks.rows() if not row["flow"] and not row["direction"]]
    assert f"of {len(delays)}" in plots["Delay of blocks"]["words"]
    assert plots["Delay of blocks"]["x"][-1] == pytest.approx((max(delays) - min(delays)) / 1e6)


def test_the_section_opens_with_the_mouse_and_closes_with_back(page: Page, made: tuple[wiretale.Trace, Path]) -> None:
    page.open(made[1]).whole_flow()
    assert page.page.locator("#distribution-plots figure").count() == 0
    page.page.click("#distributions summary")
    page.until("location.hash.includes('toggled=distributions')")
    assert "Round trip" in figures(page)
    plot = "document.querySelectorAll('#distribution-plots .js-plotly-plot')[2]"
    page.page.evaluate(f"{plot}.id = 'third'")
    (point,) = loneliest(page.drawn("third"), 1)
    assert "% at most" in page.hover(point, "third")
    page.page.go_back()
    page.until("!document.getElementById('distributions').open")
    assert page.complaints == []


@pytest.mark.parametrize("width", [390, 1440])
def test_figures_fit_the_window(browser: Any, made: tuple[wiretale.Trace, Path], width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    page = Page(tab).open(made[1], OPENED)
    figures(page)
    edges = "[...document.querySelectorAll('#distribution-plots svg')].map(one => one.getBoundingClientRect().right)"
    assert max(page.page.evaluate(edges)) <= width
    tab.close()
