# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it opens offline, draws, zooms to single packets, and runs nothing of an attacker's."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import IP, UDP, Ether, Raw, wrpcap

import wiretale
from plain_wire import Connection, Wire
from report_page import Page
from talk import Talk

pytestmark = pytest.mark.xdist_group("html-report")


def test_a_click_on_a_flow_draws_it(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    for flow in (0, 3, 6):
        page.page.click(f"tr[data-flow='{flow}']")
        page.until(f"document.body.dataset.flow === '{flow}'")
        assert f"Flow {flow}:" in page.page.inner_text("#h-flow")
        assert page.points() > 0
        drawn = set(page.frames("data") + page.frames("other") + page.frames("ack"))
        packets = trace.packets([flow])
        assert drawn and drawn <= set(packets.column("frame"))
    assert page.complaints == []


def test_the_list_sorts_and_filters(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    page.open(trace.report(tmp_path / "report.html"))

    def listed() -> list[int]:
        return [
            int(n)
            for n in page.page.evaluate("[...document.querySelectorAll('#flows tbody tr')].map(r => r.dataset.flow)")
        ]

    sizes = trace.flows.column("wire_bytes")
    assert listed() == sorted(range(7), key=lambda flow: -sizes[flow])
    page.page.click("th[data-key='flow'] button")
    assert listed() == list(range(6, -1, -1))
    page.page.click("th[data-key='flow'] button")
    assert listed() == list(range(7))
    page.page.fill("#find", "udp vlan")
    assert listed() == [2]
    page.page.focus("tr[data-flow='2']")
    page.page.keyboard.press("Enter")
    page.until("document.body.dataset.flow === '2'")


def test_zoom_reaches_single_packets(page: Page, tmp_path: Path) -> None:
    talk = Connection(Wire())
    for number in range(20_000):
        talk.data(number, 100 * number, 100)
    path = talk.wire.write(tmp_path / "long.pcap")
    page.open(wiretale.analyze(path).report(tmp_path / "report.html"))
    assert 0 < int(page.page.evaluate("document.body.dataset.points")) <= 6000  # thinned
    page.page.evaluate("location.hash = '#flow=0&t=10-10.0049'")
    page.until("document.getElementById('plot').data.find(t => t.meta === 'data').customdata.length < 20")
    assert set(range(10_001, 10_006)) <= set(page.frames("data")) <= set(range(10_001, 10_007))
    low, high = page.page.evaluate("document.getElementById('plot')._fullLayout.yaxis.range")
    assert 990_000 < low < high < 1_010_000  # of the 2 MB, the part in view
    assert page.complaints == []


def test_a_flow_larger_than_the_page_is_cut_and_says_so(
    page: Page, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", 50)
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    page.open(trace.report(tmp_path / "report.html"), "#flow=0&t=0.0-0.05")
    assert page.page.evaluate("data.packets.count") == 50
    packets = trace.flows.column("packets")[0]
    assert f"first 50 of the {packets:,} packets of this flow" in page.page.inner_text("#note")
    assert page.frames("data") and max(page.frames("data")) <= 50
    page.page.evaluate("location.hash = '#flow=0'")
    page.until("document.getElementById('view-note').textContent.includes('least and greatest of each')")
    sent = max(row["sequence"] + row["payload_bytes"] for row in trace.packets(0) if row["payload_bytes"])
    assert page.page.evaluate("Math.max(...view.all.data.y2)") == sent
    assert page.complaints == []


def test_a_flow_whose_packets_the_page_lacks_has_its_sequence_by_columns(
    page: Page, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", 1)
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    lacking = page.page.evaluate("[...tables.flows.number].filter((flow) => !tables.packets.places.has(flow))")
    sizes = {flow: max(trace.directions[2 * flow + side]["payload_bytes"] or 0 for side in (0, 1)) for flow in lacking}
    largest = max(sizes, key=lambda flow: sizes[flow])
    page.page.evaluate(f"location.hash = '#flow={largest}'")
    page.until(f"document.body.dataset.flow === '{largest}'")
    assert page.page.evaluate("[Math.min(...view.all.data.y), Math.max(...view.all.data.y2)]") == [0, sizes[largest]]
    assert "least and greatest of each" in page.page.inner_text("#note")
    assert page.complaints == []


def test_filters_can_be_copied(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    page.page.click("#copy-flow")
    copied = page.until("document.body.dataset.copied")
    assert copied == "ip.addr == 192.0.2.10 && ip.addr == 198.51.100.20 && tcp.port == 40110 && tcp.port == 5201"
    (lost,) = [point for point in page.drawn() if (point.trace, point.frame) == ("fast_retransmission", 155)]
    page.page.mouse.click(lost.x, lost.y)
    page.until("!document.getElementById('packet').hidden")
    assert page.page.inner_text("#packet-filter") == "frame.number == 155"
    page.page.click("#copy-packet")
    page.until("document.body.dataset.copied === 'frame.number == 155'")


def test_nothing_can_be_shared_by_a_click(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "tcp_losses.pcap").report(tmp_path / "report.html"))
    titles = page.page.evaluate(
        "[...document.querySelectorAll('button, .modebar-btn')].map(b => b.dataset.title || b.textContent)"
    )
    assert titles and not [title for title in titles if title and ("hare" in title or "loud" in title)]


def test_hostile_names_run_nothing(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=alert(1)><script>document.title='owned'<\x2fscript>.pcap".replace("/", "_")
    wrpcap(str(path), [Ether(dst="02:00:00:00:00:02") / IP() / UDP(sport=1, dport=2) / Raw(b"x")])
    page.open(wiretale.analyze(path).report(tmp_path / "report.html"))
    assert "<img src=x" in page.page.inner_text(".top .file")
    assert page.page.evaluate("document.querySelectorAll('header img, main img, main script').length") == 0
    assert page.page.title() != "owned" and page.complaints == []


def test_a_capture_without_packets_has_a_report(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    page.open(wiretale.analyze(path).report(tmp_path / "report.html"))
    assert page.page.inner_text("#count") == "0" and page.complaints == []


def test_a_page_costs_a_few_bytes_a_packet(tmp_path: Path) -> None:
    def page_size(count: int) -> int:
        talk = Connection(Wire())
        for number in range(count):
            talk.data(number * 0.12 + (number * 7919 % 97) / 1000, 1448 * number, 1448)
        path = talk.wire.write(tmp_path / f"{count}.pcap")
        return wiretale.analyze(path).report(tmp_path / "report.html").stat().st_size

    assert (page_size(20_000) - page_size(10_000)) / 10_000 < 5.0


def test_verdicts_are_marked_on_the_graph(page: Page, tmp_path: Path) -> None:
    talk = Talk()
    talk.open()
    for k in range(5):
        talk.data(30 + k / 10, 1000 * k)
    for k in range(2, 5):
        talk.ack(50 + k / 10, 1000, (2000, 1000 * (k + 1)))
    talk.data(50.5, 1000).ack(70.5, 5000)
    path = tmp_path / "fast.pcap"
    wrpcap(str(path), talk.in_order())
    page.open(wiretale.analyze(path).report(tmp_path / "report.html"), "#flow=0&toggled=panel%3Alosses")
    assert page.frames("fast_retransmission") == [12] == page.frames("downstream") == page.frames("again")
    assert page.frames("duplicate_ack") == [10, 11] and page.frames("upstream") == [] and page.frames("lost") == [5]
    text = page.page.evaluate("taken.full.fast_retransmission.text(0)")
    assert text.split("<br>")[0] == "fast retransmission, downstream, 1,000 bytes, by acks, see frame 5"
    assert "1 lost" in page.page.inner_text("tr[data-flow='0']")
    assert page.complaints == []


def test_blocks_and_their_delays_are_drawn(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_blocks.pcapng")
    page.open(trace.report(tmp_path / "report.html")).whole_flow()
    waited = [row for row in trace.blocks.rows() if row["head_of_line_ns"]]
    assert page.frames("waited") == list(dict.fromkeys(row["last_frame"] for row in waited)) and len(waited) == 4
    assert page.page.evaluate("taken.full.waited.x.length") == len(waited)
    assert page.page.evaluate("taken.full.latency.x.length") == len(trace.blocks)
    assert page.frames("latency") == list(dict.fromkeys(trace.blocks.column("last_frame")))
    page.open(wiretale.analyze(samples / "udp_blocks.pcap").report(tmp_path / "udp.html")).whole_flow()
    assert page.frames("missing") == [83, 239] and page.frames("number_copy") == [271, 280]
    assert page.frames("number_late") == [161]
    gaps = page.page.evaluate("Array.from(taken.full.missing.x, (_, i) => taken.full.missing.text(i))")
    assert gaps == ["numbers 40 to 41 never came", "number 120 never came"]
    assert page.complaints == []
