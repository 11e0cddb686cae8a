# SPDX-License-Identifier: Apache-2.0
"""Compares two runs: changes of measures, flows and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from wiretale.analyzer.diff.measures import MEASURES, Measure, Values
from wiretale.analyzer.diff.run import Part, Run

ROUNDING = 1e-9  # relative change that is noise of rounding
SAME_SHARE = 5e-4  # relative change that is neither better nor worse: it is shown as under 0.1%


@dataclass(frozen=True)
class Change:
    """A measure in both runs."""

    measure: Measure
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        """Second value minus first; None if either is unknown."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def percent(self) -> float | None:
        """Change relative to the first value; infinite from 0."""
        difference = self.difference
        if difference is None or self.before is None:
            return None
        if not self.before:
            return inf if difference > 0 else -inf if difference < 0 else 0.0
        return 100 * difference / abs(self.before)

    @property
    def weight(self) -> float:
        """Size of the change relative to the larger value, 0 to 1."""
        if self.before is None or self.after is None:
            return 0.0
        size = max(abs(self.before), abs(self.after))
        share = abs(self.after - self.before) / size if size else 0.0
        return share if share > ROUNDING else 0.0

    @property
    def verdict(self) -> str | None:
        """`better`, `worse` or `same` (below 0.05%); None if unknown or if neither is better."""
        if self.difference is None:
            return None
        if self.weight < SAME_SHARE:
            return "same"
        if not self.measure.better:
            return None
        return "better" if (self.difference > 0) == (self.measure.better > 0) else "worse"


@dataclass
class FlowPair:
    """A flow of each run, matched by one of their keys; or one without a partner."""

    before: Part | None
    after: Part | None
    #: matched by ends, service, port or protocol; None without a partner
    evidence: str | None
    changes: list[Change] = field(default_factory=list)

    @property
    def weight(self) -> float:
        """Size of the flow times the largest change that is better or worse."""
        size = max(part.size for part in (self.before, self.after) if part)
        return size * max((change.weight for change in self.changes if change.measure.better), default=1.0)


@dataclass
class Difference:
    """All changes between two runs."""

    before: Run
    after: Run
    changes: list[Change]
    flows: list[FlowPair]
    appeared: list[tuple[str, str, str]]
    gone: list[tuple[str, str, str]]

    def most_changed(self, most: int) -> list[Change]:
        """Returns the largest relative changes; those that are neither better nor worse come last."""
        changed = [change for change in self.changes if change.weight]
        return sorted(changed, key=lambda change: (not change.measure.better, -change.weight))[:most]


EVIDENCE = ("ends", "service", "port", "protocol")


def changes_of(before: Values, after: Values) -> list[Change]:
    """Returns the changes of measures that either run has."""
    each = (Change(measure, before.get(name), after.get(name)) for name, measure in MEASURES.items())
    return [change for change in each if change.before is not None or change.after is not None]


def by_key(parts: Sequence[Part], level: int) -> dict[tuple[object, ...], list[Part]]:
    """Returns parts by one of their keys, largest first."""
    groups: dict[tuple[object, ...], list[Part]] = {}
    for one in sorted(parts, key=lambda part: -part.size):
        groups.setdefault(one.keys[min(level, len(one.keys) - 1)], []).append(one)
    return groups


def pair_parts(before: Sequence[Part], after: Sequence[Part]) -> Iterator[FlowPair]:
    """Returns each flow with its partner: the same ends, which must be unique in both runs, else by size among equal keys."""
    left = [list(before), list(after)]
    for level in range(len(EVIDENCE)):
        groups = [by_key(parts, level) for parts in left]
        taken: set[int] = set()
        for key, ours in groups[0].items():
            theirs = groups[1].get(key, [])
            if not level and not len(ours) == len(theirs) == 1:
                continue
            for a, b in zip(ours, theirs, strict=False):
                taken |= {id(a), id(b)}
                yield FlowPair(a, b, EVIDENCE[level], changes_of(a.values, b.values))
        left = [[part for part in parts if id(part) not in taken] for parts in left]
    yield from (FlowPair(part, None, None) for part in left[0])
    yield from (FlowPair(None, part, None) for part in left[1])


def new_findings(run: Run, other: Run) -> list[tuple[str, str, str]]:
    """Returns findings of codes that the other run does not have."""
    known = {code for code, _, _ in other.findings}
    return [one for one in run.findings if one[0] not in known]


def diff_runs(before: Run, after: Run) -> Difference:
    """Compares two runs."""
    flows = sorted(pair_parts(before.parts, after.parts), key=lambda pair: -pair.weight)
    changes = changes_of(before.total, after.total)
    return Difference(before, after, changes, flows, new_findings(after, before), new_findings(before, after))
