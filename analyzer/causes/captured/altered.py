# SPDX-License-Identifier: Apache-2.0
"""Packets that the file has otherwise than the wire: copies, packets before segmentation, clocks that were set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.tracer import step_rows, steps_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import InterfaceRow, RelationRow

COPIED_SHARE = 0.01  # of the packets; fewer are a note


def ports_str(case: Case) -> str:
    """Returns where packets were stored twice: ` (both sides of a router: TTL 64 and 63)`."""
    pairs = case.trace.second_ports.rows(0, 1)
    if not pairs:
        return ""
    first, second = pairs[0]["first_ttl_min"], pairs[0]["second_ttl_min"]
    if first == second:
        return " (two ports, or both directions of one)"
    return f" (both sides of a router: TTL {first} and {second})"


@cause(
    code="copies",
    title="The same packets stored twice",
    sentence="{again:packet was|packets were} captured twice{where}, and {again:~counts|count} once.",
    advice="Mirror one port, or one direction of each; `editcap -d` removes the copies of one port.",
    shows="The same TCP packet (IP ID, sequence number, checksum) comes again within half a round trip, with other link "
    "addresses, another VLAN or a TTL lower by one router. Or a second flow has the same first sequence numbers and times.",
    rivals={
        "routing-loop": "there are two copies, always; a loop makes more, each with a lower TTL",
        "random-loss": "a retransmission has a new IP ID, and comes after a round trip",
    },
)
def copies(case: Case) -> Matches:
    stored = case.findings("mirror-duplicates")
    if stored:
        packets = round(sum(each.finding.cost or 0.0 for each in stored))
        is_many = packets >= COPIED_SHARE * case.trace.interfaces.total("packets")
        yield Match(
            certainty="proven",
            place="capture",
            findings=stored,
            packets=packets,
            again=packets,
            severity=None if is_many else "info",
            where=ports_str(case),
        )
    yield from legs(case, case.findings("several-places"))


def legs(case: Case, findings: list[Numbered]) -> Matches:
    """Yields the conversations that were captured at several places as flows of their own."""
    rows = [row for row in case.trace.relations.rows(0, 200) if row["judged"] is not None]
    copied = [row for row in rows if row["kind"] == "copy"]
    if findings and copied:
        yield Match(
            certainty="proven",
            place="capture",
            findings=findings,
            again=sum(case.flow(row["flow"])["packets"] for row in copied),
            where=place_str(case, copied[0]),
        )


def place_str(case: Case, row: RelationRow) -> str:
    """Returns where both legs of a conversation are: ` (vlan 10 and vlan 20, both sides of a router)`."""
    paths = [case.flow(row[name])["path"] or "untagged" for name in ("other", "flow")]
    router = ", both sides of a router" if row["hops"] else ""
    return f" ({paths[0]} and {paths[1]}{router})"


def joined_str(row: InterfaceRow) -> str:
    """Returns where segments are joined, by the offloads that the tracer recorded."""
    if row["receive_offload"] and row["send_offload"]:
        return "before its adapter segmented or after it merged (its file says that GRO or LRO and TSO or GSO were on)"
    if row["receive_offload"]:
        return "after segments were merged (its file says that GRO or LRO was on)"
    return "before its adapter segmented"


@cause(
    code="offload",
    title="Captured before segmentation",
    sentence="The host captured {where}: {count:packet exceeds|packets exceed} the link MTU, so counts, "
    "sizes and checksums differ from those on the wire.",
    advice="Capture on another machine, or first run `ethtool -K {device} tso off gso off gro off lro off`.",
    shows="At least three IP packets are longer than any frame of the path.",
    rivals={"mss-clamp": "segments of one size, none above the negotiated MSS"},
    unknown="The packets on the wire: their number, spacing and headers.",
)
def offload(case: Case) -> Matches:
    findings = [each for each in case.findings("offload") if each.finding.severity != "info"]
    if findings:
        rows = [row for row in case.trace.interfaces if row["super_segments"]]
        yield Match(
            certainty="proven",
            place="capture",
            findings=findings,
            count=sum(row["super_segments"] or 0 for row in rows),
            device=rows[0]["name"] or "DEVICE",
            where=joined_str(rows[0]),
        )


def recorded_step(case: Case, findings: list[Numbered]) -> Match:
    """Returns the match of a step that the tracer recorded."""
    row = max(step_rows(case.transfers), key=lambda row: abs(row["clock_step_size_ns"] or 0))
    size_ns = row["clock_step_size_ns"] or 0
    return Match(
        certainty="proven",
        place="capture",
        findings=findings,
        proof="the tracer recorded that its clock was set",
        excluded={
            "stall": "the tracer recorded that its clock was set",
            "outage": "the tracer recorded that its clock was set",
        },
        jumped="was set back" if size_ns < 0 else "was set forward",
        furthest=show_duration(abs(size_ns)),
        times=steps_str(case.transfers, row),
        wrong="times before and after it cannot be compared",
    )


@cause(
    code="clock-step",
    title="The capture clock was set",
    sentence="The capture clock {jumped} by {furthest}{times}, so {wrong}; nobody waited then.",
    advice="Slew the clock (chrony `makestep` off) while capturing, and sort the file with `reordercap`.",
    shows="A packet's timestamp is at least 1 ms earlier than that of the packet before it in the file. Or the TCP "
    "timestamps of both ends show it. In one instant they fall behind the capture's clock, by at least 200 ms and half of "
    "that time, and do not catch up (flows.clock_jump_ns). Or wiretale-capture recorded the step (interfaces.clock_steps). "
    "Such a time is no part of waits for answers.",
    rivals={
        "stall": "the TSvals of both ends jump against the capture's clock in one instant",
        "outage": "the time goes back, or the TSvals of both ends do not advance in it",
    },
    unknown="Whether the clock was set, or files were joined out of order. Whether one machine that ran both ends was suspended. "
    "Jumps of connections without timestamps look like pauses.",
)
def clock_step(case: Case) -> Matches:
    findings = [each for each in case.findings("time-backward") if each.finding.severity != "info"]
    recorded = case.findings("clock-set")
    if recorded:
        yield recorded_step(case, [*recorded, *findings])
    elif findings:
        rows = [row for row in case.trace.interfaces if row["backward_steps"]]
        steps = sum(row["backward_steps"] or 0 for row in rows)
        yield Match(
            certainty="proven",
            place="capture",
            findings=findings,
            jumped="went back",
            furthest=show_duration(max(row["backward_ns_max"] or 0 for row in rows)),
            times=f" at most, in {plural(steps, 'step')}" if steps > 1 else "",
            wrong=f"times and orders near {'that packet' if steps == 1 else 'those packets'} are wrong",
        )
    for jump in case.transfers.clock_jumps:
        at = show_duration(jump.after_ns - case.transfers.base_ns)
        near = [Cited(jump.frame, jump.until_ns, jump.flows[0], jump.capture)] if jump.frame else []
        yield Match(
            certainty="proven",
            place="capture",
            flows=jump.flows,
            frames=near,
            proof=f"the timestamps of both ends of {plural(len(jump.flows), 'connection')} did not advance in that time",
            excluded={
                "stall": "both ends' timestamps never catch up with the capture's clock, which those of late packets do",
                "outage": "both ends' timestamps did not advance in that time",
            },
            jumped="jumped forward",
            furthest=show_duration(jump.ns),
            times=f" at {at}",
            wrong="times that span this instant are too long by as much",
        )
