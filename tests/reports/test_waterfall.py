# SPDX-License-Identifier: Apache-2.0
"""The waterfall of requests, used with mouse and keys: a page of two connections whose every packet is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import DNS, DNSQR, DNSRR, IP, TCP, UDP, Raw

import wiretale
from crafted import Timed, ether, write_timed
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-packets")

ROWS = """[...document.querySelectorAll('#waterfall-rows tbody tr')].map(row => ({
  cells: [...row.cells].slice(0, 5).map(cell => cell.textContent), chosen: row.getAttribute('aria-selected') === 'true',
  told: row.querySelector('.request-bar').title,
  parts: [...row.querySelectorAll('.request-bar i')].map(part => {
    const box = part.getBoundingClientRect(), bar = part.parentElement.getBoundingClientRect();
    return [part.className.replace('time-', ''), (box.x - bar.x) / bar.width, (box.right - bar.x) / bar.width];
  })}))"""
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
NAME = "www.example"


def lookup() -> Timed:
    question, port = DNSQR(qname=NAME), {"sport": 4000, "dport": 53}
    answer = DNS(id=7, qr=1, qd=question, an=DNSRR(rrname=NAME, rdata=SERVER))
    query = ether(IP(src=CLIENT, dst="10.0.0.53") / UDP(**port) / DNS(id=7, rd=1, qd=question))
    return [(0.0, query), (0.1, ether(IP(src="10.0.0.53", dst=CLIENT) / UDP(sport=53, dport=4000) / answer))]


def fetched(port: int, begin: float, path: str, think: float, status: str = "200 OK") -> Timed:
    """A connection over a path of 100 ms, and a request that the server answers after a time, captured at the client."""
    timed: Timed = []

    def put(at: float, back: bool, seq: int, ack: int, flags: str, data: bytes = b"") -> None:
        ends = {"src": SERVER, "dst": CLIENT} if back else {"src": CLIENT, "dst": SERVER}
        ports = {"sport": 80, "dport": port} if back else {"sport": port, "dport": 80}
        timed.append((begin + at, ether(IP(**ends) / TCP(seq=seq, ack=ack, flags=flags, **ports) / Raw(data))))

    request = f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
    response = f"HTTP/1.1 {status}\r\nContent-Length: 900\r\n\r\n".encode() + b"x" * 900
    put(0.0, False, 100, 0, "S")
    put(0.1, True, 500, 101, "SA")
    put(0.1, False, 101, 501, "A")
    put(0.2, False, 101, 501, "PA", request)
    put(0.3 + think, True, 501, 101 + len(request), "PA", response)
    put(0.3 + think, False, 101 + len(request), 501 + len(response), "A")
    return timed


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("waterfall")
    timed = [
        *lookup(),
        *fetched(5001, 0.2, "/", 0.4),
        *fetched(5002, 1.0, "/<script>alert(1)</script>", 0.7, "503 Busy"),
    ]
    path = write_timed(folder / "page.pcap", sorted(timed, key=lambda row: row[0]))
    return wiretale.analyze(path).report(folder / "report.html")


def test_requests_have_the_parts_of_their_time(page: Page, report: Path) -> None:
    page.open(report, "#flow=1&tab=waterfall")
    first, second = page.until(ROWS)
    assert first["cells"][:3] == ["1", f"GET {NAME}", "200"] and second["cells"][:3] == ["2", f"GET {NAME}", "503"]
    assert first["told"] == "900 ms: name lookup 100 ms, connecting 100 ms, round trip 100 ms, server 400 ms"
    assert second["told"] == "1 s: connecting 100 ms, round trip 100 ms, server 700 ms"
    axis = 2.0  # seconds
    places = {
        "lookup": (0, 0.1), "connecting": (0.2, 0.3), "path": (0.4, 0.45), "server": (0.45, 0.85),
    }  # fmt: skip
    for part, begin, end in first["parts"][:4]:
        assert [begin * axis, end * axis] == pytest.approx(places[part], abs=0.02)
    assert page.page.inner_text("#packet-count") == f"2 requests of {CLIENT} in 2 flows"
    legend = page.page.locator("#waterfall-legend span").all_inner_texts()
    assert legend == ["name lookup", "connecting", "round trip", "server"]
    assert page.complaints == []


def test_a_request_is_chosen_and_a_range_is_dragged(page: Page, report: Path) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.open(report, "#flow=1&tab=waterfall")
    page.page.locator("#waterfall-rows tr[data-request='1'] td:nth-child(2)").click()
    page.until("location.hash.includes('flow=2') && location.hash.includes('frame=')")
    request_frame = int(page.page.evaluate("choice.frame"))
    assert page.until("document.body.dataset.flow === '2'")
    assert [row["chosen"] for row in page.page.evaluate(ROWS)] == [False, True]
    assert page.page.inner_text("#h-frame") == f"Frame {request_frame}" and page.page.is_visible("#undock")
    page.page.focus("#waterfall-rows")
    page.page.keyboard.press("ArrowUp")
    page.until("document.body.dataset.flow === '1' && location.hash.includes('flow=1')")
    assert [row["chosen"] for row in page.page.evaluate(ROWS)] == [True, False]
    bar: Any = page.page.locator("#waterfall-rows tr[data-request='0'] .request-bar").bounding_box()
    y = bar["y"] + 6
    page.drag((bar["x"] + bar["width"] * 0.25, y), (bar["x"] + bar["width"] * 0.4, y))
    page.until("choice.range && choice.range[0] > 0.4")
    assert page.page.evaluate("choice.range") == pytest.approx([0.5, 0.8], abs=0.02)
    (single,) = page.until(ROWS)
    assert [part for part, *_ in single["parts"]] == ["server"] and single["parts"][0][1:] == pytest.approx(
        [0, 1], abs=0.01
    )
    page.page.locator("#waterfall-rows .request-bar").dblclick()
    page.until("choice.range === null")
    assert len(page.page.evaluate(ROWS)) == 2 and page.complaints == []


def test_the_waterfall_fits_a_phone_and_a_capture_without_requests(
    page: Page, report: Path, samples: Path, tmp_path: Path
) -> None:
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.open(report, "#flow=1&tab=waterfall")
    assert page.until(ROWS) and page.page.evaluate("document.documentElement.scrollWidth") <= 390
    page.open(wiretale.analyze(samples / "udp_blocks.pcap").report(tmp_path / "none.html"), "#flow=0&tab=waterfall")
    assert page.page.inner_text("#packet-count") == "The capture has no requests"
    assert not page.page.is_visible("#waterfall-rows") and page.complaints == []
