# SPDX-License-Identifier: Apache-2.0
"""No difference from Wireshark is without a reason: conversations that begin, end or are reset in an unusual way, and captures
made by others, each held to its own reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import needs
from capture_files import write_pcap as write_records
from checkout import SCENARIOS
from plain_wire import ACK, FIN, PSH, RST, START_NS, Connection, Wire, sack
from scenario import captured, read_scenario
from scenario_wire import write_pcap
from wiretale.analyzer import trace as traces
from wiretale.analyzer.verify.file import compare_file
from wiretale.analyzer.verify.tshark import Dissector

pytestmark = [needs.TSHARK, pytest.mark.xdist_group("tshark")]


def rules_of(path: Path) -> set[str | None]:
    """The reasons of all differences; None is a difference without one."""
    return {
        difference.rule for difference in compare_file(traces.analyze(path), str(path), Dissector(), None).differences
    }


def check(rules: set[str | None], expected: set[str]) -> None:
    """Another version of Wireshark may agree where 4.0 does not."""
    assert rules == expected or (rules < expected and not Dissector().version().startswith("4.0."))


def begins_with_keep_alives(talk: Connection) -> None:
    """Both ends have been idle since before the capture; the byte below the ACK passed then."""
    for turn in range(3):
        talk.send(45_000 * turn, 0, 99, 0, ack=500).send(45_000 * turn + 20, 1, 500, ack=100)
        talk.send(45_000 * turn + 10_000, 1, 499, 0, ack=100).send(45_000 * turn + 10_020, 0, 100, ack=500)


def fins_without_a_connection(talk: Connection) -> None:
    """A scan: the same FIN again and again, long after the RST that answered it."""
    for turn in range(6):
        talk.send(100_000 * turn, 0, -1001, flags=FIN, ack=0)
        talk.send(100_000 * turn + 1, 1, -1001, flags=RST | ACK, ack=-1000, window=0)


def reset_then_a_byte(talk: Connection) -> None:
    """The window of a RST is 0 and closes nothing; the bytes behind it are no probes."""
    talk.open().data(30, 0).ack(50, 1460)
    talk.send(60, 1, 0, flags=RST, ack=1460, window=0)
    talk.send(61, 0, 1460, 1, ACK | PSH).send(62, 0, 1461, 1, ACK | PSH)


def reset_far_away(talk: Connection) -> None:
    """The sequence number of a RST is not one of the stream."""
    talk.open().data(30, 0).ack(50, 1460)
    talk.send(60, 0, 900_000, flags=RST, ack=0)
    talk.send(61, 0, 1460, 500, ACK | PSH).send(80, 1, 0, ack=1960)


def fin_that_was_not_captured(talk: Connection) -> None:
    """Its ACK is one byte above the data."""
    talk.open().data(30, 0).ack(50, 1460).ack(60, 1461).ack(70, 1461)


def duplicates_of_a_closed_window(talk: Connection) -> None:
    """Wireshark counts no duplicate ACK with window 0."""
    talk.open()
    for turn in range(5):
        talk.data(30 + turn / 10, 1460 * turn)
    for turn in range(5):
        talk.ack(50 + turn / 10, 1460, window=0)


def overtaken_acks(talk: Connection) -> None:
    """Wireshark compares with the ACK that came last, although it is an old one."""
    talk.open()
    for turn in range(5):
        talk.data(30 + turn / 10, 1460 * turn)
    talk.ack(50, 2920).ack(50.1, 4380).ack(50.2, 2920).ack(50.3, 4380)


CRAFTED: dict[Callable[[Connection], None], set[str]] = {
    begins_with_keep_alives: {"one-byte-unseen", "keep-alive-answer"},
    fins_without_a_connection: {"ended-flow"},
    reset_then_a_byte: {"probe-of-open-window", "probe-byte"},
    reset_far_away: {"sequence-of-reset"},
    fin_that_was_not_captured: {"one-byte-unseen", "nothing-outstanding"},
    duplicates_of_a_closed_window: {"duplicate-of-closed-window"},
    overtaken_acks: {"duplicate-of-highest"},
}


@pytest.mark.parametrize("craft", CRAFTED, ids=lambda craft: craft.__name__)
def test_unusual_conversations_are_explained(craft: Callable[[Connection], None], tmp_path: Path) -> None:
    wire = Wire()
    craft(Connection(wire))
    check(rules_of(wire.write(tmp_path / "a.pcap")), CRAFTED[craft])


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("simultaneous_open_and_half_close", {"simultaneous-open", "nothing-outstanding"}),
        ("reset_of_a_half_open_connection", {"ended-flow", "ack-of-another-connection"}),
        ("ports_again_at_once_after_a_reset", set()),
    ],
)
def test_unusual_beginnings_are_explained(name: str, rules: set[str], tmp_path: Path) -> None:
    frames = captured(read_scenario(SCENARIOS / "open_close" / f"{name}.txt", SCENARIOS), "ipv4")
    check(rules_of(write_pcap(frames, tmp_path / "a.pcap")), rules)


# Captures below ../shared with the reasons that each must have at least; others may be added there.
OTHERS = {
    "labelled/tcprs/comp015.pcap": {"window-of-highest-ack"},
    "labelled/tcprs/fast006.pcap": {"duplicate-of-highest"},
    "labelled/cases/tls_sgt.pcap": set(),
    "labelled/cases/psc.fddi.dmp.gz": set(),
    "labelled/cases/discard.solaris.dmp.gz": set(),
    "labelled/cases/hardware_dups.dmp.gz": set(),
    "labelled/cases/http_espn_fail.pcapng": set(),
    "labelled/cases/ndt-nnwk2_1611335823_00000000000C2DFE.pcap.gz": set(),
    "labelled/cases/sessionhijacking.pcapng": set(),
    "labelled/cases/synscan.pcapng": set(),
    "labelled/tcprs/fack018.pcap": set(),
    "labelled/tcprs/rto007.pcap": set(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_differences_over_captures_of_others_are_explained(name: str) -> None:
    rules = rules_of(needs.shared(name))
    assert None not in rules
    if Dissector().version().startswith("4.0."):
        assert rules >= OTHERS[name]


def with_losses(options: bytes) -> Wire:
    """A transfer of 24 segments of which the 8th is lost behind the capture point; the ACKs have SACK blocks or not."""
    talk = Connection(Wire(by_time=True)).open()
    for turn in range(24):
        talk.data(30 + turn / 10, 1460 * turn)
        talk.ack(50 + turn / 10, 1460 * min(turn + 1, 7), options=options if turn > 7 else b"")
    talk.data(53, 1460 * 7).ack(73, 1460 * 24)
    return talk.wire


@pytest.mark.parametrize("snaplen", [54, 60, 120, 500])
@pytest.mark.parametrize("sacks", [True, False])
def test_rewritten_lengths_explain_missing_data(snaplen: int, sacks: bool, tmp_path: Path) -> None:
    """A tool cut the packets and wrote the shorter length into the records: for Wireshark, data is missing."""
    wire = with_losses(sack((1460 * 8, 1460 * 9)) if sacks else b"")
    frames = [
        (START_NS + round(at * 10**6), frame[:snaplen])
        for at, frame in sorted(wire.packets, key=lambda packet: packet[0])
    ]
    cut_rules = rules_of(write_records(tmp_path / "cut.pcap", frames))
    assert "lengths-cut" in cut_rules
    assert not cut_rules & {None, "one-byte-unseen", "overlap", "nothing-outstanding"}
    full_rules = rules_of(wire.write(tmp_path / "whole.pcap"))
    assert "lengths-cut" not in full_rules and None not in full_rules
