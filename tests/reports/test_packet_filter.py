# SPDX-License-Identifier: Apache-2.0
"""The filter of the packet list, typed letter by letter, and the numbers of numbered packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-packets")

FRAMES = "[...document.querySelectorAll('#packet-rows tbody tr')].map(row => Number(row.dataset.frame))"
LISTED = "[...listed.items].map(item => tables.packets.frame[item])"

# What is typed, and the packets of the flow that it leaves.
TYPED: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("len>1000 ->", lambda row: row["payload_bytes"] > 1000 and row["direction"] == 0),
    ("← ack >= 100,000", lambda row: row["direction"] == 1 and (row["acknowledged"] or 0) >= 100_000),
    (
        "-len=0 seq<5000",
        lambda row: row["payload_bytes"] != 0 and row["sequence"] is not None and row["sequence"] < 5000,
    ),
    ("SYN", lambda row: row["flags"] & 2 != 0),
    ("frame=7", lambda row: row["frame"] == 7),
    ("frame>3 frame<=12 -SYN", lambda row: 3 < row["frame"] <= 12),
    ("<script>", lambda row: False),
]


def test_typed_filters_leave_the_packets_that_the_table_has(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    page.open(trace.report(tmp_path / "report.html"), "#flow=0")
    table: list[Any] = trace.packets([0]).rows()
    for text, passes in TYPED:
        page.page.fill("#match", "")
        page.page.locator("#match").press_sequentially(text)
        expected = [row["frame"] for row in table if passes(row)]
        page.until(f"document.getElementById('packet-count').textContent.startsWith('{len(expected)} of 342 match')")
        assert page.page.evaluate(LISTED) == expected, text
        assert page.page.evaluate(FRAMES) == expected[:22] or not expected
        assert page.page.is_visible("#panel-packets") == bool(expected)
    assert page.complaints == []


def test_verdicts_are_searched_and_the_filter_is_in_the_link(page: Page, samples: Path, tmp_path: Path) -> None:
    report = wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html")
    page.open(report, "#flow=0")
    page.page.locator("#match").press_sequentially('"fast retransmission"')
    page.until("location.hash.includes('match=')")
    assert page.until(FRAMES) == [155]
    page.page.locator("#packet-rows tr[data-frame='155'] td:nth-child(2)").click()
    page.until("location.hash.includes('frame=155')")
    page.page.fill("#match", "timeout")
    page.until(f"({FRAMES})[0] === 338")
    assert page.page.inner_text("#packet-count") == "1 of 342 match · frame 155 is not among them"
    assert "Fast retransmission" in page.page.inner_text("#frame-verdict")  # it stays chosen
    page.page.locator("#match").press("Escape")  # clears the filter, and the frame stays
    page.until("!location.hash.includes('match') && location.hash.includes('frame=155')")
    page.page.go_back()
    page.until(f"({FRAMES}).length === 1 && document.getElementById('match').value === '\"fast retransmission\"'")
    page.page.locator("#match").fill("len>x")
    page.until("document.getElementById('packet-count').textContent === 'len> needs a number'")
    page.page.click("#tab-ladder")
    page.open(report, "#flow=0&match=timeout&tab=ladder")
    assert page.page.evaluate("[...document.querySelectorAll('#ladder-rows .row')].map(row => row.dataset.frame)") == [
        "338"
    ]
    assert page.complaints == []


@needs.TSHARK
def test_the_decoded_frame_is_searched(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"), "#flow=0")
    assert page.page.inner_text("#packet-count") == "342 packets"
    page.page.locator("#match").press_sequentially('"Src Port" -SYN')
    page.until("location.hash.includes('SYN')")
    decoded: list[int] = page.page.evaluate("data.frames.list.map(({ frame }) => frame)")
    assert len(decoded) > 50 and page.until(LISTED) == sorted(frame for frame in decoded if frame > 2)


def test_numbered_packets_show_their_number(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "udp_blocks.pcap")
    page.open(trace.report(tmp_path / "report.html"), "#flow=0")
    block: Any = next(row for row in trace.blocks.rows() if row["flow"] == 0 and row["verdict"] == "out_of_order")
    page.page.locator("#match").press_sequentially(f"number={block['sequence']}")
    page.until(f"({FRAMES})[0] === {block['last_frame']}")
    cells = page.page.locator("#packet-rows tbody tr").first.locator("td").all_inner_texts()
    words = f"number {block['sequence']:,}"
    assert cells[3] == f"{block['sequence']:,}" and f"{words}" in cells[6] and "out of order" in cells[6]
    page.page.click("#tab-ladder")
    page.until("document.querySelector('#ladder-rows .row')")
    assert words in page.page.locator("#ladder-rows .row title").text_content()
    point = next(point for point in page.drawn() if point.frame == block["last_frame"])
    assert words in page.hover(point)
    assert page.complaints == []
