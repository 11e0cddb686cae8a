# SPDX-License-Identifier: Apache-2.0
"""When a change is too much: `goodput<-5%`, `rtt_p99 > 20ms`.

CONDITION  MEASURE OPERATOR VALUE
OPERATOR   < <= > >= == !=
VALUE      a number with %: of the first run's value; else the difference itself, with a unit of the measure or none
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.run_diff import Difference
from wiretale.analyzer.run_measures import MEASURES, Measure

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
GRAMMAR = re.compile(
    r"\s*([A-Za-z_][\w-]*)\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s\d]*)\s*"
)


@dataclass(frozen=True)
class Condition:
    """One of them."""

    text: str
    measure: Measure
    compare: Callable[[float, float], bool]
    bound: float
    relative: bool

    def value(self, difference: Difference) -> float | None:
        """The change that is compared: in percent, or in the measure's unit. None when it cannot be known."""
        for change in difference.changes:
            if change.measure is self.measure:
                return change.percent if self.relative else change.difference
        return None

    def holds(self, difference: Difference) -> bool | None:
        """Whether the change is too much; None when it cannot be known."""
        value = self.value(difference)
        return None if value is None else self.compare(value, self.bound)


def parse_condition(text: str) -> Condition:
    """A condition from its text. UsageError that tells what was expected."""
    found = GRAMMAR.fullmatch(text)
    if not found:
        raise UsageError(
            f"--fail-if {text!r}: MEASURE OPERATOR VALUE was expected, as in 'goodput<-5%' or 'rtt_p99>20ms' "
            f"(operators: {' '.join(OPERATORS)})"
        )
    name, sign, number, unit = found.groups()
    measure = MEASURES.get(name.lower().replace("-", "_"))
    if measure is None:
        raise UsageError(f"--fail-if {text!r}: no measure {name!r}: there are {', '.join(MEASURES)}")
    if unit == "%":
        return Condition(text, measure, OPERATORS[sign], float(number), True)
    if unit not in measure.unit.factors:
        units = ", ".join(filter(None, measure.unit.factors)) or "none"
        raise UsageError(f"--fail-if {text!r}: {unit!r} is no unit of {name}: % or {units} were expected")
    return Condition(text, measure, OPERATORS[sign], float(number) * measure.unit.factors[unit], False)
