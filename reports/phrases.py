# SPDX-License-Identifier: Apache-2.0
"""Texts and choices that the terminal and the pages share: problems of a flow, costs, clocks, files of a command, and which flows
are shown."""

from __future__ import annotations

import shlex
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.registry import CAUSES
from wiretale.analyzer.compare.loss_location import PLACES
from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.analyzer.findings.model import ON_WIRE, flow_list, on_wire
from wiretale.analyzer.findings.registry import RULES
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import (
    UNKNOWN,
    plural,
    show_bytes,
    show_count,
    show_duration,
    show_share,
    three_digits,
    with_sign,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypedDict, TypeVar

    from wiretale.analyzer.causes.answer import Explained
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.clock_offset import Clock
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay
    from wiretale.analyzer.findings.evidence import Evidence
    from wiretale.analyzer.rows import CauseRow, FindingRow, InterfaceRow
    from wiretale.analyzer.trace import Trace

    Finding = TypeVar("Finding", bound=FindingRow)

    class Cost(TypedDict):
        """The columns of a finding about its cost."""

        code: str
        cost: float | None
        cost_unit: str | None

    class EvidentFinding(FindingRow):
        """A row of findings with the text of its evidence."""

        evidence: str


def evidence_text(trace: Trace, row: FindingRow, evidence: Evidence) -> str:
    """Returns the packets, the flows and the further figures that show a finding: `frames 3–70; flow 2 10.0.0.1:5 → …`."""
    members = row["members"] or 0
    is_named = members > 1 or (members == 1 and row["direction"] is None)  # else the sentence names the transfer
    flows = list(dict.fromkeys(side["flow"] for side in evidence.flows)) if is_named else []
    named = flow_list(trace, flows, members) if flows else ""
    return "; ".join(filter(None, (trace.transfers.files.of_finding(evidence, row["packets"]), named, row["figures"])))


def with_evidence(trace: Trace, rows: Sequence[FindingRow]) -> list[EvidentFinding]:
    """Returns rows of findings with the text of evidence_text()."""
    evidence = evidence_of(trace)
    return [{**row, "evidence": evidence_text(trace, row, evidence[row["finding"] - 1])} for row in rows]


def file_words(files: Iterable[str]) -> list[str]:
    """Returns files as words of a command; standard input becomes FILE, for the reader to replace.

    >>> file_words(["a b.pcap", "-x.pcap", "-"])
    ["'a b.pcap'", './-x.pcap', 'FILE']
    """
    names = (f"./{file}" if file.startswith("-") else file for file in files)
    return ["FILE" if name == "./-" else shlex.quote(name) for name in names]


class Problem(NamedTuple):
    """Columns of the directions table that are summed, on the wire if they count segments, and their label."""

    label: str
    columns: tuple[str, ...]
    unit: str = ""  # "B" for bytes, else occurrences

    @property
    def show(self) -> Callable[[int | None], str]:
        """Returns the function that prints a sum."""
        return show_bytes if self.unit else show_count


PROBLEMS = (
    Problem("lost", ("lost_upstream", "lost_downstream")),
    Problem("damaged", ("checksum_errors",)),
    Problem("unplaced", ("unplaced_retransmissions",)),
    Problem("spurious", ("spurious_retransmissions",)),
    Problem("reordered", ("out_of_order",)),
    Problem("ambiguous", ("ambiguous",)),
    Problem("duplicated", ("network_duplicates", "unknown_duplicates")),
    Problem("blocks lost", ("blocks_lost",)),
    Problem("blocks reordered", ("blocks_out_of_order",)),
    Problem("blocks duplicated", ("blocks_duplicate",)),
    Problem("blocks corrupt", ("blocks_corrupt",)),
    Problem("payload not captured", ("unseen_bytes",), "B"),
    Problem("zero window", ("zero_windows",)),
    Problem("incomplete", ("incomplete_datagrams",)),
)
ICMP = "ICMP"  # icmp_errors of the flows table
RANKED = (  # columns that decide which flows have the most problems
    *("retransmissions", "gaps", "out_of_order", "zero_windows", "incomplete_datagrams", "resets"),
    *("blocks_lost", "blocks_out_of_order", "blocks_duplicate", "blocks_corrupt"),
)
SURE: dict[str, str] = {"proven": "", "likely": ", probably", "possible": ", perhaps"}  # of titles of causes
STAGES = {"planned": "to be sent", "sent": "sent (log)", "received": "received (log)"}
CLOCK_EVIDENCE = {
    "forward": "unknown: packets matched one way only; delays are relative to the minimum",
    "back": "unknown: packets matched one way only; delays are relative to the minimum",
    "none": "unknown: no packet was matched",
    "same": "none: one clock (--same-clock)",
    "impossible": "unknown: the least round trip would be negative, because a clock was set more than once or ran unevenly; no "
    "delay is computed",
}
ASSUMPTION = (
    "The clocks are compared on the assumption that the minimum delays of both directions are equal. If they are not, "
    "offsets and delays are off by at most the ± beside them."
)


def problem_text(sums: dict[str, int], icmp_errors: int) -> str:
    """Returns `3 lost, 1 ICMP`, from sums of the columns over both directions."""
    parts = [(sum(sums[name] for name in kind.columns), kind.show, kind.label) for kind in PROBLEMS]
    parts.append((icmp_errors, show_count, ICMP))
    texts = [(count, show(count), label) for count, show, label in parts if count]
    return ", ".join(
        f"{text} {label.replace('blocks', 'block') if count == 1 else label}" for count, text, label in texts
    )


def problem_sums(trace: Trace) -> list[tuple[str, str, dict[int, int]]]:
    """Returns label, unit and sums by flow of each problem that occurs."""
    counts, problems = trace.transfers.all_counts, []
    for kind in PROBLEMS:
        sums: dict[int, int] = {}
        for name in kind.columns:
            by_row = on_wire(counts, name) if name in ON_WIRE else counts[name]
            for row, count in by_row:
                sums[row // 2] = sums.get(row // 2, 0) + count
        problems.append((kind.label, kind.unit, sums))
    problems.append((ICMP, "", dict(trace.transfers.all_flow_counts["icmp_errors"])))
    return [problem for problem in problems if problem[2]]


def choose_flows(trace: Trace, largest: int, problematic: int) -> tuple[list[int], list[int]]:
    """Returns the largest flows by wire bytes, and those of the others that have the most problems."""
    problems = dict[int, int]()
    for name in RANKED:
        for row, count in trace.transfers.counts[name]:
            problems[row // 2] = problems.get(row // 2, 0) + count
    first = trace.transfers.largest_flows(largest)
    for flow in first:
        problems.pop(flow, None)
    return first, nlargest(problematic, sorted(problems), key=problems.__getitem__)


RELATED = {
    "copy": "copy of flow {other}",
    "tunnel": "flow {other} in a tunnel",
    "translation": "flow {other} behind a NAT",
    "half": "other direction of flow {other}",
    "reuse": "ports of flow {other} again",
    "subflow": "subflow of flow {other}",
}


def relation_texts(trace: Trace) -> dict[int, str]:
    """Returns what each related flow is: `copy of flow 0`."""
    by_flow: dict[int, list[str]] = {}
    for row in trace.relations:
        by_flow.setdefault(row["flow"], []).append(RELATED[row["kind"]].format(other=row["other"]))
    return {flow: ", ".join(texts) for flow, texts in by_flow.items()}


def conversations_text(trace: Trace) -> str:
    """Returns `, of 1 conversation: the others are its copies` if flows are legs of others; else nothing."""
    conversations = trace.transfers.conversations
    if conversations == len(trace.flows):
        return ""
    return f" of {plural(conversations, 'conversation')}, each judged once"


def drops_of(row: InterfaceRow) -> int | None:
    """Returns the packets that the capture of an interface dropped; None if the file has no drop counts."""
    drops = (row["dropped_kernel"], row["dropped_interface"], row["dropped_program"])
    counts = [count for count in drops if count is not None]
    return sum(counts) if counts else None


def cost_text(row: Cost) -> str:
    """Returns the cost of a finding: `1.23 s`, `4.5 MB on the wire`, `3 packets`; empty if it has none."""
    cost, unit = row["cost"], row["cost_unit"]
    if not cost or unit is None:
        return ""
    if unit == "seconds":
        return show_duration(cost * 1e9)
    if unit == "bytes":
        page = RULES.get(row["code"])
        return f"{show_bytes(cost)} {page.layer}" if page else show_bytes(cost)
    if unit == "percent":
        return show_share(cost, 100)
    return plural(round(cost), "query" if unit == "queries" else unit.removesuffix("s"))


def cause_cost(row: CauseRow) -> str:
    """Returns the cost of a cause: `3 of 40 failed`, `3 failed` or `9.03 s`; empty if it has none."""
    if row["failed"]:
        attempts = f" of {row['attempts']:,}" if row["attempts"] else ""
        return f"{row['failed']:,}{attempts} failed"
    return show_duration(row["waited_ns"]) if row["waited_ns"] else ""


def point_duration(point: CapturePoint) -> str:
    """Returns the time from the first to the last packet of a capture point."""
    if point.first_ns is None or point.last_ns is None:
        return UNKNOWN
    return show_duration(point.last_ns - point.first_ns)


def ledger_rows(ledger: Ledger) -> list[list[str]]:
    """Returns name, count, seen, missed and share of each stage, then of each place of loss."""
    rows = []
    for stage in ledger.stages:
        missed = show_count(stage.missed) if stage.missed else ""
        counts = [show_count(stage.had), show_count(stage.seen), missed]
        rows.append([stage_name(stage.role), *counts, show_share(stage.had, ledger.sent)])
    for place, count in ledger.lost.items():
        name = f"lost {PLACES[place]}".replace("lost never", "never")
        rows.append([name, show_count(count), "", "", show_share(count, ledger.sent)])
    return rows


def ledger_notes(ledger: Ledger) -> list[str]:
    """Returns the lines below a ledger."""
    copies = [f"{plural(ledger.copies, 'copy', 'copies')} more, made by the network"] if ledger.copies else []
    incomplete = plural(ledger.incomplete, "lost datagram")
    partial = [f"{incomplete} of which some fragments arrived"] if ledger.incomplete else []
    return [*copies, *partial, *ledger.notes]


def delay_row(delay: Delay) -> list[str]:
    """Returns the row of the one-way delays of a hop."""
    figures = (show_duration(delay.summary[name]) for name in ("min", "median", "p90", "p99", "max", "jitter"))
    error = f"±{show_duration(delay.error_ns)}" if delay.absolute else "above the minimum"
    if delay.below_error:
        error = f"not known: below the {show_duration(delay.error_ns)} of both clocks"
    return [f"{delay.start} → {delay.end}", show_count(delay.summary["packets"]), *figures, error]


def stage_name(role: str) -> str:
    """Returns the name of a stage of a loss ledger."""
    return STAGES.get(role, f"{role}'s capture")


def signed(ns: float | None) -> str:
    """Returns a duration with its sign."""
    return UNKNOWN if ns is None else with_sign(show_duration, ns)


def clock_line(clock: Clock, roles: list[str]) -> str:
    """Returns offset, skew and steps of one clock."""
    name = f"{roles[clock.later]}'s clock against the {roles[clock.earlier]}'s: "
    if clock.evidence == "stated":
        off = f"at most ±{show_duration(clock.error_ns)} off by the records of both tracers"
        packets = "show it less closely" if clock.forward and clock.back else "matched one way only"
        return f"{name}0, {off}; packets {packets}"
    if clock.evidence != "both":
        return name + CLOCK_EVIDENCE[clock.evidence]
    doubt = f"±{three_digits(clock.skew_error_ppm)} ppm" if clock.skew_error_ppm is not None else ""
    skew = f"skew {with_sign(three_digits, clock.skew_ppm)} ppm" if clock.skew_ppm else "no skew measurable"
    steps = "".join(f"; set by {signed(change)} at {show_time(time)}" for time, change in clock.steps)
    return (
        f"{name}{signed(clock.offset_ns)}, at most ±{show_duration(clock.error_ns)} off; {skew} ({doubt}); minimum round trip "
        f"{show_duration(clock.least_rtt_ns)}{steps}"
    )


def title_of(entry: Explained) -> str:
    """Returns the title of an entry with its certainty."""
    if entry.cause is None:
        return RULES[entry.group.first["code"]].title
    return f"{CAUSES[entry.cause['code']].title}{SURE[entry.cause['certainty']]}"
