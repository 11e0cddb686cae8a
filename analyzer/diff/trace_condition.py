# SPDX-License-Identifier: Apache-2.0
"""Conditions of `analyze --fail-if` on one analysis: `lost>0`, `cause=policer`, `flow.rtt_p99>20ms`, `severity>=warning`.

MEASURE         a measure of `wiretale diff`, or of MORE: over all flows
flow.MEASURE    the same of any flow
cause.COST      what any cause cost (waited, failed, bytes); answer.COST: what the answer did
WORD            cause, answer, finding, severity, certainty, place: compared with a code or a word
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import CERTAINTIES
from wiretale.analyzer.diff.fail_condition import GRAMMAR, HEAD, OPERATORS, value_in, wrong_unit
from wiretale.analyzer.diff.measures import BYTES, COUNT, MEASURES, PERCENT, TIME, Measure, Values
from wiretale.analyzer.diff.run import FLOWS_MAX, load_trace
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import one_of

if TYPE_CHECKING:
    from wiretale.analyzer.diff.run import Run
    from wiretale.analyzer.trace import Trace

SEVERITIES = ("info", "warning", "error")
FAILURES = ("error", "refused", "reset", "closed", "unanswered")  # exchanges.outcome
LOSSES = ("lost_upstream", "lost_downstream", "blocks_lost")
TAKERS = ("server", "network", "client", "transfer")
LOST = Measure(
    "lost", COUNT, -1, "TCP segments lost before or after the capture point, and numbered packets or blocks lost"
)
#: beside those of `wiretale diff`
MORE = {
    measure.name: measure
    for measure in (
        LOST,
        Measure(
            "failed", COUNT, -1, "connections and requests refused, reset, closed, answered by an error or not at all"
        ),
        *(Measure(f"{taker}_time", TIME, -1, f"time that the {taker} took, over all requests") for taker in TAKERS),
    )
}
OF_TRACE = {**MEASURES, **MORE}
OF_FLOW = {
    LOST.name: LOST,
    **{name: MEASURES[name] for name in MEASURES if name not in ("flows", "findings", "host_dropped")},
}
COSTS = {
    measure.name: measure
    for measure in (
        Measure("waited", TIME, -1, "time in which somebody waited"),
        Measure("failed", COUNT, -1, "requests and connections that failed"),
        Measure("bytes", BYTES, -1, "bytes sent in vain"),
    )
}
SCOPES: dict[str, Mapping[str, Measure]] = {"": OF_TRACE, "flow": OF_FLOW, "cause": COSTS, "answer": COSTS}
#: words that have an order; the others are codes
ORDERED = {"severity": SEVERITIES, "certainty": CERTAINTIES[::-1]}
NO_PACKET = "there is no packet"
PLACES = ("client", "server", "device", "before", "after", "path", "capture")
WORDS = ("cause", "answer", "finding", "place", *ORDERED)
WORD_GRAMMAR = re.compile(HEAD + r"([A-Za-z][\w-]*)\s*")
EXAMPLES = "'lost>0', 'cause=policer', 'server_time>0.2s' or 'flow.rtt_p99>20ms'"


class Measured:
    """The values of one analysis; those that need SQL when they are asked for. Without a packet, all are unknown."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.is_empty = not trace.totals["packets"]

    @property
    def has_more_flows(self) -> bool:
        """Whether there are flows that `run` does not list."""
        return (self.run.total.get("flows") or 0) > len(self.run.parts)

    @cached_property
    def run(self) -> Run:
        """The measures of the flows that are judged."""
        return load_trace(self.trace, legs=False)

    @cached_property
    def total(self) -> Values:
        """The measures over all flows."""
        split = self.trace.transfers.turns.split._asdict()
        exchanges = self.trace.exchanges
        pairs = zip(exchanges.column("outcome"), exchanges.column("kind"), exchanges.column("flow"), strict=True)
        legs = self.trace.transfers.legs
        failed = sum(how in FAILURES and kind not in ("arp", "nd") and flow not in legs for how, kind, flow in pairs)
        times = {f"{taker}_time": split[taker] for taker in TAKERS}
        return with_losses({**self.run.total, "failed": float(failed), **times})

    def values(self, scope: str, name: str) -> list[float | None]:
        """Returns the values of a measure."""
        if self.is_empty:
            return []
        if scope == "flow":
            return [with_losses(part.values).get(name) for part in self.run.parts]
        column = "waited_ns" if name == "waited" else name
        if scope == "cause":
            return [float(cost or 0) for cost in self.trace.causes.column(column)] or [0.0]
        return [float(self.trace.answer.cost[column] or 0) if scope else self.total.get(name)]

    def words(self, name: str) -> list[str]:
        """Returns the codes or words of causes and findings."""
        causes, findings, answer = self.trace.causes, self.trace.findings, self.trace.answer
        if name == "answer":
            codes = [findings[number - 1]["code"] for number in answer.findings]
            return [answer.cause] if answer.cause else codes
        if name == "finding":
            return findings.column("code")
        if name == "cause":
            return causes.column("code")
        return [*causes.column(name), *(findings.column(name) if name == "severity" else ())]


def with_losses(values: Values) -> Values:
    """Adds the measure `lost`, which is unknown if each part of it is."""
    losses = [loss for name in LOSSES if (loss := values.get(name)) is not None]
    return {**values, LOST.name: sum(losses) if losses else None}


@dataclass(frozen=True)
class NumberCondition:
    """A condition on a measure."""

    text: str
    scope: str
    measure: Measure
    compare: Callable[[float, float], bool]
    bound: float

    def value(self, measured: Measured) -> float | None:
        """Returns the value that decides: of several the one that is nearest to failing; None if none is known."""
        numbers = [number for number in measured.values(self.scope, self.measure.name) if number is not None]
        if self.compare in (operator.gt, operator.ge):
            return max(numbers, default=None)
        if self.compare in (operator.lt, operator.le):
            return min(numbers, default=None)
        return next((number for number in numbers if self.compare(number, self.bound)), numbers[0] if numbers else None)

    def holds(self, measured: Measured) -> bool | None:
        """Returns whether the condition holds; None if the value is unknown, or if a flow that is not listed can decide."""
        value = self.value(measured)
        if value is None:
            return None
        return self.compare(value, self.bound) or (None if self.scope == "flow" and measured.has_more_flows else False)

    @property
    def unit(self) -> str:
        """The unit of value()."""
        return self.measure.unit.name

    def amount(self, measured: Measured) -> str:
        """Returns the value as text."""
        value = self.value(measured)
        return "" if value is None else self.measure.unit.show(value)

    def unknown(self, measured: Measured) -> str:
        """Returns why holds() is None."""
        if measured.is_empty:
            return NO_PACKET
        if self.scope != "flow":
            return f"{self.measure.name} is unknown"
        if self.value(measured) is None:
            return f"{self.measure.name} is unknown for every flow"
        return f"only the {FLOWS_MAX:,} largest flows were checked"


@dataclass(frozen=True)
class WordCondition:
    """A condition on codes or words."""

    text: str
    name: str
    compare: Callable[[float, float], bool]
    word: str
    unit = ""

    def value(self, measured: Measured) -> str | None:
        """Returns the codes or words of the analysis; None without a packet."""
        return None if measured.is_empty else ", ".join(dict.fromkeys(measured.words(self.name))) or "none"

    def holds(self, measured: Measured) -> bool | None:
        """Returns whether a word matches; for != whether none is the same. None without a packet."""
        if measured.is_empty:
            return None
        words, order = set(measured.words(self.name)), ORDERED.get(self.name)
        if self.compare is operator.ne:
            return self.word not in words
        if order is None or self.compare is operator.eq:
            return self.word in words
        return any(self.compare(order.index(word), order.index(self.word)) for word in words)

    def amount(self, measured: Measured) -> str:
        """Returns the value as text."""
        return self.value(measured) or ""

    def unknown(self, measured: Measured) -> str:
        """Returns why holds() is None."""
        return NO_PACKET


TraceCondition = NumberCondition | WordCondition


def parse_number(text: str, name: str, sign: str, number: str, unit: str) -> NumberCondition:
    """Returns a condition on a measure, whose name may have a scope before a dot."""
    scope, _, short = name.rpartition(".")
    measures = SCOPES.get(scope, {})
    if (measure := measures.get(short)) is None:
        expected = one_of([*measures, *(WORDS if not scope else ())] or [f"{prefix}.…" for prefix in SCOPES if prefix])
        raise UsageError(f"--fail-if {text!r}: there is no measure {name!r} (expected {expected})")
    bound = value_in(measure.unit, number, "" if unit == "%" and measure.unit is PERCENT else unit)
    if bound is None:
        raise wrong_unit(text, unit, name, measure.unit)
    return NumberCondition(text, scope, measure, OPERATORS[sign], bound)


def parse_word(text: str, name: str, sign: str, word: str) -> WordCondition:
    """Returns a condition on a code or word, which must exist."""
    from wiretale.analyzer.causes.registry import CAUSES
    from wiretale.analyzer.findings.registry import RULES

    codes: dict[str, Iterable[str]] = {"cause": CAUSES, "finding": RULES, "answer": [*CAUSES, *RULES], "place": PLACES}
    words = list(codes.get(name, ORDERED.get(name, ())))
    if not words:
        raise UsageError(f"--fail-if {text!r}: {name!r} is compared with a number (with a word: {one_of(WORDS)})")
    if name not in ORDERED and sign not in ("=", "==", "!="):
        raise UsageError(f"--fail-if {text!r}: {name} has no order: expected =, or !=")
    if word not in words:
        expected = one_of(words) if len(words) < 9 else "a code of `wiretale analyze --list`"
        raise UsageError(f"--fail-if {text!r}: there is no {name} {word!r} (expected {expected})")
    return WordCondition(text, name, OPERATORS[sign], word)


def parse_condition(text: str) -> TraceCondition:
    """Parses a condition on one analysis. Raises UsageError if it is none."""
    if matched := GRAMMAR.fullmatch(text):
        name, sign, number, unit = matched.groups()
        return parse_number(text, name.lower().replace("-", "_"), sign, number, unit)
    if matched := WORD_GRAMMAR.fullmatch(text):
        return parse_word(text, *matched.groups())
    raise UsageError(f"--fail-if {text!r}: expected MEASURE OPERATOR VALUE, as in {EXAMPLES}")


@dataclass(frozen=True)
class Checks:
    """What came of conditions on one analysis.

    >>> import wiretale
    >>> checks = wiretale.check("sample_pcaps/tcp_losses.pcap", "lost>0", "cause=policer", "server_time>0.2s")
    >>> checks.failed
    ['lost>0']
    """

    measured: Measured
    conditions: Sequence[TraceCondition]

    @property
    def failed(self) -> list[str]:
        """The conditions that hold: what fails."""
        return [condition.text for condition in self.conditions if condition.holds(self.measured)]

    @property
    def undetermined(self) -> list[str]:
        """The conditions on values that are unknown, such as round trips of a capture without any."""
        return [condition.text for condition in self.conditions if condition.holds(self.measured) is None]

    @property
    def passed(self) -> bool:
        """Whether no condition holds, and none is undetermined: what was not checked has not passed."""
        return all(condition.holds(self.measured) is False for condition in self.conditions)

    def as_dict(self) -> dict[str, object]:
        """Returns the members `conditions` and `failed` of `wiretale analyze --json`."""
        entries = [
            {
                "condition": condition.text,
                "value": condition.value(self.measured),
                "unit": condition.unit,
                "holds": condition.holds(self.measured),
            }
            for condition in self.conditions
        ]
        return {"conditions": entries, "failed": not self.passed}

    def lines(self) -> Iterable[tuple[bool | None, str]]:
        """Yields for each condition whether it holds, and its line: `lost>0: FAILED (2)`."""
        for condition in self.conditions:
            holds = condition.holds(self.measured)
            if holds is None:
                yield None, f"{condition.text}: undetermined, {condition.unknown(self.measured)}"
            else:
                yield holds, f"{condition.text}: {'FAILED' if holds else 'passed'} ({condition.amount(self.measured)})"

    def __str__(self) -> str:
        return "\n".join(line for _, line in self.lines())


def check_trace(trace: Trace, conditions: Sequence[TraceCondition]) -> Checks:
    """Returns what came of conditions on an analysis."""
    return Checks(Measured(trace), conditions)
