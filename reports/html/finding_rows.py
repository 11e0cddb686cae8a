# SPDX-License-Identifier: Apache-2.0
"""The findings as the page needs them: texts, and the flow and time that "Show" chooses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.cost import Concern
from wiretale.analyzer.findings.model import row_at
from wiretale.analyzer.findings.registry import concern_of
from wiretale.reports.html.commands import cut_of_finding, cut_start
from wiretale.reports.phrases import cost_text, evidence_text

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace

TEXTS = ("code", "severity", "scope", "flow", "sentence", "evidence", "advice", "filter", "cited_flow", "capture")
FRAMES = re.compile(r"frame\.number (?:==|in) (\d+|\{[\d, ]+\})")
MARKED_MOST = 20  # frames of a finding that are marked
FIRST_SHOWN = 10  # findings whose flows have their packets in the page before others


def since(base_ns: int, time_ns: int | None) -> float | None:
    """Returns seconds since the base of the page; None if the time is unknown."""
    return None if time_ns is None else (time_ns - base_ns) / 1e9


def finding_row(trace: Trace, row: FindingRow, base_ns: int) -> dict[str, Any]:
    """Returns a row for the page. `whole` is whether the evidence is the whole flow, `from` and `to` are its times;
    `frames` begins with its first and last one, others that its filter names follow."""
    ends = [row["first_frame"], row["last_frame"]]
    named = [int(number) for text in FRAMES.findall(row["filter"] or "") for number in re.findall(r"\d+", text)]
    flow = None if row["cited_flow"] is None else row_at(trace.flows, row["cited_flow"])
    concern = Concern(0.0, 0.0) if row["flow"] is None else concern_of(trace.transfers, row["flow"])
    return {
        **{name: value for name, value in row.items() if name in TEXTS},
        "evidence": evidence_text(row, trace.transfers.files),
        "cost_text": cost_text(row),
        "lost_ns": None if row["cost"] is None else concern.time_ns(row["cost"], row["cost_unit"]),
        "frames": [frame for frame in dict.fromkeys([*ends, *named[:MARKED_MOST]]) if frame is not None],
        "whole": flow is not None and ends == [flow["first_frame"], flow["last_frame"]],
        "from": since(base_ns, row["first_ns"]),
        "to": since(base_ns, row["last_ns"]),
    }


def finding_rows(trace: Trace, base_ns: int) -> list[dict[str, Any]]:
    """Returns all findings. The page and its links number them from 1 as the table does, and so `wiretale cut`."""
    found = list(zip(trace.findings.rows(), trace.finding_flows, strict=True))
    start = cut_start(trace)
    return [
        {**finding_row(trace, row, base_ns), "flows": list(flows), "cut": cut_of_finding(trace, start, number, row)}
        for number, (row, flows) in enumerate(found, 1)
    ]


def cited_flows(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the flows that the first findings about flows show, then their other members."""
    first = [row for row in rows if row["scope"] != "capture"][:FIRST_SHOWN]
    shown = [row["cited_flow"] for row in first if row["cited_flow"] is not None]
    return list(dict.fromkeys(shown + [flow for row in first for flow in row["flows"]]))
