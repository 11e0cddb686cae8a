# SPDX-License-Identifier: Apache-2.0
"""Why wiretale and Wireshark judge a frame differently: one rule a line, the first that fits is said.

What Wireshark does is that of tcp_analyze_sequence_number() in its epan/dissectors/packet-tcp.c; what wiretale does
follows the RFCs that the sentences name. A pair that no rule fits is said to be unexplained: it may be an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

UNEXPLAINED = "no rule explains this: please report"
RESENT = frozenset({"fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission"})
SPURIOUS = "spurious_retransmission"
COPIES = frozenset({"mirror_duplicate", "network_duplicate", "unknown_duplicate"})
PROBES = frozenset({"keep_alive", "window_probe"})
ANSWERS = frozenset({"duplicate_ack", "keep_alive_ack"})
LASTING = RESENT | {"acked_unseen_segment", "captured_out_of_order", "window_probe"}  # what explains later frames too
AGAIN = RESENT | {SPURIOUS}  # what Wireshark calls sent again
SEGMENT = AGAIN | COPIES | PROBES | {"out_of_order", "ambiguous"}  # a frame's data is one of these

Row = Mapping[str, Any]


class Case(NamedTuple):
    """One difference: a frame, both verdicts on it, and what is around."""

    ours: str | None
    theirs: str | None
    row: Row  # wiretale's event; empty when it has none
    words: Set[str]  # all that Wireshark says of the frame
    kinds: Set[str]  # all that wiretale says of it
    shared: bool = False  # Wireshark takes several of wiretale's flows for one conversation
    noted: Set[str] = frozenset()  # of LASTING, what wiretale noted of this conversation up to here
    dropped: bool = False  # wiretale keeps no more events here
    path: str | None = None  # VLANs and tunnels of the flow
    cut: bool = False  # the snap length cut TCP options of the flow
    one_way: bool = False  # one direction of the conversation was captured
    begun: bool = False  # it was under way when the capture began
    resumed: bool = False  # and wiretale knows of something sent again that came by before that

    def evidence(self) -> str | None:
        """Wiretale's."""
        return self.row.get("evidence")


class Rule(NamedTuple):
    """Verdicts that it is about (None in a set: has none), a sentence, and what must be so beside."""

    name: str
    ours: Set[str | None] | None  # None: any
    theirs: Set[str | None] | None
    sentence: str
    when: Callable[[Case], object] = lambda case: True

    def fits(self, case: Case) -> bool:
        """Whether it says why."""
        ours, theirs = self.ours, self.theirs
        return (
            (ours is None or case.ours in ours) and (theirs is None or case.theirs in theirs) and bool(self.when(case))
        )


# What shows that a segment that fills a gap was sent again, or only late.
SENT_AGAIN = {
    "dsack": "a DSACK (RFC 2883) told later that these bytes came twice",
    "timestamps": "its TSval is newer than that of the segment that opened the gap: it was sent again",
    "ip_id": "its IP id is higher than that of the segment that opened the gap: it was sent again",
    "acks": "duplicate ACKs or SACKs of the segments above had asked for it: it was sent again",
    "time": "it came a round trip or more after the gap opened: it was sent again",
}
REORDERED = {
    "dsack": "a DSACK (RFC 2883) told later that it and another sending of these bytes both arrived",
    "timestamps": "its TSval is older than that of what came before it: it was sent before that, and late",
    "ip_id": "its IP id is lower than that of what came before it: it was sent before that, and late",
    "time": "it came within a quarter of the round trip and before three duplicate ACKs: nobody could have sent it again",
}
PROVEN = {
    "dsack": "a DSACK (RFC 2883) told later that the first sending had arrived",
    "timestamps": "timestamps tell that the first sending arrived (RFC 3522)",
    "ip_id": "the first sending came by later, as its IP id tells",
    "acknowledged": "its bytes had been acknowledged here, longer ago than the way to the sender takes",
}
# What makes the kind of a retransmission: by the beginning of the event's detail, else by the kind.
KIND_NEEDS = {
    "RACK": "here it had been sent a round trip before, and later data was reported (RFC 8985)",
    "in the recovery": "here an earlier segment had begun the recovery (RFC 6675)",
    "go-back-N": "here a timeout went before, after which all that was outstanding is sent again",
    "fast_retransmission": "here three duplicate ACKs, or SACKs of over two segments above it, went before (RFC 5681, RFC 6675)",
    "timeout_retransmission": "here nothing was heard for a retransmission timeout (RFC 6298)",
    "probe_retransmission": "here the last segment was sent again once, without news, about two round trips after it (RFC 8985)",
    "retransmission": "here neither three duplicate ACKs nor a timeout went before, so that its kind is left open",
}


def in_tunnel(path: str | None) -> bool:
    """Whether there is more around a flow than tags."""
    return any(not part.startswith(("vlan", "mpls", "pppoe")) for part in path.split(" / ")) if path else False


def kind_needs(case: Case) -> str:
    """What made wiretale name this kind."""
    said = f"{case.row.get('detail') or ''}\n{case.ours}"
    return next((sentence for begin, sentence in KIND_NEEDS.items() if begin in said), "")


def known(sentences: Mapping[str, str], case: Case) -> str:
    """The sentence for the evidence, or the evidence as it is."""
    evidence = case.evidence()
    if evidence is None:
        return "wiretale names no evidence"
    return sentences.get(evidence, f"wiretale's evidence is {evidence.replace('_', ' ')}")


NONE: Set[str | None] = frozenset({None})
FIRST_BEFORE = "first sent before the capture began"  # tcp_judge.c
NEAR = "it came within 3 ms (or the handshake's round trip) of the highest byte"
MIRROR = (
    "a copy by the mirror port or of a second capture point: the same packet (IP id or TSval, sequence, checksum) within "
    "1 ms"
)
NETWORK = "the same packet once more, sooner than the sender could know of a loss: the network made the copy"
EITHER = "the same packet once more within 1 ms: a copy by the network or by the capture, and nothing tells which"
FAST = "Wireshark needs only two duplicate ACKs, and the segment within 20 ms of the last, for fast"

RULES = (
    Rule(
        *("same-addresses", None, None),
        "Wireshark takes conversations with the same addresses and ports in different VLANs or tunnels for one; wiretale keeps "
        "them apart",
        lambda case: case.shared,
    ),
    Rule(
        *("events-dropped", NONE, None),
        "wiretale keeps 10,000 events of a flow and 4,000,000 in all; it counted what came later, but lists no more",
        lambda case: case.dropped,
    ),
    Rule(
        *("headers-cut", None, NONE),
        "the snap length cut the options of this conversation's segments: Wireshark judges no segment whose header is not whole",
        lambda case: case.cut and not case.words,
    ),
    Rule(
        *("one-way", NONE, None),
        "only one direction of this conversation was captured: wiretale has no verdict that takes both, Wireshark goes by this "
        "one alone",
        lambda case: case.one_way,
    ),
    # --- copies
    Rule("mirror-copy", {"mirror_duplicate"}, None, f"{MIRROR}; Wireshark has no such verdict"),
    Rule("network-copy", {"network_duplicate"}, None, f"{NETWORK}; Wireshark has no such verdict"),
    Rule("copy-of-either", {"unknown_duplicate"}, None, f"{EITHER}; Wireshark has no such verdict"),
    # --- reordered, or sent again
    Rule(
        *("ambiguous", {"ambiguous"}, {"out_of_order"}),
        f"Wireshark calls it out of order because {NEAR}; nothing in this capture tells reordering from a second sending",
    ),
    Rule(
        *("ambiguous", {"ambiguous"}, AGAIN),
        "Wireshark takes what is below the highest byte and not soon after it for sent again; nothing in this capture tells "
        "a second sending from reordering",
    ),
    Rule(
        *("first-before", RESENT, NONE),
        "it went by before the capture began, as duplicate ACKs and SACKs tell, and is sent again; for Wireshark it is new",
        lambda case: case.row.get("detail") == FIRST_BEFORE,
    ),
    Rule(
        *("not-new", RESENT | {"ambiguous"}, NONE),
        "its bytes are new at this point, so Wireshark, which goes by sequence numbers alone, sees nothing; {sent_again}",
        lambda case: case.row.get("place") == "upstream",
    ),
    Rule(
        *("one-byte-again", RESENT | {"ambiguous"}, NONE),
        "it repeats one byte and goes on with new ones; Wireshark takes that for the data behind a window probe",
        lambda case: case.row.get("bytes") == 1,
    ),
    Rule(
        *("seen-before", RESENT, {"out_of_order"}),
        f"Wireshark calls it out of order because {NEAR}; its bytes had passed here, or had been acknowledged, before: it was "
        "sent again and not late",
        lambda case: case.row.get("place") != "upstream",
    ),
    Rule("too-near", RESENT, {"out_of_order"}, f"Wireshark calls it out of order because {NEAR}; {{sent_again}}"),
    Rule(
        *("late-not-asked", {"out_of_order"}, {"fast_retransmission"}),
        f"{FAST}, and takes a segment that the network delayed for the answer to them; {{reordered}}",
    ),
    Rule(
        *("late-not-sent-again", {"out_of_order"}, {"retransmission"}),
        "Wireshark calls a segment below the highest byte sent again unless it came within 3 ms (or the handshake's round trip) "
        "of that; {reordered}",
    ),
    Rule(
        *("late-and-acked", {"out_of_order"}, {SPURIOUS}),
        "Wireshark takes any segment below the last ACK for a spurious retransmission; {reordered}",
    ),
    # --- the kind of a retransmission
    Rule(
        *("fast-by-rfc", {"fast_retransmission"}, {"retransmission"}),
        "Wireshark calls fast only what begins at the last ACK, after two duplicate ACKs and within 20 ms of the last; "
        "{kind_needs}",
    ),
    Rule("fast-too-easily", RESENT - {"fast_retransmission"}, {"fast_retransmission"}, f"{FAST}; {{kind_needs}}"),
    Rule(
        *("spurious-unproven", RESENT, {SPURIOUS}),
        "spurious needs proof here (a DSACK, timestamps, or an ACK that the sender had in time); Wireshark takes any segment "
        "below the last ACK",
    ),
    Rule(
        *("spurious-proven", RESENT, AGAIN - {SPURIOUS}),
        "Wireshark calls spurious only what lies below the last ACK before it, and knows no DSACK or timestamps; {proven}",
        lambda case: case.row.get("spurious"),
    ),
    Rule(
        *("ports-reused", SEGMENT, NONE),
        "Wireshark begins a new conversation with this SYN, so that nothing before it counts; wiretale takes it for the same SYN",
        lambda case: "ports_reused" in case.words,
    ),
    Rule(
        *("several-stretches", SEGMENT, NONE),
        "the segment holds stretches of bytes that are judged one by one; Wireshark has one verdict a segment",
        lambda case: len(case.kinds & SEGMENT) > 1 and case.words & SEGMENT,
    ),
    # --- probes
    Rule(
        *("probe-not-keep-alive", {"window_probe"}, {"keep_alive"}),
        "Wireshark calls any segment of 0 or 1 byte one below the next a keep-alive; here the window was closed, and Linux "
        "probes it just so",
    ),
    Rule(
        *("probe-of-its-size", {"window_probe"}, AGAIN | {"out_of_order", None}),
        "Wireshark calls a window probe only what has 1 byte at the next sequence number while the last window was 0",
    ),
    Rule(
        *("keep-alive-below", {"keep_alive"}, AGAIN | {"out_of_order", "window_probe", None}),
        "Wireshark calls a keep-alive only what begins one below the highest byte seen; here it is one below the highest "
        "acknowledged, with nothing outstanding",
    ),
    Rule(
        *("keep-alive-outstanding", RESENT | {"ambiguous", None}, {"keep_alive"}),
        "Wireshark calls any segment of 0 or 1 byte one below the next a keep-alive; wiretale only when all data was "
        "acknowledged (if all was here, please report)",
    ),
    # --- acknowledgments
    Rule(
        *("probe-answer", ANSWERS, NONE),
        "Wireshark calls it the answer to a window probe",
        lambda case: "window_probe_ack" in case.words,
    ),
    Rule(
        *("keep-alive-answer", {"keep_alive_ack"}, {"duplicate_ack", None}),
        "Wireshark calls it the answer to a keep-alive only when that was the last segment of the other direction and the window "
        "is the same",
    ),
    Rule(
        *("answer-of-nothing", {"duplicate_ack", None}, {"keep_alive_ack"}),
        "Wireshark calls any repeated ACK after what it takes for a keep-alive its answer; wiretale has no keep-alive there",
    ),
    Rule(
        *("answer-to-copy", NONE, {"duplicate_ack"}),
        "it tells by a DSACK (RFC 2883) of bytes that came twice, and nothing is missing; Wireshark counts every repeated ACK",
        lambda case: "dsack" in case.words,
    ),
    Rule(
        *("nothing-outstanding", NONE, {"duplicate_ack"}),
        "Wireshark counts every repeated ACK; wiretale only as RFC 5681 has it: with data outstanding, and not overtaken by "
        "another ACK (if data was outstanding here, please report)",
        lambda case: "sack" not in case.words,
    ),
    Rule(
        *("no-data-yet", NONE, {"duplicate_ack"}),
        "the conversation was under way when the capture began, and wiretale counts a duplicate ACK only once it has seen data "
        "that is outstanding (if it has here, please report)",
        lambda case: case.begun,
    ),
    Rule(
        *("ack-overtook", {"captured_out_of_order"}, {"acked_unseen_segment", None}),
        "the data came right behind the ACK: the capture stored them in the wrong order; Wireshark calls what an ACK covers "
        "unseen at once and takes nothing back",
    ),
    Rule(
        *("gap-covered", {"acked_unseen_segment"}, NONE),
        "Wireshark looks for an ACK above the highest byte in order, and tells it once until the data goes on; wiretale tells "
        "each stretch that was acknowledged and never seen",
    ),
    Rule(
        *("unseen-again", NONE, {"acked_unseen_segment"}),
        "wiretale told each unseen stretch once, at the first ACK that covers it; Wireshark goes on while its highest byte "
        "in order stays behind the gap",
        lambda case: "acked_unseen_segment" in case.noted,
    ),
    Rule(
        *("gap-acknowledged", NONE, {"gap"}),
        "the gap had been acknowledged before this segment, and wiretale noted it as unseen: the receiver has it, no gap is "
        "open",
        lambda case: "acked_unseen_segment" in case.noted,
    ),
    Rule(
        *("went-before", NONE, {"acked_unseen_segment", "gap"}),
        "the capture began amid a recovery: what is missing here the receiver had reported by SACK before, so that it came by "
        "before the capture began; Wireshark takes the first segment for the beginning of the stream",
        lambda case: case.resumed,
    ),
    Rule(
        *("probe-byte", NONE, {"acked_unseen_segment", "gap"}),
        "the receiver took the byte of a window probe, which Wireshark does not count as sent",
        lambda case: "window_probe" in case.noted,
    ),
    Rule(
        *("stored-late", NONE, AGAIN | {"out_of_order"}),
        "its first sending is this one: the capture stored it behind the ACK that covers it; Wireshark takes any segment "
        "below the last ACK for sent again",
        lambda case: "captured_out_of_order" in case.noted,
    ),
    Rule(
        *("overlap", NONE, {"acked_unseen_segment"}),
        "wiretale holds every byte below this ACK; Wireshark's highest byte in order moves on only with a segment that begins "
        "just there, not with one that overlaps it",
        lambda case: case.noted & RESENT,
    ),
    # --- the rest
    Rule(
        *("icmp-of-nobody", NONE, {"icmp_error"}),
        "wiretale notes an ICMP error only when it quotes a conversation of this capture",
    ),
    Rule(
        *("tunnel", None, NONE),
        "the conversation runs in a tunnel, which Wireshark may decode otherwise: it knows most by their usual ports",
        lambda case: in_tunnel(case.path) and not case.words,
    ),
)


def reason_of(case: Case) -> tuple[str | None, str]:
    """Name of the rule that explains a difference, and its sentence; None where none does."""
    for rule in RULES:
        if rule.fits(case):
            return rule.name, fill(rule.sentence, case)
    return None, UNEXPLAINED


def fill(sentence: str, case: Case) -> str:
    """The sentence with what this case's evidence says."""
    if "{" not in sentence:
        return sentence
    return sentence.format(
        sent_again=known(SENT_AGAIN, case),
        reordered=known(REORDERED, case),
        proven=known(PROVEN, case),
        kind_needs=kind_needs(case),
    )
