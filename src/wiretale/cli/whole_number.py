# SPDX-License-Identifier: Apache-2.0
"""Whole numbers and sizes as options take them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

MOST = 2**31 - 1
PORTS = range(1, 65536)


def port_number(text: str) -> int:
    """A port: digits only, because 8k is none."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) not in PORTS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {PORTS[0]} to {PORTS[-1]}")
    return int(text)


def whole_number(least: int, most: int = MOST) -> Callable[[str], int]:
    """An option's type: `1000`, `10k`, from `least` to `most`; the error has the latter unless it is the usual one."""
    bounds = f"from {least}" if most == MOST else f"from {least} to {most}"

    def parse(text: str) -> int:
        from wiretale.analyzer.units import parse_count

        count = parse_count(text)
        if count is None or not least <= count <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number {bounds}")
        return count

    return parse


def size(least: int, most: int) -> Callable[[str], int]:
    """An option's type: bytes, as `8192`, `9k` or `64KiB`."""

    def parse(text: str) -> int:
        from wiretale.analyzer.units import parse_bytes

        count = parse_bytes(text)
        if count is None or not least <= count <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {least} to {most:,} bytes, as 8192, 9k or 64KiB")
        return count

    return parse
