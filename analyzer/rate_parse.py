# SPDX-License-Identifier: Apache-2.0
"""Rates and sizes as people write them: `1G`, `1.5Gbit`, `100Mbit/s`; `8192`, `64KiB`, `9kB`."""

from __future__ import annotations

import re
from decimal import Decimal

from wiretale.analyzer.errors import UsageError

NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z/]*)", re.ASCII)
DECIMAL = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
BINARY = {"ki": 1024, "mi": 1024**2, "gi": 1024**3}
RATE_UNITS = ("", "bit", "bits", "bit/s", "bits/s", "b/s", "bps")
SIZE_UNITS = ("", "b", "byte", "bytes")
DIGITS_MOST = 20


def scaled(text: str, units: tuple[str, ...]) -> Decimal | None:
    """The number times its prefix; None for what is no number with one of these units."""
    match = NUMBER.fullmatch(text.strip()) if len(text) <= DIGITS_MOST + 10 else None
    if not match:
        return None
    suffix = match[2].lower()
    for prefix, factor in (*BINARY.items(), *DECIMAL.items()):
        if suffix.startswith(prefix) and suffix.removeprefix(prefix) in units:
            return Decimal(match[1]) * factor
    return None


def whole(text: str, units: tuple[str, ...], what: str, most: int) -> int:
    """A whole number from 1 to `most`. UsageError for another."""
    value = scaled(text, units)
    if value is None or value != int(value) or not 0 < value <= most:
        raise UsageError(f"{text!r} is no {what}")
    return int(value)


def parse_rate(text: str) -> int:
    """bit/s of `1G`, `1.5Gbit`, `100Mbit/s`, `10M`; prefixes are powers of 1000. UsageError for anything else."""
    return whole(text, RATE_UNITS, "rate such as 100M, 1G or 2.5Gbit (bit/s, up to 100T)", 10**14)


def parse_size(text: str) -> int:
    """Bytes of `8192`, `9k` (9000), `64KiB` (65536). UsageError for anything else."""
    return whole(text, SIZE_UNITS, "size such as 8192, 9k or 64KiB (bytes, up to 1 GiB)", 2**30)
