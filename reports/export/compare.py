# SPDX-License-Identifier: Apache-2.0
"""`wiretale compare`: one JSON object, or every packet with its delays as Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from wiretale.analyzer.compare.answers import answers, saw_all, tracer_stage
from wiretale.analyzer.compare.packet_tables import lost_packets, packets_sql
from wiretale.analyzer.query import interruptible
from wiretale.reports.export.destination import output_folder
from wiretale.reports.export.parquet import copy_to

if TYPE_CHECKING:
    from wiretale.analyzer.compare.clock_offset import Clock
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay

SCHEMA = "wiretale.compare/1"
LOST_MOST = 1000
ASSUMPTION = "the minimum delays of both directions are equal; if not, the offset is off by at most error_ns"
TABLES = ("packets", "lost")
POINT_FIELDS = "role files packets first_ns last_ns dropped not_ip unread interfaces damage"


def fields(record: object, names: str) -> dict[str, Any]:
    """Returns the attributes that `names` lists."""
    return {name: getattr(record, name) for name in names.split()}


def rounded(value: float | None) -> int | None:
    """Returns whole ns."""
    return None if value is None else round(value)


def clock_entry(clock: Clock, roles: list[str]) -> dict[str, Any]:
    """Returns the clock of one point relative to another's."""
    return {
        "from": roles[clock.earlier],
        "to": roles[clock.later],
        "evidence": clock.evidence,
        "offset_ns": rounded(clock.offset_ns),
        "error_ns": rounded(clock.error_ns),
        "offset_at_ns": clock.stretches[0].middle_ns if clock.is_known and clock.stretches else None,
        **fields(clock, "skew_ppm skew_error_ppm"),
        "least_rtt_ns": rounded(clock.least_rtt_ns),
        "steps": [{"time_ns": time, "change_ns": round(change)} for time, change in clock.steps],
        "packets_forward": clock.forward,
        "packets_back": clock.back,
        "assumption": ASSUMPTION if clock.evidence == "both" else None,
    }


def delay_entry(delay: Delay) -> dict[str, Any]:
    """Returns the one-way delays of a hop."""
    return {
        "from": delay.start,
        "to": delay.end,
        "absolute": delay.absolute,
        "error_ns": rounded(delay.error_ns),
        "packets": delay.summary["packets"],
        **{
            f"{name}_ns": rounded(delay.summary[name])
            for name in ("min", "mean", "median", "p90", "p99", "max", "deviation", "jitter")
        },
        "below_zero": delay.summary["negative"],
    }


def ledger_entry(ledger: Ledger) -> dict[str, Any]:
    """Returns the losses of one kind by place."""
    tracer = tracer_stage(ledger)
    return {
        **fields(ledger, "title unit run sent arrived lost"),
        "lost_total": sum(ledger.lost.values()),
        "stages": [{"stage": stage.role, **fields(stage, "seen had missed")} for stage in ledger.stages],
        "tracer_saw_all": saw_all(ledger),
        "tracer_missed": tracer.missed if tracer else None,
        "copies": ledger.copies,
        "incomplete_datagrams": ledger.incomplete,
        "notes": ledger.notes,
    }


def compare_object(comparison: Comparison, version: str) -> dict[str, Any]:
    """Returns the object that `wiretale compare --json` prints."""
    roles = [point.role for point in comparison.points]
    lost, total = lost_packets(comparison, LOST_MOST)
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "answers": list(answers(comparison)),
        "captures": [fields(point, POINT_FIELDS) for point in comparison.points],
        "losses": [ledger_entry(ledger) for ledger in comparison.ledgers],
        "clocks": [clock_entry(clock, roles) for clock in comparison.clocks],
        "delays": [delay_entry(delay) for delay in comparison.delays],
        "flows": comparison.flows,
        "lost_packets": lost,
        "lost_packets_total": total,
        "notes": comparison.notes,
    }


def write_json(comparison: Comparison, version: str, out: IO[str]) -> None:
    """Writes one object, in one line."""
    out.write(json.dumps(compare_object(comparison, version)) + "\n")


def write_tables(comparison: Comparison, folder: Path) -> Path:
    """Writes `packets.parquet` and `lost.parquet` into a directory, which is made if it does not exist.

    Returns its path. OutputError if a file cannot be written; files that existed before are then unchanged.
    """
    packets = packets_sql(comparison)
    lost = f"SELECT * FROM ({packets}) WHERE lost IS NOT NULL"
    with output_folder(folder) as partial:
        queries = dict(zip((partial / f"{name}.parquet" for name in TABLES), (packets, lost), strict=True))
        interruptible(comparison.connection, lambda: copy_to(comparison.connection, queries))
    return folder
