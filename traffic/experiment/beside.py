# SPDX-License-Identifier: Apache-2.0
"""Programs that run beside the sessions of a test: those of other projects (iperf3, curl), and ping, which measures the latency
before the sessions and under their load."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wiretale.traffic.experiment import plan_value as read
from wiretale.traffic.experiment.plan_value import PlanTable

if TYPE_CHECKING:
    from wiretale.traffic.experiment.plan import Plan

PROGRAMS_MOST = 16
PING_LEAST_S = 0.01
ENDS = ("sender", "receiver")
NUMBERS = 1 << 16  # of echo requests, which then begin again
LINE = re.compile(r"^\[(\d+\.\d+)\] (?:no answer yet for|.*) ?icmp_seq=(\d+)(?:.* time=([\d.]+) ms)?", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A program of another project. It is stopped when the sessions have ended, or after its own time."""

    command: str  # words as in a shell; {address} is the receiver's
    at: str = "sender"
    start_s: float = 0.0
    seconds: float | None = None
    label: str = ""

    def words(self, plan: Plan) -> list[str]:
        """Returns the local command that runs it at its endpoint."""
        end = plan.sender if self.at == "sender" else plan.receiver
        return end.command([word.replace("{address}", plan.address) for word in shlex.split(self.command)])

    def scaled(self, scale: float) -> Program:
        """Returns it with scaled times."""
        return replace(self, start_s=self.start_s * scale, seconds=self.seconds and self.seconds * scale)


@dataclass(frozen=True)
class Ping:
    """Echo requests from the sender to the receiver, from `alone_s` before the sessions until `alone_s` after them."""

    interval_s: float = 0.2
    alone_s: float = 2.0

    def words(self, plan: Plan) -> list[str]:
        """Returns the local command; it reports each answer with its time, and each that is missing."""
        ping = ["ping", "-n", "-D", "-O", "-i", f"{self.interval_s:g}", plan.address]
        return plan.sender.command(["env", "LC_ALL=C", *ping])


def command_text(value: object) -> str:
    """Returns a command whose quotes are in pairs."""
    text = str(read.text(value))
    if not shlex.split(text):
        raise ValueError("expected a command")
    return text


def read_program(table: PlanTable) -> Program:
    """Returns a table [[test.program]]."""
    command = table.need("command", command_text)
    program = Program(
        command,
        at=table.take("at", read.word(*ENDS), "sender"),
        start_s=table.take("start", read.duration, 0.0),
        seconds=table.take("seconds", read.long_duration, None),
        label=table.take("label", read.text, shlex.split(command)[0]),
    )
    table.end()
    return program


def read_programs(table: PlanTable) -> tuple[Program, ...]:
    """Returns the programs of a test."""
    programs = tuple(map(read_program, table.tables("program")))
    if len(programs) > PROGRAMS_MOST:
        raise table.error("program", f"expected at most {PROGRAMS_MOST}, found {len(programs)}")
    return programs


def ping_interval(value: object) -> float:
    """Returns seconds."""
    seconds = read.duration(value)
    if seconds < PING_LEAST_S:
        raise ValueError("expected at least 10 ms")
    return seconds


def read_ping(table: PlanTable) -> Ping | None:
    """Returns the keys `ping` and `ping_alone` of a test; None without the first."""
    if "ping" not in table.data:
        table.known_keys.update(("ping", "ping_alone"))
        return None
    return Ping(table.need("ping", ping_interval), table.take("ping_alone", read.duration, 2.0))


def round_trips(output: str) -> Iterator[tuple[int, float, float | None]]:
    """Yields number, time in s since the epoch and round trip in ms of each echo request; None if no answer came, whose time is
    that of the next request."""
    replies: dict[int, tuple[float, float | None]] = {}
    latest = 0
    for at, short, ms in LINE.findall(output):
        number = int(short) + (latest - int(short) + NUMBERS // 2) // NUMBERS * NUMBERS
        latest = max(latest, number)
        if ms or number not in replies:
            replies[number] = float(at), float(ms) if ms else None
    for number in sorted(replies):
        yield number, *replies[number]


def latency_rows(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the lines of a test in latency.csv; `loaded` if the answer came while sessions ran."""
    ping = data.get("ping")
    if not ping:
        return
    first, last = ping["from_ns"], ping["to_ns"]
    for number, at, ms in round_trips(ping["output"]):
        ns = round(at * 1e9)
        yield {
            **{"test": data["test"]["name"], "group": data["test"]["group"], "trial": data["test"]["trial"]},
            "number": number,
            "time_ns": ns,
            "rtt_ms": ms,
            "loaded": first <= ns <= last,
        }
