# SPDX-License-Identifier: Apache-2.0
"""Rates and sizes of options, within their bounds."""

from __future__ import annotations

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.quantity import parse_bit_rate, parse_bytes, whole

RATE_MOST, SIZE_MOST = 10**14, 2**30


def parse_rate(text: str) -> int:
    """bit/s of `1G`, `1.5Gbit`, `100Mbit/s`, `10M`; prefixes are powers of 1000. UsageError for anything else."""
    rate = whole(parse_bit_rate(text))
    if rate is None or not 0 < rate <= RATE_MOST:
        raise UsageError(
            f"invalid rate {text!r}: expected 100M, 1G or 2.5Gbit, up to 100T (bit/s; bytes are not taken)"
        )
    return rate


def parse_size(text: str) -> int:
    """Bytes of `8192`, `9k` (9000), `64KiB` (65536). UsageError for anything else."""
    size = parse_bytes(text)
    if size is None or not 0 < size <= SIZE_MOST:
        raise UsageError(f"invalid size {text!r}: expected 8192, 9k or 64KiB, up to 1GiB (bytes)")
    return size
