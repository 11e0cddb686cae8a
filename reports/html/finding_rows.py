# SPDX-License-Identifier: Apache-2.0
"""The findings as the page needs them: texts, and the flow and time that "Show" chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.evidence import Evidence, evidence_of
from wiretale.analyzer.findings.model import row_at
from wiretale.reports.cut_commands import cut_of_finding, cut_start
from wiretale.reports.html.commands import page_words
from wiretale.reports.phrases import cost_text, evidence_text

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace

COLUMNS = ("code", "severity", "scope", "flow", "sentence", "advice", "filter")
MARKED_MOST = 20  # frames of a finding that are marked
FIRST_SHOWN = 10  # findings whose flows have their packets in the page before others


def since(base_ns: int, time_ns: int | None) -> float | None:
    """Returns seconds since the base of the page; None if the time is unknown."""
    return None if time_ns is None else (time_ns - base_ns) / 1e9


def finding_row(trace: Trace, row: FindingRow, evidence: Evidence, base_ns: int) -> dict[str, Any]:
    """Returns a row for the page. `cited_flow` is the flow that shows it, `whole` whether all of that flow does; `from` and `to`
    are the times of the evidence, whose first and last packet begin `frames`."""
    first, last = evidence.ends
    flow = None if evidence.flow is None else row_at(trace.flows, evidence.flow)
    frames = dict.fromkeys(packet["frame"] for packet in (*filter(None, (first, last)), *evidence.named[:MARKED_MOST]))
    return {
        **{name: value for name, value in row.items() if name in COLUMNS},
        "cited_flow": evidence.flow,
        "capture": first and first["capture"],
        "flows": list(dict.fromkeys(side["flow"] for side in evidence.flows)),
        "evidence": evidence_text(trace, row, evidence),
        "cost_text": cost_text(row),
        "frames": list(frames),
        "whole": flow is not None
        and [packet and packet["frame"] for packet in (first, last)] == [flow["first_frame"], flow["last_frame"]],
        "from": since(base_ns, row["first_ns"]),
        "to": since(base_ns, row["last_ns"]),
    }


def finding_rows(trace: Trace, base_ns: int, served: bool) -> list[dict[str, Any]]:
    """Returns all findings. The page and its links number them from 1 as the table does, and so `wiretale cut`."""
    start = cut_start(trace, page_words(trace._arguments, served))
    return [
        {**finding_row(trace, row, evidence, base_ns), "cut": cut_of_finding(trace, start, row["finding"], evidence)}
        for row, evidence in zip(trace.findings.rows(), evidence_of(trace), strict=True)
    ]


def cited_flows(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the flows that the first findings about flows show, then their other members."""
    first = [row for row in rows if row["scope"] != "capture"][:FIRST_SHOWN]
    cited = [row["cited_flow"] for row in first if row["cited_flow"] is not None]
    return list(dict.fromkeys(cited + [flow for row in first for flow in row["flows"]]))
