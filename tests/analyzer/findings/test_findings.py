# SPDX-License-Identifier: Apache-2.0
"""Each rule with a capture that shows it; a healthy capture gives no warning."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, UDP, Ether, IPv6, Packet, Raw, fragment, raw, wrpcap

import needs
import wiretale
from crafted import ether, write_timed
from placed import placed

A, B = IP(src="10.0.0.1", dst="10.0.0.2"), IP(src="10.0.0.2", dst="10.0.0.1")
Codes = Callable[..., dict[str, str]]


def out(flags: str, seq: int, ack: int = 0, size: int = 0, **tcp: int) -> Packet:
    return ether(A / TCP(sport=4000, dport=80, flags=flags, seq=seq, ack=ack, **tcp) / Raw(b"x" * size))


def back(flags: str, seq: int, ack: int = 0, size: int = 0, **tcp: int) -> Packet:
    return ether(B / TCP(sport=80, dport=4000, flags=flags, seq=seq, ack=ack, **tcp) / Raw(b"x" * size))


HANDSHAKE = [out("S", 99), back("SA", 499, 100), out("A", 100, 500)]


@pytest.fixture
def codes(tmp_path: Path) -> Codes:
    def run(packets: Sequence[Packet], times: Sequence[float] | None = None, **options: int) -> dict[str, str]:
        at = times or [number / 1000 for number in range(len(packets))]
        path = write_timed(tmp_path / "crafted.pcap", zip(at, packets, strict=True), **options)
        return {row["code"]: row["severity"] for row in wiretale.analyze(path).findings.rows()}

    return run


def test_a_healthy_transfer_has_no_findings(codes: Codes) -> None:
    data = [p for i in range(20) for p in (out("PA", 100 + 100 * i, 500, 100), back("A", 500, 200 + 100 * i))]
    end = [out("FA", 2100, 500), back("FA", 500, 2101), out("A", 2101, 501)]
    assert codes(HANDSHAKE + data + end) == {}


def test_data_stored_after_its_acknowledgment_is_no_reordering(codes: Codes) -> None:
    times = [0, 0.01, 0.02, 0.03, 0.04, 0.0401, 0.05]
    data = [out("PA", 100, 500, 100), back("A", 500, 300), out("PA", 200, 500, 100), back("A", 500, 300)]
    assert codes(HANDSHAKE + data, times) == {"capture-reordered": "info"}


def test_gaps_that_only_the_receiver_reports(codes: Codes) -> None:
    acks = [back("A", 500, 100), back("A", 500, 100, options=[("SAck", (300, 400))]), back("A", 500, 400)]
    codes_seen = codes([back("SA", 499, 100, options=[("MSS", 1460), ("SAckOK", b"")]), *acks])
    assert "sack-gaps" in codes_seen and "lost-upstream" not in codes_seen


def test_sample_findings(samples: Path) -> None:
    def codes_in(name: str) -> set[str]:
        return set(wiretale.analyze(samples / name).findings.column("code"))

    assert codes_in("damaged.pcap") == {"capture-damaged"}
    assert codes_in("two_interfaces.pcapng") == {"capture-dropped", "icmp-errors"}
    assert codes_in("udp_fragments.pcap") == {"datagram-incomplete", "fragmentation"}
    assert codes_in("tcp_losses.pcap") == {"lost-downstream", "recovery-limited", "timeout-stalls"}
    assert codes_in("vlan_ipv6.pcap") == {"echo"}


def test_repeated_payload(codes: Codes) -> None:
    talk = [*HANDSHAKE, out("PA", 100, 500, 500), out("PA", 100, 500, 500), back("A", 500, 600)]
    assert codes(talk) == {"lost-downstream": "warning"}
    much = [out("PA", 600 + 1400 * i, 500, 1400) for i in range(200)]
    assert codes(talk + much) == {"lost-downstream": "info"}


def test_gaps(codes: Codes) -> None:
    assert codes([*HANDSHAKE, out("PA", 600, 500, 500), out("PA", 100, 500, 500)]) == {"ambiguous-gap": "warning"}


def test_bytes_that_the_capture_missed(codes: Codes) -> None:
    severities = codes([*HANDSHAKE, out("PA", 600, 500, 500), back("A", 500, 1100)])
    assert severities == {"capture-missed": "warning"}  # and no loss of the network is claimed


def test_a_full_receiver(codes: Codes) -> None:
    assert codes([*HANDSHAKE, out("PA", 100, 500, 500), back("A", 500, 600, window=0)]) == {"zero-window": "warning"}


def test_handshakes_that_fail(codes: Codes) -> None:
    assert codes([out("S", 99)]) == {"syn-unanswered": "warning"}
    assert codes([out("S", 99), back("RA", 0, 100)]) == {"connection-refused": "warning"}
    assert codes([*HANDSHAKE, back("R", 500)]) == {"reset": "info"}


def test_one_way(codes: Codes) -> None:
    assert codes([out("PA", 100 + i * 10, 500, 10) for i in range(5)]) == {"one-way": "warning"}


def test_icmp_errors(codes: Codes) -> None:
    sent = A / UDP(sport=1, dport=2) / Raw(b"x")
    error = IP(src="10.0.0.2", dst="10.0.0.1") / ICMP(type=3, code=3) / Raw(raw(sent)[:28])
    assert codes([ether(sent), ether(error)]) == {"icmp-errors": "warning"}


def test_fragments(codes: Codes) -> None:
    pieces = [ether(p) for p in fragment(A / UDP(sport=1, dport=2) / Raw(b"x" * 5000), 1480)]
    assert codes(pieces) == {"fragmentation": "info"}  # datagrams of 1,472 bytes would spend as much
    assert codes(pieces[1:]) == {"fragmentation": "info", "datagram-incomplete": "warning"}
    short = [ether(p) for p in fragment(A / UDP(sport=1, dport=2) / Raw(b"x" * 1500), 1480)]
    assert codes(short) == {"fragmentation": "info"}  # nothing is lost


def test_clocks_and_offload(codes: Codes) -> None:
    udp = ether(A / UDP(sport=1, dport=2) / Raw(b"x"))
    assert codes([udp.copy(), udp.copy()], times=[1, 1 - 1.1e-3]) == {"time-backward": "warning"}
    assert codes([udp.copy(), udp.copy()], times=[1, 1 - 0.9e-3]) == {"time-backward": "info"}
    large = [
        p for i in range(3) for p in (out("PA", 100 + 20_000 * i, 500, 20_000), back("A", 500, 20_100 + 20_000 * i))
    ]
    assert codes([*HANDSHAKE, *large])["offload"] == "warning"
    assert codes([*HANDSHAKE, *large[:2]])["offload"] == "info"  # its length may be wrong


@pytest.mark.parametrize(("size", "severity"), [(1, "info"), (1400, "warning")])
def test_bytes_that_the_capture_missed_weigh_by_their_share(codes: Codes, size: int, severity: str) -> None:
    data = [p for i in range(20) for p in (out("PA", 100 + 1000 * i, 500, 1000), back("A", 500, 1100 + 1000 * i))]
    after = 20_100 + size
    more = [out("PA", after, 500, 100), back("A", 500, after + 100)]
    assert codes([*HANDSHAKE, *data, *more])["capture-missed"] == severity


def test_cut_and_broken_headers(codes: Codes) -> None:
    udp = ether(A / UDP(sport=1, dport=2) / Raw(b"x" * 100))
    assert codes([udp.copy()], snaplen=30) == {"headers-cut": "warning"}
    broken = Ether(raw(ether(IPv6(src="fd00::1", dst="fd00::2") / UDP())))
    broken[IPv6].version = 9
    assert codes([broken]) == {"malformed": "warning"}


def test_evictions(tmp_path: Path) -> None:
    path = tmp_path / "many.pcap"
    wrpcap(str(path), [ether(A / UDP(sport=port, dport=2)) for port in range(1, 50)])
    assert "flows-evicted" in wiretale.analyze(path, max_flows=10).findings.column("code")


def test_findings_beyond_the_limit_are_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "repeats.pcap"
    twice = [
        ether(A / TCP(sport=4000 + flow, dport=80, flags="PA", seq=100 + 10 * (i // 2), ack=500) / Raw(b"x" * 10))
        for flow in range(8)
        for i in range(2 * (flow + 1))
    ]
    write_timed(path, enumerate(twice))
    rows = [row for row in placed(wiretale.analyze(path)) if row["code"] == "retransmission-unlocated"]
    on_wire = 10 + 54 + 24  # payload, headers, preamble with FCS and gap
    assert [row["cost"] for row in rows] == [*(n * on_wire for n in (8, 7, 6, 5, 4)), None]
    assert rows[0]["evidence"] == "frames 58, 60, 62, 64, 66 and 3 more"
    assert rows[3]["evidence"] == "frames 22, 24, 26, 28, 30"
    assert rows[5]["sentence"] == "3 more directions retransmitted segments of unknown place (6 segments in total)."
    assert rows[5]["flow"] is None and rows[5]["members"] == 3


# --- display filters, run by Wireshark


def selected(capture: Path, display_filter: str) -> list[int]:
    """Numbers of the frames that Wireshark selects; its warnings about a damaged file are ignored."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", display_filter, "-T", "fields", "-e", "frame.number"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0 or "malformed" in run.stderr or "damaged" in run.stderr or "truncated" in run.stderr, run
    return [int(line) for line in run.stdout.split()]


def filtered(capture: Path) -> list[dict[str, Any]]:
    return [row for row in placed(wiretale.analyze(capture)) if row["filter"]]


@needs.TSHARK
def test_each_filter_selects_frames(sample: Path) -> None:
    for row in filtered(sample):
        assert selected(sample, row["filter"]), (row["code"], row["filter"])


@needs.TSHARK
@pytest.mark.parametrize(
    ("name", "stalls"),
    [
        ("tcp_losses.pcap", [[337, 338]]),
        ("go_back_n.pcap", [[54, 59]]),
        ("lost_tail.pcap", [[37, 39]]),
        ("timeouts.pcap", [[127, 129], [61, 62], [208, 247]]),
    ],
)
def test_a_stall_is_its_first_and_last_frame(samples: Path, name: str, stalls: list[list[int]]) -> None:
    rows = [row for row in filtered(samples / name) if row["code"] == "timeout-stalls"]
    assert [[frame for _, frame in row["named"]] for row in rows] == stalls
    assert {role for row in rows for role, _ in row["named"]} == {"before", "after"}
    assert [selected(samples / name, row["filter"]) for row in rows] == stalls


@needs.TSHARK
def test_a_stall_lasts_from_the_one_frame_to_the_other(samples: Path) -> None:
    for name in ("tcp_losses.pcap", "go_back_n.pcap", "lost_tail.pcap", "timeouts.pcap"):
        trace = wiretale.analyze(samples / name)
        times = {row["frame"]: row["time_ns"] for row in trace.packets(range(len(trace.flows))).rows()}
        stalls = [row for row in trace.waits.rows() if row["kind"] == "timeout"]
        for row in stalls:
            assert (times[row["before_frame"]], times[row["after_frame"]]) == (row["before_ns"], row["after_ns"])
            assert row["after_ns"] - row["before_ns"] == row["waited_ns"]
        for row in trace.directions.rows():
            ends = (row["flow"], row["direction"])
            waited = [stall["waited_ns"] for stall in stalls if (stall["flow"], stall["direction"]) == ends]
            assert sum(waited) == (row["rto_idle_ns"] or 0) and waited == sorted(waited, reverse=True)
