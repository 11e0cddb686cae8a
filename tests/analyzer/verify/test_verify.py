# SPDX-License-Identifier: Apache-2.0
"""wiretale verify: pairs of verdicts and their reasons, Wireshark's own run, hostile input to both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import needs
from checkout import ROOT, SCENARIOS
from plain_wire import RST, SYN, Connection, Wire
from processes import refusal, wait_until
from scenario import captured, read_scenario
from scenario_wire import Frame
from scenario_wire import write_pcap as write_frames
from talk import Talk
from wiretale.analyzer import trace as traces
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.verify.comparison import KINDS, Around, Comparison, Difference, pairs
from wiretale.analyzer.verify.file import compare_file
from wiretale.analyzer.verify.frame_events import FrameEvents, around
from wiretale.analyzer.verify.reasons import RULES, UNEXPLAINED
from wiretale.analyzer.verify.tshark import FIELDS, Dissector, Flagged, read_line
from wiretale.cli.analyze import exit_code
from wiretale.cli.doctor import version_numbers
from wiretale.cli.verify import LISTED, show
from wiretale.reports.terminal.verify import print_comparison

ENDS = frozenset({("10.0.0.1", "4000"), ("10.0.0.2", "80")})

# There the sanitizer speaks up in every process that the test starts.


def event(kind: str, frame: int = 1, **more: Any) -> dict[str, Any]:
    columns = ("direction", "capture", "time_ns", "bytes", "related_frame", "detail", "place", "evidence", "spurious")
    return {**dict.fromkeys(columns), "flow": 0, "frame": frame, "kind": kind, **more}


def flagged(*words: str) -> Flagged:
    return Flagged(frozenset(words), 0, ENDS)


def compare(rows: Any, frames: Any, surroundings: Around | None = None) -> Comparison:
    comparison = Comparison(surroundings or Around())
    comparison.take(rows, frames)
    return comparison


def counts(comparison: Comparison) -> dict[str, tuple[int, int, int]]:
    every = {kind: (count.both, count.wiretale_only, count.wireshark_only) for kind, count in comparison.kinds.items()}
    return {kind: three for kind, three in every.items() if any(three)}


def of_one_frame(row: dict[str, Any] | None, words: tuple[str, ...], surroundings: Around | None = None) -> Difference:
    """The one difference about frame 9, which must have one reason."""
    comparison = compare({9: [row]} if row else {}, {9: flagged(*words)} if words else {}, surroundings)
    [difference] = comparison.differences
    assert difference.frame == 9 and comparison.reasons.total() == 1
    return difference


# Wireshark's word and the kinds of ours that say the same.
AGREE = [
    *((kind, kind) for kind in KINDS if kind not in ("spurious_retransmission",)),
    ("retransmission", "timeout_retransmission"),
    ("retransmission", "probe_retransmission"),
]


@pytest.mark.parametrize(("word", "kind"), AGREE)
def test_the_same_verdict_is_no_difference(word: str, kind: str) -> None:
    comparison = compare({1: [event(kind)]}, {1: flagged(word)})
    assert counts(comparison) == {kind: (1, 0, 0)} and not comparison.differences and not comparison.reasons


def test_a_spurious_retransmission_of_any_kind_agrees_when_it_is_proven() -> None:
    rows = [event("fast_retransmission", spurious=True, evidence="dsack")]
    comparison = compare({1: rows}, {1: flagged("spurious_retransmission")})
    assert counts(comparison) == {"fast_retransmission": (1, 0, 0), "spurious_retransmission": (1, 0, 0)}
    assert not comparison.differences


# Wiretale's event, Wireshark's words, the rule and a piece of its sentence.
UP, DOWN = {"place": "upstream"}, {"place": "downstream"}
TIMEOUT, FAST, LATE = "timeout_retransmission", "fast_retransmission", "out_of_order"
DIFFER: list[tuple[dict[str, Any] | None, tuple[str, ...], str, str]] = [
    (event("mirror_duplicate"), ("retransmission",), "mirror-copy", "same packet"),
    (event("mirror_duplicate"), ("duplicate_ack",), "mirror-copy", "no such verdict"),
    (event("mirror_duplicate"), (), "mirror-copy", "within 1 ms"),
    (event("unknown_duplicate"), ("retransmission",), "copy-of-either", "no such verdict"),
    (event("network_duplicate"), ("spurious_retransmission",), "network-copy", "the network made the copy"),
    (event("ambiguous"), (LATE,), "ambiguous", "within 3 ms"),
    (event("ambiguous"), ("retransmission",), "ambiguous", "nothing in this capture"),
    (event(FAST, evidence="acks", cause="before_capture"), (), "first-before", "before the capture began"),
    (event(TIMEOUT, evidence="ip_id", **UP), (), "not-new", "its IP ID is higher"),
    (event("ambiguous", **UP), (), "not-new", "wiretale names no evidence"),
    (event("retransmission", bytes=1, **DOWN), (), "one-byte-repeated", "one byte"),
    (
        event(FAST, evidence="acks", **DOWN),
        (LATE,),
        "seen-before",
        "had passed the capture point, or had been acknowledged, before",
    ),
    (
        event(FAST, evidence="timestamps", **UP),
        (LATE,),
        "too-near",
        "newer than that of the segment that opened the gap",
    ),
    (event(TIMEOUT, evidence="time", **UP), (LATE,), "too-near", "a round trip or more after"),
    (event(TIMEOUT, evidence="time"), (LATE,), "seen-before", "had been acknowledged"),
    (event(FAST, evidence="moon_phase", **UP), (LATE,), "too-near", "evidence is moon phase"),
    (event(LATE, evidence="ip_id"), (FAST,), "late-not-asked", "only two duplicate ACKs"),
    (event(LATE, evidence="timestamps"), ("retransmission",), "late-not-retransmitted", "its TSval is older"),
    (event(LATE, evidence="time"), ("spurious_retransmission",), "late-and-acked", "below the last ACK"),
    (event(FAST), ("retransmission",), "fast-by-rfc", "three duplicate ACKs"),
    (event(FAST, cause="rack"), ("retransmission",), "fast-by-rfc", "RFC 8985"),
    (
        event(FAST, cause="recovery"),
        ("retransmission",),
        "fast-by-rfc",
        "had begun",
    ),
    (event(TIMEOUT, cause="go_back_n"), (FAST,), "fast-too-easily", "all that was outstanding"),
    (event(TIMEOUT), (FAST,), "fast-too-easily", "RFC 6298"),
    (event("probe_retransmission"), (FAST,), "fast-too-easily", "RFC 8985"),
    (event("retransmission"), (FAST,), "fast-too-easily", "left open"),
    (event(TIMEOUT, spurious=None), ("spurious_retransmission",), "spurious-unproven", "needs proof"),
    (event(TIMEOUT, spurious=True, evidence="dsack"), ("retransmission",), "spurious-proven", "DSACK"),
    (event(FAST, spurious=True, evidence="timestamps"), (FAST,), "spurious-proven", "RFC 3522"),
    (event(FAST, spurious=True, evidence="acknowledged"), (FAST,), "spurious-proven", "longer ago than the way"),
    (event(TIMEOUT), ("ports_reused",), "ports-reused", "new conversation"),
    (event("window_probe"), ("keep_alive",), "probe-not-keep-alive", "Linux"),
    (event("window_probe"), ("retransmission",), "probe-of-its-size", "1 byte at the next"),
    (event("window_probe"), (), "probe-of-its-size", "1 byte at the next"),
    (event("keep_alive"), ("spurious_retransmission",), "keep-alive-below", "one below the highest acknowledged"),
    (event("keep_alive"), ("window_probe",), "keep-alive-below", "one below the highest acknowledged"),
    (event("retransmission"), ("keep_alive",), "keep-alive-outstanding", "all data was acknowledged"),
    (None, ("keep_alive",), "keep-alive-outstanding", "all data was acknowledged"),
    (event("duplicate_ack"), ("window_probe_ack",), "probe-answer", "window probe"),
    (event("keep_alive_ack"), ("duplicate_ack",), "keep-alive-answer", "keep-alive"),
    (event("duplicate_ack"), ("keep_alive_ack",), "answer-of-nothing", "no keep-alive"),
    (None, ("duplicate_ack",), "nothing-outstanding", "RFC 5681"),
    (None, ("duplicate_ack", "dsack"), "answer-to-copy", "RFC 2883"),
    (event("captured_out_of_order"), ("acked_unseen_segment",), "ack-overtook", "wrong order"),
    (event("acked_unseen_segment"), (), "gap-covered", "never seen"),
    (None, ("icmp_error",), "icmp-of-unknown-flow", "quotes"),
    (event("duplicate_ack"), (), "duplicate-of-highest", "overtaken"),
    (None, ("acked_unseen_segment",), "one-byte-unseen", "all but one"),
    (None, ("window_probe",), "probe-of-open-window", "RST"),
    (None, ("retransmission", "syn", "ack"), "simultaneous-open", "RFC 9293"),
    (None, ("window_full",), "window-of-highest-ack", "highest ACK"),
    (event("window_full"), (), "window-of-highest-ack", "highest ACK"),
]


@pytest.mark.parametrize(("row", "words", "rule", "piece"), DIFFER)
def test_a_difference_has_its_reason(row: dict[str, Any] | None, words: tuple[str, ...], rule: str, piece: str) -> None:
    difference = of_one_frame(row, words)
    assert difference.rule == rule
    assert piece in difference.reason and "{" not in difference.reason
    assert difference.wiretale == (row["kind"] if row else None)
    assert difference.wireshark in (None, *words) and difference.evidence == (row or {}).get("evidence")


def test_every_rule_has_its_case() -> None:
    elsewhere = {"same-addresses", "several-stretches", "unseen-again", "gap-acknowledged"}
    elsewhere |= {"events-dropped", "tunnel", "probe-byte", "capture-reordered", "overlap"}
    elsewhere |= {
        "headers-cut",
        "lengths-cut",
        "one-way",
        "no-data-yet",
        "went-before",
        "fragment",
        "not-read",
        "ended-flow",
        "ack-of-another-connection",
    }
    elsewhere |= {"duplicate-of-closed-window", "window-full-again", "window-scale-unknown", "sequence-of-reset"}
    assert {rule.name for rule in RULES} == {rule for _, _, rule, _ in DIFFER} | elsewhere


UNKNOWN: list[tuple[dict[str, Any] | None, tuple[str, ...]]] = [
    (event("gap"), ()),
    (None, ("gap",)),
    (None, ("retransmission",)),
    (event(TIMEOUT), ()),
    (None, ("duplicate_ack", "sack")),  # something is missing at the receiver: RFC 5681 holds
    (None, ("zero_window",)),
    (event("reset"), ()),
]


@pytest.mark.parametrize(("row", "words"), UNKNOWN)
def test_differences_without_a_rule_are_unexplained(row: dict[str, Any] | None, words: tuple[str, ...]) -> None:
    difference = of_one_frame(row, words)
    assert (difference.rule, difference.reason) == (None, UNEXPLAINED)


def test_counts_are_of_frames() -> None:
    rows = {
        1: [event(FAST, 1)],
        2: [event(LATE, 2)],
        3: [event("ambiguous", 3), event("ambiguous", 3)],
        4: [event("gap", 4), event("duplicate_ack", 4)],
        5: [event("mirror_duplicate", 5)],
    }
    frames = {
        1: flagged(FAST),
        2: flagged("retransmission"),
        3: flagged(LATE),
        4: flagged("gap", "zero_window"),
        5: flagged("spurious_retransmission", "window_full"),
        6: flagged("ports_reused"),  # explains, is not compared
    }
    assert counts(compare(rows, frames)) == {
        FAST: (1, 0, 0),
        LATE: (0, 1, 1),
        "retransmission": (0, 0, 1),
        "ambiguous": (0, 1, 0),
        "gap": (1, 0, 0),
        "duplicate_ack": (0, 1, 0),
        "zero_window": (0, 0, 1),
        "mirror_duplicate": (0, 1, 0),
        "spurious_retransmission": (0, 0, 1),
        "window_full": (0, 0, 1),
    }


def test_a_duplicate_explains_every_verdict_of_wireshark() -> None:
    words = {"spurious_retransmission", "window_full", "acked_unseen_segment"}
    assert {pair.wiretale for pair in pairs({"mirror_duplicate"}, words)} == {"mirror_duplicate"}
    assert [pair.agree for pair in pairs({"mirror_duplicate", "window_full"}, words)].count(True) == 1


def test_several_stretches_of_one_segment() -> None:
    comparison = compare({1: [event(TIMEOUT), event("ambiguous")]}, {1: flagged("retransmission")})
    assert [(d.wiretale, d.wireshark, d.rule) for d in comparison.differences] == [
        ("ambiguous", None, "several-stretches")
    ]


EARLIER = [
    ("window_probe", "acked_unseen_segment", "probe-byte"),
    ("window_probe", "gap", "probe-byte"),
    ("captured_out_of_order", "spurious_retransmission", "capture-reordered"),
    ("retransmission", "acked_unseen_segment", "overlap"),
    ("reset", "out_of_order", "sequence-of-reset"),
    ("reset", "gap", "sequence-of-reset"),
]


@pytest.mark.parametrize(("kind", "word", "rule"), EARLIER)
def test_earlier_events_explain_differences(kind: str, word: str, rule: str) -> None:
    before, after = flagged("duplicate_ack"), flagged(word)
    both = [event(kind, 3), event("duplicate_ack", 3)]
    assert [d.rule for d in compare({3: both}, {3: before, 5: after}).differences if d.frame == 5] == [rule]
    without = "one-byte-unseen" if word == "acked_unseen_segment" else None
    assert [d.rule for d in compare({5: both}, {3: after, 5: before}).differences if d.frame == 3] == [without]


def test_verdicts_on_the_same_frame_explain_differences() -> None:
    both = [event("zero_window"), event("duplicate_ack")]
    assert [d.rule for d in compare({1: both}, {1: flagged("zero_window")}).differences] == [
        "duplicate-of-closed-window"
    ]
    again = compare({1: [event("retransmission")]}, {1: flagged("retransmission", "window_full")})
    assert [d.rule for d in again.differences] == ["window-full-again"]
    probed = compare({}, {1: flagged("window_probe"), 2: flagged("gap"), 3: flagged("window_probe")})
    assert [d.rule for d in probed.differences] == ["probe-of-open-window", "probe-byte", "probe-of-open-window"]
    old = compare({1: [event("ack_out_of_range")]}, {1: flagged("acked_unseen_segment")})
    assert [d.rule for d in old.differences] == ["ack-of-another-connection"]
    closed = compare({1: [event("zero_window")]}, {1: flagged("zero_window"), 2: flagged("window_probe")})
    assert [d.rule for d in closed.differences] == [None]


def test_data_acknowledged_unseen_is_no_gap_and_one_event() -> None:
    rows = {3: [event("acked_unseen_segment", 3), event("gap", 3)]}
    frames = {
        2: flagged("gap"),
        3: flagged("gap", "acked_unseen_segment"),
        4: flagged("gap", "acked_unseen_segment"),
        5: flagged("acked_unseen_segment"),
    }
    comparison = compare(rows, frames)
    rules = [(d.frame, d.wireshark, d.rule) for d in comparison.differences]
    unseen = "acked_unseen_segment"
    again = [(4, unseen, "unseen-again"), (4, "gap", "gap-acknowledged"), (5, unseen, "unseen-again")]
    assert rules == [(2, "gap", None), *again]


def test_neighboring_events_explain_differences() -> None:
    def rule(row: dict[str, Any] | None, words: tuple[str, ...], surroundings: Around) -> str | None:
        return of_one_frame(row, words, surroundings).rule

    assert rule(None, ("retransmission",), Around(shared_ends={ENDS})) == "same-addresses"
    assert rule(event(FAST), (LATE,), Around(shared_flows={0})) == "same-addresses"
    assert rule(None, ("gap",), Around(full_ends={ENDS: 8})) == "events-dropped"
    assert rule(None, ("gap",), Around(full_ends={ENDS: 9})) is None
    assert rule(None, ("gap",), Around(full_from=9)) == "events-dropped"
    assert rule(event("gap"), (), Around(paths={0: "vlan 3 / vxlan 7"})) == "tunnel"
    assert rule(event("duplicate_ack"), (), Around(cut_flows={0})) == "headers-cut"
    assert rule(event("reset"), (), Around(cut_flows={1})) is None
    assert rule(None, ("duplicate_ack", "sack"), Around(one_way_ends={ENDS})) == "one-way"
    assert rule(None, ("duplicate_ack", "sack"), Around(begun_ends={ENDS})) == "no-data-yet"
    assert rule(None, ("acked_unseen_segment",), Around(resumed_ends={ENDS})) == "went-before"
    assert rule(None, ("acked_unseen_segment",), Around(begun_ends={ENDS})) == "one-byte-unseen"
    assert rule(None, ("window_full",), Around(begun_ends={ENDS})) == "window-scale-unknown"
    assert rule(None, ("retransmission",), Around(ended_ends={ENDS: 8})) == "ended-flow"
    assert rule(None, ("retransmission",), Around(ended_ends={ENDS: 9})) is None
    assert rule(event("gap"), (), Around(paths={0: "vlan 3 / vlan 7"})) is None


@needs.TSHARK
@pytest.mark.parametrize("which", ["cut", "acks", "recovery"])
def test_half_captured_conversations_are_explained(tmp_path: Path, which: str) -> None:
    """A snap length that cuts SACK off, acknowledgments alone, and a capture that begins amid a recovery."""
    talk = Talk()
    if which != "recovery":
        talk.open()
        for k in range(6):
            talk.data(30 + k / 10, 1000 * k)
    for k in range(3, 7):
        talk.ack(50 + k / 10, 1000, (2000, 1000 * k))
    talk.data(50.7, 1000).ack(70.7, 6000)
    for k in range(6, 9):
        talk.data(71 + k / 10, 1000 * k)
    talk.ack(92, 9000)
    packets = [packet for packet in talk.in_order() if which != "acks" or packet["TCP"].sport == 80]
    keep = 66 if which == "cut" else None
    frames = [Frame(round(packet.time * 10**9), 0, bytes(packet)[:keep], 4, len(packet)) for packet in packets]
    comparison = compared_with_wireshark(write_frames(frames, tmp_path / "half.pcap"))
    assert comparison.differences and not [
        difference for difference in comparison.differences if difference.rule is None
    ]


def test_pieces_add_up_and_the_bound_holds_for_each_reason() -> None:
    comparison = Comparison(most=2)
    for frame in range(1, 7):
        comparison.take({frame: [event("ambiguous", frame)]}, {frame: flagged(LATE if frame % 2 else "retransmission")})
    assert counts(comparison)["ambiguous"] == (0, 6, 0)
    assert sorted(comparison.reasons.values()) == [3, 3] and [d.frame for d in comparison.differences] == [1, 2, 3, 4]


def test_kinds_that_wireshark_has_nothing_for_are_counted() -> None:
    comparison = compare({1: [event("time_backward")]}, {})
    assert comparison.not_compared == {"time_backward": 1} and not comparison.differences


def test_text_names_both_verdicts_the_evidence_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    row = event(FAST, 160, evidence="timestamps", related_frame=90, spurious=True, detail="\x1b[31m", **UP)
    out = StringIO()
    print_comparison("x\x1b.pcap", compare({160: [row]}, {160: flagged(LATE)}), "4.0.17", out)
    text = out.getvalue()
    pieces = ("fast retransmission, spurious, upstream", "timestamps; \ufffd[31m; frame 90", "out of order", "flow 0")
    assert "1 difference" in text and all(piece in text for piece in pieces) and "\x1b" not in text
    out = StringIO()
    print_comparison("x.pcap", compare({}, {}), "4.0.17", out)
    assert "Neither wiretale nor Wireshark 4.0.17 reports an anomaly." in out.getvalue()


def line(frame: int, *fields: str, ack: str = "", sack: str = "") -> bytes:
    values = {"frame.number": str(frame), "tcp.ack": ack, "tcp.options.sack_le": sack, "tcp.flags.reset": "0"}
    values |= {f"tcp.analysis.{field}" if "." not in field else field: "1" for field in fields}
    return "\t".join(values.get(field, "") for field in FIELDS).encode() + b"\n"


def test_a_line_of_tshark_is_read() -> None:
    assert read_line(line(7, "retransmission", "fast_retransmission"))[1].words == {FAST}
    assert read_line(line(7, "retransmission", "spurious_retransmission"))[1].words == {"spurious_retransmission"}
    assert read_line(line(7, "lost_segment", "tcp.flags.reset"))[1].words == {"gap", "reset"}
    assert read_line(line(7, "tcp.flags.reset", "icmp.type"))[1].words == {"icmp_error"}
    assert read_line(line(7, "duplicate_ack", ack="100", sack="200"))[1].words == {"duplicate_ack", "sack"}
    assert read_line(line(7, "duplicate_ack", ack="100", sack="90"))[1].words == {"duplicate_ack", "dsack"}
    assert read_line(line(7, "duplicate_ack", ack="5", sack="4294967290"))[1].words == {"duplicate_ack", "dsack"}
    text = line(7, "retransmission").replace(b"False", b"")
    assert read_line(text) == (7, Flagged(frozenset({"retransmission"}), None, None))
    for wrong in (b"\n", b"x\n", b"1\t2\n", line(7).replace(b"7", b"seven"), line(7)[:-3]):
        with pytest.raises(InputError, match="expected a verdict"):
            read_line(wrong)


def test_events_come_in_the_order_of_frames(samples: Path) -> None:
    events = traces.analyze(samples / "tcp_losses.pcap").events
    every = Counter(row["frame"] for row in events.rows())
    ordered = FrameEvents(events)
    first, remaining, nothing = ordered.take(160), ordered.take(float("inf")), ordered.take(float("inf"))
    assert list(first) == sorted(frame for frame in every if frame <= 160) and not nothing
    assert {frame: len(rows) for frame, rows in (first | remaining).items()} == every


def test_flows_that_differ_in_a_vlan_alone_are_known(samples: Path) -> None:
    surroundings = around(traces.analyze(samples / "vlan_ipv6.pcap"))
    assert surroundings.shared_flows == {0, 1, 3, 5}
    assert frozenset({("10.0.0.1", "40000"), ("10.0.0.2", "80")}) in surroundings.shared_ends
    assert around(traces.analyze(samples / "tcp_losses.pcap")) == Around(
        shared_ends=surroundings.shared_ends & frozenset()
    )


@needs.TSHARK
def test_wireshark_agrees_with_the_verdicts_of_a_sample(samples: Path) -> None:
    frames = dict(Dissector().frames(str(samples / "tcp_losses.pcap")))
    rows = {frame: [event("duplicate_ack", frame)] for frame, flags in frames.items() if "duplicate_ack" in flags.words}
    rows[155] = [event(FAST, 155, place="downstream", evidence="acks")]
    rows[338] = [event(TIMEOUT, 338, place="downstream", evidence="time")]
    comparison = compare(rows, frames)
    assert counts(comparison) == {FAST: (1, 0, 0), TIMEOUT: (1, 0, 0), "duplicate_ack": (41, 0, 0)}
    assert not comparison.differences


CRAFTED = {
    "timeout/go_back_n": {"spurious-proven", "answer-to-copy"},
    "reordering/resent_on_a_short_path": {"too-near"},
    "reordering/reordered_by_four_and_resent": {"spurious-proven", "answer-to-copy"},
    "duplicate/mirror_of_both_directions": {"mirror-copy"},
    "window/probe_byte_accepted": {"probe-byte"},
    "timeout/partial_overlap": {"overlap"},
    "reordering/acks_stored_before_data": {"ack-overtook", "capture-reordered"},
    "window/linux_window_probes": {"probe-not-keep-alive"},
    "reordering/reordered_with_four_duplicates": {"late-not-asked"},
}
# Since some version between Debian 12's (4.0) and Debian 13's (4.4), Wireshark counts the byte of a window probe too.
AGREES_SINCE = {"window/probe_byte_accepted": (4, 2)}


def compared_with_wireshark(capture: Path) -> Comparison:
    """The comparison of a small file at once."""
    trace = traces.analyze(capture)
    comparison = Comparison(around(trace))
    comparison.take(FrameEvents(trace.events).take(float("inf")), dict(Dissector().frames(str(capture))))
    return comparison


Compared = Callable[[int | None], tuple[str, Comparison, str]]


@cache
def wireshark() -> str:
    return Dissector().version()


class Recorded(Dissector):
    """tshark, which reads each file once."""

    def __init__(self) -> None:
        super().__init__()
        self.done: dict[str, tuple[list[tuple[int, Flagged]], str | None]] = {}

    def frames(self, path: str) -> Iterator[tuple[int, Flagged]]:
        if path not in self.done:
            self.done[path] = (list(super().frames(path)), self.problem)
        rows, self.problem = self.done[path]
        return iter(rows)


@pytest.fixture(scope="session")
def tshark() -> Recorded:
    return Recorded()


@pytest.fixture
def compared(sample: Path, tshark: Recorded) -> Compared:
    """Path, comparison and Wireshark's version of a sample; so many differences are listed for each reason."""
    path = str(sample)
    return lambda most: (path, compare_file(traces.analyze(path), path, tshark, most), wireshark())


@needs.TSHARK
@pytest.mark.parametrize("name", CRAFTED)
def test_differences_of_crafted_conversations_are_explained(tmp_path: Path, name: str) -> None:
    frames = captured(read_scenario(SCENARIOS / f"{name}.txt", SCENARIOS), "ipv4")
    comparison = compared_with_wireshark(write_frames(frames, tmp_path / "case.pcap"))
    rules = {difference.rule for difference in comparison.differences}
    may_agree = name in AGREES_SINCE and version_numbers(wireshark()) >= AGREES_SINCE[name]
    assert rules == CRAFTED[name] or (may_agree and not rules)


@needs.TSHARK
@pytest.mark.xdist_group("tshark")
def test_every_sample_is_compared(compared: Compared, capsys: pytest.CaptureFixture[str]) -> None:
    path, comparison, version = compared(None)
    assert exit_code(traces.analyze(path)) == (3 if path.endswith("damaged.pcap") else 0)
    show(path, comparison, version, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wiretale.verify/1" and document["file"] == path
    assert document["wireshark"] == version
    assert list(document["kinds"]) == list(KINDS)
    assert all(set(kind) == {"both", "wiretale_only", "wireshark_only"} for kind in document["kinds"].values())
    for difference in document["differences"]:
        assert {"frame", "wiretale", "wireshark", "evidence", "rule", "reason"} <= set(difference)
        assert difference["reason"] and (difference["wiretale"] or difference["wireshark"])
    assert sum(reason["count"] for reason in document["reasons"]) == len(document["differences"])
    assert all(reason["rule"] for reason in document["reasons"]), "a difference that no rule explains"
    duplicates, arguments = document["kinds"]["duplicate_ack"], ["-T", "fields", "-e", "frame.number"]
    command = ["tshark", "-n", "-r", path, "-Y", "tcp.analysis.duplicate_ack", *arguments]
    frames = subprocess.run(command, capture_output=True, check=False).stdout.split()
    assert duplicates["both"] + duplicates["wireshark_only"] == len(frames)


@needs.TSHARK
def test_differences_are_listed_up_to_the_given_number(wiretale_run: Any, samples: Path) -> None:
    capture = samples / "vlan_ipv6.pcap"
    text = wiretale_run("verify", capture, "--differences", "2").stdout
    assert "in different VLANs or tunnels; wiretale" in " ".join(text.split()) and "and 14 more" in text
    assert len(json.loads(wiretale_run("verify", capture, "--json").stdout)["differences"]) == 16
    cut = json.loads(wiretale_run("verify", capture, "--json", "--differences", "0").stdout)
    assert cut["differences"] == [] and cut["reasons"][0]["count"] == 16


@needs.TSHARK
@pytest.mark.xdist_group("tshark")
def test_the_comparison_fits_the_terminal(
    compared: Compared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, comparison, version = compared(LISTED)
    name = Path(path).name
    for width in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        show(name, comparison, version, as_json=False)
        text = capsys.readouterr().out
        assert name in text and "Wireshark" in text
        assert all(len(line) <= width for line in text.splitlines())


@needs.TSHARK
def test_each_file_is_read_alone(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    captures = [shutil.copy(samples / name, tmp_path / name) for name in ("tcp_losses.pcap", "vlan_ipv6.pcap")]
    lines = wiretale_run("verify", *captures, "--json").stdout.splitlines()
    assert [json.loads(line)["file"] for line in lines] == list(map(str, captures))
    shutil.copy(samples / "damaged.pcap", tmp_path)
    done = wiretale_run("verify", tmp_path)
    assert done.returncode == 3 and all(f"{path}" in done.stdout for path in tmp_path.iterdir())


@pytest.fixture(scope="module")
def kinds_of_vlan(wiretale_run: Any, samples: Path) -> dict[str, Any]:
    """What verify counts in a file of a plain name."""
    kinds: dict[str, Any] = json.loads(wiretale_run("verify", samples / "vlan_ipv6.pcap", "--json").stdout)["kinds"]
    return kinds


@needs.TSHARK
@pytest.mark.parametrize(
    "name", ["-r.pcap", "-", "a b;touch x.pcap", "$(touch x)\n.pcap", "[red]\x1b[31m.pcap", "\udcff.pcap"]
)
def test_a_hostile_name_is_only_a_name(
    wiretale_run: Any, samples: Path, tmp_path: Path, name: str, kinds_of_vlan: dict[str, Any]
) -> None:
    shutil.copy(samples / "vlan_ipv6.pcap", tmp_path / name)
    done = wiretale_run("verify", "--", name if name != "-" else "./-", cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr and "\x1b" not in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert json.loads(wiretale_run("verify", tmp_path, "--json").stdout)["kinds"] == kinds_of_vlan
    assert kinds_of_vlan["retransmission"]["wireshark_only"] > 0


@needs.TSHARK
def test_the_users_wireshark_profile_does_not_count(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "preferences").write_text("tcp.analyze_sequence_numbers: FALSE\n")
    (tmp_path / "init.lua").write_text("os.exit(7)\n")
    env = {"WIRESHARK_CONFIG_DIR": str(tmp_path)}
    document = json.loads(wiretale_run("verify", samples / "tcp_losses.pcap", "--json", env=env).stdout)
    assert document["kinds"]["duplicate_ack"]["both"] + document["kinds"]["duplicate_ack"]["wireshark_only"] == 41


def test_an_impossible_comparison_is_one_line(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    text, pipe = tmp_path / "notes.txt", tmp_path / "pipe"
    text.write_text("this is no capture\n")
    os.mkfifo(pipe)
    good = samples / "vlan_ipv6.pcap"
    expected = {
        ("-",): 2,
        (pipe,): 2,
        (good, good): 2,
        (good, "--differences", "-1"): 2,
        (): 2,
        (text,): 5 if needs.programs("tshark") else 4,
        (tmp_path / "nothing.pcap",): 5 if needs.programs("tshark") else 4,
    }
    for arguments, code in expected.items():
        refusal(wiretale_run("verify", *arguments), code)


def test_a_missing_tshark_is_one_line_that_says_how_to_get_it(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    done = wiretale_run("verify", samples / "vlan_ipv6.pcap", env={"PATH": str(tmp_path)})
    message = refusal(done, 5)
    assert message.startswith("tshark is missing") and "apt-get install tshark" in message


def stand_in(folder: Path, script: str) -> dict[str, str]:
    """A tshark that does as the script says; the environment in which it is found."""
    program = folder / "tshark"
    version = 'if sys.argv[1:] == ["--version"]: print("TShark (Wireshark) 9.8.7."); sys.exit()'
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{version}\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(folder)}


def test_a_tshark_that_cannot_be_run_is_a_missing_one(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    env = stand_in(tmp_path, "")
    for text in ("#!/no/such/program\n", f"#!{sys.executable}\nraise SystemExit('tshark: no libwireshark')\n"):
        (tmp_path / "tshark").write_text(text)
        done = wiretale_run("verify", samples / "vlan_ipv6.pcap", env=env)
        assert "apt-get install tshark" in refusal(done, 5)


FAILURES = {
    'sys.exit("tshark: The file is odd.\\n(pcap: very odd)")': "tshark: The file is odd. (pcap: very odd)",
    "import os; os.kill(os.getpid(), 11)": "tshark: ended by signal 11",
    "sys.exit(9)": "tshark: exit code 9",
    'print("what is this?")': "tshark: expected a verdict, found",
    'print("1" * 100000)': "tshark: expected a verdict, found",
    'sys.stderr.write("x" * 3000000); sys.exit("\\n\x1btshark: no")': "wiretale: tshark: ",
}


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("script", FAILURES)
def test_a_tshark_that_fails_is_one_line(wiretale_run: Any, samples: Path, tmp_path: Path, script: str) -> None:
    done = wiretale_run("verify", samples / "vlan_ipv6.pcap", env=stand_in(tmp_path, script))
    assert done.returncode == 4 and not done.stdout and FAILURES[script] in done.stderr
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 400 and "\x1b" not in done.stderr


STOPS = 'print({row!r}); sys.exit("tshark: network type 147 unknown or unsupported")'
UNSUPPORTED = "network type 147 unknown or unsupported"


def test_frames_before_a_tshark_that_stops_are_compared(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    """A later interface of a pcapng file may have a link type that only wiretale knows."""
    env = stand_in(tmp_path, STOPS.format(row=line(200, "retransmission").decode().rstrip("\n")))
    done = wiretale_run("verify", samples / "tcp_losses.pcap", "--json", env=env)
    document = json.loads(done.stdout)
    assert (done.returncode, document["last_frame"]) == (4, 200) and UNSUPPORTED in document["error"]
    assert document["kinds"]["retransmission"]["wireshark_only"] == 1
    frames = [difference["frame"] for difference in document["differences"]]
    assert 155 in frames and max(frames) == 200
    assert "tshark stopped after frame 200" in done.stderr and done.stderr.count("\n") == 1
    printed = wiretale_run("verify", samples / "tcp_losses.pcap", env=env)
    assert printed.returncode == 4 and "Later frames are not compared" in printed.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_a_file_that_cannot_be_compared_does_not_stop_the_others(
    wiretale_run: Any, samples: Path, tmp_path: Path, as_json: bool
) -> None:
    (tmp_path / "notes.pcap").write_text("this is no capture\n")
    script = f'if "vlan" in " ".join(sys.argv): sys.exit("tshark: {UNSUPPORTED}")'
    files = (samples / "vlan_ipv6.pcap", tmp_path / "notes.pcap", samples / "keep_alives.pcapng")
    done = wiretale_run("verify", *files, *["--json"] * as_json, env=stand_in(tmp_path, script))
    messages = done.stderr.splitlines()
    assert done.returncode == 4 and len(messages) == 2 and all(message.startswith("wiretale: ") for message in messages)
    assert "notes.pcap" in messages[0] and "vlan_ipv6.pcap: tshark: " in messages[1]
    if as_json:
        objects = [json.loads(text) for text in done.stdout.splitlines()]
        assert [document["file"] for document in objects] == [str(files[0]), str(files[2])]
        assert [bool(document["error"]) for document in objects] == [True, False]
    else:
        assert "keep_alives.pcapng" in done.stdout and "keep alive" in done.stdout


@needs.TSHARK
def test_link_types_that_tshark_refuses() -> None:
    """DSA tags: wiretale reads the file."""
    path = needs.shared("captures/tcpdump-tests/dsa.pcap")
    try:
        compare_file(traces.analyze(path), str(path), Dissector(), None)
    except InputError as error:
        assert "unknown or unsupported" in str(error)


def test_warnings_of_a_tshark_that_goes_on_are_no_matter(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    row = line(2, "retransmission").decode().rstrip("\n")
    env = stand_in(tmp_path, f'sys.stderr.write("tshark: warning\\n" * 100000); print({row!r})')
    done = wiretale_run("verify", samples / "tcp_losses.pcap", "--json", env=env)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr, document["wireshark"]) == (0, "", "9.8.7")
    assert document["kinds"]["retransmission"]["wireshark_only"] == 1


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_both(samples: Path, tmp_path: Path, number: signal.Signals) -> None:
    script = f'open({str(tmp_path / "pid")!r}, "w").write(str(__import__("os").getpid())); time.sleep(60)'
    command = [sys.executable, "-m", "wiretale", "verify", str(samples / "vlan_ipv6.pcap")]
    env = {**os.environ, **stand_in(tmp_path, script), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "tshark runs")
        running.send_signal(number)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (128 + number, "", "wiretale: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pid", "tshark"]


@needs.TSHARK
def test_events_that_were_only_counted_are_no_mystery(wiretale_run: Any, tmp_path: Path) -> None:
    talk = Connection(Wire())
    for number in range(10_021):
        talk.send(0, 0, -1, flags=RST if number else SYN)
    capture = talk.wire.write(tmp_path / "resets.pcap")
    document = json.loads(wiretale_run("verify", capture, "--json").stdout)
    assert document["kinds"]["reset"] == {"both": 10_000, "wiretale_only": 0, "wireshark_only": 20}
    assert [(reason["rule"], reason["count"]) for reason in document["reasons"]] == [("events-dropped", 20)]
    assert document["events_dropped"] == 20


def test_every_reason_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text()
    assert [rule.name for rule in RULES if f"| `{rule.name}` |" not in text] == []
