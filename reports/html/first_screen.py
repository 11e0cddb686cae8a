# SPDX-License-Identifier: Apache-2.0
"""The first screen of a capture's report: the facts about the capture, where the time went, and the findings by cause."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.answer import Answer, Explained, entries
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share
from wiretale.reports.html.finding_rows import since
from wiretale.reports.html.flow_columns import REAL_BYTES
from wiretale.reports.html.packing import base_time, planes
from wiretale.reports.html.timeline import span_of
from wiretale.reports.phrases import cause_cost, cost_text, drops_of, title_of
from wiretale.reports.time_account import PARTS, time_account

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

CAUSES_SHOWN = 10
FIRST_SHOWN = 5  # of them on the first screen
FULL_ON_PAPER = 10  # findings with evidence, filter and command; of the others, one line
TIME_LETTERS = 19  # of a time with seconds
SEVERITIES = {"error": ("problem", "▲"), "warning": ("warning", "◇"), "info": ("note", "○")}


def facts(trace: Trace) -> str:
    """Returns packets, bytes, duration and start of the capture, and whether it dropped packets."""
    rows, span = trace.interfaces.rows(), span_of(trace)
    dropped = sum(drops_of(row) or 0 for row in rows)
    parts = [plural(sum(row["packets"] for row in rows), "packet"), show_bytes(sum(row["bytes"] for row in rows))]
    parts.append(
        f"{show_duration(span[1] - span[0])} from {show_time(span[0])[:TIME_LETTERS]} UTC" if span else "no times"
    )
    return " · ".join([*parts, *([f"capture drops: {dropped:,}"] if dropped else [])])


def time_bar(trace: Trace) -> dict[str, Any] | None:
    """Returns where the time went, as on the first screen of the terminal; None if most of it is unknown."""
    account, turns = time_account(trace), trace.transfers.turns
    if account is None:
        return None
    (named, left_ns), total_ns = account.named(), math.fsum(account.parts.values())
    drawn = account.parts if left_ns else named  # what is too little for a name is too little to be seen
    drawn = {name: ns for name, ns in account.parts.items() if name in drawn}
    counted = [plural(len(turns), "request")] if len(turns) else []
    counted += [plural(len(turns.waiting), "flow")] if turns.waiting else []
    legend = [
        {"kind": name, "words": PARTS[name], "time": show_duration(ns), "share": show_share(ns, total_ns)}
        for name, ns in named.items()
    ]
    return {
        "base": account.base,
        "of": " in ".join(counted),
        "parts": [{"kind": name, "percent": 100 * ns / total_ns} for name, ns in drawn.items()],
        "legend": legend,
        "left": show_duration(left_ns) if left_ns else "",
    }


def share_str(entry: Explained, trace: Trace) -> str:
    """Returns what the cost is a share of: `in 266 transfers`, `50%`, `50% of 446 ms`; empty if it is unknown."""
    if entry.cause is not None:
        share = entry.cause["share"]
        return show_share(share, 1) if share and entry.cause["waited_ns"] else ""
    if entry.group.is_group:
        return f"in {plural(entry.group.transfers, 'transfer')}"
    row = entry.group.first
    duration_ns = None if row["flow"] is None else duration_of(trace.flows[row["flow"]])
    if row["cost"] and row["cost_unit"] == "seconds" and duration_ns and row["cost"] * 1e9 <= duration_ns:
        return f"{show_share(row['cost'] * 1e9, duration_ns)} of {show_duration(duration_ns)}"
    return ""


def cost_str(entry: Explained) -> str:
    """Returns the cost: `3 of 40 failed`, `192 s`; empty if it is unknown."""
    if entry.cause is not None:
        return cause_cost(entry.cause)
    return cost_text(entry.group.first) if len(entry.group.rows) == 1 else entry.group.total


def heads(answer: Answer, entry: Explained) -> bool:
    """Returns whether the answer, which heads the page, tells an entry, perhaps with what else happened."""
    if entry.cause is not None:
        return entry.cause["cause"] == answer.number
    return answer.cause is None and {row["finding"] for row in entry.group.rows} == set(answer.findings)


def listed(entry: Explained, trace: Trace, evident: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns an entry of the list of causes; `evident` is finding_rows()."""
    rows, cause = entry.group.rows, entry.cause
    word, mark = SEVERITIES[entry.row["severity"]]
    is_group, is_answer = cause is not None or entry.group.is_group, heads(trace.answer, entry)
    return {
        "id": entry.group.main["finding"] if rows else entry.row["code"],
        "number": entry.group.main["finding"] if rows else None,  # of the table, as in links and `wiretale cut`
        "effects": len(rows) - (cause is None),
        "severity": entry.row["severity"],
        "word": word,
        "mark": mark,
        "title": title_of(entry),
        "sentence": "" if is_answer else entry.sentence,
        "proof": cause["proof"] if cause and is_answer else "",
        "cost": cost_str(entry),
        "share": share_str(entry, trace),
        "share_of": "of the time of its flows" if cause else "",
        "advice": entry.advice,
        "code": cause["code"] if cause else entry.group.first["code"],
        "members": [
            {
                **row,
                "number": row["finding"],
                "cost": cost_text(row),
                **{name: evident[row["finding"] - 1][name] for name in ("evidence", "cut")},
            }
            for row in rows
        ],
        "is_group": is_group,
    }


def none_found(trace: Trace) -> str:
    """Returns the words in place of a list without a finding, which claim nothing about traffic that was not judged."""
    judged = judge(trace)
    if not judged.total.packets:
        return "None: there is no packet."
    return "None, but nothing was judged." if judged.nothing else "Nothing was found in what was judged."


def findings(trace: Trace, evident: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the causes to list, and the others, by kind in one line. `shown` is finding_rows(), whose numbers they have."""
    every = entries(trace)
    texts = [listed(entry, trace, evident) for entry in every]
    left: dict[str, int] = {}
    for text in texts[CAUSES_SHOWN:]:
        left[text["code"]] = left.get(text["code"], 0) + max(len(text["members"]), 1)
    return {
        "causes": texts[:CAUSES_SHOWN],
        "others": texts[CAUSES_SHOWN:],
        "further": sum(left.values()),
        "first": FIRST_SHOWN,
        "full": FULL_ON_PAPER,
        "none": none_found(trace),
        "rest": ", ".join(f"{code} ({count})" for code, count in left.items()),
    }


def span_of_entry(
    entry: Explained, finding_data: list[dict[str, Any]], base_ns: int
) -> tuple[float | None, float | None]:
    """Returns the first and the last time of a cause, or of findings that none explains, in seconds."""
    if entry.cause is not None:
        return since(base_ns, entry.cause["first_ns"]), since(base_ns, entry.cause["last_ns"])
    firsts, lasts = ([time for row in finding_data if (time := row[end]) is not None] for end in ("from", "to"))
    return min(firsts, default=None), max(lasts, default=None)


def waited_s(entry: Explained) -> float | None:
    """Returns the seconds that a cause, or findings that none explains, cost; None if it is no time, or unknown."""
    if entry.cause is not None:
        waited_ns = entry.cause["waited_ns"]
        return None if waited_ns is None else waited_ns / 1e9
    costs = [row["cost"] or 0.0 for row in entry.group.rows if row["cost_unit"] == "seconds"]
    return math.fsum(costs) if costs else None


def single_span(entry: Explained, finding_data: list[dict[str, Any]], members: int) -> tuple[float, float] | None:
    """Returns the span of a cause of one flow whose evidence overlaps and is about as long as what it cost; else None."""
    times = [(row["from"], row["to"] or row["from"]) for row in finding_data if row["from"] is not None]
    if not times or members > 1:
        return None
    start, end = min(times)
    for first, last in sorted(times):
        if first > end:
            return None
        end = max(end, last)
    waited = waited_s(entry)
    is_single = len(times) == 1 if waited is None else waited / 2 <= end - start <= 2 * waited
    return (start, end) if is_single else None


def flows_by(table: Table[Any], column: str) -> dict[int, list[int]]:
    """Returns the flows of each cause or finding."""
    numbers: dict[int, list[int]] = {}
    for number, flow in zip(table.column(column), table.column("flow"), strict=True):
        numbers.setdefault(number, []).append(flow)
    return numbers


def cause_flows(trace: Trace, evident: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns for each entry that the page lists its flows, and its times in seconds: what a selection of flows or of a range
    must have of it."""
    of_causes, of_findings = flows_by(trace.cause_flows, "cause"), flows_by(trace.finding_flows, "finding")
    base_ns, described = base_time(trace), []
    for entry in entries(trace)[:CAUSES_SHOWN]:
        finding_data, cause = [evident[row["finding"] - 1] for row in entry.group.rows], entry.cause
        flows = of_causes.get(cause["cause"]) if cause else None
        flows = flows or [flow for row in entry.group.rows for flow in of_findings.get(row["finding"], [])]
        flows = list(dict.fromkeys(flows))
        members = max(len(flows), cause["members"] or 0) if cause else len(flows)
        start, end = span_of_entry(entry, finding_data, base_ns)
        described.append(
            {
                **{"title": title_of(entry), "flows": flows, "members": members, "from": start, "to": end},
                "main": entry.group.main["finding"] if finding_data else None,
                "findings": [row["finding"] for row in entry.group.rows],
                "span": single_span(entry, finding_data, members),
            }
        )
    return described


def flow_times(trace: Trace) -> dict[str, Any]:
    """Returns the time accounts of flows, packed: the parts, and the time of each flow in each, if somebody waited in it."""
    accounts, flows = trace.transfers.turns.accounts, trace.transfers.turns.waiting
    parts = [part for part in PARTS if part in accounts.columns]
    columns = [accounts.columns[part] for part in parts]
    times = (array("f", [column[flow] for flow in flows]) for column in columns)
    packed = {part: planes("f", values.tobytes(), REAL_BYTES) for part, values in zip(parts, times, strict=True)}
    return {
        "count": len(flows),
        "parts": [[part, PARTS[part]] for part in parts],
        "flows": planes("I", array("I", flows).tobytes()),
        "columns": packed,
    }
