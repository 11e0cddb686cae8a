# SPDX-License-Identifier: Apache-2.0
"""Each report says what was judged, and claims nothing about the rest."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest

import wiretale
from application_wire import answer, datagram, question
from capture_files import block, interface, section, write_pcap
from checkout import Run
from crafted import analyze_timed
from plain_wire import START_NS, Connection, Wire
from quic_flows import INITIAL, Quic, long_header
from wiretale.analyzer.findings.judged import MEASURES, judge

TCP_PACKETS = 3 + 2 * 40
ARP = bytes(6) + b"\2" + bytes(5) + b"\x08\x06" + bytes(28)


def tcp(wire: Wire, count: int = 40) -> Wire:
    talk = Connection(wire).open()
    for n in range(count):
        talk.data(30 + 2 * n, n * 1000, 1000).ack(50 + 2 * n, (n + 1) * 1000)
    return wire


def mixed() -> Wire:
    """One transfer, DNS, QUIC by its port, other datagrams, ESP, one direction of a connection, a short one, and ARP."""
    wire = tcp(Wire())
    for n in range(8):
        wire.udp(200 + n, b"q" * 40, port=53)
    for n in range(5):
        wire.udp(220 + n, b"q" * 1200, port=443)
    for n in range(4):
        wire.udp(240 + n, b"x" * 100, port=7000)
    for n in range(3):
        wire.ip(260 + n, "10.0.0.1", "10.0.0.2", 50, bytes(60))
    alone = Connection(wire, port=41000)
    for n in range(2):
        alone.data(280 + n, n * 100, 100)
    Connection(wire, port=42000).open(300).data(330, 0, 100).ack(350, 100)
    wire.packets += [(400.0 + n, ARP) for n in range(6)]
    return wire


WHOLE = TCP_PACKETS + 8 + 5 + 4 + 3 + 2 + 5 + 6
REASONS = {"dns": 8, "quic": 5, "udp": 4, "esp": 3, "one_way": 2, "no_flow": 6}


def result(run: Run, path: Path) -> Any:
    return json.loads(run("analyze", path, "--json").stdout)["judged"]


def text(run: Run, path: Path) -> str:
    return " ".join(run("analyze", path, "--all").stdout.split())


def test_each_packet_is_judged_or_has_a_reason(wiretale_run: Run, tmp_path: Path) -> None:
    path = mixed().write(tmp_path / "mixed.pcap")
    judged = result(wiretale_run, path)
    reasons = {entry["reason"]: entry for entry in judged["not_judged"]}
    assert {name: entry["packets"] for name, entry in reasons.items()} == {**REASONS, "short": 5}
    assert reasons["short"]["for"] == ["limits"]
    assert all(entry["for"] == list(MEASURES) for name, entry in reasons.items() if name != "short")
    assert judged["packets"] == WHOLE
    assert [judged[name]["packets"] for name in MEASURES] == [TCP_PACKETS + 5, TCP_PACKETS + 5, TCP_PACKETS]
    assert reasons["no_flow"]["wire_bytes"] == 6 * (60 + 24) and reasons["no_flow"]["text"] == "not IP"
    assert reasons["quic"]["wire_bytes"] == 5 * (1200 + 42 + 24)
    assert judged["wire_bytes"] == sum(max(len(frame), 60) + 24 for _, frame in mixed().packets)
    for name in MEASURES:
        left_out = [entry["wire_bytes"] for entry in judged["not_judged"] if name in entry["for"]]
        assert judged[name]["wire_bytes"] + sum(left_out) == judged["wire_bytes"]


def test_the_line_has_shares_and_reasons(wiretale_run: Run, tmp_path: Path) -> None:
    output = text(wiretale_run, mixed().write(tmp_path / "mixed.pcap"))
    assert "Judged: 75.9% of packets and 83.9% of bytes for loss and round trips; 71.6% of packets" in output
    assert (
        "Not judged: 6.90% of packets (DNS has no sequence numbers, and no answer shows a round trip); 5.17% of packets (not IP)"
        in output
    )
    assert "problem is visible in this capture" not in output


def arps(wire: Wire, count: int) -> Wire:
    wire.packets += [(500.0 + n, ARP) for n in range(count)]
    return wire


def datagrams(wire: Wire, count: int, port: int = 7000) -> Wire:
    for n in range(count):
        wire.udp(600 + n, b"x" * 100, port=port)
    return wire


@pytest.mark.parametrize(
    ("wire", "line"),
    [
        (tcp(Wire()), "all 83 packets for loss, round trips and limits."),
        (arps(tcp(Wire()), 2), "83 of 85 packets for loss, round trips and limits."),
        (arps(tcp(Wire()), 40), "83 of 123 packets for loss, round trips and limits; 40 not: not IP."),
        (datagrams(tcp(Wire()), 20), "83 of 103 packets for loss, round trips and limits."),
        (datagrams(tcp(Wire()), 21, 53), "83 of 104 packets for loss, round trips and limits, 21 as DNS questions."),
        (tcp(Wire(), 2), "all 7 packets for loss and round trips."),
        (arps(Wire(), 1), "nothing for loss, round trips or limits: not IP."),
        (datagrams(Wire(), 1, 53), "1 packet as DNS question."),
        (mixed(), "83 of 116 packets for loss, round trips and limits, 8 as DNS questions."),
    ],
)
def test_the_screen_has_one_line_and_reasons_of_a_fifth(tmp_path: Path, wire: Wire, line: str) -> None:
    assert judge(wiretale.analyze(wire.write(tmp_path / "judged.pcap"))).brief() == line


def test_a_wholly_judged_capture_says_so(wiretale_run: Run, tmp_path: Path) -> None:
    path = tcp(Wire()).write(tmp_path / "tcp.pcap")
    output = text(wiretale_run, path)
    assert "Judged: all packets for loss, round trips and limits. " in output and "Not judged" not in output
    assert "1 TCP connection carried" in output and "and lost nothing" in output


@pytest.mark.parametrize("port", [53, 443, 7000])
def test_if_nothing_was_judged_nothing_is_claimed(wiretale_run: Run, tmp_path: Path, port: int) -> None:
    wire = Wire()
    for n in range(20):
        wire.udp(n, b"x" * 100, port=port)
    path = wire.write(tmp_path / "udp.pcap")
    output = text(wiretale_run, path)
    assert "Nothing was judged for loss, round trips or limits: " in output
    assert "losses and delays can't be seen" in output
    assert "problem is visible" not in output
    page = wiretale.analyze(path).report(tmp_path / "udp.html").read_text("utf-8")
    assert "Nothing was judged for loss, round trips or limits." in page and "problem is visible" not in page


def test_quic_is_judged_for_its_round_trip(wiretale_run: Run, tmp_path: Path) -> None:
    """A handshake gives the round trip, and nothing else; a connection without an answer gives nothing."""
    wire = Wire()
    connection = Quic(wire).open()
    for number in range(20):
        connection.send(30 + number / 100, 1, b"\x40" + bytes(1199))
    Quic(wire, client=("10.0.0.1", 40001)).open(server_ms=900.0, client_ms=1.0)
    path = wire.write(tmp_path / "quic.pcap")
    trace = wiretale.analyze(path)
    assert sorted(trace.flows.column("handshake_rtt_ns")) == [20_000_000, 901_000_000]
    judged = judge(trace)
    assert {name: amount.packets for name, amount in judged.measures.items()} == {"loss": 0, "rtt": 26, "limits": 0}
    assert [(part.reason, part.measures) for part in judged.unjudged] == [("quic", ("loss", "limits"))]
    output = text(wiretale_run, path)
    assert "Judged: all packets for round trips. Not judged: loss and limits (QUIC is encrypted)." in output
    assert "losses would not show" in output
    assert "problem is visible" not in output

    Quic(wire, client=("10.0.0.1", 40002)).send(50, 0, long_header(INITIAL, b"original", b"client", 1200))
    judged = judge(wiretale.analyze(wire.write(tmp_path / "unanswered.pcap")))
    assert [(part.measures, part.amount.packets) for part in judged.unjudged] == [
        (("loss", "limits"), 26),
        (("loss", "rtt", "limits"), 1),
    ]


def test_answers_of_dns_are_round_trips(tmp_path: Path) -> None:
    timed = [(0.0, datagram(question(1))), (0.02, datagram(answer(1), back=True)), (1.0, datagram(question(2)))]
    timed += [(2.0, datagram(question(3), port=5000)), (3.0, datagram(question(4), port=6000, server=8600))]
    judged = judge(analyze_timed(tmp_path, timed))
    assert {name: amount.packets for name, amount in judged.measures.items()} == {"loss": 0, "rtt": 3, "limits": 0}
    assert [(part.reason, part.measures, part.amount.packets) for part in judged.unjudged] == [
        ("dns", ("loss", "limits"), 3),
        ("dns", ("loss", "rtt", "limits"), 2),
    ]
    assert "loss and limits for 60% of packets (DNS has no sequence numbers)" in judged.sentence()


def test_the_report_has_the_line_in_its_head(tmp_path: Path) -> None:
    trace = wiretale.analyze(mixed().write(tmp_path / "mixed.pcap"))
    page = trace.report(tmp_path / "mixed.html").read_text("utf-8")
    short, details = judge(trace).parts()
    at = page.index(f'<details class="judged"><summary>{short}</summary><p>{details}</p></details>')
    assert at < page.index('id="h-findings"')


def test_packets_without_times_have_no_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "untimed.pcapng"
    simple = b"".join(
        block(3, struct.pack("<I", len(frame)) + frame)
        for _, frame in sorted(tcp(Wire()).packets, key=lambda packet: packet[0])
    )
    path.write_bytes(section() + interface() + simple)
    judged = judge(wiretale.analyze(path))
    assert {name: amount.packets for name, amount in judged.measures.items()} == {
        "loss": TCP_PACKETS,
        "rtt": 0,
        "limits": 0,
    }
    assert [packet.reason for packet in judged.unjudged] == ["no_times"]


def is_limit_known(row: Any) -> bool:
    """Whether at least half of the time of a direction is not unknown."""
    times = {name: ns or 0 for name, ns in row.items() if name.startswith("time_")}
    return 2 * times["time_unknown_ns"] <= sum(times.values())


def is_judged_otherwise(flow: Any, name: str, pinged: set[int]) -> bool:
    """By the handshake of a flow, or by the pings of one that answered some."""
    return (name == "rtt" and flow["handshake_rtt_ns"] is not None) or (name != "limits" and flow["flow"] in pinged)


def pinged_flows(trace: wiretale.Trace) -> set[int]:
    rows = (row for row in trace.exchanges.rows() if row["kind"] == "icmp_echo" and row["answered_ns"])
    return {row["flow"] for row in rows if row["flow"] is not None}


def test_limits_are_judged_where_the_table_has_them(samples: Path) -> None:
    """The class of each flow, which the flows table decides, agrees with the columns of its directions."""
    checked = 0
    for path in sorted(samples.glob("*.pcap*")):
        trace = wiretale.analyze(path)
        flows, directions = trace.flows.rows(), trace.directions.rows()
        columns = {"limits": "time_network_ns", "rtt": "rtt_ns_min", "loss": "lost_downstream"}
        judged = judge(trace)
        pinged = pinged_flows(trace)
        for name, column in columns.items():
            packets = 0
            for flow in flows:
                sides = directions[2 * flow["flow"] : 2 * flow["flow"] + 2]
                sides = [side for side in sides if name != "limits" or is_limit_known(side)]
                shows = flow["protocol"] == "tcp" and any(side[column] is not None for side in sides)
                packets += flow["packets"] if shows or is_judged_otherwise(flow, name, pinged) else 0
                if name == "loss" and flow["protocol"] != "tcp":
                    packets += sum(side["packets"] for side in sides if side["blocks"] is not None)
            assert judged.measures[name].packets == packets, (path.name, name)
            checked += packets > 0
    assert checked > 20


def test_the_line_of_many_flows_takes_little_time(tmp_path: Path) -> None:
    """The core sums while it writes the rows, so that 20,000 flows take no longer than one."""
    frames = []
    for n in range(20_000):
        wire = Connection(Wire(), port=1024 + n % 60_000, ends=(f"10.1.{n >> 8 & 255}.{n & 255}", "10.0.0.2")).open(n)
        frames += wire.wire.packets
    path = write_pcap(tmp_path / "many.pcap", ((START_NS + round(ms * 1e6), frame) for ms, frame in frames))
    trace = wiretale.analyze(path)
    took = []
    for _ in range(5):
        start = time.perf_counter()
        judge(trace)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.003
