# SPDX-License-Identifier: Apache-2.0
"""The stream of a flow in a report: payload as text and hex, gaps, and text that must not act."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import IP, TCP, Raw

import wiretale
from crafted import ether, write_timed
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-packets")

BLOCKS = """[...document.querySelectorAll('#stream pre')].map(block => [block.className, block.textContent])"""
HOSTILE = b"GET /<script>document.title='owned'</script>\x00\x1b[2J HTTP/1.1\r\nHost: \xe2\x80\xaeevil\xff\r\n\r\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A request, sent twice, and a response whose middle was not captured and whose segments came in another order."""
    folder, size = tmp_path_factory.mktemp("stream"), len(HOSTILE)
    segments = [
        *[(0.0, False, 100, 0, "S", b""), (0.1, True, 500, 101, "SA", b""), (0.1, False, 101, 501, "A", b"")],
        *[(0.2, False, 101, 501, "PA", HOSTILE), (0.5, False, 101, 501, "PA", HOSTILE)],
        *[(0.6, True, 501, 101 + size, "A", b"HTTP/1.1 200 OK\r\n"), (0.7, True, 618, 101 + size, "A", b"end")],
        *[(0.8, True, 518, 101 + size, "A", b"part "), (0.9, False, 101 + size, 621, "A", b"")],
    ]
    timed = []
    for at, back, seq, ack, flags, data in segments:
        ends = {"src": "10.0.0.2", "dst": "10.0.0.1"} if back else {"src": "10.0.0.1", "dst": "10.0.0.2"}
        ports = {"sport": 80, "dport": 5000} if back else {"sport": 5000, "dport": 80}
        timed.append((at, ether(IP(**ends) / TCP(seq=seq, ack=ack, flags=flags, **ports) / Raw(data))))
    return wiretale.analyze(write_timed(folder / "talk.pcap", timed)).report(folder / "report.html")


def test_payload_is_in_order_once_with_gaps_and_cannot_act(page: Page, report: Path) -> None:
    page.open(report, "#flow=0")
    page.page.click("#tab-stream")
    (sent, request), (returned, response) = page.until(f"{BLOCKS}.length === 2 && {BLOCKS}")
    assert request == "GET /<script>document.title='owned'</script>··[2J HTTP/1.1\nHost: ·evil·\n\n" and sent == "sent"
    assert response == "HTTP/1.1 200 OK\npart [95 bytes not captured]end" and returned == "returned"
    assert page.page.evaluate("document.querySelectorAll('#stream script').length") == 0
    assert page.page.evaluate("document.title") != "owned"
    assert page.page.inner_text("#packet-count") == f"{len(HOSTILE) + 25:,} of {len(HOSTILE) + 120:,} bytes in the page"
    assert page.complaints == []


def test_hex_and_frames_are_a_click_away(page: Page, report: Path) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.open(report, "#flow=0&tab=stream")
    page.page.locator("#stream-hex").click()
    page.until("location.hash.includes('toggled=stream%3Ahex')")
    first = page.until(f"{BLOCKS}[0]?.[1].includes('47 45 54') && {BLOCKS}")[0][1].splitlines()[0]
    assert first == f"{0:8}  {HOSTILE[:16].hex(' '):48} {HOSTILE[:16].decode()}"
    page.page.locator("#stream span[data-frame='7']").click()
    page.until("document.getElementById('h-frame').textContent === 'Frame 7'")
    assert page.until("document.querySelector('#stream .chosen')?.textContent.includes('65 6e 64')")
    page.page.locator("#stream-hex").click()
    assert page.until(f"{BLOCKS}[0]?.[1].startsWith('GET') && location.hash.includes('tab=stream')")
    page.page.set_viewport_size({"width": 390, "height": 844})
    assert page.until("document.documentElement.scrollWidth <= 390") and page.complaints == []
