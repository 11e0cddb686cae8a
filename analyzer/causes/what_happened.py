# SPDX-License-Identifier: Apache-2.0
"""The sentence of a capture in which nothing stands out: what was there, and where the time went."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.ends.measured import measured_str
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

WAITED_LEAST = 0.1  # of the time: less says nothing
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
ANSWERED = ("answered", "error", "refused")
#: kinds of exchanges that a sentence counts
ASKED = {
    "turn": "request",
    "http": "HTTP request",
    "dns": "DNS question",
    "icmp_echo": "ping",
    "dhcp": "DHCP message",
    "arp": "ARP request",
    "nd": "neighbor solicitation",
}
KINDS_SHOWN, BELOW_IP = 2, ("arp", "nd")
CARRIED = {"tcp": "TCP connection", "udp": "UDP flow", "icmp": "ICMP flow", "sctp": "SCTP flow"}


def what_happened(trace: Trace) -> str:
    """Returns one sentence about a capture without a cause above a note."""
    judged = judge(trace)
    if not judged.total.packets:
        return "No packet was analyzed."
    requests = requests_str(trace)
    if judged.nothing:
        return f"{nothing_judged(trace)}{f'; {requests}' if requests else ''}."
    is_loss_known, report = judged.measures["loss"].packets > 0, measured_str(trace)
    doubt = "" if is_loss_known else "; whether anything was lost does not show"
    head = f"{carried(trace, is_loss_known)}{f', and {requests}' if requests else ''}{doubt}"
    return f"{head}{f'. {report}' if report else time_went(trace)}."


def nothing_judged(trace: Trace) -> str:
    """Returns what is in a capture of which nothing was judged, and why."""
    judged = judge(trace)
    traffic = flows_str(trace)
    if not traffic:
        reason = judged.unjudged[0].text if judged.unjudged else "no IP header"
        return f"{plural(judged.total.packets, 'packet')} without a flow that could be judged ({reason})"
    reasons = {part.text: None for part in judged.unjudged if part.reason != "no_flow"} or {"no IP header": None}
    return f"{traffic[0].upper()}{traffic[1:]}, in which losses, round trips and limits do not show ({next(iter(reasons))})"


def requests_str(trace: Trace) -> str:
    """Returns how many requests were answered: `all 7 DNS questions were answered`; empty without one."""
    exchanges = trace.exchanges
    if not len(exchanges):
        return ""
    words = {number: word for word, number in trace.transfers.words.items()}
    pairs = zip(exchanges._packed("kind", "B"), exchanges._packed("outcome", "B"), strict=True)
    answers: Counter[str] = Counter()
    for kind, outcome in pairs:
        answers[words.get(kind, "")] += words.get(outcome) in ANSWERED
    names = [name for name in ASKED if answers[name]]
    names = [name for name in names if name not in BELOW_IP] or names
    texts = [plural(answers[name], ASKED[name]) for name in names[:KINDS_SHOWN]]
    were = "was" if len(names) == 1 and answers[names[0]] == 1 else "were"
    return f"{' and '.join(texts)} {were} answered" if texts else ""


def flows_str(trace: Trace) -> str:
    """`3 TCP connections and 2 UDP flows` of the judged flows; empty without any."""
    counts: dict[str, int] = {}
    legs = trace.transfers.legs
    for flow, protocol in enumerate(trace.flows.column("protocol")):
        if flow not in legs:
            counts[protocol] = counts.get(protocol, 0) + 1
    texts = [plural(count, CARRIED.get(name, f"{name.upper()} flow")) for name, count in counts.items()]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else ""


def carried(trace: Trace, is_loss_known: bool) -> str:
    """Returns how many flows carried how much, and what was lost."""
    transfers = trace.transfers
    legs = transfers.legs
    sizes = [size or 0 for flow, size in enumerate(trace.flows.column("payload_bytes")) if flow not in legs]
    counts = transfers.counts
    lost = sum(count for name in ("lost_upstream", "lost_downstream", "blocks_lost") for _, count in counts[name])
    who = flows_str(trace)
    subject = f"{who[0].upper()}{who[1:]} carried {show_bytes(sum(sizes))}"
    if not is_loss_known:
        return subject
    return f"{subject} and lost {plural(lost, 'segment') if lost else 'nothing'}"


def time_went(trace: Trace) -> str:
    """Returns where most of the time went, `; 9.1 of 9.8 s went into round trips`, or that nobody waited."""
    turns = trace.transfers.turns
    parts, life_ns = turns.waits, turns.life_ns
    waited_ns = sum(parts.values())
    if not life_ns:
        return ""
    name, ns = max(parts.items(), key=lambda part: part[1])
    if waited_ns < WAITED_LEAST * life_ns:
        return f"; nobody waited for {show_duration(life_ns - waited_ns)} of {show_duration(life_ns)}"
    if turns.overlap:
        return f"; {show_share(ns, waited_ns)} of the waiting went into {WENT_INTO[name]}"
    return f"; {show_duration(ns)} of {show_duration(life_ns)} went into {WENT_INTO[name]}"
