# SPDX-License-Identifier: Apache-2.0
"""Findings that no cause explains, grouped by what they have in common."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.findings.registry import EFFECTS_OF_LOSS, RULES
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow

TOGETHER = "shared-queue"
WORDS_MOST = 45  # of a sentence that heads a screen


class Group(NamedTuple):
    """Rows of the findings table of one code, or one row that several flows share."""

    rows: list[FindingRow]

    @property
    def first(self) -> FindingRow:
        """The most severe and costly one."""
        return self.rows[0]

    @property
    def main(self) -> FindingRow:
        """The finding that stands for all of them: the first that names a flow, so that it can be shown."""
        return (self.members or self.rows)[0]

    @property
    def members(self) -> list[FindingRow]:
        """The findings that name one flow."""
        return [row for row in self.rows if row["flow"] is not None]

    @property
    def transfers(self) -> int:
        """The transfers, as far as the rows count them."""
        return sum(row["members"] or 1 for row in self.rows)

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
        units, costs = {row["cost_unit"] for row in self.rows}, [row["cost"] for row in self.rows]
        unit = units.pop() if len(units) == 1 else None
        if unit not in ("seconds", "bytes") or None in costs:
            return None
        return sum(cost or 0.0 for cost in costs), unit

    @property
    def total(self) -> str:
        """Returns `192 s`, the cost of all rows; empty if it is unknown."""
        if self.cost is None:
            return ""
        cost, unit = self.cost
        return show_duration(cost * 1e9) if unit == "seconds" else show_bytes(cost)

    def sum_of(self, name: str) -> int | None:
        """Returns the sum of a column; None if it is null in all rows."""
        numbers = [number for row in self.rows if (number := integer_in(row, name)) is not None]
        return sum(numbers) if numbers else None

    def sentence(self) -> str:
        """Returns the findings in one sentence."""
        if not self.is_group:
            return str(self.first["sentence"])
        flows = {row["flow"] for row in self.members}
        subject = "transfer" if self.transfers > len(flows) or len(flows) == self.transfers else "direction"
        return f"{plural(self.transfers, subject)} {self.phrase}{f': {self.total} in all' if self.total else ''}."

    def short_sentence(self) -> str:
        """Returns the same, or the headline of the first if that is too long to head a screen."""
        sentence = self.sentence()
        return sentence if len(sentence.split()) <= WORDS_MOST else str(self.first["headline"])

    def as_cause(self) -> dict[str, Any]:
        """Returns the columns of a cause that its rank follows from."""
        row = self.first
        is_about_capture = bool(getattr(RULES.get(row["code"]), "weakens", None))
        return {
            "severity": row["severity"],
            "certainty": "proven",
            "place": "capture" if is_about_capture else "path",
            **{name: self.sum_of(name) for name in ("failed", "waited_ns", "bytes")},
            "unjudged": None,
        }


def phrase_of(row: FindingRow) -> str | None:
    """Returns what transfers with such a finding have in common; None if it does not stand for one of them, or for several."""
    rule = RULES.get(row["code"])
    return rule.summary if rule else None


def groups(rows: Sequence[FindingRow], explained: Collection[int] = ()) -> list[Group]:
    """Returns the findings that are not explained, in the order of the first of each group.

    Findings about single flows are grouped by their code. Others, each of which is about several flows or about the capture, are
    groups of their own. What follows from losses comes after flows that lose together, because they are its cause.
    """
    by_key: dict[Any, Group] = {}
    for row in rows:
        if row["finding"] not in explained:
            by_key.setdefault(row["code"] if phrase_of(row) else row["finding"], Group([])).rows.append(row)
    every = list(by_key.values())
    last = max((place for place, group in enumerate(every) if group.first["code"] == TOGETHER), default=-1)
    effects = [group for group in every[: last + 1] if group.first["code"] in EFFECTS_OF_LOSS]
    return [group for group in every[: last + 1] if group not in effects] + effects + every[last + 1 :]
