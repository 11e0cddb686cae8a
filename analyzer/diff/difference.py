# SPDX-License-Identifier: Apache-2.0
"""Compares two runs: changes of measures, flows and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from wiretale.analyzer.diff.measures import MEASURES, Measure, Values
from wiretale.analyzer.diff.run import Part, Run, RunFinding
from wiretale.analyzer.findings.transfers import PARTS
from wiretale.analyzer.units import PREFIXES, show_bytes, show_change, show_rate, three_digits

ROUNDING = 1e-9  # relative change that is noise of rounding
SAME_SHARE = 5e-4  # relative change that is none: it is shown as under 0.1%
NOISE_SHARE = 0.01  # and that is neither better nor worse: two runs of the same differ by as much
SAME_SPEED = 0.01  # relative change of goodput below which neither run is slower
OTHER_SIZE = 0.1  # relative change of payload from which the runs differ in size
TIMES_FROM = 900  # percent from which a change is given as a factor
SPEEDS = ("goodput", "throughput")  # the first that both runs have decides which is slower
UNITS = ("seconds", "bytes")  # of costs: time comes first


@dataclass(frozen=True)
class Change:
    """A measure in both runs.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> change = difference.changes["packets"]
    >>> change.before, change.after, change.verdict
    (342.0, 251.0, None)
    """

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

    @property
    def word(self) -> str:
        """`better` or `worse`; empty for a change that says nothing."""
        return self.verdict or "" if self.weight >= NOISE_SHARE and self.verdict != "same" else ""


@dataclass
class FlowPair:
    """A flow of each run, matched by one of their keys; or one without a partner.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> [(pair.before is None, pair.after is None) for pair in difference.flows]
    [(False, False), (True, False), (True, False)]
    """

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


class TimeChange(NamedTuple):
    """One part of the time over all flows of both runs, in ns.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> difference.times[0]
    TimeChange(name='loss', before=302005000.0, after=815785000.0)
    """

    name: str  # of PARTS
    before: float
    after: float


class FindingChange(NamedTuple):
    """The findings of one code in both runs; at least one has some.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> [(change.code, change.is_same) for change in difference.findings][:2]
    [('timeout-stalls', False), ('lost-upstream', False)]
    """

    code: str
    before: list[RunFinding]
    after: list[RunFinding]

    @property
    def unit(self) -> str | None:
        """The unit of all costs; None if there is none or several."""
        units = {finding.cost_unit for finding in (*self.before, *self.after)}
        return units.pop() if len(units) == 1 else None

    def cost(self, findings: Sequence[RunFinding]) -> float | None:
        """Returns the sum of the costs of one run; the greatest if they are shares; None if one is unknown."""
        costs = [finding.cost for finding in findings if finding.cost is not None]
        if self.unit is None or len(costs) < len(findings):
            return None
        return max(costs, default=0.0) if self.unit == "percent" else sum(costs)

    @property
    def change(self) -> float | None:
        """The cost in the second run minus that in the first; None if unknown."""
        before, after = self.cost(self.before), self.cost(self.after)
        return None if before is None or after is None else after - before

    @property
    def is_same(self) -> bool:
        """Whether both runs have findings of this code at the same cost."""
        both = bool(self.before and self.after)
        if self.change is None:
            return both and len(self.before) == len(self.after)
        return both and abs(self.change) <= SAME_SPEED * max(self.cost(self.before) or 0, self.cost(self.after) or 0)

    @property
    def rank(self) -> tuple[int, float]:
        """The sort key: time, then bytes, then the rest; the largest change first."""
        return UNITS.index(self.unit) if self.unit in UNITS else len(UNITS), -abs(self.change or 0)


@dataclass
class Difference:
    """All changes between two runs."""

    before: Run
    after: Run
    changes: list[Change]
    flows: list[FlowPair]
    appeared: list[RunFinding]
    gone: list[RunFinding]

    @property
    def speed(self) -> Change | None:
        """The change that decides which run is slower; None if unknown."""
        by_name = {change.measure.name: change for change in self.changes if change.difference is not None}
        return next((by_name[name] for name in SPEEDS if name in by_name), None)

    @property
    def verdict(self) -> str | None:
        """`slower`, `faster` or `same`: the second run, by goodput over its whole time; None if unknown."""
        change = self.speed
        if change is None or change.difference is None:
            return None
        if change.weight < SAME_SPEED:
            return "same"
        return "faster" if change.difference > 0 else "slower"

    def sentence(self) -> str:
        """Returns the verdict: `B is slower: goodput 0.91 against 2.18 Mbit/s, −58%.`, and how far the runs differ in size."""
        change = self.speed
        if change is None or change.before is None or change.after is None:
            return "Which run is slower cannot be determined: the goodput of one is unknown."
        name = change.measure.name
        if self.verdict == "same":
            return f"B is as fast as A: {name} {against(change.after, change.before)}.{self.size_note()}"
        percent = change.percent if change.before else None
        relative = "" if percent is None else f", {show_change(percent)}"
        if percent is not None and change.before and percent >= TIMES_FROM:
            relative = f", {three_digits(change.after / change.before)} times as much"
        return f"B is {self.verdict}: {name} {against(change.after, change.before)}{relative}.{self.size_note()}"

    def size_note(self) -> str:
        """Returns a sentence if the runs carried different payload, because counts and times then differ for that alone."""
        size = next((change for change in self.changes if change.measure.name == "bytes"), None)
        if size is None or not size.before or not size.after or size.weight < OTHER_SIZE:
            return ""
        sizes = f"{show_bytes(size.after)} against {show_bytes(size.before)}"
        return f" The runs carried different payload, {sizes}: compare rates and shares, not counts and sums."

    @property
    def times(self) -> list[TimeChange]:
        """The parts of the time that changed by more than 1% of the longer time, the largest change first."""
        changes = [
            TimeChange(name, before, after)
            for name in PARTS
            if name != "idle"
            if (before := self.before.times.get(name)) is not None
            and (after := self.after.times.get(name)) is not None
            and abs(after - before) > SAME_SPEED * max(before, after)
        ]
        return sorted(changes, key=lambda change: -abs(change.after - change.before))

    @property
    def findings(self) -> list[FindingChange]:
        """The codes that appeared, disappeared or changed their cost by more than 1%, ordered by the change of cost."""
        codes = dict.fromkeys(finding.code for run in (self.after, self.before) for finding in run.findings)
        each = [
            FindingChange(
                code,
                *([finding for finding in run.findings if finding.code == code] for run in (self.before, self.after)),
            )
            for code in codes
        ]
        return sorted((finding for finding in each if not finding.is_same), key=lambda finding: finding.rank)

    def most_changed(self, most: int) -> list[Change]:
        """Returns the largest relative changes; those that are neither better nor worse come last."""
        changed = [change for change in self.changes if change.weight]
        return sorted(changed, key=lambda change: (not change.measure.better, -change.weight))[:most]


def against(after: float, before: float) -> str:
    """`0.91 against 2.18 Mbit/s`: both in the unit of the larger rate unless the other is less than a hundredth of it;
    `5.68 Mbit/s in both` if they look the same."""
    if show_rate(after) == show_rate(before):
        return f"{show_rate(after)} in both"
    larger = show_rate(max(after, before))
    if min(after, before) < max(after, before) / 100:
        return f"{show_rate(after)} against {show_rate(before)}"
    unit = larger.split(" ", 1)[1]
    return f"{in_unit(after, unit)} against {in_unit(before, unit)} {unit}"


def in_unit(rate: float, unit: str) -> str:
    """Returns a rate as a number of this unit."""
    return three_digits(rate, 1000 ** PREFIXES.index(unit.removesuffix("bit/s")))


EVIDENCE = ("ends", "service", "port", "protocol")


def changes_of(before: Values, after: Values) -> list[Change]:
    """Returns the changes of measures that either run has."""
    each = (Change(measure, before.get(name), after.get(name)) for name, measure in MEASURES.items())
    return [change for change in each if change.before is not None or change.after is not None]


def by_key(parts: Sequence[Part], level: int) -> dict[tuple[object, ...], list[Part]]:
    """Returns parts by one of their keys, largest first."""
    groups: dict[tuple[object, ...], list[Part]] = {}
    for member in sorted(parts, key=lambda part: -part.size):
        groups.setdefault(member.keys[min(level, len(member.keys) - 1)], []).append(member)
    return groups


def pair_parts(before: Sequence[Part], after: Sequence[Part]) -> Iterator[FlowPair]:
    """Returns each flow with its partner: the same ends, which must be unique in both runs, else by size among equal keys."""
    left = [list(before), list(after)]
    for level in range(len(EVIDENCE)):
        groups = [by_key(parts, level) for parts in left]
        paired: set[int] = set()
        for key, before_parts in groups[0].items():
            after_parts = groups[1].get(key, [])
            if not level and not len(before_parts) == len(after_parts) == 1:
                continue
            for a, b in zip(before_parts, after_parts, strict=False):
                paired |= {id(a), id(b)}
                yield FlowPair(a, b, EVIDENCE[level], changes_of(a.values, b.values))
        left = [[part for part in parts if id(part) not in paired] for parts in left]
    yield from (FlowPair(part, None, None) for part in left[0])
    yield from (FlowPair(None, part, None) for part in left[1])


def new_findings(run: Run, other: Run) -> list[RunFinding]:
    """Returns findings of codes that the other run does not have."""
    codes = {finding.code for finding in other.findings}
    return [finding for finding in run.findings if finding.code not in codes]


def diff_runs(before: Run, after: Run) -> Difference:
    """Compares two runs."""
    flows = sorted(pair_parts(before.parts, after.parts), key=lambda pair: -pair.weight)
    changes = changes_of(before.total, after.total)
    return Difference(before, after, changes, flows, new_findings(after, before), new_findings(before, after))
