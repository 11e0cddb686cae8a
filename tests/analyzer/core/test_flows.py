# SPDX-License-Identifier: Apache-2.0
"""Which packets make a conversation, its counters, and its series over time."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from scapy.all import (
    ARP,
    GRE,
    ICMP,
    IP,
    TCP,
    UDP,
    VXLAN,
    Dot1Q,
    Ether,
    ICMPv6PacketTooBig,
    IPv6,
    Packet,
    PcapNgWriter,
    Raw,
    raw,
    wrpcap,
)

import wiretale
from capture_files import block, interface, section
from crafted import START, analyze_timed, ether

Analyze = Callable[..., wiretale.Trace]


def udp(size: int = 100, sport: int = 1000, dport: int = 2000, back: bool = False) -> Packet:
    ends = {"src": "10.0.0.2", "dst": "10.0.0.1"} if back else {"src": "10.0.0.1", "dst": "10.0.0.2"}
    ports = {"sport": dport, "dport": sport} if back else {"sport": sport, "dport": dport}
    return ether(IP(**ends) / UDP(**ports) / Raw(b"x" * size))


@pytest.fixture
def analyze(tmp_path: Path) -> Analyze:
    return partial(analyze_timed, tmp_path)


def test_both_directions_are_one_flow_and_the_first_sender_its_source(analyze: Analyze) -> None:
    trace = analyze([(0, udp(back=True)), (0.5, udp(300)), (1, udp(back=True))])
    (flow,) = trace.flows.rows()
    assert (flow["source"], flow["source_port"], flow["destination_port"]) == ("10.0.0.2", 2000, 1000)
    assert (flow["initiator_known"], flow["initiator_evidence"], flow["state"]) == (
        False,
        "first_packet",
        None,
    )
    out, back = trace.directions.rows()
    assert (out["packets"], out["payload_bytes"], back["packets"], back["payload_bytes"]) == (2, 200, 1, 300)
    assert (out["unique_bytes"], out["mss"]) == (None, None)


def test_wire_bytes_count_padding_preamble_gap_and_fcs(analyze: Analyze) -> None:
    out = analyze([(0, udp(1)), (1, udp(1000))]).directions.rows()[0]
    assert out["wire_bytes"] == (60 + 24) + (14 + 20 + 8 + 1000 + 24)
    assert out["ip_bytes"] == 29 + 1028
    assert out["throughput_bps"] == (29 + 1028) * 8
    assert out["goodput_bps"] == 1001 * 8


def test_equal_addresses_in_two_vlans_are_two_flows(analyze: Analyze) -> None:
    inner = udp().payload
    vlans = [ether(Dot1Q(vlan=v) / inner) for v in (10, 20, 10)]
    trace = analyze(list(enumerate(vlans)))
    assert [(f["path"], f["packets"]) for f in trace.flows.rows()] == [("vlan 10", 2), ("vlan 20", 1)]


def test_the_path_names_every_encapsulation(analyze: Analyze) -> None:
    inner = ether(IP(src="1.1.1.1", dst="2.2.2.2") / UDP(sport=1, dport=2))
    tunnel = ether(Dot1Q(vlan=7) / IP() / UDP(dport=4789) / VXLAN(vni=99) / inner)
    gre = ether(IP() / GRE() / IP(src="3.3.3.3", dst="4.4.4.4") / TCP())
    trace = analyze([(0, tunnel), (1, gre)])
    assert [(f["path"], f["source"]) for f in trace.flows.rows()] == [
        ("vlan 7 / vxlan 99", "1.1.1.1"),
        ("gre 0", "3.3.3.3"),
    ]


def test_silence_ends_a_udp_flow(analyze: Analyze) -> None:
    trace = analyze([(0, udp()), (299, udp()), (700, udp())])
    assert [(f["packets"], f["end"]) for f in trace.flows.rows()] == [(2, "idle"), (1, "end_of_capture")]


def test_a_flow_that_was_silent_for_too_long_at_the_end_is_over(analyze: Analyze) -> None:
    later = [(2000 + n, udp(sport=9)) for n in range(3)]
    trace = analyze([(0, udp()), (1, udp()), *later])
    assert [f["end"] for f in trace.flows.rows()] == ["idle", "end_of_capture"]


def test_one_wrong_time_stamp_ends_no_flow(analyze: Analyze) -> None:
    trace = analyze([(0, udp()), (50_000_000, udp(sport=9)), (1, udp())])
    assert [f["packets"] for f in trace.flows.rows()] == [2, 1]
    (capture,) = trace.interfaces.rows()
    assert (capture["backward_steps"], capture["backward_frame"]) == (1, 3)


def test_the_oldest_flow_is_evicted_and_counted(analyze: Analyze) -> None:
    trace = analyze([(i, udp(sport=100 + i)) for i in range(10)], max_flows=4)
    assert trace.totals["evicted_flows"] == 6
    assert trace.flows.column("end") == ["evicted"] * 6 + ["end_of_capture"] * 4
    assert trace.flows.column("source_port") == list(range(100, 110))


def test_an_icmp_error_is_tied_to_the_flow_it_quotes(analyze: Analyze) -> None:
    sent = udp()
    error = ether(
        IP(src="10.9.9.9", dst="10.0.0.1") / ICMP(type=3, code=4, nexthopmtu=1400) / Raw(raw(sent.payload)[:28])
    )
    trace = analyze([(0, sent), (1, error)])
    first, second = trace.flows.rows()
    assert (first["protocol"], first["icmp_errors"], second["protocol"]) == ("udp", 1, "icmp")
    (event,) = trace.events.rows()
    assert (event["flow"], event["direction"], event["kind"], event["frame"]) == (0, 0, "icmp_error", 2)
    assert event["detail"] == "fragmentation needed (type 3, code 4), MTU 1400"
    assert (event["cause"], event["mtu"], event["router"]) == ("fragmentation_needed", 1400, "10.9.9.9")


@pytest.mark.parametrize(
    ("code", "mtu", "cause"),
    [(4, 0, "fragmentation_needed"), (3, 0, "port_unreachable"), (77, 0, "destination_unreachable")],
)
def test_an_icmp_error_without_an_mtu_has_none(analyze: Analyze, code: int, mtu: int, cause: str) -> None:
    """RFC 792 had no MTU in the message: routers before RFC 1191 send 0."""
    sent = udp()
    error = ether(
        IP(src="10.0.0.2", dst="10.0.0.1") / ICMP(type=3, code=code, nexthopmtu=mtu) / Raw(raw(sent.payload)[:28])
    )
    (event,) = analyze([(0, sent), (1, error)]).events.rows()
    assert (event["cause"], event["mtu"], event["router"]) == (cause, None, "10.0.0.2")


def test_an_icmpv6_error_is_tied_to_the_flow_it_quotes(analyze: Analyze) -> None:
    sent = IPv6(src="fd00::1", dst="fd00::2") / TCP(sport=1, dport=2, seq=77)
    error = IPv6(src="fd00::9", dst="fd00::1") / ICMPv6PacketTooBig(mtu=1280) / Raw(raw(sent))
    trace = analyze([(0, ether(sent)), (1, ether(error))])
    assert trace.flows.column("icmp_errors") == [1, 0]
    (event,) = trace.events.rows()
    assert (event["cause"], event["mtu"], event["router"]) == ("packet_too_big", 1280, "fd00::9")


def test_filter_and_times_leave_out_and_count(analyze: Analyze) -> None:
    timed = [(i, udp(dport=2000 + i % 2)) for i in range(10)]
    by_filter = analyze(timed, filter="udp port 2001")
    assert [f["packets"] for f in by_filter.flows.rows()] == [5]
    assert by_filter.interfaces.rows()[0]["filtered_packets"] == 5
    by_time = analyze(timed, start=(START + 2) * 10**9, end=(START + 5) * 10**9)
    assert by_time.interfaces.rows()[0]["packets"] == 3


def test_frames_without_ip_are_counted(analyze: Analyze) -> None:
    trace = analyze([(0, ether(ARP())), (1, udp()), (2, Ether(type=0x88CC) / Raw(b"1"))])
    (capture,) = trace.interfaces.rows()
    assert (capture["packets"], capture["not_ip"], len(trace.flows)) == (3, 2, 1)


def test_a_cut_transport_header_leaves_payload_unknown(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    wrpcap(str(path), [udp()], snaplen=36)
    trace = wiretale.analyze(path)
    out = trace.directions.rows()[0]
    assert (out["packets"], out["payload_bytes"], out["goodput_bps"]) == (1, None, None)
    assert trace.interfaces.rows()[0]["cut_headers"] == 1


def test_headers_alone_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "headers.pcap"
    wrpcap(str(path), [udp(1000)], snaplen=42)
    assert wiretale.analyze(path).directions.rows()[0]["payload_bytes"] == 1000


def test_series_hold_every_byte_and_stay_within_their_bound(analyze: Analyze) -> None:
    trace = analyze([(i * 0.0173, udp(i % 1000)) for i in range(5000)])
    rows = trace.series.rows()
    out = trace.directions.rows()[0]
    assert sum(r["bytes"] for r in rows) == out["ip_bytes"]
    assert sum(r["wire_bytes"] for r in rows) == out["wire_bytes"]
    assert len({r["width_ns"] for r in rows}) == 1 and len(rows) <= 2000
    starts = [r["start_ns"] for r in rows]
    assert starts == sorted(set(starts))
    assert all(r["throughput_bps"] == r["bytes"] * 8 * 10**9 // r["width_ns"] for r in rows)
    assert rows[-1]["cumulative_throughput_bps"] == out["throughput_bps"]  # all bytes over all time


def test_packets_without_times_are_counted_and_not_timed(tmp_path: Path) -> None:
    path = tmp_path / "simple.pcapng"
    simple = block(3, struct.pack("<I", 100) + raw(udp(58)))
    path.write_bytes(section() + interface() + simple * 3)
    trace = wiretale.analyze(path)
    (flow,) = trace.flows.rows()
    assert (flow["packets"], flow["first_ns"], flow["last_ns"]) == (3, None, None)
    assert trace.directions.rows()[0]["throughput_bps"] is None
    assert (trace.interfaces.rows()[0]["time_unknown"], trace.interfaces.rows()[0]["first_ns"]) == (3, None)
    assert len(trace.series) == 0


def test_interfaces_of_one_file_are_rows_of_captures(tmp_path: Path) -> None:
    path = tmp_path / "two.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for name in ("eth0", "eth1", "eth0"):
            packet = udp()
            packet.sniffed_on = name
            packet.time = START
            writer.write(packet)
    rows = wiretale.analyze(path).interfaces.rows()
    assert [(r["name"], r["packets"]) for r in rows if r["packets"]] == [("eth0", 2), ("eth1", 1)]
