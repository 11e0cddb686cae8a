# SPDX-License-Identifier: Apache-2.0
"""What the file lacks: dropped packets, a direction, protocols that are not decoded, the end of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.wlan import are_told
from wiretale.analyzer.findings.capture import DROPPERS, received_of
from wiretale.analyzer.findings.cost import NOTE_SHARE
from wiretale.analyzer.findings.decoding import NOT_UNDERSTOOD, packets_by_reason, undecoded_counts
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import DirectionRow, InterfaceRow


BUFFERS = "Raise the capture buffer (`dumpcap -B 256`), truncate packets (`-s 128`), or capture on a faster machine."
FILTERS = (
    "Filter by host and port (`host ADDRESS and port PORT`), not by flags or payload: segments, SYNs and ACKs of a connection "
    "are read together."
)
LOPSIDED, PACKETS_MIN, MARKED_FLOWS = (
    3,
    20,
    3,
)  # of the packets of the ends of a connection; such packets; their connections


def unjudged_share(case: Case, reason: str) -> float:
    """Returns the share of packets that were not judged for loss for this reason (Judged.unjudged), 0 to 1."""
    judged = judge(case.trace)
    packets = sum(part.amount.packets for part in judged.unjudged if part.reason == reason and "loss" in part.measures)
    return packets / judged.total.packets if judged.total.packets else 0.0


def dropped_of(row: InterfaceRow) -> int:
    """Returns the packets that the counters of an interface say were dropped."""
    return sum(integer_in(row, f"dropped_{who}") or 0 for who in DROPPERS)


def missed_share(case: Case) -> float:
    """Returns the share of the payload that receivers acknowledged although it is not in the file; 0 if it is but a note."""
    missed = [each for each in case.all_findings("capture-missed") if each.finding.severity != "info"]
    size = sum(each.finding.bytes or 0 for each in missed[:1])
    return size / ((case.trace.directions.total("payload_bytes") or 0) + size) if size else 0.0


def passed_str(case: Case, flows: Iterable[int]) -> str:
    """Returns which packets alone a capture filter passed of these connections; empty if it is not seen."""
    pairs = [(case.direction(flow, 0), case.direction(flow, 1)) for flow in flows]
    if are_marked(pairs):
        return "SYN, FIN or RST"
    return "payload" if are_lopsided(pairs) else ""


def marks_of(row: DirectionRow) -> int:
    """Returns the packets of a direction with SYN, FIN or RST."""
    return (row["syns"] or 0) + (row["fins"] or 0) + (row["resets"] or 0)


def are_marked(pairs: Sequence[tuple[DirectionRow, DirectionRow]]) -> bool:
    """Returns whether several connections have no packet without SYN, FIN or RST."""
    rows = [row for pair in pairs for row in pair]
    packets = sum(row["packets"] for row in rows)
    return len(pairs) >= MARKED_FLOWS and packets >= PACKETS_MIN and sum(map(marks_of, rows)) >= packets


def are_lopsided(pairs: Sequence[tuple[DirectionRow, DirectionRow]]) -> bool:
    """Returns whether connections have only packets with payload, three times as many one way as the other: the other end must
    have sent ACKs alone."""
    rows = [row for pair in pairs for row in pair]
    is_bare = any(row["packets"] != row["data_packets"] or marks_of(row) for row in rows)
    counts = [sorted(row["packets"] for row in pair) for pair in pairs]
    return bool(rows) and not is_bare and all(few and LOPSIDED * few <= many >= PACKETS_MIN for few, many in counts)


@cause(
    code="capture-drops",
    title="Packets that the capture dropped",
    sentence="The capture {probably}missed packets: {what}, so losses before the capture point are uncertain.",
    advice="{advice}",
    shows="Drop counters of the file (interfaces.dropped_*), or payload that receivers acknowledged although it is not in the "
    "file (directions.unseen_bytes). A capture filter left packets out if no connection has one without payload, though one end "
    "sends three times as many as the other, or if three or more have only packets with SYN, FIN or RST.",
    rivals={
        "random-loss": "the receiver acknowledges what the capture dropped, and nobody repeats it",
        "asymmetric-path": "packets that take another path are missing at any rate, those that are dropped at peaks",
    },
    unknown="Without drop counters, whether the capture dropped the packets or another path carried them.",
)
def capture_drops(case: Case) -> Matches:
    dropped, missed = case.findings("capture-dropped"), case.findings("capture-missed")
    if dropped:
        count = round(sum(each.finding.cost or 0.0 for each in dropped))
        received = sum(received_of(row, dropped_of(row)) for row in case.trace.interfaces)
        share = count / received
        what = f"its counters say that {count:,} of {plural(received, 'packet')} ({show_share(share, 1)}) were dropped"
        yield Match(
            certainty="proven",
            place="capture",
            findings=[*dropped, *missed],
            unjudged=share,
            what=what,
            advice=BUFFERS,
        )
    elif missed and (share := missed_share(case)):
        size, flows = missed[0].finding.bytes or 0, {flow for each in missed for flow, _ in each.finding.flows}
        passed = passed_str(case, flows)
        only = f"its filter passed only those with {passed}, and " if passed else ""
        yield Match(
            certainty="likely",
            place="capture",
            findings=missed,
            unjudged=share,
            advice=FILTERS if passed else BUFFERS,
            undecided={"asymmetric-path": "drop counters of the capture, or a capture at another point"},
            what=f"{only}receivers acknowledged {show_bytes(size)} of payload ({show_share(share, 1)}) that the file lacks",
        )


@cause(
    code="one-direction",
    title="One direction captured",
    sentence="The capture has only one direction of {count:TCP connection}[ ({share} of the packets)]: gaps and repeats can "
    "be seen, round trips and the place of losses can't.",
    advice="Mirror both directions of the port (receive and transmit), or capture where both directions pass.",
    shows="All packets of connections come from one end, although they show that the other end answered.",
    rivals={
        "peer-gone": "acknowledgment numbers advance, so the other end answers",
        "asymmetric-path": "the handshake succeeds at both ends",
    },
    unknown="Whether the mirror, the capture filter or the route hides the other direction.",
)
def one_direction(case: Case) -> Matches:
    halves = {row[name] for row in case.trace.relations if row["kind"] == "half" for name in ("flow", "other")}
    findings = [
        each for each in case.findings("one-way") if not halves.intersection(flow for flow, _ in each.finding.flows)
    ]
    if findings:
        share = unjudged_share(case, "one_way")
        yield Match(
            certainty="proven",
            place="capture",
            findings=findings,
            unjudged=share,
            severity=None if share >= NOTE_SHARE else "info",
            count=sum(each.finding.members or 1 for each in findings),
            share=show_share(share, 1) if share else "",
        )


#: what to do about packets of formats that are not read, by the most frequent reason or the kind of their protocol
REMEDIES = {
    "wlan-not-data": "These frames carry no IP: read them in Wireshark.",
    "wlan-no-data": "These frames carry no IP: read them in Wireshark.",
    "wlan-protected": "Capture on the wired side of the access point, or give Wireshark the key of the network.",
    "fcs-bad": "Capture nearer to both stations, or on the wired side of the access point.",
    "encrypted": "Capture where the tunnel ends: before it encrypts, or after it decrypts.",
    "link type": "Capture at an interface of another link type (docs/decoders.md lists those that are read), or open the file "
    "in Wireshark.",
}
INSIDE = "Capture inside that tunnel or before that header, or remove it with `editcap -C OFFSET:LENGTH`."


def reasons_of(case: Case) -> list[tuple[str, int]]:
    """Returns why packets of formats that are not read were not, with their number, the most frequent first."""
    stops = [row for row in case.trace.decode_stops if row["reason"] in NOT_UNDERSTOOD and not row["protocol"]]
    return packets_by_reason(stops)


def remedy_of(protocols: Sequence[tuple[str, int]], reasons: Sequence[tuple[str, int]]) -> str:
    """Returns what to do about the most frequent of both."""
    name, _ = max((*protocols[:1], *reasons[:1]), key=lambda counted: counted[1], default=("", 0))
    return REMEDIES.get("link type" if name.startswith("link type") else name, INSIDE)


def in_silent_tunnels(case: Case) -> int:
    """Returns the encrypted packets of which enough is known: nothing comes back through their tunnel."""
    rows = map(case.flow, case.flows_of("esp-one-way"))
    return sum(row["packets"] for row in rows if row["protocol"] == "esp")


def of_stations(case: Case) -> int:
    """Returns the management frames of Wi-Fi, if those of stations that join or leave say what failed."""
    if not are_told(case):
        return 0
    return sum(count for reason, count in reasons_of(case) if reason == "wlan-not-data")


@cause(
    code="not-decoded",
    title="Packets that are not decoded",
    sentence="{total} of {packets_of:packet} {count:~is in a format|are in formats} that wiretale does not read{what}, so what "
    "{count:~it carries|they carry} cannot be judged.",
    advice="{fix}",
    shows="Packets of link types, EtherTypes and IP protocols that may carry IP and are not decoded (decode_stops), above 1%.",
    rivals={},
)
def not_decoded(case: Case) -> Matches:
    findings = [each for each in case.findings("undecoded", "not-understood") if each.finding.severity != "info"]
    interfaces = case.trace.interfaces
    packets = interfaces.total("packets")
    count = sum(each.finding.packets or 0 for each in findings) - in_silent_tunnels(case) - of_stations(case)
    if count > 0:
        protocols, reasons = undecoded_counts(case.transfers), reasons_of(case)
        named = [name for name, _ in protocols[:1]]
        named += [plural(stopped, *NOT_UNDERSTOOD[reason]) for reason, stopped in reasons[:1]]
        yield Match(
            certainty="proven",
            place="capture",
            findings=findings,
            unjudged=min(count / packets, 1.0),
            count=count,
            total=f"{count:,}",
            packets_of=packets,
            what=f" ({', '.join(named)})" if named else "",
            fix=remedy_of(protocols, reasons),
        )


@cause(
    code="cut-open",
    title="The capture ends in the middle",
    sentence="The capture ends in the middle: {count:request}{since} {count:~was|were} still open.",
    advice="Capture longer, with a ring of files (`-b filesize:`).",
    shows="Some requests were open at the end for less than three times the usual wait (exchanges.outcome is cut_off).",
    rivals={"hung-server": "an open request has waited longer than answers of that server take"},
)
def cut_open(case: Case) -> Matches:
    rows = [row for row in case.exchanges("outcome", "cut_off") if row["asked_ns"] is not None]
    lasts = [ns for ns in case.trace.interfaces.column("last_ns") if ns is not None]
    if rows and lasts:
        oldest = max(lasts) - min(row["asked_ns"] or 0 for row in rows)
        flows = [row["flow"] for row in rows if row["flow"] is not None]
        yield Match(
            certainty="proven",
            place="capture",
            flows=list(dict.fromkeys(flows)),
            severity="info",
            count=len(rows),
            since=f", sent up to {show_duration(oldest)} before the end," if oldest else "",
        )
