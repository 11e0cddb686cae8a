# SPDX-License-Identifier: Apache-2.0
"""Times as text and as nanoseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from wiretale.analyzer.errors import UsageError

NS = 1_000_000_000
EPOCH = re.compile(r"(-?\d{1,10})(?:\.(\d{1,9}))?")
FRACTION = re.compile(r"[.,](\d{1,9})(?=$|Z|[+-]\d\d:?\d\d$)")


def parse_time(text: str) -> int:
    """Returns the ns of `2026-01-15T12:00:00.25Z`, `2026-01-15 13:00+01:00` or seconds since the epoch, `1768478400.25`.

    A time without a zone is UTC. Raises UsageError if the text, which must be one of these, is not.
    """
    seconds = EPOCH.fullmatch(text)
    if seconds:
        integer, fraction = seconds.groups()
        ns = int((fraction or "").ljust(9, "0"))
        return int(integer) * NS + (-ns if integer.startswith("-") else ns)
    fraction_found = FRACTION.search(text)
    plain = FRACTION.sub("", text) if fraction_found else text
    try:
        time = datetime.fromisoformat(plain)
    except ValueError:
        raise UsageError(
            f"time {text!r}: expected an ISO 8601 time as 2026-01-15T12:00:00.25Z, or seconds since the epoch"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    ns = int(fraction_found[1].ljust(9, "0")) if fraction_found else 0
    return (since.days * 86_400 + since.seconds) * NS + ns


def show_time(ns: int) -> str:
    """`2026-01-15 12:00:00.250000000Z`: ISO 8601, UTC, to the nanosecond; plain seconds outside years 1 to 9999."""
    try:
        moment = datetime.fromtimestamp(ns // NS, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ns // NS}.{ns % NS:09d} s"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ns % NS:09d}Z"


def empty_range(packets: int, first_ns: int, last_ns: int, start_ns: int | None, end_ns: int | None) -> str:
    """Describes the time span of a capture, all packets of which are before the start or after the end."""
    if start_ns is not None and last_ns < start_ns:
        place = f"before --start {show_time(start_ns)}"
    elif end_ns is not None and first_ns >= end_ns:
        place = f"at or after --end {show_time(end_ns)}"
    else:
        place = "outside --start and --end"
    many = f"all {packets:,} packets are" if packets > 1 else "the only packet is"
    return f"{many} {place}: the capture spans {show_time(first_ns)} to {show_time(last_ns)}"
