# SPDX-License-Identifier: Apache-2.0
"""Parsers of the values in plans and profiles, and tables that report the position of a wrong value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar, cast

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import one_of, parse_bit_rate, parse_bytes, parse_count, parse_duration

Value = TypeVar("Value")
Default = TypeVar("Default")
DAY_NS = 86_400 * 10**9
PORT_MOST = 65_535


def byte_count(value: object) -> int:
    """Returns bytes from 1472, "64k" or "8MiB"."""
    count = parse_bytes(spelled(value))
    if not count:
        raise ValueError('expected a whole number of bytes from 1, such as 1472, "64k" or "8MiB"')
    return count


def bit_rate(value: object) -> float | None:
    """Returns bit/s from "10M", "1.5Gbit" or 64000; None from "max", which has no limit."""
    if value == "max":
        return None
    rate = parse_bit_rate(spelled(value))
    if not rate or not math.isfinite(float(rate)):
        raise ValueError('expected bits per second, such as "10M", "1.5Gbit" or "max"')
    return float(rate)


def duration(value: object) -> float:
    """Returns seconds from 10, "200ms" or "1m"."""
    ns = parse_duration(spelled(value))
    if ns is None or ns > DAY_NS:
        raise ValueError('expected a time up to a day, such as 10 (seconds), "200ms" or "1m"')
    return ns / 1e9


def spelled(value: object) -> str:
    """Returns a number or text as text; empty for any other type."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return ""
    return str(value)


def long_duration(value: object) -> float:
    """Returns seconds, which must be more than 0."""
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError("expected a time over 0")
    return seconds


def checked(is_right: Callable[[Any], object], expected: str) -> Callable[[object], Any]:
    """Returns a parser of values that need no conversion."""

    def parse(value: object) -> Any:
        if not is_right(value):
            raise ValueError(f"expected {expected}")
        return value

    return parse


def plain(least: int, most: int) -> Callable[[object], int]:
    """Returns a parser of integers within bounds, without text such as "10k"."""
    return checked(
        lambda value: type(value) is int and least <= value <= most, f"a whole number from {least} to {most}"
    )


def integer(least: int, most: int) -> Callable[[object], int]:
    """Returns a parser of whole numbers within bounds, also spelled as "10k"."""
    parse = plain(least, most)
    return lambda value: parse(parse_count(value) if isinstance(value, str) else value)


def real(least: float, most: float) -> Callable[[object], float]:
    """Returns a parser of finite numbers within bounds."""
    expected = f"a number from {least:g} to {most:g}"
    return checked(lambda value: type(value) in (int, float) and least <= value <= most, expected)


def word(*words: str) -> Callable[[object], str]:
    """Returns a parser of one of these words."""
    return checked(lambda value: isinstance(value, str) and value in words, f"one of {', '.join(words)}")


port = checked(lambda value: type(value) is int and 1 <= value <= PORT_MOST, f"1 to {PORT_MOST}")
text = checked(lambda value: isinstance(value, str) and value.strip() and value.isprintable(), "a line of text")
switch = checked(lambda value: isinstance(value, bool), "true or false")


def several(parse: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    """Returns a parser of one value or a list."""

    def parse_all(value: object) -> tuple[Value, ...]:
        if isinstance(value, list) and not value:
            raise ValueError("expected at least one value")
        return tuple(parse(item) for item in (value if isinstance(value, list) else [value]))

    return parse_all


def key(parse: Callable[[object], Any], default: Any = MISSING) -> Any:
    """Returns a field of a dataclass that PlanTable.fill() reads; without a default, the key is required."""
    return field(default=default, metadata={"parse": parse})


class PlanTable:
    """A table of the file; `where` is "" for the keys before the first table. Each key is removed once it is read: keys that are
    left at the end are unknown.
    """

    def __init__(self, file: str, where: str, data: object) -> None:
        self.file, self.where = file, where
        if not isinstance(data, dict):
            raise UsageError(f"{file}: {where}: expected a table")
        self.data: dict[str, Any] = dict(data)
        self.known_keys: set[str] = set()

    def error(self, key: str, why: str) -> UsageError:
        """Returns an error with the position of a key."""
        return UsageError(": ".join(part for part in (self.file, self.where, key, why) if part))

    def take(self, key: str, parse: Callable[[object], Value], default: Default) -> Value | Default:
        """Returns the value of a key, or the default if it is missing. UsageError if it is invalid."""
        self.known_keys.add(key)
        return self.need(key, parse) if key in self.data else default

    def need(self, key: str, parse: Callable[[object], Value]) -> Value:
        """Returns the value of a required key."""
        self.known_keys.add(key)
        if key not in self.data:
            raise self.error(key, "is missing")
        value = self.data.pop(key)
        try:
            return parse(value)
        except UsageError:  # is a ValueError, but names its key
            raise
        except ValueError as error:
            raise self.error(key, f"{value!r}: {error}") from None

    def values(self, kind: Callable[..., Any]) -> dict[str, Any]:
        """Returns the values of a dataclass's fields that key() made, from the keys of their names."""
        parsed = {}
        for field_of_kind in fields(cast(Any, kind)):
            if parse := field_of_kind.metadata.get("parse"):
                required = field_of_kind.default is MISSING
                parsed[field_of_kind.name] = (
                    self.need(field_of_kind.name, parse)
                    if required
                    else self.take(field_of_kind.name, parse, field_of_kind.default)
                )
        return parsed

    def fill(self, kind: Callable[..., Value], **settings: Any) -> Value:
        """Returns a dataclass: `given`, and values(). No key must be left."""
        filled = kind(**settings, **self.values(kind))
        self.end()
        return filled

    def tables(self, key: str) -> list[PlanTable]:
        """Returns the tables of an array of tables."""
        self.known_keys.add(key)
        entries = self.data.pop(key, [])
        if not isinstance(entries, list):
            raise self.error(key, f"expected [[{key}]], with two brackets")
        inside = f"{self.where}, " if self.where else ""
        return [PlanTable(self.file, f"{inside}{key} {n}", entry) for n, entry in enumerate(entries, start=1)]

    def table(self, key: str) -> PlanTable:
        """Returns a table, which is empty if the key is missing."""
        self.known_keys.add(key)
        return PlanTable(self.file, f"[{key}]", self.data.pop(key, {}))

    def end(self) -> None:
        """Raises UsageError if keys are left."""
        for key in self.data:
            raise self.error(key, f"unknown key: expected {one_of(sorted(self.known_keys))}")
