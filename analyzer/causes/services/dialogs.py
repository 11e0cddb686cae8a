# SPDX-License-Identifier: Apache-2.0
"""What the causes of this family share: flows of the exchanges of a service, and the facts of a match about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of, waits_of

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

FLOWS_MAX = 200


def flows_of(case: Case, rows: Iterable[ExchangeRow], ports: Collection[int]) -> list[int]:
    """Returns the first flows between the ends of these exchanges at one of these ports."""
    ends = {frozenset((row["client"], row["server"])) for row in rows}
    flows = case.trace.flows
    columns = (flows.column(name) for name in ("source", "destination", "source_port", "destination_port"))
    numbers = [
        number
        for number, (source, target, *pair) in enumerate(zip(*columns, strict=True))
        if frozenset((source, target)) in ends and (pair[0] in ports or pair[1] in ports)
    ]
    return numbers[:FLOWS_MAX]


def by_ends(case: Case, message: str) -> dict[tuple[str, str, str], list[ExchangeRow]]:
    """Returns what an end says by itself, as bgp.c and http2.c read it, by that end, the other one, and its words."""
    groups: dict[tuple[str, str, str], list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["type"] == message:
            groups[row["server"] or "?", row["client"] or "?", row["code"] or ""].append(row)
    return groups


def hellos_in_words(case: Case) -> dict[int, ExchangeRow]:
    """Returns the refusals that answer the ClientHello of a connection, by flow: a service of lines takes it for a command."""
    unnamed = [row for row in case.exchanges("kind", "service") if row["outcome"] == "refused" and not row["name"]]
    if not unnamed:
        return {}
    hellos: dict[tuple[str | None, ...], list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "tls"):
        hellos[row["client"], row["server"]].append(row)
    return {
        hello["flow"]: row
        for row in unnamed
        for hello in hellos[row["client"], row["server"]]
        if hello["flow"] is not None and is_within(row, hello)
    }


def is_within(row: ExchangeRow, message: ExchangeRow) -> bool:
    """Returns whether the packet of a refusal is among those of an answer in the same file."""
    first, frame, last = message["answered_frame"], row["answered_frame"], message["last_frame"]
    if first is None or frame is None or last is None:
        return False
    return message["capture"] == row["capture"] and first <= frame <= last


def facts_of(case: Case, rows: Sequence[ExchangeRow], ports: Collection[int]) -> dict[str, Any]:
    """Returns the members of a Match that these exchanges give: flows, packets, and the time in which somebody waited."""
    return {
        "flows": flows_of(case, rows, ports),
        "frames": packets_of(rows),
        "packets": sum(row["attempts"] for row in rows),
        "waited_ns": union_ns(waits_of(rows)),
    }
