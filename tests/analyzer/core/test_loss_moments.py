# SPDX-License-Identifier: Apache-2.0
"""The moment of a loss, and what a device changed: when lost data was due and what had passed before it, how late a
reordered segment came, SACK blocks outside of the stream, and checksums that a receiver did not accept."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, UDP, VXLAN, Ether, Packet

import wiretale
from crafted import NEIGHBOR, write_timed
from plain_wire import MSS, START_NS, Connection, Wire, sack


def events(path: Path, *kinds: str) -> list[dict[str, Any]]:
    return [{**row} for row in wiretale.analyze(path).events.rows() if row["kind"] in kinds]


def due(row: dict[str, Any]) -> tuple[float, int | None]:
    """When the data was due, in ms, and the bytes before it."""
    return (row["due_ns"] - START_NS) / 1e6, row["due_bytes"]


@pytest.mark.parametrize("is_captured_before_the_loss", [True, False], ids=["downstream", "upstream"])
def test_lost_data_is_due_at_its_place_in_the_stream(tmp_path: Path, is_captured_before_the_loss: bool) -> None:
    """Segments 3 and 7 of 12 are lost, and 3 is lost once more."""
    talk = Connection(Wire()).open()
    for number in range(12):
        if is_captured_before_the_loss or number not in (3, 7):
            talk.data(30 + number, number * MSS)
    for n, highest in enumerate((5, 6, 7), 1):
        talk.ack(50 + n + 3, 3 * MSS, options=sack((4 * MSS, highest * MSS)))
    talk.ack(60, 3 * MSS, options=sack((8 * MSS, 12 * MSS), (4 * MSS, 7 * MSS)))
    if is_captured_before_the_loss:
        talk.data(61, 3 * MSS)
    talk.data(62, 7 * MSS)
    talk.ack(82, 3 * MSS, options=sack((4 * MSS, 12 * MSS)))
    talk.data(262, 3 * MSS)
    talk.ack(283, 12 * MSS)
    rows = events(
        talk.wire.write(tmp_path / "a.pcap"), "fast_retransmission", "timeout_retransmission", "retransmission"
    )
    if is_captured_before_the_loss:
        assert [due(row) for row in rows] == [(33, 3 * MSS), (37, 7 * MSS), (61, 12 * MSS)]
    else:
        assert [due(row) for row in rows] == [(38, 6 * MSS), (34, 3 * MSS)]


def test_a_reordered_segment_was_due_when_another_overtook_it(tmp_path: Path) -> None:
    talk = Connection(Wire()).open()
    for number, ms in enumerate((30, 31, 34, 32, 33, 35)):
        talk.data(ms, number * MSS)
    (row,) = events(talk.wire.write(tmp_path / "a.pcap"), "out_of_order", "ambiguous")
    assert (row["kind"], due(row)) == ("out_of_order", (32, None))


@pytest.mark.parametrize(
    ("shift", "count", "spread"),
    [(0, 0, None), (1_000_000_000, 3, 2 * MSS), (-900_000_000, 3, 2 * MSS)],
    ids=["true", "above", "below"],
)
def test_sack_blocks_of_another_numbering(tmp_path: Path, shift: int, count: int, spread: int | None) -> None:
    talk = Connection(Wire()).open()
    for number in range(8):
        talk.data(30 + number, number * MSS)
    for n, first in enumerate((2, 3, 4)):
        start, end = first * MSS + shift, 5 * MSS + shift
        blocks = struct.pack("!II", (1001 + start) % 2**32, (1001 + end) % 2**32)
        talk.ack(60 + n, MSS, options=bytes([1, 1, 5, 10]) + blocks)
    trace = wiretale.analyze(talk.wire.write(tmp_path / "a.pcap"))
    row = trace.directions.rows()[1]
    assert (row["sack_acks"], row["sacks_outside"], row["sack_shift_spread"]) == (3, count, spread)


def test_a_dsack_is_inside_of_the_stream(tmp_path: Path) -> None:
    talk = Connection(Wire()).open()
    for number in range(4):
        talk.data(30 + number, number * MSS)
    talk.ack(50, 4 * MSS)
    talk.data(250, 3 * MSS)
    talk.ack(270, 4 * MSS, options=sack((3 * MSS, 4 * MSS)))
    row = wiretale.analyze(talk.wire.write(tmp_path / "a.pcap")).directions.rows()[1]
    assert (row["sack_acks"], row["sacks_outside"], row["sack_shift_spread"]) == (1, 0, None)


def in_tunnel(side: int, flags: str, outer_checksum: int | None) -> Packet:
    ends, ports = [("10.1.0.1", "10.1.0.2"), ("10.1.0.2", "10.1.0.1")][side], [(40000, 80), (80, 40000)][side]
    inner = IP(src=ends[0], dst=ends[1]) / TCP(
        sport=ports[0], dport=ports[1], flags=flags, seq=(100, 500)[side], ack=101 if "A" in flags else 0
    )
    outer = IP(src=ends[0].replace("1.0", "9.9"), dst=ends[1].replace("1.0", "9.9")) / UDP(
        sport=5000 + side, dport=4789
    )
    packet = Ether(dst=NEIGHBOR) / outer / VXLAN(vni=7) / Ether(dst=NEIGHBOR) / inner
    if outer_checksum is not None:
        packet[UDP].chksum = outer_checksum
    return packet


@pytest.mark.parametrize(("answered", "ignored"), [(False, 3), (True, None)])
def test_checksums_of_a_tunnel_that_the_receiver_ignores(tmp_path: Path, answered: bool, ignored: int | None) -> None:
    """Three SYNs with a wrong outer checksum; then one without, or the answer at once."""
    timed = [(float(2**n), in_tunnel(0, "S", 0x1234)) for n in range(3)]
    if not answered:
        timed.append((9.0, in_tunnel(0, "S", 0)))
    timed.append((9.001, in_tunnel(1, "SA", 0)))
    row = wiretale.analyze(write_timed(tmp_path / "a.pcap", timed)).directions.rows()[0]
    assert row["checksums_ignored"] == ignored
