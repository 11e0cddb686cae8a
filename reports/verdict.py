# SPDX-License-Identifier: Apache-2.0
"""The answer of a report in one sentence, and the findings grouped by cause, from which it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.findings import model
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.registry import EFFECTS_OF_LOSS, RULES
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share
from wiretale.reports.phrases import cost_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace

FACTS = {"echo"}  # findings that describe what is well, too
TOGETHER = "shared-queue"
LETTERS_MOST = 110  # of a verdict
ROOM_MORE = 30  # letters of a verdict that names a note beside
#: without a judged packet; the judged line below has the reasons
UNKNOWN = "Whether there are problems cannot be determined from this capture"
SPLIT_SHARE = 0.5  # of the time, from which on a part of it is worth a verdict
WAIT_SHARE = 0.1  # of the capture: less says nothing of it
#: the time that went to each part of the split, in a verdict without a problem
TOOK = {
    "server": "{time} passed at servers",
    "network": "{time} passed in the network",
    "client": "{time} passed at clients",
}


class Cause(NamedTuple):
    """The findings of one cause: rows of the findings table of one code, or one row that several flows share."""

    rows: list[tuple[int, FindingRow]]  # with their numbers in the table

    @property
    def first(self) -> FindingRow:
        """The most severe and costly one."""
        return self.rows[0][1]

    @property
    def main(self) -> tuple[int, FindingRow]:
        """The finding that stands for all of them: the first that names a flow, so that it can be shown."""
        return (self.members or self.rows)[0]

    @property
    def members(self) -> list[tuple[int, FindingRow]]:
        """The findings that name one flow."""
        return [(number, row) for number, row in self.rows if row["flow"] is not None]

    @property
    def transfers(self) -> int:
        """The transfers, as far as the rows count them."""
        return sum(row["members"] or 1 for _, row in self.rows)

    @property
    def is_group(self) -> bool:
        """Whether it is told in one sentence about all of its rows."""
        return len(self.rows) > 1 and self.phrase is not None

    @property
    def phrase(self) -> str | None:
        """What the transfers have in common."""
        return phrase_of(self.first)

    @property
    def cost(self) -> tuple[float, str] | None:
        """The cost of all rows and its unit; None if it is unknown, or if it does not add up."""
        units, costs = {row["cost_unit"] for _, row in self.rows}, [row["cost"] for _, row in self.rows]
        unit = units.pop() if len(units) == 1 else None
        if unit not in ("seconds", "bytes") or None in costs:
            return None
        return sum(cost or 0.0 for cost in costs), unit

    def cost_text(self) -> str:
        """Returns `192 s`; empty if it is unknown."""
        if len(self.rows) == 1:
            return cost_text(self.first)
        if self.cost is None:
            return ""
        cost, unit = self.cost
        return show_duration(cost * 1e9) if unit == "seconds" else show_bytes(cost)

    def sentence(self) -> str:
        """Returns the finding in one sentence."""
        if not self.is_group:
            return str(self.first["sentence"])
        flows = {row["flow"] for _, row in self.members}
        subject = "transfer" if self.transfers > len(flows) or len(flows) == self.transfers else "direction"
        cost = self.cost_text()
        return f"{plural(self.transfers, subject)} {self.phrase}{f': {cost} in all' if cost else ''}."


def phrase_of(row: FindingRow) -> str | None:
    """Returns what transfers with such a finding have in common; None if it does not stand for one of them, or for several."""
    rule = RULES.get(row["code"])
    return rule.summary if rule else None


def causes(rows: Sequence[FindingRow]) -> list[Cause]:
    """Returns the findings by cause, in the order of their first ones, with their numbers in the table.

    Findings about single flows are grouped by their code. Others, each of which is about several flows or about the capture, are
    causes of their own. What follows from losses comes after flows that lose together, because they are its cause.
    """
    by_key: dict[Any, Cause] = {}
    for number, row in enumerate(rows, 1):
        key = row["code"] if phrase_of(row) else number
        by_key.setdefault(key, Cause([])).rows.append((number, row))
    every = list(by_key.values())
    last = max((place for place, cause in enumerate(every) if cause.first["code"] == TOGETHER), default=-1)
    effects = [cause for cause in every[: last + 1] if cause.first["code"] in EFFECTS_OF_LOSS]
    return [cause for cause in every[: last + 1] if cause not in effects] + effects + every[last + 1 :]


def duration_of(trace: Trace, flow: int | None) -> float | None:
    """Returns the time of a flow in ns; None if it is unknown."""
    if flow is None:
        return None
    return model.duration_of(trace.flows[flow])


def clean(trace: Trace, rows: Sequence[FindingRow]) -> str:
    """Returns the verdict without a warning: that no problem is visible, and the largest note; or that it is unknown."""
    judged = judge(trace)
    line = UNKNOWN if judged.nothing else judged.no_problem(False).removesuffix(".")
    is_loss_known = not judged.nothing and judged.measures["loss"].packets
    turns, split = trace.transfers.turns, trace.transfers.turns.split
    name, ns = max(split._asdict().items(), key=lambda part: part[1])
    notes = []
    is_long = split.total_ns >= WAIT_SHARE * turns.capture_ns
    if is_loss_known and is_long and name in TOOK and ns >= SPLIT_SHARE * split.total_ns > 0:
        time = f"{show_duration(ns)} of {show_duration(split.total_ns)}"
        notes.append(
            TOOK[name].format(time=f"{show_share(ns, split.total_ns)} of the waiting" if turns.overlap else time)
        )
    for cause in causes(rows)[:1]:
        note = cause.sentence() if cause.is_group else cause.first["headline"]
        notes.insert(len(notes) if cause.first["code"] in FACTS else 0, note.removesuffix("."))
    return next((f"{line}; {text}." for text in notes if len(line) + len(text) < LETTERS_MOST + ROOM_MORE), f"{line}.")


def verdict(trace: Trace) -> str:
    """Returns the answer in one sentence: who, what, how much."""
    rows = trace.findings.rows()
    if not any(trace.interfaces.column("packets")):
        return "No packet was analyzed."
    groups = causes(rows)
    worst = next((group for group in groups if group.first["severity"] != "info"), None)
    if worst is not None:
        return worst.sentence() if worst.is_group else str(worst.first["headline"])
    return clean(trace, rows)


def share_of(cause: Cause, trace: Trace) -> str:
    """Returns what the cost is a share of: `in 266 transfers`, `50% of 446 ms`; empty if it is unknown."""
    if cause.is_group:
        return f"in {plural(cause.transfers, 'transfer')}"
    row = cause.first
    duration_ns = duration_of(trace, row["flow"])
    if row["cost"] and row["cost_unit"] == "seconds" and duration_ns and row["cost"] * 1e9 <= duration_ns:
        return f"{show_share(row['cost'] * 1e9, duration_ns)} of {show_duration(duration_ns)}"
    return ""
