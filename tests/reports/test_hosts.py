# SPDX-License-Identifier: Apache-2.0
"""The ladder of hosts, used with mouse and keys: a session through a proxy whose every packet is known."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from scapy.all import DNS, DNSQR, DNSRR, IP, UDP

import wiretale
from attempt_wire import CLIENT, Ends
from crafted import Timed, ether, write_timed
from page_faults import violations
from report_page import Page
from wiretale.reports.html import analyze

pytestmark = pytest.mark.xdist_group("report-packets")

PROXY, BACKEND, RESOLVER, CLOSED = "10.2.0.2", "10.3.0.3", "10.0.0.53", "10.4.0.4"
NAME = "shop.example"
# The messages of the ladder: sender and receiver by their columns, and what is told; a pause has its words alone.
ROWS = """[...document.querySelectorAll('#hosts-rows g > [data-message]')].map(row => {
  const names = [...document.querySelectorAll('#hosts-names span')].map(span => span.textContent);
  const lives = [...document.querySelectorAll('#hosts-rows .life')].map(line => Number(line.getAttribute('x1')));
  const line = row.querySelector('line'), told = row.querySelector('.words');
  const at = name => names[lives.findIndex(x => Math.abs(x - Number(line.getAttribute(name))) < 2)];
  return [at('x1'), at('x2'), told.getBBox().width ? told.textContent : '', told.classList.contains('failed')];
})"""


def fetched(ends: Ends, at: float, think: float, status: str, size: int) -> Timed:
    """A connection of a path of 20 ms, a request and its response in two segments."""
    request = f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode()
    response, begin = head + bytes(size), at + 0.02
    half, end = len(response) // 2, 1001 + len(request)
    return [
        ends.syn(at),
        *ends.accepts(begin),
        ends.segment(begin + 0.001, False, "PA", data=request, seq=1001, ack=5001),
        ends.segment(begin + 0.021 + think, True, "A", data=response[:half], seq=5001, ack=end),
        ends.segment(begin + 0.022 + think, False, "A", seq=end, ack=5001 + half),
        ends.segment(begin + 0.023 + think, True, "PA", data=response[half:], seq=5001 + half, ack=end),
        ends.segment(begin + 0.024 + think, False, "A", seq=end, ack=5001 + len(response)),
    ]


def session() -> Timed:
    question, ports = DNSQR(qname=NAME), {"sport": 4000, "dport": 53}
    query = IP(src=CLIENT, dst=RESOLVER) / UDP(**ports) / DNS(id=7, rd=1, qd=question)
    answer = DNS(id=7, qr=1, qd=question, an=DNSRR(rrname=NAME, rdata=PROXY))
    refused = Ends(port=41000, server=CLOSED)
    return [
        (0.0, ether(query)),
        (0.1, ether(IP(src=RESOLVER, dst=CLIENT) / UDP(sport=53, dport=4000) / answer)),
        *fetched(Ends(server=PROXY), 0.2, 0.4, "503 Busy", 500),
        *fetched(Ends(client=PROXY, server=BACKEND, port=50000), 0.3, 0.2, "200 OK", 900),
        refused.syn(1.5),
        refused.segment(1.52, True, "RA", seq=0, ack=1001),
        *fetched(Ends(client="10.9.0.9", server=BACKEND, port=50001), 3.0, 0.1, "200 OK", 900),  # of another session
    ]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> wiretale.Trace:
    folder = tmp_path_factory.mktemp("hosts")
    return wiretale.analyze(write_timed(folder / "session.pcap", sorted(session(), key=lambda row: row[0])))


@pytest.fixture(scope="module")
def report(trace: wiretale.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trace.report(tmp_path_factory.mktemp("report") / "report.html")


def test_a_session_is_told_between_its_hosts(page: Page, report: Path) -> None:
    page.page.set_viewport_size({"width": 1440, "height": 900})
    page.open(report, "#flow=1&tab=hosts")
    opened = ["SYN, connected after 20.1 ms", "SYN ACK", "ACK", f"GET {NAME}, 38 B"]
    ways = [(CLIENT, PROXY), (PROXY, CLIENT), (CLIENT, PROXY), (CLIENT, PROXY)]
    behind = [(PROXY, BACKEND), (BACKEND, PROXY), (PROXY, BACKEND), (PROXY, BACKEND)]
    assert page.until(ROWS) == [
        [CLIENT, RESOLVER, f"A {NAME}, 30 B", False],
        [RESOLVER, CLIENT, "NOERROR after 100 ms, 58 B", False],
        *([*way, words, False] for way, words in zip(ways, opened, strict=True)),
        *([*way, words, False] for way, words in zip(behind, opened, strict=True)),
        [BACKEND, PROXY, "200 after 220 ms, 940 B, 2 packets in 2 ms", False],
        [PROXY, CLIENT, "503 after 420 ms, 542 B, 2 packets in 2 ms", True],
        [CLIENT, CLOSED, "SYN, refused after 20 ms", True],
        [CLOSED, CLIENT, "RST ACK, reset", False],
    ]
    assert page.page.inner_text("#packet-count") == f"14 messages of {CLIENT}, 5 hosts, 4 flows"
    pauses = page.page.locator("#hosts-rows g > text").all_text_contents()
    assert [text for text in pauses if "without" in text] == ["220 ms without a message", "856 ms without a message"]
    assert violations(page) == []
    page.open(report, "#flow=1&tab=hosts&t=0.5-0.7")
    assert [row[:2] for row in page.until(ROWS)] == [[BACKEND, PROXY], [PROXY, CLIENT]] and page.complaints == []


def test_a_message_is_chosen_and_a_selection_is_the_session(page: Page, report: Path) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.open(report, "#flow=1&tab=hosts")
    page.page.locator("#hosts-rows [data-message='10'] .words").click()
    page.until("document.body.dataset.flow === '2' && location.hash.includes('frame=')")
    page.until("document.querySelector('#hosts-rows .chosen')?.dataset.message === '10'")
    assert page.page.inner_text("#h-frame") == f"Frame {page.page.evaluate('choice.frame')}"
    assert page.page.is_visible("#undock") and page.page.evaluate("choice.tab") == "hosts"
    page.page.focus("#hosts-rows")
    page.page.keyboard.press("ArrowDown")
    page.until("document.body.dataset.flow === '1'")
    page.until("document.querySelector('#hosts-rows .chosen')?.dataset.message === '11'")
    page.open(report, f"#flow=4&tab=hosts&only=host:{BACKEND}")
    page.until(f"({ROWS}).length === 10")
    assert page.page.inner_text("#packet-count") == "10 messages of the selected flows, 3 hosts, 2 flows"
    assert page.complaints == []


def test_flows_without_packets_have_messages_of_exchanges_and_all_fits_a_phone(
    page: Page, trace: wiretale.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze, "PACKETS_MOST", 8)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.open(trace.report(tmp_path / "report.html"), "#flow=1&tab=hosts")
    rows, with_packets = page.until(ROWS), page.page.evaluate("[...tables.packets.places.keys()]")
    assert len(with_packets) < 4 and rows[0][:2] == [CLIENT, "2 others"] and "NOERROR after 100 ms" in rows[1][2]
    assert ["flow 3: SYN, refused after 20 ms", True] in [row[2:] for row in rows]
    names = page.page.evaluate(
        "[...document.querySelectorAll('#hosts-names span')].map(name => { const words = new Range();"
        " words.selectNodeContents(name); const { x, right, y } = words.getBoundingClientRect(); return [y, x, right]; })"
    )
    beside = [(name, other) for name, other in combinations(sorted(names), 2) if name[0] == other[0]]
    assert len(names) == 4 and all(name[2] < other[1] for name, other in beside)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390 and page.complaints == []
