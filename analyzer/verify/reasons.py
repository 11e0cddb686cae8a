# SPDX-License-Identifier: Apache-2.0
"""The reasons for which wiretale and Wireshark judge a frame differently; the first rule that fits gives the reason.

Wireshark's verdicts are those of tcp_analyze_sequence_number() in epan/dissectors/packet-tcp.c, wiretale's follow the
RFCs that the sentences name. A special rule must stand before a general one. If no rule fits, the difference is reported
as unexplained, because it may be an error.
"""

from __future__ import annotations

from collections.abc import Set

from wiretale.analyzer.verify.case import (
    ANSWERS,
    FRAGMENT,
    PROVEN,
    REORDERED,
    REPEATED,
    RETRANSMISSIONS,
    RETRANSMITTED,
    SEGMENT,
    SPURIOUS,
    Case,
    Rule,
    by_evidence,
    in_tunnel,
    kind_reason,
)

UNEXPLAINED = "no rule explains this, and one of the two programs may be wrong: please report the frames"

NONE: Set[str | None] = frozenset({None})
NEAR = "Wireshark calls it out of order because it came within 3 ms (or the handshake RTT) of the highest byte"
FAST = "Wireshark calls it fast after only two duplicate ACKs, if it came within 20 ms of the last"

# Of rules that depend on more of the stream than both verdicts show.
BY_STATE = "wiretale's count is right if its state of the stream is, which verify does not check"

RULES = (
    Rule(
        "not-read",
        verdicts=(NONE, None),
        sentence="not read: {unread}; wiretale found no TCP segment in this frame, Wireshark found one",
        when=lambda case: case.unread and case.unread != FRAGMENT,
    ),
    Rule(
        "same-addresses",
        verdicts=(None, None),
        sentence="Wireshark merges conversations with the same addresses and ports in different VLANs or tunnels; wiretale "
        "keeps them apart",
        when=lambda case: case.shared,
    ),
    Rule(
        "events-dropped",
        verdicts=(NONE, None),
        sentence="wiretale lists 10,000 events per flow and 4,000,000 in total; later events are only counted",
        when=lambda case: case.dropped,
    ),
    Rule(
        "headers-cut",
        verdicts=(None, NONE),
        sentence="the snap length truncated the options of this conversation's segments: Wireshark does not judge a segment "
        "with an incomplete header",
        when=lambda case: case.cut and not case.words,
    ),
    Rule(
        "lengths-cut",
        verdicts=(NONE, {"gap", "acked_unseen_segment", "duplicate_ack", "keep_alive"}),
        sentence="records of this conversation are shorter than the IP length of their packets: Wireshark believes the length "
        "in the record, so that data seems to be missing; wiretale uses the IP length",
        when=lambda case: case.shortened,
    ),
    Rule(
        "lengths-cut",
        verdicts=(SEGMENT | {"duplicate_ack", "window_full"}, NONE),
        sentence="records of this conversation are shorter than the IP length of their packets: Wireshark believes the length "
        "in the record, and sees no data or less; wiretale uses the IP length",
        when=lambda case: case.shortened,
    ),
    Rule(
        "one-way",
        verdicts=(NONE, None),
        sentence="only one direction of this conversation was captured: wiretale gives no verdict that needs both, Wireshark "
        "uses this one alone",
        when=lambda case: case.one_way,
    ),
    Rule(
        "ended-flow",
        verdicts=(NONE, None),
        sentence="wiretale had ended the flow and began another: after a long idle time (60 s if it was closed, 2 min if it was "
        "half-open, else up to 125 min), at the SYN of a new connection, or because too many were open; Wireshark keeps one "
        "conversation",
        when=lambda case: case.ended,
    ),
    Rule(
        "ack-of-another-connection",
        verdicts=(NONE, {"acked_unseen_segment", "duplicate_ack"}),
        sentence="the ACK is far outside of the stream and belongs to an old connection (rule V9.4)",
        when=lambda case: "ack_out_of_range" in case.kinds,
    ),
    Rule(
        "simultaneous-open",
        verdicts=(NONE, {"retransmission", "out_of_order"}),
        sentence="a SYN-ACK after a SYN of the same end is its answer in a simultaneous open (RFC 9293 section 3.5); Wireshark "
        "calls a second SYN flag with the same sequence number a retransmission",
        when=lambda case: {"syn", "ack"} <= case.words,
    ),
    # --- copies
    Rule(
        "mirror-copy",
        verdicts=({"mirror_duplicate"}, None),
        sentence="a copy by the mirror port or by a second capture point: the same packet (IP ID or TSval, sequence number, "
        "checksum) within 1 ms, or at any time behind a router (other link addresses, another TTL); Wireshark has no such "
        "verdict (V8.4)",
    ),
    Rule(
        "network-copy",
        verdicts=({"network_duplicate", "wlan_retry"}, None),
        sentence="the same packet again, sooner than the sender could detect a loss, or with an IP ID or TSval that has "
        "passed: the network made the copy, or a station repeated the frame; Wireshark has no such verdict (V8.1 to V8.4)",
    ),
    Rule(
        "copy-of-either",
        verdicts=({"unknown_duplicate"}, None),
        sentence="the same packet again within 1 ms: a copy by the network or by the capture, which cannot be determined; "
        "Wireshark has no such verdict",
    ),
    # --- reordered or retransmitted
    Rule(
        "ambiguous",
        verdicts=({"ambiguous"}, {"out_of_order"}),
        sentence=f"{NEAR}; nothing in this capture distinguishes reordering from a retransmission",
    ),
    Rule(
        "ambiguous",
        verdicts=({"ambiguous"}, REPEATED),
        sentence="Wireshark calls data below the highest byte a retransmission unless it came soon after it; nothing in this "
        "capture distinguishes a retransmission from reordering",
    ),
    Rule(
        "first-before",
        verdicts=(RETRANSMISSIONS, NONE),
        sentence="it passed before the capture began, as duplicate ACKs and SACKs show, and is retransmitted; for Wireshark it "
        "is new",
        when=lambda case: case.row.get("cause") == "before_capture",
    ),
    Rule(
        "not-new",
        verdicts=(RETRANSMISSIONS | {"ambiguous"}, NONE),
        sentence="its bytes are new at the capture point, so Wireshark, which uses only sequence numbers, has no verdict; "
        "{retransmitted}",
        when=lambda case: case.row.get("place") == "upstream",
    ),
    Rule(
        "one-byte-repeated",
        verdicts=(RETRANSMISSIONS | {"ambiguous"}, NONE),
        sentence="it repeats one byte and continues with new data; Wireshark takes it for the data after a window probe",
        when=lambda case: case.row.get("bytes") == 1,
    ),
    Rule(
        "seen-before",
        verdicts=(RETRANSMISSIONS, {"out_of_order"}),
        sentence=f"{NEAR}; it was retransmitted, because its bytes had passed the capture point, or had been acknowledged, "
        "before",
        when=lambda case: case.row.get("place") != "upstream",
    ),
    Rule("too-near", verdicts=(RETRANSMISSIONS, {"out_of_order"}), sentence=f"{NEAR}; {{retransmitted}}"),
    Rule("late-not-asked", verdicts=({"out_of_order"}, {"fast_retransmission"}), sentence=f"{FAST}; {{reordered}}"),
    Rule(
        "late-not-retransmitted",
        verdicts=({"out_of_order"}, {"retransmission"}),
        sentence="Wireshark calls data below the highest byte a retransmission unless it came within 3 ms (or the handshake "
        "RTT) of it; {reordered}",
    ),
    Rule(
        "late-and-acked",
        verdicts=({"out_of_order"}, {SPURIOUS}),
        sentence="Wireshark calls any segment below the last ACK a spurious retransmission; {reordered}",
    ),
    # --- the kind of a retransmission
    Rule(
        "fast-by-rfc",
        verdicts=({"fast_retransmission"}, {"retransmission"}),
        sentence="Wireshark calls it fast only if it begins at the last ACK, after two duplicate ACKs and within 20 ms of the "
        "last; {kind_reason}",
    ),
    Rule(
        "fast-too-easily",
        verdicts=(RETRANSMISSIONS - {"fast_retransmission"}, {"fast_retransmission"}),
        sentence=f"{FAST}; {{kind_reason}}",
    ),
    Rule(
        "spurious-unproven",
        verdicts=(RETRANSMISSIONS, {SPURIOUS}),
        sentence="wiretale needs proof of a spurious retransmission (a DSACK, timestamps, or an ACK that the sender had in "
        "time); Wireshark calls any segment below the last ACK spurious",
    ),
    Rule(
        "spurious-proven",
        verdicts=(RETRANSMISSIONS, REPEATED - {SPURIOUS}),
        sentence="Wireshark calls it spurious only if it is below the last ACK before it, and uses no DSACK or timestamps; "
        "{proven}",
        when=lambda case: case.row.get("spurious"),
    ),
    Rule(
        "ports-reused",
        verdicts=(SEGMENT, NONE),
        sentence="Wireshark starts a new conversation with this SYN and ignores everything before it; for wiretale it is the "
        "same SYN",
        when=lambda case: "ports_reused" in case.words,
    ),
    Rule(
        "several-stretches",
        verdicts=(SEGMENT, NONE),
        sentence="wiretale judges several parts of this segment separately; Wireshark has one verdict per segment",
        when=lambda case: len(case.kinds & SEGMENT) > 1 and case.words & SEGMENT,
    ),
    # --- probes
    Rule(
        "probe-not-keep-alive",
        verdicts=({"window_probe"}, {"keep_alive"}),
        sentence="Wireshark calls any segment of 0 or 1 byte one below the next sequence number a keep-alive; the window was "
        "zero, and Linux sends such window probes",
    ),
    Rule(
        "probe-of-its-size",
        verdicts=({"window_probe"}, REPEATED | {"out_of_order", None}),
        sentence="Wireshark calls it a window probe only if it has 1 byte at the next sequence number while the last window "
        "was 0",
    ),
    Rule(
        "keep-alive-below",
        verdicts=({"keep_alive"}, REPEATED | {"out_of_order", "window_probe", None}),
        sentence="Wireshark calls it a keep-alive only if it begins one below the highest byte seen; this one is one below the "
        "highest acknowledged byte, with nothing outstanding",
    ),
    Rule(
        "keep-alive-outstanding",
        verdicts=(RETRANSMISSIONS | {"ambiguous", None}, {"keep_alive"}),
        sentence="Wireshark calls any segment of 0 or 1 byte one below the next sequence number a keep-alive; wiretale only if "
        "all data was acknowledged and the byte is not that of the data just before (rule V10.4), because only an idle "
        f"connection sends keep-alives (RFC 9293 section 3.8.4): {BY_STATE}",
    ),
    Rule(
        "probe-of-open-window",
        verdicts=(NONE, {"window_probe"}),
        sentence="no window was closed before (rule V10.1); Wireshark takes 0 for the window before it has seen one, and takes "
        "that of a RST or FIN for a receive window",
        when=lambda case: "zero_window" not in case.noted,
    ),
    # --- acknowledgments
    Rule(
        "probe-answer",
        verdicts=(ANSWERS, NONE),
        sentence="Wireshark calls it the answer to a window probe",
        when=lambda case: "window_probe_ack" in case.words,
    ),
    Rule(
        "keep-alive-answer",
        verdicts=({"keep_alive_ack"}, {"duplicate_ack", None}),
        sentence="Wireshark calls it the answer to a keep-alive only if that was the last segment of the other direction and "
        "the window is the same",
    ),
    Rule(
        "answer-of-nothing",
        verdicts=({"duplicate_ack", None}, {"keep_alive_ack"}),
        sentence="Wireshark calls any repeated ACK after a keep-alive of its own verdict the answer; for wiretale there is no "
        "keep-alive",
    ),
    Rule(
        "answer-to-copy",
        verdicts=(NONE, {"duplicate_ack"}),
        sentence="it reports bytes that arrived twice by DSACK (RFC 2883), and nothing is missing; Wireshark counts every "
        "repeated ACK",
        when=lambda case: "dsack" in case.words,
    ),
    Rule(
        "nothing-outstanding",
        verdicts=(NONE, {"duplicate_ack"}),
        sentence="Wireshark counts every repeated ACK; wiretale only if data is outstanding and no later ACK overtook it (rules "
        f"V9.1, V9.2), as a sender does (RFC 5681 section 2): {BY_STATE}",
        when=lambda case: "sack" not in case.words,
    ),
    Rule(
        "no-data-yet",
        verdicts=(NONE, {"duplicate_ack"}),
        sentence="the capture began within the conversation, and wiretale counts a duplicate ACK only after it has seen "
        "outstanding data; Wireshark counts every repeated ACK. Which count is right depends on data before the capture began",
        when=lambda case: case.begun,
    ),
    Rule(
        "duplicate-of-closed-window",
        verdicts=({"duplicate_ack"}, NONE),
        sentence="it repeats an ACK while the window is closed (RFC 5681, rule V9.1); Wireshark counts no ACK with window 0",
        when=lambda case: "zero_window" in case.kinds,
    ),
    Rule(
        "duplicate-of-highest",
        verdicts=({"duplicate_ack"}, NONE),
        sentence="it repeats the highest ACK while data is outstanding (rules V9.1, V9.2); Wireshark compares with the last "
        "segment stored, which another may have overtaken, and counts no ACK that begins below the highest byte of its sender. "
        f"A sender has neither condition (RFC 5681 section 2): {BY_STATE}",
    ),
    Rule(
        "ack-overtook",
        verdicts=({"captured_out_of_order"}, {"acked_unseen_segment", None}),
        sentence="the data directly follows the ACK: the capture stored them in the wrong order; Wireshark reports unseen data "
        "at once and does not amend it",
    ),
    Rule(
        "gap-covered",
        verdicts=({"acked_unseen_segment"}, NONE),
        sentence="Wireshark looks for an ACK above the highest byte in order, and reports it once until the data continues; "
        "wiretale reports each range that was acknowledged and never seen",
    ),
    Rule(
        "unseen-again",
        verdicts=(NONE, {"acked_unseen_segment"}),
        sentence="wiretale reports each unseen range once, at the first ACK that covers it; Wireshark repeats it while its "
        "highest byte in order stays below the gap",
        when=lambda case: "acked_unseen_segment" in case.noted,
    ),
    Rule(
        "gap-acknowledged",
        verdicts=(NONE, {"gap"}),
        sentence="the gap was acknowledged before this segment, and wiretale reported it as unseen: the receiver has it, so no "
        "gap is open",
        when=lambda case: "acked_unseen_segment" in case.noted,
    ),
    Rule(
        "went-before",
        verdicts=(NONE, {"acked_unseen_segment", "gap"}),
        sentence="the capture began during a recovery: the missing data passed before it, because the receiver had reported it "
        "by SACK; Wireshark takes the first segment for the beginning of the stream",
        when=lambda case: case.resumed,
    ),
    Rule(
        "probe-byte",
        verdicts=(NONE, {"acked_unseen_segment", "gap"}),
        sentence="the receiver accepted the byte of a segment that Wireshark calls a window probe and does not count as sent",
        when=lambda case: case.probed or "window_probe" in case.noted,
    ),
    Rule(
        "capture-reordered",
        verdicts=(NONE, REPEATED | {"out_of_order"}),
        sentence="this is its first transmission: the capture stored it after the ACK that covers it; Wireshark calls any "
        "segment below the last ACK a retransmission",
        when=lambda case: "captured_out_of_order" in case.noted,
    ),
    Rule(
        "overlap",
        verdicts=(NONE, {"acked_unseen_segment"}),
        sentence="wiretale has seen every byte below this ACK; Wireshark's highest byte in order advances only with a segment "
        "that begins there, not with one that overlaps it",
        when=lambda case: case.noted & RETRANSMISSIONS,
    ),
    Rule(
        "one-byte-unseen",
        verdicts=(NONE, {"acked_unseen_segment"}),
        sentence="wiretale has seen all bytes below this ACK, or all but one: it passed before the capture began and a "
        "keep-alive repeats its position, or it is a FIN (rule V9.3). Wireshark reports any ACK above its highest byte in "
        f"order, although no data is missing: {BY_STATE}",
    ),
    # --- windows, RSTs
    Rule(
        "window-full-again",
        verdicts=(NONE, {"window_full"}),
        sentence="it is no new data (rule V10.2); Wireshark looks only at the end of the segment",
        when=lambda case: case.kinds & SEGMENT,
    ),
    Rule(
        "window-scale-unknown",
        verdicts=(NONE, {"window_full"}),
        sentence="the window's scale is unknown, because the handshake was not captured (rule V10.5); Wireshark needs only the "
        "SYN of the receiver",
        when=lambda case: case.begun,
    ),
    Rule(
        "window-of-highest-ack",
        verdicts=({"window_full", None}, {"window_full", None}),
        sentence="wiretale compares new data with the highest ACK and its window (rules V9.2, V10.2); Wireshark with those of "
        "the last segment stored, which may be an older one that was overtaken. An older ACK changes no window (RFC 9293 "
        f"section 3.10.7.4): {BY_STATE}",
    ),
    Rule(
        "sequence-of-reset",
        verdicts=(NONE, REPEATED | {"out_of_order", "gap", "keep_alive", "acked_unseen_segment"}),
        sentence="a RST came before: Wireshark takes its sequence number for one of the stream's; wiretale does not, because a "
        "RST carries no data (RFC 9293 section 3.5.3)",
        when=lambda case: "reset" in case.noted,
    ),
    # --- others
    Rule(
        "icmp-of-unknown-flow",
        verdicts=(NONE, {"icmp_error"}),
        sentence="wiretale reports an ICMP error only if it quotes a conversation of this capture",
    ),
    Rule(
        "tunnel",
        verdicts=(None, NONE),
        sentence="the conversation is in a tunnel, which Wireshark may decode differently, because it recognizes most tunnels by "
        "their usual ports",
        when=lambda case: in_tunnel(case.path) and not case.words,
    ),
    Rule(
        "fragment",
        verdicts=(None, None),
        sentence="a fragment: wiretale judges the segment in the frame that completes it; Wireshark judges it there too, but "
        "not if the snap length cut a fragment",
        when=lambda case: case.unread == FRAGMENT and case.has_one_verdict(),
    ),
)


def reason_of(case: Case) -> tuple[str | None, str]:
    """Returns name and sentence of the rule that explains a difference; None and a note if no rule does."""
    for rule in RULES:
        if rule.fits(case):
            return rule.name, rule.sentence.format(
                retransmitted=by_evidence(RETRANSMITTED, case),
                reordered=by_evidence(REORDERED, case),
                proven=by_evidence(PROVEN, case),
                kind_reason=kind_reason(case),
                unread=case.unread,
            )
    return None, UNEXPLAINED
