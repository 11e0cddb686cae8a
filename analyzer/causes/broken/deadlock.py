# SPDX-License-Identifier: Apache-2.0
"""Two programs that each send without reading, until both receive windows are full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import parts_str
from wiretale.analyzer.findings.model import duration_of, endpoint_str
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import DirectionRow

BOTH_NS, BOTH_SHARE = 5_000_000_000, 0.5  # in which both were full; the same of the life of the flow
CODES = ("zero-window", "receive-window-limited", "window-full", "timeout-stalls")


def full_ns(row: DirectionRow) -> int:
    """Returns the time in which a receiver had no room for a segment, ns."""
    return max(row["zero_window_ns"] or 0, row["low_window_ns"] or 0)


def suspects(case: Case) -> dict[int, list[Numbered]]:
    """Returns the flows with findings about full windows, and these findings."""
    flows: dict[int, list[Numbered]] = {}
    for each in case.findings(*CODES):
        for flow in {flow for flow, _ in each.finding.flows} - case.transfers.legs:
            flows.setdefault(flow, []).append(each)
    return flows


@cause(
    code="both-blocked",
    title="Both ends send and neither reads",
    sentence="{first} and {second} block each other: each waits until the other reads, and both receive windows were full for "
    "{blocked}. {first} stopped reading first.",
    advice="Let the program on {first} read while it sends: a second thread, or non-blocking I/O with `poll`. Larger "
    "buffers only move the limit.",
    shows="Both receivers of a connection had no room for a segment at the same time, for 5 s and at least half of its life. "
    "Both had sent data. The one whose window was full for longer stopped reading first.",
    rivals={
        "zero-window": "the other end, too, has data that it cannot send",
        "hung-server": "it answers, until the client's window is full",
    },
    unknown="Which of both programs should read.",
    explains=(
        *("zero-window", "receive-window-limited", "window-full", "timeout-stalls", "suspected-timeout"),
        *(
            "retransmission-unlocated",
            "recovery-limited",
            "sender-idle",
            "request-unanswered",
            "reset",
        ),
    ),
)
def both_blocked(case: Case) -> Matches:
    for flow, findings in suspects(case).items():
        sides, life_ns = (case.direction(flow, 0), case.direction(flow, 1)), duration_of(case.flow(flow)) or 0
        full, later = sorted(sides, key=full_ns, reverse=True)
        both_ns = full_ns(full) + full_ns(later) - life_ns
        if both_ns < max(BOTH_NS, BOTH_SHARE * life_ns) or not all(row["unique_bytes"] for row in sides):
            continue
        yield Match(
            certainty="proven",
            place="client" if full["direction"] == case.flow(flow)["client"] else "server",
            findings=findings,
            flows=[(flow, 0), (flow, 1)],
            failed=1,
            attempts=1,
            waited_ns=full_ns(later),
            proof=f"{windows_str(full)}, {windows_str(later)}",
            excluded={
                "zero-window": f"its window was full {show_duration(full_ns(full) - full_ns(later))} before the other one",
                "hung-server": f"it sent {show_bytes(later['unique_bytes'] or 0)} before",
            },
            first=endpoint_str(full["source"], full["source_port"]),
            second=endpoint_str(later["source"], later["source_port"]),
            blocked=parts_str(full_ns(later), life_ns),
        )


def windows_str(row: DirectionRow) -> str:
    """Returns how often a receiver said that its window was full."""
    return f"{plural(row['zero_windows'] or 0, 'segment')} of {row['source']} with a window of 0"
