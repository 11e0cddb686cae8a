# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: facts, figures, and a table of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median
from typing import Any

from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, plural, show_bytes, show_count, show_duration, show_rate
from wiretale.reports.html import offline_page
from wiretale.reports.html.experiment.data import Outcome, percentile, study_title
from wiretale.reports.html.experiment.figures import experiment_figures

Row = dict[str, Any]
ROWS_MOST = 2000
# Heading and cell of each column of the results.
CELLS = (
    ("test", lambda row: row["test"]),
    ("session", lambda row: row["session"]),
    ("sent", lambda row: show_bytes(row["bytes_sent"])),
    ("received", lambda row: show_bytes(row["bytes_received"])),
    ("% received", lambda row: number(row["percent_received"])),
    ("elapsed", lambda row: show_duration(row["elapsed_s"] and row["elapsed_s"] * 1e9)),
    ("Mbit/s", lambda row: marked(row, "throughput_mbit_s", "throughput_exceeds_link")),
    ("sending", lambda row: marked(row, "sending_rate_mbit_s", "sending_exceeds_link")),
    ("receiving", lambda row: marked(row, "receiving_rate_mbit_s", "throughput_exceeds_link")),
    ("blocks lost", lambda row: show_count(row["packets_lost"])),
    ("out of order", lambda row: show_count(row["out_of_order"])),
    ("dropped by the host", lambda row: show_count(row["host_dropped"])),
)
TEXT_CELLS = ("test", "session")


def number(value: float | None) -> str:
    """Returns a number with four digits."""
    return UNKNOWN if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def marked(row: Row, name: str, exceeds: str) -> str:
    """Returns a rate; one above the rate of the link was not reached on the wire."""
    return f"{number(row[name])} (above the link's)" if row.get(exceeds) else number(row[name])


def where(endpoint: Row) -> str:
    """Returns the host of an endpoint."""
    if endpoint["ssh"]:
        return f"{endpoint['ssh']} (ssh)"
    return f"namespace {endpoint['netns']}" if endpoint["netns"] else "the host of the run"


def answer(outcome: Outcome) -> str:
    """Returns the fastest and the slowest test by the median throughput of their sessions, and how many tests failed."""
    rates: dict[str, list[float]] = {}
    for row in outcome.rows:
        if row["throughput_mbit_s"] is not None:
            rates.setdefault(row["group"], []).append(row["throughput_mbit_s"] * 1e6)
    medians = {group: show_rate(median(values)) for group, values in rates.items()}
    failed = f" {plural(len(outcome.failures), 'test')} failed." if outcome.failures else ""
    if not medians:
        return f"No throughput was measured.{failed}"
    slowest = medians[min(rates, key=lambda group: median(rates[group]))]
    fastest = medians[max(rates, key=lambda group: median(rates[group]))]
    over = "over all block sizes" if len({row["block_bytes"] for row in outcome.rows}) > 1 else "of the sessions"
    if len(medians) == 1:
        (group,) = medians
        return f"{group}: {fastest}, the median {over}.{failed}"
    if slowest == fastest:
        return f"All {len(medians)} tests reached {fastest} (median {over}).{failed}"
    top, bottom = ([group for group, rate in medians.items() if rate == end] for end in (fastest, slowest))
    return f"{ends(top)} fastest at {fastest} (median {over}), {ends(bottom)} slowest at {slowest}.{failed}"


def ends(groups: list[str]) -> str:
    """Returns the tests at one end of a ranking, which may be several, with the verb."""
    if len(groups) == 1:
        return f"{groups[0]} was"
    return f"{len(groups)} tests ({', '.join(groups[:3])}{', …' if len(groups) > 3 else ''}) were"


def facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Returns the facts about the run."""
    plan = outcome.plan
    tests = plural(len(plan["tests"]) - outcome.missing, "test")
    pairs = [
        ("plan", f"{plan['name']}: {plan['title']}"),
        ("run", f"{tests}, from {show_time(outcome.started_ns).partition('.')[0]}Z"),
        ("from", where(plan["sender"])),
        ("to", f"{where(plan['receiver'])}, {plan['address']} port {plan['port']}"),
        ("captured by", outcome.tracer or "no capture"),
    ]
    if outcome.missing:
        pairs.append(("still to run", plural(outcome.missing, "test")))
    return pairs


def mean_of(rows: list[Row], group: str, name: str) -> dict[int, float]:
    """Returns means over the trials by block size without header, which all groups of a sweep share."""
    by_size: dict[int, list[float]] = {}
    for row in rows:
        if row["group"] == group and row[name] is not None:
            by_size.setdefault(row["block_bytes"] - row["header_bytes"], []).append(row[name])
    return {size: fmean(values) for size, values in by_size.items()}


def ratio(rows: list[Row], over: str, under: str) -> str:
    """Returns the ratio of the throughputs of two groups over the block sizes."""
    more, less = (mean_of(rows, group, "throughput_mbit_s") for group in (over, under))
    ratios = [more[size] / less[size] for size in more if less.get(size)]
    return f"{fmean(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g} by block size)" if ratios else UNKNOWN


def share(rows: list[Row], group: str) -> str:
    """Returns percent received over the block sizes."""
    shares = list(mean_of(rows, group, "percent_received").values())
    return f"{fmean(shares):.1f} ({min(shares):.1f} to {max(shares):.1f} by block size)" if shares else UNKNOWN


def findings(outcome: Outcome) -> list[Row]:
    """Returns the findings of study S2, with the same figures of this run."""
    measured = {
        "TCP throughput over UDP throughput": ratio(outcome.rows, "tcp", "udp"),
        "UDP throughput over TCP throughput": ratio(outcome.rows, "udp", "tcp"),
        "UDP": share(outcome.rows, "udp"),
        "TCP percent received": share(outcome.rows, "tcp"),
    }
    listed = []
    for row in outcome.published.get("findings", []):
        key = row["finding"] if row["finding"] in measured else row["finding"].split()[0]
        listed.append({**row, "measured": measured.get(key, UNKNOWN)})
    return listed


def show_number(row: Row, name: str) -> str:
    """Returns a mean with half the width of its confidence interval, unless that reaches below zero."""
    low, high = row["ci95_low"], row["ci95_high"]
    return number(row[name]) if low is None or low < 0 else f"{number(row[name])} ± {number((high - low) / 2)}"


def case_name(row: Row) -> list[str]:
    """Returns the cells that name a case."""
    rate = f"{row['offered_mbit_s']:g}" if row["offered_mbit_s"] else "no limit"
    return [row["group"], row["session"], str(row["block_bytes"]), rate, row["settings"] or ""]


def summary_table(outcome: Outcome) -> Row | None:
    """Returns the means of the cases with more than one trial; None if there are none."""
    measures = {"throughput_mbit_s": "Mbit/s", "percent_received": "% received", "jitter_ns": "jitter, ns"}
    cases: dict[tuple[str, ...], Row] = {}
    for row in outcome.summary:
        if row["trials"] > 1:
            cells = cases.setdefault((*case_name(row), str(row["streams"])), {"trials": 0})
            cells["trials"] = max(cells["trials"], row["trials"])
            cells[row["measure"]] = show_number(row, "mean")
    if not cases:
        return None
    heads = ["test", "session", "bytes", "offered", "options", "streams", "trials", *measures.values()]
    listed = [
        [*case, str(cells["trials"]), *(cells.get(name, UNKNOWN) for name in measures)] for case, cells in cases.items()
    ]
    return {
        "heads": heads,
        "rows": listed[:ROWS_MOST],
        "numeric": [head not in (*TEXT_CELLS, "options") for head in heads],
    }


def latency_table(outcome: Outcome) -> Row | None:
    """Returns round trips of ping without and with load, per test; None without pings."""
    tests: dict[str, dict[bool, list[Row]]] = {}
    for row in outcome.latency:
        tests.setdefault(row["test"], {False: [], True: []})[row["loaded"]].append(row)
    if not tests:
        return None
    listed = []
    for test, parts in tests.items():
        for loaded, rows in parts.items():
            round_trips = [row["rtt_ms"] for row in rows if row["rtt_ms"] is not None]
            figures = (
                [number(median(round_trips)), number(percentile(round_trips, 0.99)), number(max(round_trips))]
                if round_trips
                else [UNKNOWN] * 3
            )
            state = "while sessions ran" if loaded else "before and after"
            listed.append([test, state, show_count(len(rows)), show_count(len(rows) - len(round_trips)), *figures])
    heads = ["test", "load", "requests", "without answer", "median, ms", "99%, ms", "largest, ms"]
    return {"heads": heads, "rows": listed[:ROWS_MOST], "numeric": [False, False, *[True] * 5]}


def programs_table(outcome: Outcome) -> Row | None:
    """Returns the programs beside the sessions; None if there were none."""
    listed = []
    for program in outcome.programs:
        ended = "stopped with the sessions" if program["exit_code"] is None else f"exit code {program['exit_code']}"
        listed.append([program["test"], program["label"], program["error"] or ended])
    heads = ["test", "program", "end"]
    return {"heads": heads, "rows": listed[:ROWS_MOST], "numeric": [False] * 3} if listed else None


def flows_table(outcome: Outcome) -> Row | None:
    """Returns the flows of other programs in the captures; None if there were none."""
    listed = []
    for flow in outcome.other_flows:
        source, to = (f"{flow[end]} port {flow[f'{end}_port']}" for end in ("source", "destination"))
        rate = flow["goodput_bps"] and flow["goodput_bps"] / 1e6
        figures = [
            show_bytes(flow["bytes"]),
            number(rate),
            show_count(flow["retransmissions"]),
            show_duration(flow["rtt_ns"]),
        ]
        listed.append([flow["test"], flow["protocol"], source, to, *figures])
    heads = ["test", "protocol", "from", "to", "bytes", "Mbit/s", "retransmissions", "round trip"]
    return {"heads": heads, "rows": listed, "numeric": [False] * 4 + [True] * 4} if listed else None


CONGESTION = {
    (True, "proven"): "yes",
    (True, "likely"): "probably",
    (False, "proven"): "no",
    (False, "likely"): "probably not",
}


def congestion_table(outcome: Outcome) -> Row | None:
    """Returns what lost the segments of TCP; None without retransmissions in captures."""
    listed = [
        [
            losses["test"],
            show_count(losses["retransmissions"]),
            CONGESTION.get((losses["congestion"], losses["certainty"]), "not known"),
            losses["sentence"] or UNKNOWN,
        ]
        for losses in outcome.tcp_losses
    ]
    heads = ["test", "retransmissions", "congestion", "what lost the segments"]
    return {"heads": heads, "rows": listed[:ROWS_MOST], "numeric": [False, True, False, False]} if listed else None


def host_list(outcome: Outcome) -> list[Row]:
    """Returns the facts about both ends, of the latest run."""
    if not outcome.hosts:
        return []
    latest, hosts = outcome.hosts[-1], []
    for end in ("sender", "receiver"):
        facts = latest.get(end) or {}
        lines = {name: "\n".join(value) for name, value in facts.items() if isinstance(value, list)}
        if facts.get("settings"):
            lines["settings"] = "\n".join(f"{name} = {value or ''}" for name, value in facts["settings"].items())
        if end == "sender" and latest.get("path"):
            lines["routers on the way to the receiver"] = "\n".join(latest["path"])
        hosts.append({"end": end, "facts": lines})
    return hosts


def tables(outcome: Outcome) -> list[Row]:
    """Returns the tables beside that of the results, with titles and notes."""
    listed = (
        (
            "Means of the trials",
            summary_table(outcome),
            "Mean ± half the width of its 95% confidence interval, if it is above zero (summary.csv).",
        ),
        (
            "Was it congestion?",
            congestion_table(outcome),
            "TCP takes every loss for congestion. Here is what the capture of the first trial of each test over TCP says.",
        ),
        ("Latency", latency_table(outcome), "Round trips of ping from the sender to the receiver (latency.csv)."),
        ("Other programs", programs_table(outcome), "Their output is in raw/."),
        ("Flows of other programs", flows_table(outcome), "As captured; the largest of each test."),
    )
    return [{"title": title, "table": entry, "note": note} for title, entry, note in listed if entry]


def table(outcome: Outcome) -> Row:
    """Returns the table of results as text."""
    heads = [head for head, _ in CELLS]
    listed = [[show(row) for _, show in CELLS] for row in outcome.rows[:ROWS_MOST]]
    return {"heads": heads, "rows": listed, "numeric": [head not in TEXT_CELLS for head in heads]}


def render(outcome: Outcome) -> str:
    """Returns the page."""
    figures = experiment_figures(outcome)
    return offline_page.render(
        "experiment.html",
        {"figures": {f"figure-{number}": figure for number, figure in enumerate(figures, 1)}},
        style=offline_page.part("experiment.css"),
        title=outcome.plan["title"],
        heading=answer(outcome),
        facts=facts(outcome),
        failures=outcome.failures,
        finding_heads=[
            "finding",
            f"{outcome.plan['study']}'s network",
            f"{outcome.plan['study']} (published)",
            "measured",
        ],
        finding_rows=[[row["finding"], row["connection"], row["value"], row["measured"]] for row in findings(outcome)],
        study_title=study_title(outcome.plan["study"] or ""),
        figures=figures,
        table=table(outcome),
        tables=tables(outcome),
        hosts=host_list(outcome),
        left=max(0, len(outcome.rows) - ROWS_MOST),
    )


def write_page(outcome: Outcome, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(outcome), path)
