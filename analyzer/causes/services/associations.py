# SPDX-License-Identifier: Apache-2.0
"""Associations of SCTP that an end aborts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import facts_of
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

SILENT = "no cause"
#: what an ABORT means by the chunk that it answers
STAGES = {
    "INIT": "in reply to INIT: nothing listens there, or it takes no client of that address",
    "COOKIE ECHO": "in reply to COOKIE ECHO, although it had answered the INIT: its application refuses it, or an older "
    "association "
    "of that client blocks the new one",
    "association": "after it was established",
}
ADVICE = {
    "INIT": "Check on {server} that the service listens on this port and address (`ss -lS`), and its list of peers.",
    "COOKIE ECHO": "Look at the log of the service on {server}, and at its associations with {client} "
    "(`/proc/net/sctp/assocs`, `ss -S`): "
    "one that is left over must go before a new one is accepted; restart the service if it stays.",
    "association": "Look at the logs of both ends at that time: the ABORT has the reason that {aborter} gives ({reason}).",
}


class Aborts(NamedTuple):
    """Associations of a client with a server that one of them aborted at one stage, for one reason."""

    client: str
    server: str
    stage: str
    reason: str
    by_client: bool

    @property
    def aborter(self) -> str:
        return self.client if self.by_client else self.server


def aborts_of(case: Case) -> tuple[dict[Aborts, list[ExchangeRow]], dict[tuple[str, str], int]]:
    """Returns the aborted associations, and how many each client had with each server."""
    groups: dict[Aborts, list[ExchangeRow]] = defaultdict(list)
    begun: dict[tuple[str, str], int] = defaultdict(int)
    for row in case.exchanges("kind", "sctp"):
        ends = row["client"] or "?", row["server"] or "?"
        begun[ends] += row["type"] != "association"
        if row["outcome"] in ("refused", "abandoned"):
            groups[Aborts(*ends, row["type"] or "", row["code"] or SILENT, row["outcome"] == "abandoned")].append(row)
    return groups, begun


@cause(
    code="association-aborted",
    title="SCTP associations are aborted",
    sentence="{aborter} aborts {count} {other} {stage}{reason}.",
    advice="{advice}",
    shows="An end sends the chunk ABORT: in reply to INIT or COOKIE ECHO, or in an association that stands. Its first cause "
    "is the "
    "reason (RFC 9260 section 3.3.10).",
    rivals={"filtered": "the peer itself answers", "host-down": "the peer answers"},
    unknown="Why, beyond the cause in the ABORT.",
)
def association_aborted(case: Case) -> Matches:
    groups, begun = aborts_of(case)
    for each, rows in groups.items():
        yield abort_match(case, each, rows, max(begun[each.client, each.server], len(rows)))


def abort_match(case: Case, each: Aborts, rows: Sequence[ExchangeRow], attempts: int) -> Match:
    """Returns the match of associations that one end aborts."""
    other = each.server if each.by_client else each.client
    facts = facts_of(case, rows, ())
    flows = sctp_flows(case, each.client, each.server)
    port = case.flow(flows[0])["destination_port"] if flows else None
    is_all = len(rows) == attempts
    return Match(
        certainty="proven",
        place="client" if each.by_client else "server",
        failed=len(rows),
        attempts=attempts,
        filter="sctp.chunk_type == 6",
        proof=f"{plural(len(rows), 'ABORT')} ({each.reason})",
        excluded={"filtered": "the peer itself answers", "host-down": "the peer answers"},
        aborter=endpoint_str(each.aborter, port) if port and not each.by_client else each.aborter,
        other=f"{'with' if each.by_client else 'of'} {other}",
        count=plural(len(rows), "SCTP association")
        if not is_all
        else f"all {plural(len(rows), 'SCTP association')}"
        if len(rows) > 1
        else "the SCTP association",
        stage=STAGES.get(each.stage, STAGES["association"]),
        reason="" if each.reason == SILENT else f' ("{each.reason}")',
        advice=ADVICE.get(each.stage, ADVICE["association"]).format(
            server=each.server, client=each.client, aborter=each.aborter, reason=each.reason
        ),
        **{**facts, "flows": flows},
    )


def sctp_flows(case: Case, client: str, server: str) -> list[int]:
    """Returns the flows of SCTP between two ends."""
    flows = case.trace.flows
    columns = (flows.column(name) for name in ("source", "destination", "protocol"))
    ends = {client, server}
    return [
        flow
        for flow, (a, b, protocol) in enumerate(zip(*columns, strict=True))
        if protocol == "sctp" and {a, b} == ends
    ]
