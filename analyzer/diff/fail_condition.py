# SPDX-License-Identifier: Apache-2.0
"""Conditions of --fail-if: `goodput<-5%`, `rtt_p99 > 20ms`. Those of one analysis are in trace_condition.py.

CONDITION  MEASURE OPERATOR VALUE
OPERATOR   < <= > >= = == !=
VALUE      a number with %: change relative to the first run; else the difference, in a unit of the measure
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from wiretale.analyzer.diff.difference import Change
from wiretale.analyzer.diff.measures import BYTES, COUNT, MEASURES, RATE, TIME, Measure, Unit
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import SIZE_UNITS, one_of, parse_bit_rate, parse_duration, scaled, show_change

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
HEAD = r"\s*([A-Za-z_][\w.-]*)\s*(<=|>=|==|!=|=|<|>)\s*"
GRAMMAR = re.compile(HEAD + r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s\d]*)\s*")


class Compared(Protocol):
    """Two runs, or a run and a baseline."""

    @property
    def changes(self) -> Sequence[Change]:
        """The changes of measures."""


@dataclass(frozen=True)
class Condition:
    """A condition on the change of one measure."""

    text: str
    measure: Measure
    compare: Callable[[float, float], bool]
    bound: float
    relative: bool

    def value(self, difference: Compared) -> float | None:
        """Returns the change in percent or in the measure's unit; None if unknown."""
        for change in difference.changes:
            if change.measure is self.measure:
                return change.percent if self.relative else change.difference
        return None

    def holds(self, difference: Compared) -> bool | None:
        """Returns whether the condition holds; None if the change is unknown."""
        value = self.value(difference)
        return None if value is None else self.compare(value, self.bound)

    @property
    def unit(self) -> str:
        """The unit of value()."""
        return "%" if self.relative else self.measure.unit.name

    def show(self, value: float) -> str:
        """Returns a value as text."""
        return show_change(value) if self.relative else self.measure.unit.show(value)

    @property
    def unknown(self) -> str:
        """Why value() can be unknown."""
        return f"{self.measure.name} is unknown in a run"


def parse_condition(text: str, measures: Mapping[str, Measure] = MEASURES, words: Iterable[str] = ()) -> Condition:
    """Parses a condition, which must be MEASURE OPERATOR VALUE. Else raises UsageError, which names the `words` that the
    caller takes instead."""
    matched = GRAMMAR.fullmatch(text)
    if not matched:
        raise UsageError(
            f"--fail-if {text!r}: expected MEASURE OPERATOR VALUE, as in 'goodput<-5%' or 'rtt_p99>20ms' "
            f"(operators: {' '.join(OPERATORS)}){''.join(f', or {word}' for word in words)}"
        )
    name, sign, number, unit = matched.groups()
    measure = measures.get(name.lower().replace("-", "_"))
    if measure is None:
        raise UsageError(f"--fail-if {text!r}: there is no measure {name!r} (expected {one_of(measures)})")
    if unit == "%":
        return Condition(text, measure, OPERATORS[sign], float(number), True)
    bound = value_in(measure.unit, number, unit)
    if bound is None:
        raise wrong_unit(text, unit, name, measure.unit, ("%",))
    return Condition(text, measure, OPERATORS[sign], bound, False)


def any_failed(conditions: Iterable[Condition], compared: Compared) -> bool:
    """Returns whether a condition holds, or its value is unknown: what was not checked has not passed."""
    return any(condition.holds(compared) is not False for condition in conditions)


def wrong_unit(text: str, unit: str, name: str, kind: Unit, more: Iterable[str] = ()) -> UsageError:
    """Returns the error of a unit that is not of the measure, or of a missing one."""
    units = one_of([*more, *filter(None, kind.factors)])
    hint = " (in bit/s, not bytes)" if kind is RATE else ""
    reason = f"{unit!r} is not a unit of {name}" if unit else f"{name} needs a unit"
    return UsageError(f"--fail-if {text!r}: {reason}: expected {units}{hint}")


def value_in(kind: Unit, number: str, unit: str) -> float | None:
    """Returns a number in the unit of the measure; None if `unit` is not of the same kind. A time needs one, unless it is 0."""
    if not unit and not float(number):
        return 0.0
    if unit in kind.factors:
        return float(number) * kind.factors[unit]
    spelled = f"1{unit}"
    factor: Decimal | int | None = None
    if kind is RATE:
        factor = parse_bit_rate(spelled)
    elif kind is TIME and unit:
        factor = parse_duration(spelled)
    elif kind in (BYTES, COUNT):
        factor = scaled(spelled, SIZE_UNITS if kind is BYTES else ("",))
    return float(number) * float(factor) if factor else None
