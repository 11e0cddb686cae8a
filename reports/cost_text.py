# SPDX-License-Identifier: Apache-2.0
"""What a finding costs, in words."""

from __future__ import annotations

from typing import Any

from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share


def cost_text(row: dict[str, Any]) -> str:
    """`1.23 s`, `4.5 MB`, `3 packets`; nothing for nothing."""
    cost, unit = row["cost"], row["cost_unit"]
    if not cost:
        return ""
    if unit == "seconds":
        return show_duration(cost * 1e9)
    if unit == "bytes":
        return show_bytes(cost)
    if unit == "percent":
        return show_share(cost, 100)
    return plural(round(cost), unit.removesuffix("s"))
