# SPDX-License-Identifier: Apache-2.0
"""A difference between both programs, the form of a rule that explains it, and the evidence that its sentence names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

RETRANSMISSIONS = frozenset({"fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission"})
SPURIOUS = "spurious_retransmission"
COPIES = frozenset({"mirror_duplicate", "network_duplicate", "unknown_duplicate", "wlan_retry"})
PROBES = frozenset({"keep_alive", "window_probe"})
ANSWERS = frozenset({"duplicate_ack", "keep_alive_ack"})
REPEATED = RETRANSMISSIONS | {SPURIOUS}  # Wireshark's kinds
SEGMENT = REPEATED | COPIES | PROBES | {"out_of_order", "ambiguous"}  # verdicts on the data of a frame
#: verdicts of wiretale that also explain later frames of the conversation
LASTING = RETRANSMISSIONS | {"acked_unseen_segment", "captured_out_of_order", "window_probe", "zero_window", "reset"}
FRAGMENT = "fragment"  # of a segment, which Wireshark judges when it is whole

Row = Mapping[str, Any]


class Case(NamedTuple):
    """One difference: both verdicts on a frame, and the context."""

    wiretale: str | None
    wireshark: str | None
    row: Row  # wiretale's event; empty without one
    words: Set[str]  # all of Wireshark's verdicts on the frame
    kinds: Set[str]  # all of wiretale's, also those that Wireshark does not have
    shared: bool = False  # Wireshark merges several flows into one conversation
    noted: Set[str] = frozenset()  # verdicts on the conversation up to this frame, of LASTING
    probed: bool = False  # Wireshark found a window probe in it
    dropped: bool = False  # the events table is full
    path: str | None = None  # VLANs and tunnels of the flow
    cut: bool = False  # the snap length truncated TCP options of the flow
    shortened: bool = False  # records of it, up to this frame, say less than the IP length
    one_way: bool = False  # one direction was captured
    begun: bool = False  # the capture began within the conversation
    resumed: bool = False  # and it holds a retransmission of earlier data
    ended: bool = False  # wiretale ended a flow before this frame, in the conversation that Wireshark continues
    unread: str | None = None  # why wiretale found no TCP segment or ICMP message in the frame

    def has_one_verdict(self) -> bool:
        """Returns whether only one of the programs has a verdict on this subject."""
        return None in self[:2]


class Rule(NamedTuple):
    """A reason, the verdicts that it explains (None in a set: no verdict), and a condition that must hold too."""

    name: str
    verdicts: tuple[Set[str | None] | None, Set[str | None] | None]  # wiretale's and Wireshark's; None: any
    sentence: str
    when: Callable[[Case], object] = lambda case: True

    def fits(self, case: Case) -> bool:
        """Returns whether the rule explains the difference."""
        sides = zip(self.verdicts, (case.wiretale, case.wireshark), strict=True)
        return all(verdicts is None or verdict in verdicts for verdicts, verdict in sides) and bool(self.when(case))


# By evidence, why a segment that fills a gap was retransmitted, or only late.
RETRANSMITTED = {
    "dsack": "a later DSACK (RFC 2883) reported that these bytes arrived twice (rule V6.3)",
    "timestamps": "it was retransmitted, because its TSval is newer than that of the segment that opened the gap (rule V3.2)",
    "ip_id": "it was retransmitted, because its IP ID is higher than that of the segment that opened the gap (rule V3.3)",
    "acks": "it was retransmitted, because duplicate ACKs or SACKs of the segments above requested it (rules V5.3, V5.4)",
    "time": "it was retransmitted, because it came a round trip or more after the gap opened (rule V3.5)",
}
REORDERED = {
    "dsack": "a later DSACK (RFC 2883) reported that it and another copy of these bytes arrived",
    "timestamps": "it was reordered, because its TSval is older than that of the segment before it (rule V3.2)",
    "ip_id": "it was reordered, because its IP ID is lower than that of the segment before it (rule V3.3)",
    "time": "it was reordered, because it came within a quarter of the RTT and before three duplicate ACKs, too early "
    "for a retransmission (rule V3.4)",
}
PROVEN = {
    "dsack": "a later DSACK (RFC 2883) reported that the first transmission had arrived (rule V6.3)",
    "timestamps": "timestamps prove that the first transmission arrived (RFC 3522, rule V6.4)",
    "ip_id": "the first transmission passed later, by its IP ID (rule V4.3)",
    "acknowledged": "its bytes had been acknowledged at the capture point, longer ago than the way to the sender takes "
    "(rule V6.1)",
}
# Why wiretale chose the kind of a retransmission: by the event's cause, else by the kind.
KIND_REASONS = {
    "rack": "wiretale found it transmitted an RTT before, and later data was acknowledged (RFC 8985, rule V5.8)",
    "recovery": "wiretale found an earlier segment that had begun the recovery (RFC 6675, rule V5.5)",
    "go_back_n": "wiretale found an RTO before it, after which all that was outstanding is retransmitted (rule V5.2)",
    "fast_retransmission": "wiretale found three duplicate ACKs, or SACKs of over two segments above it (RFC 5681, "
    "RFC 6675, rules V5.3, V5.4)",
    "timeout_retransmission": "wiretale found no ACK of new data during a whole RTO before it (RFC 6298, rule V5.10)",
    "probe_retransmission": "wiretale found the last segment, repeated once about two RTTs later without an ACK "
    "between (RFC 8985, rule V5.9)",
    "retransmission": "wiretale found neither three duplicate ACKs nor an RTO before it, so its kind is left open (rule V5.11)",
}


def in_tunnel(path: str | None) -> bool:
    """Returns whether a flow has encapsulations other than tags."""
    return any(not part.startswith(("vlan", "pppoe", "pbb")) for part in path.split(" / ")) if path else False


def kind_reason(case: Case) -> str:
    """Returns why wiretale chose this kind."""
    words = (case.row.get("cause"), case.row.get("kind"))
    return next((KIND_REASONS[word] for word in words if word in KIND_REASONS), "")


def by_evidence(sentences: Mapping[str, str], case: Case) -> str:
    """Returns the sentence for wiretale's evidence, or names it."""
    evidence = case.row.get("evidence")
    if evidence is None:
        return "wiretale names no evidence"
    return sentences.get(evidence, f"wiretale's evidence is {evidence.replace('_', ' ')}")
