# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of analyze() and Trace.packets(). Each function raises UsageError if its argument is invalid."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from pathlib import Path

from wiretale.analyzer.errors import UsageError

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    Flows = int | Iterable[int] | None
    Time = int | str | datetime | None
else:
    Flows = Time = object

ROWS_MAX = 2**63 - 1


def flow_numbers(flows: Flows, count: int) -> list[int]:
    """Returns flow numbers below `count`; all of them for None."""
    if flows is None:
        return list(range(count))
    try:
        numbers = [operator.index(one) for one in ([flows] if isinstance(flows, int) else flows)]
    except TypeError:
        raise UsageError(f"flows {flows!r}: expected a flow number, several of them, or None for all") from None
    for number in numbers:
        if not 0 <= number < count:
            held = f"from 0 to {count - 1:,}" if count else "but there are none"
            raise UsageError(f"flow {number:,}: expected a number of the flows table, {held}")
    return numbers


def row_limit(most: int) -> int:
    """Returns a number of rows."""
    try:
        limit = operator.index(most)
    except TypeError:
        raise UsageError(f"most {most!r}: expected a number of rows") from None
    if not 0 <= limit <= ROWS_MAX:
        raise UsageError(f"most {limit}: expected a number of rows, 0 or more")
    return limit


def filter_text(filter: object) -> str | None:
    """Returns a capture filter, or None."""
    if filter is not None and not isinstance(filter, str):
        raise UsageError(f"filter {filter!r}: expected a text as 'tcp port 443', or None")
    return filter


def number_within(name: str, value: Any, least: int, most: int, unit: str = "") -> int:
    """Returns an integer within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} {value!r}: expected a whole number from {least} to {most:,}{unit}") from None
    if not least <= number <= most:
        raise UsageError(f"{name} {number}: expected {least} to {most:,}{unit}")
    return number


def output_path(path: str | os.PathLike[str]) -> Path:
    """Returns the path of an output."""
    try:
        return Path(path)
    except TypeError:
        raise UsageError(f"{path!r}: expected a path to write to") from None


def link_rate(rate: float | str | None) -> int | None:
    """Returns the bit/s of a link given as number or text."""
    if isinstance(rate, str):
        from wiretale.analyzer.units import parse_rate

        return parse_rate(rate)
    if rate is None:
        return None
    if not isinstance(rate, (int, float)) or not 1 <= rate < 2**63:
        raise UsageError(f"link rate {rate!r}: expected bit/s, or a text as '1G'")
    return int(rate)


def other_time_ns(time: Any) -> int:
    """Returns the ns of a datetime (UTC without a zone; pandas' have nanoseconds), or of a type with __index__."""
    from datetime import UTC, datetime, timedelta

    if isinstance(time, datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
        microseconds = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return int(microseconds) * 1000 + int(getattr(time, "nanosecond", 0))
    if type(time).__module__ == "numpy" and hasattr(time, "astype"):  # datetime64
        time = time.astype("datetime64[ns]").astype("int64").item()
    try:
        return operator.index(time)
    except TypeError:
        raise UsageError(
            f"time {time!r}: expected ns since the epoch, a text as '2026-01-15T12:00:00Z' or a datetime"
        ) from None


def time_ns(time: Time) -> int | None:
    """Returns the ns of a time given as ns, text or datetime; it must fit into int64."""
    if time is None:
        return None
    if isinstance(time, str):
        from wiretale.analyzer.time import parse_time

        ns = parse_time(time)
    elif isinstance(time, int):
        ns = time
    else:
        ns = other_time_ns(time)
    if not -(2**63) <= ns < 2**63:
        raise UsageError(f"time {time}: expected one between the years 1678 and 2262")
    return ns


def check_range(start_ns: int | None, end_ns: int | None) -> None:
    """Raises UsageError if the start is not before the end."""
    if start_ns is not None and end_ns is not None and start_ns >= end_ns:
        from wiretale.analyzer.time import show_time

        raise UsageError(f"start {show_time(start_ns)}: expected a time before end {show_time(end_ns)}")
