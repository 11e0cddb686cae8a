# SPDX-License-Identifier: Apache-2.0
"""What causes read: findings that no cause has explained yet, exchanges, flows and their time accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from wiretale.analyzer.causes.connections import Connections
from wiretale.analyzer.causes.unanswered.silent_hosts import silent_hosts_of
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.findings.model import row_at

if TYPE_CHECKING:
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.findings.model import Finding
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow, FlowRow


Result = TypeVar("Result")


class Numbered(NamedTuple):
    """A finding and its number in the table."""

    number: int
    finding: Finding


class Case:
    """The facts of one trace."""

    def __init__(self, transfers: Transfers, findings: Sequence[Finding]) -> None:
        self.transfers = transfers
        self.trace = transfers.trace
        self._findings = [Numbered(number, finding) for number, finding in enumerate(findings, 1)]
        self._explained: set[int] = set()
        self._results: dict[Any, Any] = {}
        self.claimed: set[int] = set()  # attempts that a cause explains
        self._flows: dict[str, set[int]] = {}  # by the cause that explains them

    def all_findings(self, *codes: str) -> list[Numbered]:
        """Returns the findings of these codes, explained or not."""
        return [each for each in self._findings if each.finding.code in codes]

    def findings(self, *codes: str) -> list[Numbered]:
        """Returns the findings of these codes that no cause has explained yet."""
        return [each for each in self.all_findings(*codes) if each.number not in self._explained]

    def effects(self, codes: Sequence[str], flows: Iterable[int]) -> list[Numbered]:
        """Returns the findings of these codes, not explained yet, all of whose flows are among these."""
        among = set(flows)
        return [
            each
            for each in self.findings(*codes)
            if each.finding.flows and all(flow in among for flow, _ in each.finding.flows)
        ]

    def explain(self, numbers: Iterable[int]) -> None:
        """Marks findings as explained."""
        self._explained.update(numbers)

    def note_flows(self, code: str, flows: Iterable[int]) -> None:
        """Keeps the flows that a cause explains."""
        self._flows.setdefault(code, set()).update(flows)

    def flows_of(self, *codes: str) -> set[int]:
        """Returns the flows that earlier causes explain, those of all causes without codes."""
        return set().union(*(self._flows.get(code, ()) for code in codes or self._flows))

    def exchanges(self, column: str, *words: str) -> list[ExchangeRow]:
        """Returns the first exchanges with one of these words in a column (kind, outcome), without those of other legs."""
        return self.transfers.without_legs(rows_where(self.transfers, column, *words))

    @cached_property
    def silent_hosts(self) -> list[SilentHost]:
        """The hosts that left connection attempts without an answer, explained or not."""
        return silent_hosts_of(self)

    def once(self, compute: Callable[[Case], Result]) -> Result:
        """Returns what a function of the case computes, which several causes need."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        return cast("Result", self._results[compute])

    def release(self) -> None:
        """Frees what causes computed, which refers to the case."""
        self._results.clear()

    @cached_property
    def connections(self) -> Connections:
        """TCP connections, and how they ended."""
        return Connections(self.transfers)

    def flow(self, number: int) -> FlowRow:
        """Returns a flow."""
        return row_at(self.trace.flows, number)

    def direction(self, flow: int, direction: int) -> DirectionRow:
        """Returns one direction of a flow."""
        return row_at(self.trace.directions, 2 * flow + direction)
