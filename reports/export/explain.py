# SPDX-License-Identifier: Apache-2.0
"""What limited each transfer, and every finding by rank, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.catalogue import Page
from wiretale.analyzer.findings.explain import Explained, left_out

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SCHEMA = "wiretale.explain/1"
FIELDS = ("code", "severity", "scope", "flow", "sentence", "cost", "cost_unit", "evidence", "advice", "filter")
Row = dict[str, Any]


def short_name(column: str) -> str:
    """`window` of `limit_window_ns`."""
    return column.removeprefix("limit_").removesuffix("_ns")


def transfer_object(one: Explained) -> Row:
    """A transfer with its headline and the shares of its time."""
    row = one.transfer.row
    whole = one.transfer.parted_ns
    return {
        "flow": row["flow"],
        "direction": row["direction"],
        "name": one.transfer.name,
        "protocol": one.transfer.flow["protocol"],
        "application": one.transfer.flow["application"],
        "headline": one.headline,
        "minor": one.transfer.minor,
        "limited_by": short_name(one.limited_by) if one.limited_by else None,
        "share": one.share,
        "parted_seconds": whole / 1e9 if one.transfer.limits else None,
        "limits": {
            short_name(name): {"seconds": ns / 1e9, "share": ns / whole if whole else 0.0}
            for name, ns in one.transfer.limits.items()
        },
        "goodput_bps": row["goodput_bps"],
        "maximum_bps": one.maximum_bps,
    }


def page_object(page: Page, version: str) -> Row:
    """One page of the catalogue."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "code": page.code,
        "title": page.title,
        "computed": page.computed,
        "unknown": page.unknown,
        "weakens": page.weakens,
    }


def explain_object(trace: Trace, transfers: Sequence[Explained], found: Sequence[Row], version: str) -> Row:
    """All that `wiretale explain --json` tells."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "inputs": trace.inputs,
        "transfers": [transfer_object(one) for one in transfers],
        "transfers_left_out": left_out(trace),
        "findings": [{"rank": i, **{name: row[name] for name in FIELDS}} for i, row in enumerate(found, start=1)],
    }
