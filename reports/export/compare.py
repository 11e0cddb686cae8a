# SPDX-License-Identifier: Apache-2.0
"""Several capture points compared, as one JSON object: `wiretale compare --json`."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from wiretale.analyzer.compare.answers import answers, saw_all, tracer_stage
from wiretale.analyzer.compare.packet_tables import lost_packets

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.clock_offset import Clock
    from wiretale.analyzer.compare.comparison import Vantage
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay

SCHEMA = "wiretale.compare/1"
LOST_MOST = 1000
ASSUMPTION = "the least delays of both directions are equal; the offset is off by at most error_ns, whatever they are"


def rounded(value: float | None) -> int | None:
    """Whole ns."""
    return None if value is None else round(value)


def capture_entry(point: CapturePoint) -> dict[str, Any]:
    """A capture point."""
    return {
        "role": point.role,
        "files": point.files,
        "packets": point.packets,
        "first_ns": point.first_ns,
        "last_ns": point.last_ns,
        "dropped": point.dropped,
        "not_ip": point.not_ip,
        "unread": point.unread,
        "interfaces": point.interfaces,
        "damage": point.damage,
    }


def clock_entry(clock: Clock, roles: list[str]) -> dict[str, Any]:
    """The clock of one point against another's."""
    return {
        "from": roles[clock.earlier],
        "to": roles[clock.later],
        "evidence": clock.evidence,
        "offset_ns": rounded(clock.offset_ns),
        "error_ns": rounded(clock.error_ns),
        "offset_at_ns": clock.stretches[0].middle_ns if clock.known and clock.stretches else None,
        "skew_ppm": clock.skew_ppm,
        "skew_error_ppm": clock.skew_error_ppm,
        "least_rtt_ns": rounded(clock.least_rtt_ns),
        "steps": [{"time_ns": time, "change_ns": round(change)} for time, change in clock.steps],
        "packets_forward": clock.forward,
        "packets_back": clock.back,
        "assumption": ASSUMPTION if clock.evidence == "both" else None,
    }


def delay_entry(delay: Delay) -> dict[str, Any]:
    """One hop, one way."""
    names = ("min", "mean", "median", "p90", "p99", "max", "deviation", "jitter")
    return {
        "from": delay.start,
        "to": delay.end,
        "absolute": delay.absolute,
        "error_ns": rounded(delay.error_ns),
        "packets": delay.summary["packets"],
        **{f"{name}_ns": rounded(delay.summary[name]) for name in names},
        "below_zero": delay.summary["negative"],
    }


def ledger_entry(ledger: Ledger) -> dict[str, Any]:
    """Where things of one kind were lost."""
    tracer = tracer_stage(ledger)
    return {
        "title": ledger.title,
        "unit": ledger.unit,
        "run": ledger.run,
        "sent": ledger.sent,
        "arrived": ledger.arrived,
        "lost": ledger.lost,
        "lost_total": sum(ledger.lost.values()),
        "stages": [
            {"stage": stage.role, "seen": stage.seen, "had": stage.had, "missed": stage.missed}
            for stage in ledger.stages
        ],
        "tracer_saw_all": saw_all(ledger),
        "tracer_missed": tracer.missed if tracer else None,
        "copies": ledger.copies,
        "incomplete_datagrams": ledger.incomplete,
        "notes": ledger.notes,
    }


def whole_object(vantage: Vantage, version: str) -> dict[str, Any]:
    """All of it."""
    roles = [point.role for point in vantage.points]
    lost, total = lost_packets(vantage, LOST_MOST)
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "answers": list(answers(vantage)),
        "captures": [capture_entry(point) for point in vantage.points],
        "losses": [ledger_entry(ledger) for ledger in vantage.ledgers],
        "clocks": [clock_entry(clock, roles) for clock in vantage.clocks],
        "delays": [delay_entry(delay) for delay in vantage.delays],
        "flows": vantage.flows,
        "lost_packets": lost,
        "lost_packets_total": total,
        "notes": vantage.notes,
    }


def write_json(vantage: Vantage, version: str, out: IO[str]) -> None:
    """One object in one line."""
    out.write(json.dumps(whole_object(vantage, version)) + "\n")
