# SPDX-License-Identifier: Apache-2.0
"""Whole numbers as options take them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

MOST = 2**31 - 1


def whole_number(least: int, most: int = MOST) -> Callable[[str], int]:
    """An option's type: from `least` to `most`; the latter is said only where it is not the usual."""
    bounds = f"from {least}" if most == MOST else f"from {least} to {most}"

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number {bounds} was expected")
        return int(text)

    return parse
