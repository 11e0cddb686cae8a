# SPDX-License-Identifier: Apache-2.0
"""Values of a plan as people write them, and tables that say where a wrong one stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from wiretale.analyzer.errors import UsageError

Value = TypeVar("Value")
Default = TypeVar("Default")
NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-zµ/]*)")
DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
DAY_SECONDS = 86_400.0


def split(value: object, expected: str) -> tuple[float, str]:
    """Number and unit of `10`, `1.5` or `"10 Mbit"`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), ""
    found = NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(expected)
    return float(found[1]), found[2]


def byte_count(value: object) -> int:
    """Bytes: 1472, "64k", "8MiB"."""
    expected = 'a whole number of bytes from 1, as 1472, "64k" or "8MiB", was expected'
    number, unit = split(value, expected)
    factor = {**DECIMAL, **BINARY}.get(unit.removesuffix("B"))
    if factor is None or not 1 <= number * factor < 2**63 or number * factor != int(number * factor):
        raise ValueError(expected)
    return int(number * factor)


def bit_rate(value: object) -> float | None:
    """Bits per second: "10M", "1.5Gbit", 64000; "max" for as fast as it goes."""
    if value == "max":
        return None
    expected = 'bits per second, as "10M", "1.5Gbit" or "max", were expected'
    number, unit = split(value, expected)
    factor = DECIMAL.get(re.sub(r"(bit|b|bps)(/s)?$", "", unit))
    if factor is None or not number > 0:
        raise ValueError(expected)
    return number * factor


def duration(value: object) -> float:
    """Seconds: 10, "200ms", "1m"."""
    expected = 'a time up to a day, as 10 (seconds), "200ms" or "1m", was expected'
    number, unit = split(value, expected)
    if unit not in SECONDS or not number * SECONDS[unit] <= DAY_SECONDS:
        raise ValueError(expected)
    return number * SECONDS[unit]


def long_duration(value: object) -> float:
    """More than no time."""
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError("a time over 0 was expected")
    return seconds


def whole(least: int, most: int) -> Callable[[object], int]:
    """A whole number within bounds."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most} was expected")
        return value

    return parse


def text(value: object) -> str:
    """Some text, in one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError("a line of text was expected")
    return value


def switch(value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false was expected")
    return value


def word(*words: str) -> Callable[[object], str]:
    """One of some words."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"one of {', '.join(words)} was expected")
        return value

    return parse


def several(parse: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    """One value, or a list of them."""

    def parse_all(value: object) -> tuple[Value, ...]:
        if isinstance(value, list) and not value:
            raise ValueError("at least one value was expected")
        return tuple(parse(one) for one in (value if isinstance(value, list) else [value]))

    return parse_all


class PlanTable:
    """A table of the file. Each key is taken once; what is left in the end is unknown."""

    def __init__(self, file: str, where: str, data: object) -> None:
        self.file, self.where = file, where
        if not isinstance(data, dict):
            raise UsageError(f"{file}: {where}: a table was expected")
        self.data: dict[str, Any] = dict(data)
        self.known: set[str] = set()

    def error(self, key: str, why: str) -> UsageError:
        """What is wrong with a key, and where it is."""
        return UsageError(f"{self.file}: {self.where}: {key}: {why}" if key else f"{self.file}: {self.where}: {why}")

    def take(self, key: str, parse: Callable[[object], Value], default: Default) -> Value | Default:
        """The value of a key. UsageError when it is none."""
        self.known.add(key)
        return self.need(key, parse) if key in self.data else default

    def need(self, key: str, parse: Callable[[object], Value]) -> Value:
        """The value of a key that has to be there."""
        self.known.add(key)
        if key not in self.data:
            raise self.error(key, "is missing")
        value = self.data.pop(key)
        try:
            return parse(value)
        except ValueError as error:
            raise self.error(key, f"{value!r}: {error}") from None

    def tables(self, key: str) -> list[PlanTable]:
        """The tables of an array of tables."""
        self.known.add(key)
        found = self.data.pop(key, [])
        if not isinstance(found, list):
            raise self.error(key, f"[[{key}]], with two brackets, was expected")
        inside = "" if self.where == "top" else f"{self.where}, "
        return [PlanTable(self.file, f"{inside}{key} {n}", one) for n, one in enumerate(found, start=1)]

    def table(self, key: str) -> PlanTable:
        """A table, empty where there is none."""
        self.known.add(key)
        return PlanTable(self.file, f"[{key}]", self.data.pop(key, {}))

    def end(self) -> None:
        """UsageError when keys are left."""
        for key in self.data:
            raise self.error(key, f"is unknown: there are {', '.join(sorted(self.known))}")
