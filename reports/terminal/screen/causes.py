# SPDX-License-Identifier: Apache-2.0
"""The answer, the fault of the capture that weakens it, and the causes with proof and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.causes.answer import Explained, entries, heads_of, matters
from wiretale.analyzer.causes.registry import CHAPTERS, cause_of, example_of
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural, show_duration
from wiretale.reports.phrases import cause_cost, title_of, with_evidence
from wiretale.reports.terminal.console import STYLES, detail_lines, indented, section, with_code

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.rows import CauseRow
    from wiretale.analyzer.trace import Trace

CAUSES_SHOWN, FRAMES_SHOWN = 5, 10
SIGNS = {"error": "▲", "warning": "◇", "info": "○"}
NONE, MOST, GAP = "–", "≤ ", 2  # columns
FAILED, TIME = "failed", "time"


def answer_parts(trace: Trace) -> Iterator[RenderableType]:
    """Yields the answer, and the fault of the capture that weakens it."""
    answer = trace.answer
    yield Text(printable(answer.sentence), style="bold")
    if answer.caveat:
        yield Text(printable(f"Caveat: {answer.caveat}"))


class Line(NamedTuple):
    """A row of the list of causes: a cause, or findings that none explains."""

    entry: Explained
    title: str  # with its certainty
    effects: int
    failed: str
    time: str

    def head(self, width: int) -> Text:
        """Returns mark and title, and the number of its effects if that has room."""
        severity = self.entry.row["severity"]
        head = Text.assemble((f"{SIGNS[severity]} ", STYLES[severity]), (self.title, "bold"))
        effects = f"   + {self.effects:,} effects" if self.effects > 1 else ""
        return head.append(effects, "dim") if head.cell_len + len(effects) <= width else head


def line_of(title: str, entries: Sequence[Explained]) -> Line:
    """Returns the row of entries with one title: how many there are, what failed in all, and the longest time."""
    first, rows = entries[0], [entry.row for entry in entries]
    failed, attempts = (sum(row.get(name) or 0 for row in rows) for name in ("failed", "attempts"))
    waited_ns = max(row["waited_ns"] or 0 for row in rows)
    times = f" ({len(entries):,} times)" if len(entries) > 1 else ""
    most = MOST if times else ""
    return Line(
        first,
        f"{title}{times}",
        sum(len(entry.group.rows) for entry in entries) - (first.cause is None),
        f"{failed:,}{f' of {attempts:,}' if attempts else ''}" if failed else NONE,
        f"{most}{show_duration(waited_ns)}" if waited_ns else NONE,
    )


def cause_lines(trace: Trace, most: int) -> tuple[list[Line], int]:
    """Returns the causes that a person should hear of, those with one title as one, and the number of the others. A list of more
    than CAUSES_SHOWN has a row for each.
    """
    every = entries(trace)
    first, caveat = heads_of(trace, every)
    listed = [entry for entry in every if (matters(trace, entry) or entry is first) and entry is not caveat]
    folded: dict[tuple[str, int], list[Explained]] = {}
    for number, entry in enumerate(listed):
        folded.setdefault((title_of(entry), 0 if most <= CAUSES_SHOWN else number), []).append(entry)
    groups = list(folded.values())[:most]
    left = len(every) - (caveat is not None) - sum(map(len, groups))
    return [line_of(title_of(group[0]), group) for group in groups], left


def columns_of(lines: Sequence[Line]) -> list[tuple[str, list[str]]]:
    """Returns heads and cells of the columns of costs, without those in which nothing is known."""
    columns = [(FAILED, [line.failed for line in lines]), (TIME, [line.time for line in lines])]
    return [(head, cells) for head, cells in columns if any(cell != NONE for cell in cells)]


def cause_row(left: Text, cells: Sequence[str], widths: Sequence[int], style: str = "") -> Grid:
    """Returns a line of the list: a text that wraps, and costs under each other."""
    line = Grid.grid(padding=(0, GAP, 0, 0), expand=True)
    line.add_column(overflow="fold", ratio=1)
    for width in widths:
        line.add_column(justify="right", width=width, no_wrap=True)
    line.add_row(left, *(Text(cell, style=style) for cell in cells))
    return line


def cause_parts(trace: Trace, width: int, most: int, names: Sequence[str]) -> Iterator[RenderableType]:
    """Yields the list of causes: title, effects and cost of each, and these lines of proof_of() of the first."""
    lines, left = cause_lines(trace, most)
    if not lines:
        return
    columns = columns_of(lines)
    widths = [max(map(cell_len, (head, *cells))) for head, cells in columns]
    room = width - sum(widths) - GAP * len(widths)
    yield Text()
    yield cause_row(Text("Causes", style="bold"), [head for head, _ in columns], widths, "dim")
    for number, line in enumerate(lines):
        yield cause_row(line.head(room), [cells[number] for _, cells in columns], widths)
        if not number or most > CAUSES_SHOWN:
            yield indented(detail_lines(proof_of(trace, line.entry), names))
    if left and most <= CAUSES_SHOWN:
        yield Text(f"{plural(left, 'more cause')}: --all", style="dim")


def proof_of(trace: Trace, entry: Explained) -> dict[str, str | None]:
    """Returns proof and advice of an entry, by the names of their lines."""
    if entry.cause is not None:
        return {"Proof": entry.cause["proof"], "Fix": entry.advice}
    return {"Proof": with_evidence(trace, [entry.group.main])[0]["evidence"], "Fix": entry.advice}


def cause_page(code: str) -> Iterator[RenderableType]:
    """Yields the page of a cause."""
    rule, example = cause_of(code), example_of(code)
    yield Text.assemble((rule.code, "bold"), f"  {rule.title}")
    yield section("How it shows", with_code(rule.shows))
    if rule.rivals:
        yield section("What it is not", *(with_code(f"{rival}: {fact}") for rival, fact in rule.rivals.items()))
    if rule.unknown:
        yield section("Limits", with_code(rule.unknown))
    if rule.explains:
        yield section("Findings that are effects of it", Text(", ".join(rule.explains)))
    if example:
        yield section("Example", Text(f"{example['sentence']} ({example['certainty']})"))


def cause_list() -> Iterator[RenderableType]:
    """Yields all causes by family."""
    for family, rules in CHAPTERS.items():
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for rule in rules:
            grid.add_row(rule.code, rule.title)
        yield section(f"Causes: {family}", grid)


def cause_detail(trace: Trace, code: str) -> Iterator[RenderableType]:
    """Yields the causes of a code in a trace with proof, rivals, findings and packets."""
    rows = [row for row in trace.causes if row["code"] == code]
    if not rows:
        yield Text(f"{code} is not among the causes of this capture.")
    for row in rows:
        yield Text(printable(row["sentence"]), style="bold")
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for name, text in detail_of(trace, row).items():
            if text:
                grid.add_row(name, with_code(text))
        yield indented(grid)


def detail_of(trace: Trace, row: CauseRow) -> dict[str, str | None]:
    """Returns what is known of a cause beside its sentence, by the names of lines."""
    number = row["cause"]
    rivals = [rival for rival in trace.cause_rivals if rival["cause"] == number]
    findings = [str(member["finding"]) for member in trace.cause_findings if member["cause"] == number]
    frames = sorted({frame["frame"] for frame in trace.cause_frames if frame["cause"] == number})[:FRAMES_SHOWN]
    return {
        "certainty": row["certainty"],
        "cost": cause_cost(row),
        "proof": row["proof"],
        **{f"not {rival['rival']}": rival["fact"] for rival in rivals if rival["excluded"]},
        **{f"or {rival['rival']}": f"to decide: {rival['fact']}" for rival in rivals if not rival["excluded"]},
        "findings": ", ".join(findings),
        "frames": ", ".join(map(str, frames)),
        "fix": row["advice"],
        "filter": row["filter"],
    }
