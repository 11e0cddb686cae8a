# SPDX-License-Identifier: Apache-2.0
"""`wiretale explain` in the terminal: a headline for each transfer, then its findings; and the pages of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.findings.catalogue import Page, chapters, pages
from wiretale.analyzer.findings.explain import Explained, carried, left_out, parted_words
from wiretale.analyzer.findings.transfers import LIMITS
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural, show_bytes, show_rate, show_share
from wiretale.reports.cost_text import cost_text
from wiretale.reports.terminal.analyze import CAPTURES_SHOWN, INDENT, STYLES, capture_line, captures_left, make_console

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

BESIDE_SHOWN = 5  # flows that carry next to nothing
QUIET_SHOWN = 10  # transfers without a finding
BAR_WIDTH_MOST, BAR_LEAST = 60, 0.02
COLORS = {
    "limit_idle_ns": "bright_black",
    "limit_delayed_ack_ns": "magenta",
    "limit_window_ns": "yellow",
    "limit_recovery_ns": "red",
    "limit_timeout_ns": "bold red",
    "limit_slow_start_ns": "cyan",
    "limit_network_ns": "green",
}
MARKS = {  # where there is no colour
    "limit_idle_ns": "·",
    "limit_delayed_ack_ns": "n",
    "limit_window_ns": "w",
    "limit_recovery_ns": "r",
    "limit_timeout_ns": "T",
    "limit_slow_start_ns": "s",
    "limit_network_ns": "=",
}
LEFT_OUT = "limit_*_ns in `wiretale analyze --json --tables directions`"
SIGNS = {"error": "✖", "warning": "▲", "info": "•"}
Row = dict[str, Any]


def finding_block(row: Row, weakens: str | None = None) -> RenderableType:
    """One finding: what, what it costs, where, what to do, how to see it."""
    head = Text()
    head.append(f"{SIGNS[row['severity']]} ", style=STYLES[row["severity"]])
    head.append(row["code"], style=f"bold {STYLES[row['severity']].removeprefix('bold ')}")
    cost = cost_text(row)
    if cost:
        head.append(f"  {cost}", style="bold")
    lines = Grid.grid(padding=(0, 1))
    lines.add_column(no_wrap=True, min_width=8, style="dim")
    lines.add_column(overflow="fold")
    told = {"evidence": row["evidence"], "doubtful": weakens, "advice": row["advice"], "filter": row["filter"]}
    for name, text in told.items():
        if text:
            lines.add_row(name, Text(printable(text), style="dim" if name in ("evidence", "filter") else ""))
    return Group(head, Padding(Group(Text(printable(row["sentence"])), lines), (0, 0, 0, INDENT)))


def bar(one: Explained, console: Console) -> RenderableType | None:
    """The parts of a transfer's time, as a bar and in words."""
    limits = {name: ns for name, ns in one.transfer.limits.items() if ns}
    whole = sum(limits.values())
    if not whole:
        return None
    width = max(min(BAR_WIDTH_MOST, console.width - 2 * INDENT), 10)
    colored = bool(console.color_system) and not console.no_color
    drawn, legend = Text(), Text()
    for name, ns in sorted(limits.items(), key=lambda item: -item[1]):
        cells = round(width * ns / whole)
        drawn.append(("█" if colored else MARKS[name]) * cells, style=COLORS[name])
        if ns >= BAR_LEAST * whole:
            legend.append("   " if legend else "")
            legend.append("█ " if colored else f"{MARKS[name]} ", style=COLORS[name])
            legend.append(f"{LIMITS[name]} {show_share(ns, whole)}")
    drawn.truncate(width)
    shares = parted_words(one.transfer)
    return Group(drawn, legend, *([Text(shares, style="dim")] if shares else []))


def transfer_head(one: Explained, console: Console) -> RenderableType:
    """Who with whom, what limited it, and how far it came."""
    row = one.transfer
    name = Text()
    name.append(f"flow {row.row['flow']} ", style="dim")
    name.append(f"{row.flow['application'] or row.flow['protocol']} ", style="dim")
    name.append(printable(row.name), style="bold")
    name.append(f"  {carried(row)}", style="")
    verdict = Text(one.headline[0].upper() + one.headline[1:], style="bold")
    if one.used is not None and one.maximum_bps is not None:
        verdict.append(
            f"; {show_share(one.used, 1)} of the {show_rate(one.maximum_bps)} of payload that the link carries",
            style="",
        )
    shown = bar(one, console)
    return Group(name, *(Padding(part, (0, 0, 0, INDENT)) for part in (verdict, shown) if part is not None))


def title(text: str) -> Text:
    """A heading."""
    return Text(f"\n{text}", style="bold underline")


def capture_parts(trace: Trace, found: Sequence[Row]) -> Iterator[RenderableType]:
    """The files, and what is wrong with them."""
    for row in trace.interfaces.rows(0, CAPTURES_SHOWN):
        yield capture_line(row)
    if len(trace.interfaces) > CAPTURES_SHOWN:
        yield captures_left(trace)
    about = [row for row in found if row["scope"] == "capture"]
    if about:
        known = pages()
        yield title("The capture itself")
        for row in about:
            yield Padding(finding_block(row, known[row["code"]].weakens), (0, 0, 0, INDENT))


def rows_by_flow(found: Sequence[Row]) -> dict[int, list[Row]]:
    """The findings of each flow, in the order of the most urgent ones."""
    by_flow: dict[int, list[Row]] = {}
    for row in found:
        if row["flow"] is not None:
            by_flow.setdefault(row["flow"], []).append(row)
    return by_flow


def transfer_parts(transfers: Sequence[Explained], found: Sequence[Row], console: Console) -> Iterator[RenderableType]:
    """Each transfer with its findings: those with warnings first, as the findings are ranked; then the others, and at the
    end those that carry next to nothing beside them."""
    by_flow = rows_by_flow(found)
    ranks = {flow: rank for rank, flow in enumerate(by_flow)}
    beside = [one for one in transfers if is_beside(one, by_flow)]
    shown = [one for one in transfers if not is_beside(one, by_flow)]
    quiet = 0
    for one in sorted(shown, key=lambda one: ranks.get(one.transfer.row["flow"], len(ranks))):
        rows = by_flow.pop(one.transfer.row["flow"], [])
        quiet += not rows
        if not rows and quiet > QUIET_SHOWN:
            continue
        yield Text()
        yield transfer_head(one, console)
        for row in rows:
            yield Padding(finding_block(row), (0, 0, 0, INDENT))
    if quiet > QUIET_SHOWN:
        yield Text(f"\nand {plural(quiet - QUIET_SHOWN, 'more transfer')} not told of one by one", style="dim")
    yield from beside_parts(beside, by_flow)
    rest = [row for rows in by_flow.values() for row in rows]
    if rest:
        yield title("Other flows")
        yield from (Padding(finding_block(row), (0, 0, 0, INDENT)) for row in rest)


def is_beside(one: Explained, found: dict[int, list[Row]]) -> bool:
    """Whether it is no transfer of its own, as a control connection, and nothing is wrong with it."""
    rows = found.get(one.transfer.row["flow"], [])
    return one.transfer.minor and all(row["severity"] == "info" for row in rows)


def beside_parts(beside: Sequence[Explained], found: dict[int, list[Row]]) -> Iterator[RenderableType]:
    """A line for each flow that carries next to nothing; without what limited it, which does not matter."""
    flows = {one.transfer.row["flow"]: one.transfer for one in reversed(beside)}
    if flows:
        yield title("Next to nothing beside them")
    for number, one in list(reversed(flows.items()))[:BESIDE_SHOWN]:
        name = Text(f"flow {number} {one.flow['application'] or one.flow['protocol']} ", style="dim")
        name.append(f"{printable(one.name)}  {show_bytes(one.flow['payload_bytes'])} both ways", style="")
        yield name
        yield from (Padding(finding_block(row), (0, 0, 0, INDENT)) for row in found.pop(number, []))
    if len(flows) > BESIDE_SHOWN:
        yield Text(f"and {plural(len(flows) - BESIDE_SHOWN, 'more flow')}", style="dim")


def closing(trace: Trace, found: Sequence[Row], left: int) -> Iterator[RenderableType]:
    """What stands below all."""
    if left:
        yield Text(f"\n{plural(left, 'more finding')} (--top)", style="dim")
    graves = any(row["severity"] != "info" for row in found)
    if not graves and not left and any(trace.interfaces.column("packets")):
        yield Text(f"\nNothing {'worse ' if found else ''}is wrong, as far as this capture tells.", style="green")
    if found:
        yield Text("\nHow a finding is computed and what it cannot know: wiretale explain --code CODE", style="dim")


def explain_parts(
    trace: Trace, transfers: Sequence[Explained], found: Sequence[Row], left: int, console: Console
) -> Iterator[RenderableType]:
    """All of it."""
    yield from capture_parts(trace, found)
    of_flows = [row for row in found if row["flow"] is not None and row["scope"] != "capture"]
    several = [row for row in found if row["flow"] is None and row["scope"] != "capture"]
    if transfers or of_flows:
        yield title("Transfers")
    yield from transfer_parts(transfers, of_flows, console)
    unseen = left_out(trace)
    if unseen:
        yield Text(f"\n{plural(unseen, 'smaller flow')} waited for something, too: {LEFT_OUT}", style="dim")
    if several:
        yield title("Over several flows")
        yield from (Padding(finding_block(row), (0, 0, 0, INDENT)) for row in several)
    yield from closing(trace, found, left)


def page_parts(page: Page) -> Iterator[RenderableType]:
    """One page of the catalogue."""
    yield Text.assemble((page.code, "bold"), f"  {page.title}")
    told = (
        ("How it is computed", page.computed),
        ("What it cannot know", page.unknown),
        ("What it makes doubtful", page.weakens),
    )
    for name, text in told:
        if text:
            yield title(name)
            yield Padding(Text(text.strip()), (0, 0, 0, INDENT))


def list_parts() -> Iterator[RenderableType]:
    """All codes by chapter."""
    for chapter, members in chapters().items():
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for page in members:
            grid.add_row(page.code, page.title)
        yield title(chapter)
        yield Padding(grid, (0, 0, 0, INDENT))


def print_parts(out: IO[str], make: Any) -> None:
    """Writes what `make` gives for a console; in colour on a terminal, without trailing blanks elsewhere."""
    plain = out if out.isatty() else StringIO()
    console = make_console(plain)
    for part in make(console):
        console.print(part)
    if isinstance(plain, StringIO):
        out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())
