# SPDX-License-Identifier: Apache-2.0
"""Services that turn clients away for what they did before, or serve a part: what is said of each, and its nearest rivals."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from scapy.all import SCTP

import causes_limits as drawn
import wiretale
from crafted import Timed, analyze_timed, write_timed

REASON = struct.pack("!HH", 12, 8) + b"bye!"


@pytest.mark.parametrize(
    ("timed", "code", "words"),
    [
        (
            drawn.blocked(),
            "host-blocked",
            "The MySQL server 10.2.0.2 blocks 10.0.0.1 because of too many connections without a login: 6 ended after the "
            "greeting, and then it refused 5 connections with error 1129.",
        ),
        (drawn.blocked(checks=0), "host-blocked", "the capture shows none of these, but it refused 5 connections"),
        (
            [
                *drawn.blocked(checks=0, refusals=1, error=1040),
                *((at, p) for at, p in drawn.blocked(checks=0) if 42_000 not in (p.sport, p.dport)),
            ],
            "host-blocked",
            "the capture shows none of these",
        ),
        (
            drawn.asked_often(),
            "time-limited",
            "The NTP server 10.2.0.2 sends away 3 of 12 requests of 10.0.0.1 by a kiss of death (RATE): they came within 300 "
            "ms of "
            "the one before, all others after 16 s or more.",
        ),
        (drawn.asked_often(word=b"DENY"), "time-limited", "(DENY): they came within 300 ms of"),
        (drawn.asked_often(soon=16.0), "time-limited", "(RATE): it asks more often than the server allows."),
        (
            drawn.units(),
            "unserved-requests",
            '10.2.0.2 never answers the Modbus request "function 3, unit 255, address 100" of 10.0.0.1 (4 tries), but answers '
            '"function 3, unit 1, address 100": it probably serves no such unit or register.',
        ),
        (
            drawn.aborted(),
            "association-aborted",
            "10.2.0.2:36412 aborts all 4 SCTP associations of 10.0.0.1 in reply to COOKIE ECHO, although it had answered the "
            "INIT: "
            "its application refuses it, or an older association of that client blocks the new one.",
        ),
        (
            drawn.aborted(drawn.INIT),
            "association-aborted",
            "in reply to INIT: nothing listens there, or it takes no client of",
        ),
        (
            drawn.aborted(drawn.COOKIE_ACK, REASON),
            "association-aborted",
            'aborts all 4 SCTP associations of 10.0.0.1 after it was established ("user-initiated abort").',
        ),
        (
            drawn.aborted(drawn.COOKIE_ACK, REASON, times=1, by_client=True),
            "association-aborted",
            '10.0.0.1 aborts the SCTP association with 10.2.0.2 after it was established ("user-initiated abort").',
        ),
        (
            drawn.quic_refusals(),
            "quic-refused",
            "The server 10.2.0.2:443 (a.example) refuses all 3 QUIC handshakes with no_application_protocol: it supports none of "
            "the application protocols that the client offers (h3-29), after it had refused the client's version (Version "
            "Negotiation).",
        ),
        (
            drawn.quic_refusals(2, negotiated=False, count=1, padding=200),
            "quic-refused",
            "refuses the QUIC handshake with connection_refused: it takes no connection now.",
        ),
        (
            [
                *drawn.quic_refusals(count=1),
                *((at, p) for at, p in drawn.quic_refusals(None) if p.dport > 45_000 or p.sport > 45_000),
            ],
            "quic-refused",
            "refuses 1 of 3 QUIC handshakes with no_application_protocol",
        ),
        (
            drawn.quic_refusals(goes_on=False),
            "quic-refused",
            "it does not know the client's version, and the client takes none of those that it offers (Version Negotiation).",
        ),
        (
            drawn.sctp(1.0, True, drawn.chunk(drawn.ABORT, REASON)),
            "association-aborted",
            "10.2.0.2:36412 aborts the SCTP",
        ),
    ],
)
def test_what_is_said(timed: Timed, code: str, words: str, tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, timed).answer
    assert answer.cause == code and words in answer.sentence, answer.sentence


@pytest.mark.parametrize(
    "timed",
    [
        drawn.blocked(refusals=0),  # a health check alone
        drawn.blocked(error=1040),  # too many connections
        drawn.asked_often(kissed=(3,)),
        drawn.asked_often(kissed=tuple(range(12))),  # it gives nobody the time
        drawn.asked_often(kissed=()),
        drawn.asked_often(kissed=(10, 11), word=b"DENY", soon=16.0),  # forbidden from then on
        drawn.units(silent=1),
        drawn.units(served=0),  # it answers nothing
        drawn.units(units=(1, 1)),  # sometimes
        [
            (at + (200 if p.dport < 43_999 and p.sport < 43_999 else 0), p) for at, p in drawn.units()
        ],  # it hangs at last
        drawn.closed(),
        drawn.quic_refusals(None),  # an ACK, and what follows is not in the capture
        [
            *drawn.quic_refusals(goes_on=False, count=1),  # another version, from another port
            *((at, p) for at, p in drawn.quic_refusals(None, negotiated=False) if p.dport > 45_000 or p.sport > 45_000),
        ],
        drawn.quic_refusals(0),  # it closes without an error
    ],
)
def test_rivals(timed: Timed, tmp_path: Path) -> None:
    assert not set(analyze_timed(tmp_path, timed).causes.column("code")) & set(drawn.EXAMPLES)


def test_associations_are_exchanges(tmp_path: Path) -> None:
    timed = [*drawn.closed(1), *((at + 100, packet) for at, packet in drawn.aborted(times=1))]
    rows = [row for row in analyze_timed(tmp_path, timed).exchanges if row["kind"] == "sctp"]
    assert [(row["type"], row["outcome"], row["code"], row["attempts"]) for row in rows] == [
        ("COOKIE ECHO", "answered", "COOKIE ACK", 1),
        ("COOKIE ECHO", "refused", "no cause", 1),
    ]


def test_cut_chunks(tmp_path: Path) -> None:
    """Whatever a packet is cut to, nothing is read behind its end."""
    _, packet = drawn.sctp(0.0, True, drawn.chunk(drawn.ABORT, REASON))[0]
    body = bytes(packet[SCTP].payload)
    cut = [(n * 0.01, drawn.sctp(0.0, True, body[:n], (n + 1, 7))[0][1]) for n in range(len(body))]
    rows = wiretale.analyze(write_timed(tmp_path / "cut.pcap", cut)).exchanges
    assert {row["code"] for row in rows} <= {"no cause", "user-initiated abort"}
