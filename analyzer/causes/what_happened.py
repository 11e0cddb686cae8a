# SPDX-License-Identifier: Apache-2.0
"""The sentence of a capture in which nothing stands out: what was there, and where the time went."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.closings import harmless_resets_str
from wiretale.analyzer.causes.ends.measured import measured_str
from wiretale.analyzer.causes.ends.talk import parts_str
from wiretale.analyzer.causes.harmless import lookups_str, streams_str, traced_str
from wiretale.analyzer.findings.judged import Judged, judge
from wiretale.analyzer.findings.model import ON_WIRE, endpoint_str, on_wire, protocol_str
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow
    from wiretale.analyzer.trace import Trace

NEARLY_ALL = 0.99  # of the packets of flows, in which losses show
MOST_BYTES, MOST_SHARE = 1_000_000, 0.7  # of a transfer that a sentence names; of all bytes
FLOWS_SEVERAL = 4
FULL_SHARE = 0.8  # of the time: the path is busy
WAITED_LEAST = 0.1  # of the time: less says nothing
LATE_NS, LATE_SHARE = 500_000_000, 0.5  # between handshake and first request; of the time in which nobody waited
#: of retransmission timers at their least (Linux, Windows, RFC 6298), and by how much they are longer; a round trip to a server
#: that is not at the capture point; the share of the waiting for servers that such pauses are
TIMERS_NS, TIMER_SPREAD, AWAY_NS, TIMED_SHARE = (200_000_000, 300_000_000, 1_000_000_000), 1.1, 100_000, 0.5
HANDSHAKE_END_NS = 1_000_000  # from the SYN-ACK to the ACK at the client
#: parts of the time account, as a sentence has them: `9.1 of 9.8 s went into …`
WENT_INTO = {
    "connecting": "setting up connections",
    "client": "pauses of clients",
    "server": "waiting for servers",
    "loss": "repairing losses",
    "queue": "queues",
    "path": "round trips",
    "window": "waiting for room in receive windows",
    "send_buffer": "waiting for room in send buffers",
    "transfer": "the transfer itself",
}
REPEATS = ", or for repeats of segments that were lost before the capture point"
ANSWERED = ("answered", "error", "refused")
#: kinds of exchanges that a sentence counts
ASKED = {
    "turn": "request",
    "http": "HTTP request",
    "dns": "DNS question",
    "icmp_echo": "ping",
    "dhcp": "DHCP message",
    "sip": "SIP request",
    "radius": "RADIUS request",
    "arp": "ARP request",
    "nd": "neighbor solicitation",
}
#: what people ask about although nothing is wrong
EMPTY = "The capture has no packets: check its interface and its capture filter."
WORRIES = (traced_str, streams_str, lookups_str, harmless_resets_str)
KINDS_SHOWN, BELOW_IP = 2, ("arp", "nd")


def what_happened(trace: Trace) -> str:
    """Returns one sentence about a capture without a cause above a note."""
    judged = judge(trace)
    if not judged.total.packets:
        return nothing_read(trace)
    requests = requests_str(trace)
    first = next(filter(None, (tell(trace) for tell in WORRIES)), "")
    if judged.nothing:
        texts = (first, f"{nothing_judged(trace)}{f'; {requests}' if requests else ''}")
        return " ".join(f"{text}." for text in texts if text)
    report = measured_str(trace)
    most = most_str(trace)
    asked = f", and {requests}" if requests and not most else ""
    unseen = unseen_str(judged)
    is_doubtful = may_be_losses(trace)
    head = f"{carried_str(trace)}{lost_str(trace, judged, is_doubtful)}{asked}{most}{unseen}"
    texts = (first, f"{head}{f'. {report}' if report else time_went(trace, bool(most and not unseen), is_doubtful)}")
    return " ".join(f"{text}." for text in texts if text)


def nothing_read(trace: Trace) -> str:
    """Returns why there is no packet: the captures are empty, or the filter or the times leave none."""
    options, filtered = trace.options, trace.interfaces.total("filtered_packets")
    if options.start_ns is not None or options.end_ns is not None:
        return "No packet was analyzed."
    return f"The filter matches none of {plural(filtered, 'packet')}." if filtered else EMPTY


def nothing_judged(trace: Trace) -> str:
    """Returns what is in a capture of which nothing was judged, and why."""
    judged = judge(trace)
    traffic = flows_str(trace)
    if not traffic:
        reason = judged.unjudged[0].text if judged.unjudged else "no IP header"
        return f"{plural(judged.total.packets, 'packet')} and no flow to judge ({reason})"
    reasons = {part.text: None for part in judged.unjudged if part.reason != "no_flow"} or {"no IP header": None}
    return f"{traffic[0].upper()}{traffic[1:]}; losses and delays can't be seen ({next(iter(reasons))})"


def requests_str(trace: Trace) -> str:
    """Returns how many requests were answered: `7 DNS questions were answered`; empty without one."""
    answers = answers_of(trace)
    names = [name for name in ASKED if answers[name]]
    names = [name for name in names if name not in BELOW_IP] or names
    texts = [plural(answers[name], ASKED[name]) for name in names[:KINDS_SHOWN]]
    were = "was" if len(names) == 1 and answers[names[0]] == 1 else "were"
    return f"{' and '.join(texts)} {were} answered" if texts else ""


def answers_of(trace: Trace) -> Counter[str]:
    """Returns the number of answers by the kind of the exchange; a turn with a code is one of HTTP."""
    exchanges = trace.exchanges
    if not len(exchanges):
        return Counter()
    numbers = trace.transfers.words
    words = {number: word for word, number in numbers.items()}
    kinds, outcomes = (trace.transfers.bytes_of("exchanges", name) for name in ("kind", "outcome"))
    turn, http = numbers["turn"], numbers["http"]
    if turn in kinds and any(trace.transfers.codes):
        pairs = zip(kinds, trace.transfers.codes, strict=True)
        kinds = bytes(http if kind == turn and code else kind for kind, code in pairs)
    answers: Counter[str] = Counter()
    for (kind, outcome), count in Counter(zip(kinds, outcomes, strict=True)).items():
        came = ("answered",) if words.get(kind) == "icmp_echo" else ANSWERED
        answers[words.get(kind, "")] += count if words.get(outcome) in came else 0
    return answers


def flows_str(trace: Trace) -> str:
    """`3 TCP connections and 2 UDP flows` of the judged flows; empty without any."""
    legs = trace.transfers.legs
    protocols, words = trace.transfers.bytes_of("flows", "protocol"), list(trace.transfers.words)
    numbers = Counter(protocols) - Counter(protocols[flow] for flow in legs)
    counts = {words[number]: count for number, count in numbers.items()}
    texts = [
        plural(count, f"{protocol_str(name)} {'connection' if name == 'tcp' else 'flow'}")
        for name, count in counts.items()
    ]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else ""


def carried_str(trace: Trace) -> str:
    """`3 TCP connections carried 1.2 MB`."""
    legs = trace.flows._rows_at(sorted(trace.transfers.legs))
    who, carried = flows_str(trace), trace.transfers.payload_bytes - sum(row["payload_bytes"] or 0 for row in legs)
    return f"{who[0].upper()}{who[1:]} carried {show_bytes(carried)}"


def size_of(row: DirectionRow) -> int:
    """Returns the bytes of a direction, each counted once."""
    return row["unique_bytes"] or row["payload_bytes"] or 0


def most_str(trace: Trace) -> str:
    """`; 27.6 MB of it went from 192.0.2.1:443 to 10.0.0.1 at 19 Mbit/s`, if most went one way of one of several flows."""
    transfers = trace.transfers
    rows = [each.row for each in transfers.largest if each.row["flow"] not in transfers.legs]
    if not rows or len(trace.flows) - len(transfers.legs) < FLOWS_SEVERAL:
        return ""
    row, carried = max(rows, key=size_of), trace.transfers.payload_bytes
    size = size_of(row)
    if size < max(MOST_BYTES, MOST_SHARE * carried) or not row["goodput_bps"]:
        return ""
    source = endpoint_str(row["source"], row["source_port"])
    return f"; {show_bytes(size)} of it went from {source} to {row['destination']} at {show_rate(row['goodput_bps'])}"


def lost_str(trace: Trace, judged: Judged, is_doubtful: bool) -> str:
    """` and lost nothing`, or up to as many segments as were retransmitted without a known place; empty if no loss could show.
    `is_doubtful`: some may not show.
    """
    if not judged.measures["loss"].packets:
        return ""
    counts = trace.transfers.counts
    lost, unplaced = (
        sum(count for name in names for _, count in (on_wire(counts, name) if name in ON_WIRE else counts[name]))
        for names in (("lost_upstream", "lost_downstream", "blocks_lost"), ("unplaced_retransmissions",))
    )
    if not lost + unplaced:
        is_sure = loss_share(judged) >= NEARLY_ALL and not is_doubtful
        return " and lost nothing" if is_sure else ""
    return f" and lost {'up to ' if unplaced else ''}{plural(lost + unplaced, 'segment')}"


def is_timed(pause_ns: float, network_ns: float) -> bool:
    """Returns whether an answer pauses for as long as a retransmission timer, give or take two round trips to the server."""
    return network_ns >= AWAY_NS and any(
        least <= pause_ns <= TIMER_SPREAD * least + 2 * network_ns for least in TIMERS_NS
    )


def may_be_losses(trace: Trace) -> bool:
    """Returns whether much of the waiting for servers may be for segments that were lost before the capture point: of the last
    ones of an answer, only the pause before their repeat shows."""
    waited_ns: float = trace.transfers.turns.waits["server"]
    if waited_ns < TIMERS_NS[0]:
        return False
    packed = trace.exchanges._packed_columns([(name, "d", 0, 1) for name in ("response_pause_ns", "network_ns")])
    pauses = zip(*(array("d", column) for column in packed), strict=True)
    timed_ns = math.fsum(ns for ns, network_ns in pauses if ns >= TIMERS_NS[0] and is_timed(ns, network_ns))
    return timed_ns >= max(TIMED_SHARE * waited_ns, TIMERS_NS[0])


def loss_share(judged: Judged) -> float:
    """Returns the share of the packets of flows that were judged for loss, 0 to 1."""
    outside = sum(part.amount.packets for part in judged.unjudged if part.reason == "no_flow")
    return judged.measures["loss"].packets / max(judged.total.packets - outside, 1)


def unseen_str(judged: Judged) -> str:
    """Returns that not all losses could show; empty if they could."""
    share = loss_share(judged)
    if share >= NEARLY_ALL:
        return ""
    if not share:
        return "; losses would not show"
    return f"; losses would not show in {show_share(1 - share, 1)} of the packets"


def full_path(trace: Trace) -> str:
    """`, at 44.3 Mbit/s,`: the rate of the largest transfer if it carried nearly all; else nothing."""
    rows = [each.row for each in trace.transfers.largest]
    largest = max(rows, key=lambda row: row["wire_bytes"], default=None)
    is_all = largest is not None and largest["wire_bytes"] >= FULL_SHARE * sum(
        array("d", trace.directions._packed("wire_bytes", "d"))
    )
    rate = largest["throughput_bps"] if largest is not None and is_all else None
    return f", at {show_rate(rate)}," if rate else ""


def late_request_str(trace: Trace, idle_ns: float) -> str:
    """`; 10.0.0.1 sent its first request 1.35 s after the connection to 192.0.2.1:80 was open`: where most of the idle time of
    the only connection was; empty else."""
    if len(trace.flows) > FLOWS_SEVERAL:
        return ""
    rows = [row for row in trace.flows.rows() if row["protocol"] == "tcp" and row["payload_bytes"]]
    row = rows[0] if len(rows) == 1 else None  # of several, a client may keep one ready
    if row is None or row["first_ns"] is None or row["handshake_rtt_ns"] is None or row["pause_until_ns"] is None:
        return ""
    pause_ns, open_ns = row["pause_ns"] or 0, row["first_ns"] + row["handshake_rtt_ns"]
    began_with_it = abs(row["pause_until_ns"] - pause_ns - open_ns) <= HANDSHAKE_END_NS
    if not began_with_it or row["pause_direction"] or pause_ns < max(LATE_NS, LATE_SHARE * idle_ns):
        return ""
    server = endpoint_str(row["destination"], row["destination_port"])
    return (
        f"; {row['source']} sent its first request {show_duration(pause_ns)} after the connection to {server} was open"
    )


def time_went(trace: Trace, is_named: bool, is_doubtful: bool) -> str:
    """Returns where most of the time went, `; 9.1 of 9.8 s went into round trips`, or that nobody waited. Flows side by side
    count once: no time is longer than the capture. `is_named`: the words before name the largest transfer; `is_doubtful`: some of
    the waiting for servers may be for losses.
    """
    turns = trace.transfers.turns
    parts = turns.waits
    waited_ns = sum(parts.values())
    life_ns = min(turns.life_ns, max(turns.capture_ns, waited_ns))
    if not life_ns:
        return ""
    name, ns = max(parts.items(), key=lambda part: part[1])
    if waited_ns >= WAITED_LEAST * life_ns:
        if name == "transfer" and ns >= FULL_SHARE * waited_ns and not turns.overlap:
            filled = ", which filled the path" if is_named else f"; the transfer filled the path{full_path(trace)}"
            return f"{filled} for {parts_str(ns, life_ns)}"
        share = show_share(ns, waited_ns)
        time = f"{share} of the waiting" if turns.overlap else parts_str(ns, life_ns)
        doubt = REPEATS if name == "server" and is_doubtful else ""
        return f"; {time} went into {WENT_INTO[name]}{doubt}"
    idle_ns = min(turns.idle_ns, life_ns - waited_ns)
    if idle_ns <= waited_ns:
        return ""
    idle, life = show_duration(idle_ns), show_duration(life_ns)
    return (
        late_request_str(trace, idle_ns) or f"; nobody waited for {parts_str(idle_ns, life_ns)}"
        if idle != life
        else "; nobody waited"
    )
