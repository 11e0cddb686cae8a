# SPDX-License-Identifier: Apache-2.0
"""The dock of packets and frame below the plots, used with mouse and keys in a window of 1280 × 720 and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-packets")

SIZES = [(1280, 720), (1440, 900), (390, 844)]
# Whether a part is in the window, and nothing lies over its middle.
SEEN = """id => {
  const part = document.getElementById(id), box = part.getBoundingClientRect();
  const x = box.x + Math.min(box.width, 60) / 2, y = box.y + box.height / 2;
  return y > 0 && y < innerHeight && part.contains(document.elementFromPoint(x, y));
}"""
MARKS = """[...document.querySelectorAll('.mark-ring')].map(ring => {
  const box = ring.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})"""


def opened(page: Page, path: Path, report: Path, width: int, height: int, fragment: str = "#flow=0") -> Page:
    page.page.set_viewport_size({"width": width, "height": height})
    if not report.exists():
        wiretale.analyze(path).report(report)
    return page.open(report, fragment)


def seen(page: Page, name: str) -> bool:
    return bool(page.page.evaluate(SEEN, name))


def dock(page: Page) -> dict[str, float]:
    box: dict[str, float] = page.page.locator("#packets").bounding_box()
    return box


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_click_on_a_point_shows_its_frame_and_marks_the_point(
    page: Page, samples: Path, tmp_path: Path, width: int, height: int
) -> None:
    opened(page, samples / "tcp_losses.pcap", tmp_path / "report.html", width, height)
    in_view = [p for p in page.drawn() if 20 < p.y < height - 20 and p.trace.endswith("retransmission")]
    assert in_view
    for point in in_view[:2]:
        page.page.evaluate("choose({frame: null})")
        page.page.evaluate("document.getElementById('plot').scrollIntoView()")
        page.click(point)
        page.until(f"document.getElementById('h-frame').textContent === 'Frame {point.frame}'")
        assert page.until("document.querySelectorAll('.mark-ring').length")
        assert seen(page, "h-frame") and seen(page, "frame-verdict"), point
        marks: list[list[float]] = page.page.evaluate(MARKS)
        scrolled = page.page.evaluate("document.getElementById('plot').getBoundingClientRect().y")
        assert min(abs(x - point.x) + abs(y - (point.y + scrolled)) for x, y in marks) < 4, (point, marks)
        assert any(0 < y < dock(page)["y"] for _, y in marks)
        assert round(dock(page)["y"] + dock(page)["height"]) == height
    assert page.complaints == []


def test_a_click_on_a_packet_marks_its_point_above_the_dock(page: Page, samples: Path, tmp_path: Path) -> None:
    opened(page, samples / "tcp_losses.pcap", tmp_path / "report.html", 1280, 720)
    page.page.locator("#packet-rows tr[data-frame='7'] td:nth-child(5)").click()
    page.until("location.hash.includes('frame=7')")
    assert page.until("document.querySelectorAll('.mark-ring').length")
    assert any(0 < y < dock(page)["y"] for _, y in page.page.evaluate(MARKS)) and seen(page, "h-frame")
    row: Any = page.page.locator("#packet-rows [aria-selected=true]").bounding_box()
    assert dock(page)["y"] < row["y"] < 720 - row["height"]
    page.page.focus("#packet-rows")
    page.page.keyboard.press("Escape")
    page.until("!location.hash.includes('frame')")
    assert page.page.evaluate("document.querySelectorAll('.mark-ring, .mark-line, .docked').length") == 0


def test_the_edge_of_the_dock_is_moved_by_mouse_and_keys_and_is_in_the_link(
    page: Page, samples: Path, tmp_path: Path
) -> None:
    path, report = samples / "tcp_losses.pcap", tmp_path / "report.html"
    opened(page, path, report, 1280, 720, "#flow=0&frame=7")
    edge: Any = page.page.locator("#dock-edge").bounding_box()
    before = dock(page)["height"]
    page.drag((600, edge["y"] + 4), (600, edge["y"] - 96))
    dragged = dock(page)["height"]
    assert dragged == before + 100 and f"size=dock:{dragged:.0f}" in page.hash()
    page.page.focus("#dock-edge")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    page.until(f"location.hash.includes('size=dock:{dragged - 40:.0f}')")
    assert dock(page)["height"] == dragged - 40
    list_box: Any = page.page.locator("#packet-rows").bounding_box()
    assert list_box["y"] + list_box["height"] <= 720
    link = page.hash()
    page.page.keyboard.press("Home")
    page.until("!location.hash.includes('size')")
    assert dock(page)["height"] == before
    page.open(report, link)
    assert dock(page)["height"] == dragged - 40 and page.complaints == []
