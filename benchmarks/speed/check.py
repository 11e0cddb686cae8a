# SPDX-License-Identifier: Apache-2.0
"""Bounds of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A bound that a measured value must not exceed, or must reach if `at_least` is set."""

    name: str
    measured: float
    bound: float
    unit: str = ""
    digits: int = 2
    at_least: bool = False

    @property
    def passed(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def __str__(self) -> str:
        measured, bound = (f"{value:,.{self.digits}f}" for value in (self.measured, self.bound))
        sign = ">=" if self.at_least else "<="
        return f"{'ok  ' if self.passed else 'FAIL'} {self.name}: {measured} ({sign} {bound}) {self.unit}".rstrip()


def print_checks(checks: Iterable[Check]) -> bool:
    """Prints the checks, and returns whether all passed."""
    checks = list(checks)
    print(*checks, sep="\n")
    return all(check.passed for check in checks)
