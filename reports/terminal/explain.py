# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --all`: causes, captures, flows, each transfer with its findings; the list and the pages of findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.analyzer.findings.explain import Explained, carried, left_out, waited_str
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.model import flow_str
from wiretale.analyzer.findings.registry import CHAPTERS, RULES, example_of, page_of
from wiretale.analyzer.findings.transfers import TIMES
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural, show_bytes, show_share
from wiretale.reports.cut_commands import cut_of_finding, cut_start
from wiretale.reports.phrases import cost_text, file_words, with_evidence
from wiretale.reports.terminal.analyze import capture_lines, flow_parts, fragmentation_parts, judged_lines, link_share
from wiretale.reports.terminal.command import Command
from wiretale.reports.terminal.console import (
    INDENT,
    STYLES,
    detail_lines,
    indented,
    print_parts,
    section,
    title,
    with_code,
)
from wiretale.reports.terminal.screen.page import Room, head_parts

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow, FlowRow
    from wiretale.analyzer.trace import Trace
    from wiretale.reports.phrases import EvidentFinding

CAUSES_MOST = 1_000
MINOR_SHOWN = 5
QUIET_SHOWN = 10  # transfers without a finding
BAR_WIDTH_MOST, BAR_LEAST = 60, 0.02
# Color of each of TIMES, and its letter if the console has no colors.
BARS = {
    "pause": ("bright_black", "·"),
    "send_buffer": ("blue", "b"),
    "delayed_ack": ("magenta", "n"),
    "window": ("yellow", "w"),
    "loss": ("red", "r"),
    "timeout": ("bold red", "T"),
    "slow_start": ("cyan", "s"),
    "network": ("green", "="),
    "connecting": ("bright_cyan", "c"),
    "waiting": ("white", "-"),
    "unknown": ("bright_white", "?"),
}
LEFT_OUT = "time_*_ns in `wiretale analyze --json --tables directions`"
SIGNS = {"error": "✖", "warning": "▲", "info": "•"}


def finding_block(row: EvidentFinding, weakens: str | None = None, **more: Command) -> RenderableType:
    """Returns a finding: number, code, cost, sentence, evidence, advice, filter, `more`. `weakens` names what it affects."""
    style = STYLES[row["severity"]]
    head = Text(f"{SIGNS[row['severity']]} {row['finding']} ", style=style)
    head = Text.assemble(head, (row["code"], f"bold {style.removeprefix('bold ')}"))
    if cost := cost_text(row):
        head.append(f"  {cost}", style="bold")
    names = ("evidence", "affects", "advice", "filter", *more)
    lines = detail_lines({**row, "affects": weakens, **more}, names)
    return Group(head, indented(Group(Text(printable(row["sentence"])), lines)))


def bar(explained: Explained, console: Console) -> Iterator[RenderableType]:
    """Yields the time of a transfer by what it waited for, as a bar and in words."""
    times = {name: ns for name, ns in explained.transfer.times.items() if ns}
    total_ns = sum(times.values())
    if not total_ns:
        return
    width = max(min(BAR_WIDTH_MOST, console.width - 2 * INDENT), 10)
    colored = bool(console.color_system) and not console.no_color
    drawn, legend = Text(), Text()
    for name, ns in sorted(times.items(), key=lambda item: -item[1]):
        color, letter = BARS[name]
        mark = "█" if colored else letter
        drawn.append(mark * round(width * ns / total_ns), style=color)
        if ns >= BAR_LEAST * total_ns:
            legend.append("   " if legend else "").append(f"{mark} ", style=color)
            legend.append(f"{TIMES[name]} {show_share(ns, total_ns)}")
    drawn.truncate(width)
    yield drawn
    yield legend
    if shares := waited_str(explained.transfer):
        yield Text(shares, style="dim")


def application_str(flow: FlowRow) -> str:
    """`tls www.example.org`, `http`, `udp`: the application of a flow, or its protocol, and the name of its server."""
    return " ".join(filter(None, (flow["application"] or flow["protocol"], flow["server_name"])))


def turns_lines(trace: Trace, explained: Explained) -> Iterator[RenderableType]:
    """Yields the time of a flow with turns by who took it."""
    turns, flow = trace.transfers.turns, explained.transfer.row["flow"]
    turns_of_flow, split = turns.of_flow(flow), turns.split_of(flow)
    if turns_of_flow and split:
        yield Text(f"{plural(len(turns_of_flow.first_frames), 'request')}: {split.text()}", style="dim")


def transfer_head(trace: Trace, explained: Explained, console: Console) -> RenderableType:
    """Returns endpoints and volume of a transfer, its headline, and what it waited for."""
    transfer = explained.transfer
    ends = Text.assemble(
        (f"flow {transfer.row['flow']} {application_str(transfer.flow)} ", "dim"), (printable(transfer.name), "bold")
    )
    ends.append(f"  {carried(transfer)}")
    headline = Text.assemble((explained.headline[0].upper() + explained.headline[1:], "bold"), link_share(explained))
    lines = (headline, *bar(explained, console), *turns_lines(trace, explained))
    return Group(ends, *map(indented, lines))


def finding_parts(
    trace: Trace, transfers: Sequence[Explained], findings: Sequence[EvidentFinding], console: Console
) -> Iterator[RenderableType]:
    """Yields the findings about the capture, about flows with their transfers, and over several flows: the part with the
    first of all findings comes first."""
    kinds = [
        "capture" if row["scope"] == "capture" else "several" if row["flow"] is None else "flow" for row in findings
    ]
    about, flows, several = (
        [row for row, of in zip(findings, kinds, strict=True) if of == kind] for kind in ("capture", "flow", "several")
    )
    blocks = (finding_block(row, RULES[row["code"]].weakens) for row in about)
    parts = {
        "capture": [section("The capture itself", *blocks)] if about else [],
        "flow": transfer_parts(trace, transfers, flows, console),
        "several": [section("Over several flows", *map(finding_block, several))] if several else [],
    }
    first = kinds[:1]
    for kind in (*first, *(kind for kind in parts if kind not in first)):
        yield from parts[kind]


def findings_by_flow(findings: Sequence[EvidentFinding]) -> dict[int, list[EvidentFinding]]:
    """Returns the findings of each flow; the flow of the most urgent finding comes first."""
    by_flow: dict[int, list[EvidentFinding]] = {}
    for row in findings:
        if row["flow"] is not None:
            by_flow.setdefault(row["flow"], []).append(row)
    return by_flow


def rows_of(explained: Explained, by_flow: dict[int, list[EvidentFinding]], following: int) -> list[EvidentFinding]:
    """Takes the findings of a transfer; those about the opposite direction stay if it is among those that follow."""
    flow, opposite = explained.transfer.row["flow"], flow_str(explained.transfer.back)
    rows = by_flow.pop(flow, [])
    if following:
        by_flow[flow] = [row for row in rows if row["sentence"].startswith(opposite)]
        rows = [row for row in rows if not row["sentence"].startswith(opposite)]
    return rows


def large_parts(
    trace: Trace, large: Sequence[Explained], by_flow: dict[int, list[EvidentFinding]], console: Console
) -> Iterator[RenderableType]:
    """Yields each transfer with its findings, which it takes: in the order of the findings, then those without."""
    ranks = {flow: rank for rank, flow in enumerate(by_flow)}
    quiet = 0
    following = Counter(explained.transfer.row["flow"] for explained in large)
    for explained in sorted(large, key=lambda explained: ranks.get(explained.transfer.row["flow"], len(ranks))):
        following[explained.transfer.row["flow"]] -= 1
        rows = rows_of(explained, by_flow, following[explained.transfer.row["flow"]])
        quiet += not rows
        if not rows and quiet > QUIET_SHOWN:
            continue
        yield Text()
        yield transfer_head(trace, explained, console)
        yield from (indented(finding_block(row)) for row in rows)
    if quiet > QUIET_SHOWN:
        yield Text(f"\nand {plural(quiet - QUIET_SHOWN, 'more transfer')} without findings", style="dim")


def transfer_parts(
    trace: Trace, transfers: Sequence[Explained], findings: Sequence[EvidentFinding], console: Console
) -> Iterator[RenderableType]:
    """Yields transfers, then minor flows, then other flows with findings; each has a heading if there are any."""
    by_flow = findings_by_flow(findings)
    minor = [explained for explained in transfers if is_minor(explained, by_flow)]
    large = [explained for explained in transfers if not is_minor(explained, by_flow)]
    if large:
        yield title("Transfers")
    yield from large_parts(trace, large, by_flow, console)
    yield from minor_parts(minor, by_flow)
    elsewhere = [row for rows in by_flow.values() for row in rows]
    if elsewhere:
        yield section("Other flows", *map(finding_block, elsewhere))


def is_minor(explained: Explained, by_flow: dict[int, list[EvidentFinding]]) -> bool:
    """Returns whether a flow carries little beside the transfers, as a control connection does, and is healthy."""
    rows = by_flow.get(explained.transfer.row["flow"], [])
    return explained.transfer.is_control_connection and all(row["severity"] == "info" for row in rows)


def minor_parts(minor: Sequence[Explained], by_flow: dict[int, list[EvidentFinding]]) -> Iterator[RenderableType]:
    """Yields a line for each minor flow, without its limit, which does not matter."""
    flows = {explained.transfer.row["flow"]: explained.transfer for explained in reversed(minor)}
    if flows:
        yield title("Minor flows")
    for number, explained in list(reversed(flows.items()))[:MINOR_SHOWN]:
        name = Text(f"flow {number} {application_str(explained.flow)} ", style="dim")
        yield Text.assemble(
            name, f"{printable(explained.name)}  {show_bytes(explained.flow['payload_bytes'])} of payload both ways"
        )
        yield from (indented(finding_block(row)) for row in by_flow.pop(number, []))
    if len(flows) > MINOR_SHOWN:
        yield Text(f"and {plural(len(flows) - MINOR_SHOWN, 'more flow')}", style="dim")


def rest_parts(unlisted: Sequence[FindingRow]) -> Iterator[RenderableType]:
    """Yields a line for each code of the findings that are not shown: how many, the greatest cost, and its title."""
    if not unlisted:
        return
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for code, count in Counter(row["code"] for row in unlisted).items():
        first = next(row for row in unlisted if row["code"] == code)
        cost = cost_text(first)
        most = f"; {cost}" if cost and count == 1 else f"; at most {cost}" if cost else ""
        grid.add_row(f"{count:,}", Text(code, style=STYLES[first["severity"]]), f"{RULES[code].title}{most}")
    yield section(f"{plural(len(unlisted), 'more finding')} (--all)", grid)


def explain_parts(
    trace: Trace,
    transfers: Sequence[Explained],
    findings: Sequence[FindingRow],
    unlisted: Sequence[FindingRow],
    console: Console,
    flows: int | None = None,
) -> Iterator[RenderableType]:
    """Yields everything, with a table of so many flows; of the findings in `unlisted` only a sum by code."""
    yield from head_parts(trace, console.width, Room(causes=CAUSES_MOST))
    yield Text()
    yield from capture_lines(trace)
    yield from judged_lines(judge(trace))
    yield from flow_parts(trace, console.width, flows) if flows else ()
    yield from fragmentation_parts(trace) if flows else ()
    yield from finding_parts(trace, transfers, with_evidence(trace, findings), console)
    unseen = left_out(trace)
    if unseen:
        yield Text(f"\n{plural(unseen, 'smaller flow')} with waiting times: {LEFT_OUT}", style="dim")
    yield from rest_parts(unlisted)
    if findings:
        yield Text("\nHow a finding is computed, and its limits: wiretale analyze --finding CODE", style="dim")


def print_explanation(
    trace: Trace,
    transfers: Sequence[Explained],
    findings: Sequence[FindingRow],
    out: IO[str],
    unlisted: Sequence[FindingRow] = (),
    flows: int | None = None,
) -> None:
    """Prints all of it."""
    print_parts(out, lambda console: explain_parts(trace, transfers, findings, unlisted, console, flows))


def detail_parts(trace: Trace, findings: Sequence[FindingRow], code: int | str, left: int) -> Iterator[RenderableType]:
    """Yields findings alone, each with the commands that copy its packets and print its method. `left` have no room."""
    if not findings:
        yield Text(f"{code} is not among the findings of this capture.")
    start, evidence = cut_start(trace, file_words(trace._arguments)), evidence_of(trace)
    for row in with_evidence(trace, findings):
        if row["finding"] != findings[0]["finding"]:
            yield Text()
        copied = cut_of_finding(trace, start, row["finding"], evidence[row["finding"] - 1])
        method = Command(f"wiretale analyze --finding {row['code']}")
        yield finding_block(row, RULES[row["code"]].weakens, packets=Command(copied or ""), method=method)
    if left:
        yield Text(f"\n{plural(left, 'more finding')} of this code (--finding {code} without --top)", style="dim")


def print_findings(trace: Trace, findings: Sequence[FindingRow], code: int | str, left: int, out: IO[str]) -> None:
    """Prints the findings of a number or code."""
    print_parts(out, lambda console: detail_parts(trace, findings, code, left))


def example_text(code: str) -> str:
    """Returns the example of a finding with its capture, severity and cost; empty if it has none."""
    example = example_of(code)
    if example is None:
        return ""
    facts = ", ".join(filter(None, (example["severity"], example["cost"])))
    return f"{example['sentence']} ({facts}; {example['capture'].replace('`', '')})"


def page_parts(code: str) -> Iterator[RenderableType]:
    """Yields the page of a finding."""
    page = page_of(code)
    yield Text.assemble((page.code, "bold"), f"  {page.title}")
    parts = {
        "Severity": page.severity,
        "How it is computed": page.computed,
        "Limits": page.unknown,
        "Affects": page.weakens,
        "Example": example_text(code),
    }
    for name, text in parts.items():
        if text:
            yield section(name, with_code(text.strip()))


def list_parts() -> Iterator[RenderableType]:
    """Yields all codes by chapter."""
    for chapter, members in CHAPTERS.items():
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for page in members:
            grid.add_row(page.code, page.title)
        yield section(chapter, grid)
