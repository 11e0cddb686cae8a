# SPDX-License-Identifier: Apache-2.0
"""Handshakes of QUIC whose times are known: which packet answers which, and which datagrams are no QUIC."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import wiretale
from capture_files import enhanced, interface, section
from plain_wire import Wire
from quic_flows import Quic

C, S = 0, 1  # sides
INITIAL, HANDSHAKE, RETRY, SHORT = 0xC0, 0xE0, 0xF0, 0x40
SPIN, HEADERS = 0x20, 42  # bytes before the payload
UNKNOWN = 0x12345678  # version

# ms, side, first byte, version, IDs of 8 bytes (destination and source), bytes from the packet number on. A letter of an
# ID: the first destination, the client's, the server's, that of a Retry. A short header has only its first byte.
Step = tuple[float, int, int, int, str, str, int]
HELLO: Step = (100, C, INITIAL, 1, "o", "c", 1200)
ANSWER: Step = (130, S, INITIAL, 1, "c", "s", 1100)
ACK: Step = (135, C, INITIAL, 1, "s", "c", 30)


def end(ms: float) -> Step:
    """The first packet of a side behind its handshake."""
    return (ms, C, SHORT, 0, "", "", 0)


def payload(step: Step) -> bytes:
    _, _, first, version, destination, source, length = step
    if first < 0x80:
        return bytes([first]) + bytes(39)
    head = struct.pack("!BI", first, version)
    for letter in (destination, source):
        head += b"\x08" + letter.encode() * 8
    if not version or first == RETRY:
        return head + b"\1" * 16  # versions, or a token
    token = b"\0" if first == INITIAL else b""
    return head + token + struct.pack("!H", 0x4000 | length) + b"\x55" * length


def write(tmp_path: Path, *steps: Step) -> Path:
    wire = Wire()
    for step in steps:
        Quic(wire).send(step[0], step[1], payload(step))
    return wire.write(tmp_path / "quic.pcap")


def handshake(tmp_path: Path, *steps: Step) -> dict[str, Any]:
    (row,) = wiretale.analyze(write(tmp_path, *steps)).handshakes.rows()
    return row


def times(row: dict[str, Any]) -> tuple[float | None, ...]:
    """Round trips to the server and to the client and the duration in ms, and the number of round trips."""
    columns = ("server_rtt_ns", "client_rtt_ns", "duration_ns")
    return (*(None if row[name] is None else row[name] / 1e6 for name in columns), row["round_trips"])


def test_a_plain_handshake(tmp_path: Path) -> None:
    row = handshake(tmp_path, HELLO, ANSWER, ACK, end(136))
    assert times(row) == (30, 5, 36, 1)
    frames = [row[f"{name}_frame"] for name in ("client_hello", "server_hello", "finished")]
    assert (row["version"], row["retry"], frames) == ("1", False, [1, 2, 4])


EARLY_ACK: Step = (130, S, INITIAL, 1, "c", "s", 30)
LATE_HELLO: Step = (150, S, INITIAL, 1, "c", "s", 1100)
FIRST_HANDSHAKE: Step = (130, S, HANDSHAKE, 1, "c", "s", 600)
CLIENTS_HANDSHAKE: Step = (155, C, HANDSHAKE, 1, "s", "c", 60)
SECOND_HELLO: Step = (149, C, INITIAL, 1, "s", "c", 1200)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((EARLY_ACK, LATE_HELLO, CLIENTS_HANDSHAKE, end(156)), (30, 5, 56, 1)),
        # the ID of the late part of the ClientHello is known from the ACK: it answers no ServerHello
        ((EARLY_ACK, SECOND_HELLO, LATE_HELLO, (151, *SECOND_HELLO[1:]), CLIENTS_HANDSHAKE, end(156)), (30, 5, 56, 1)),
        # the ServerHello was lost: the Handshake packets behind it cannot be read, until it is sent again
        ((FIRST_HANDSHAKE, (330, *LATE_HELLO[1:]), (335, *CLIENTS_HANDSHAKE[1:]), end(336)), (30, 5, 236, 1)),
        # as before, but it never passed the capture point
        ((FIRST_HANDSHAKE, (335, *CLIENTS_HANDSHAKE[1:]), end(336)), (30, None, 236, 1)),
        # the client answered the ServerHello unseen, or Handshake packets that came later
        (
            (EARLY_ACK, LATE_HELLO, (350, *FIRST_HANDSHAKE[1:]), (355, *CLIENTS_HANDSHAKE[1:]), end(356)),
            (30, None, 256, 1),
        ),
    ],
    ids=["ACK first", "late ClientHello", "lost ServerHello", "no ServerHello", "late Handshake"],
)
def test_an_answer_belongs_to_the_packet_that_the_client_can_read(
    tmp_path: Path, steps: tuple[Step, ...], expected: tuple[int | None, ...]
) -> None:
    assert times(handshake(tmp_path, HELLO, *steps)) == expected


@pytest.mark.parametrize(("again", "expected"), [(C, (None, 5, 136, 1)), (S, (30, None, 236, 1))])
def test_packets_that_came_again_after_a_flight_give_no_time(
    tmp_path: Path, again: int, expected: tuple[int | None, ...]
) -> None:
    """The answer may belong to either; a second packet of the same flight changes nothing."""
    flight = (HELLO, (105, *HELLO[1:]))
    client = [*flight, (200, *HELLO[1:]), (230, *ANSWER[1:]), (235, *ACK[1:]), end(236)]
    server = [*flight, ANSWER, (330, *ANSWER[1:]), (335, *ACK[1:]), end(336)]
    assert times(handshake(tmp_path, *(server if again else client))) == expected


def test_version_negotiation_is_a_round_trip(tmp_path: Path) -> None:
    offered = (100, C, INITIAL, 0x1A2A3A4A, "o", "c", 1200)
    selected = (146, C, INITIAL, 0xFF00001D, "p", "c", 1200)
    row = handshake(tmp_path, offered, (140, S, 0x80, 0, "c", "o", 0), selected)
    assert times(row)[:2] == (40, 6)
    assert (row["version_negotiation"], row["version"]) == (True, "draft-29")


def test_a_retry_is_a_round_trip_and_a_second_one_is_ignored(tmp_path: Path) -> None:
    """RFC 9000 section 17.2.5.2; the least time of each part counts, and other keys follow."""
    row = handshake(
        tmp_path,
        *(HELLO, (140, S, RETRY, 1, "c", "r", 0), (146, C, INITIAL, 1, "r", "c", 1200)),
        *((147, S, RETRY, 1, "c", "q", 0), (176, S, INITIAL, 1, "c", "s", 1100)),
        *((180, C, HANDSHAKE, 1, "s", "c", 60), end(181)),
    )
    assert times(row) == (30, 4, 81, 2)
    assert row["retry"]


def test_a_capture_that_begins_behind_the_first_initial_has_no_times(tmp_path: Path) -> None:
    row = handshake(tmp_path, (130, S, INITIAL, 1, "c", "s", 1200), ACK, end(136))
    assert times(row) == (None, None, None, None)
    assert row["client_direction"] == 1  # the server sent the first packet of the flow


@pytest.mark.parametrize(
    ("periods", "spin_ms"),
    [
        ((40, 40), 40),
        ((60, 40), 40),
        ((40, 60), 40),
        ((40, 0), None),  # one side does not spin
        ((5, 5), None),  # random or greased: far below the handshake's 40 ms
        ((200, 200), None),  # an application that pauses
    ],
)
def test_the_spin_bit_counts_if_both_sides_spin_near_the_handshake(
    tmp_path: Path, periods: tuple[int, int], spin_ms: int | None
) -> None:
    """Each side sends a packet every 5 ms for 1 s; the bit turns after each period, ms."""
    steps = [HELLO, ANSWER, (140, C, HANDSHAKE, 1, "s", "c", 60)]
    for ms in range(150, 1150, 5):
        for side, period in enumerate(periods):
            spins = bool(period) and ms // period % 2 == 1
            steps.append((ms + side / 1000, side, SHORT | (SPIN if spins else 0), 0, "", "", 0))
    assert handshake(tmp_path, *steps)["spin_rtt_ns"] == (None if spin_ms is None else spin_ms * 10**6)


@pytest.mark.parametrize(
    "steps",
    [
        [(1, C, INITIAL, UNKNOWN, "o", "c", 1200), (2, C, INITIAL, UNKNOWN, "o", "c", 1200)],
        [(1, C, INITIAL, 1, "o", "c", 100)],  # shorter than a client's first datagram
        [(1, C, INITIAL, UNKNOWN, "o", "c", 1200), (2, S, INITIAL, UNKNOWN, "x", "s", 1200)],
    ],
    ids=["no answer", "short", "other ids"],
)
def test_long_headers_without_proof_are_no_quic(tmp_path: Path, steps: list[Step]) -> None:
    trace = wiretale.analyze(write(tmp_path, *steps))
    assert (len(trace.handshakes), trace.flows.column("application")) == (0, [None])


FULL = payload(HELLO)
DRAFT_18 = (
    struct.pack("!BIB", INITIAL, 0xFF000012, 0x50) + bytes(8) + struct.pack("!BH", 0, 0x4000 | 1200) + bytes(1200)
)


@pytest.mark.parametrize(
    ("data", "captured", "recognized"),
    [
        (DRAFT_18, len(DRAFT_18), True),  # both sizes of IDs in a byte
        (FULL, len(FULL), True),
        (FULL[:-1], len(FULL) - 1, False),  # the packet exceeds its datagram
        (FULL, 23, True),  # cut behind the IDs
        (FULL, 22, False),
        (FULL[:5] + b"\x14" + bytes(12) + FULL[6:], len(FULL) + 12, True),  # an ID of 20 bytes, the longest
        (FULL[:5] + b"\x15" + bytes(13) + FULL[6:], len(FULL) + 13, False),
    ],
)
def test_long_headers_at_their_bounds(tmp_path: Path, data: bytes, captured: int, recognized: bool) -> None:
    wire = Wire()
    Quic(wire).send(0, C, data)
    ((_, frame),) = wire.packets
    path = tmp_path / "quic.pcapng"
    record = enhanced(0, frame[: HEADERS + captured], length=len(frame))
    path.write_bytes(section() + interface() + record)
    assert wiretale.analyze(path).flows.column("application") == ["quic" if recognized else None]


@pytest.mark.parametrize(
    ("version", "text"), [(1, "1"), (0x6B3343CF, "2"), (0xFF00001D, "draft-29"), (0x51303530, "0x51303530")]
)
def test_versions_are_named(tmp_path: Path, version: int, text: str) -> None:
    first = 0xD0 if text == "2" else INITIAL  # RFC 9369 section 3.2
    assert handshake(tmp_path, (100, C, first, version, "o", "c", 1200))["version"] == text
