# SPDX-License-Identifier: Apache-2.0
"""What the tracer recorded about its own link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.captured.missing import missed_share
from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.tracer import carrier_rows, carrier_str, time_str

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case


@cause(
    code="carrier-lost",
    title="The tracer's own link was down",
    sentence="The tracer's own link ({interface}) was down{down}{at}, so packets of that time are missing: what seems lost or "
    "silent then may have passed.",
    advice="Check the cable and the port of the tracer, and whether the mirror session was set up again then.",
    shows="wiretale-capture recorded that the interface had no carrier (interfaces.carrier_lost_ns), between the first packet "
    "and the last.",
    rivals={
        "outage": "the tracer's own link had no carrier",
        "capture-drops": "drops have counters, and the link stays up",
    },
    unknown="What passed meanwhile. Tracers of other programs record nothing of it.",
)
def carrier_lost(case: Case) -> Matches:
    findings = case.findings("carrier-lost")
    if findings:
        row = carrier_rows(case.transfers)[0]
        yield Match(
            certainty="proven",
            place="capture",
            findings=[*findings, *case.findings("capture-missed")],
            unjudged=missed_share(case) or None,
            proof="the tracer recorded it",
            excluded={"outage": "the tracer recorded that its own link had no carrier"},
            interface=row["name"] or f"interface {row['interface']}",
            down=carrier_str(row),
            at=time_str(case.transfers, row["carrier_lost_ns"]),
        )
