# SPDX-License-Identifier: Apache-2.0
"""Runs that are drawn: connections whose turns and ends are known, DNS questions, and the path that they take."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from score.runs.scenarios import Scenario

#: how a connection ends, and the outcome of its last request (None: of its SYN)
ENDS = {
    "answered": "answered",
    "abandoned": "abandoned",  # the client closes, because no answer comes
    "closed": "closed",  # the server closes in place of an answer
    "reset": "reset",
    "hung": "cut_off",  # the capture ends meanwhile
    "refused": None,
}
CODES = {0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN"}
STATUSES = (200, 200, 404, 503)
SEGMENT = 1000  # bytes of a part at most, so that neither pacing nor a congestion window delays one
BASE_PORT = 41_000
Part = tuple[int, float]  # bytes, and s to sleep before them


@dataclass(frozen=True)
class Turn:
    request: list[Part]
    think_s: float
    response: list[Part]
    pause_s: float


@dataclass(frozen=True)
class Connection:
    """With a status, the first request is one of HTTP."""

    port: int
    end: str
    status: int | None
    turns: list[Turn]


@dataclass(frozen=True)
class Lookup:
    """A DNS question; without a code nobody answers it."""

    name: str
    code: int | None
    think_s: float


@dataclass(frozen=True)
class Plan:
    scenario: Scenario
    rtt_s: float
    connections: list[Connection]
    lookups: list[Lookup]

    def order(self) -> dict[str, Any]:
        """Returns what both ends have to know."""
        return {"connections": [*map(asdict, self.connections)], "lookups": [*map(asdict, self.lookups)]}


def draw_turn(chance: random.Random, rtt_s: float) -> Turn:
    def parts(share: float) -> list[Part]:
        pause_s = chance.uniform(0.02, 0.4)
        if 0.7 * rtt_s < pause_s < 1.4 * rtt_s:  # like one that waits for an ACK (docs/tables.md)
            pause_s = 1.5 * rtt_s
        first = (chance.randint(200, SEGMENT), 0.0)
        return [first, (chance.randint(100, SEGMENT), pause_s)] if chance.random() < share else [first]

    return Turn(parts(0.3), chance.uniform(0, 0.4), parts(0.4), chance.uniform(0, 0.2))


def draw_plans(draw: int, runs: int) -> Iterator[Plan]:
    """Yields runs with round trips of 10 to 150 ms, the tracer anywhere on the path, and up to 4% lost on each link."""
    for number in range(1, runs + 1):
        name = f"exchanges-{draw}-{number}"
        chance = random.Random(name)
        rtt_s, first = 10 ** chance.uniform(-2, -0.82), chance.uniform(0.1, 0.9)
        lost = [chance.choice((0.0, 1.0)) * chance.uniform(0.5, 4) for _ in range(2)]
        links = [
            f"rate=100Mbit delay={500 * rtt_s * share:.2f}ms" + (f" loss={percent:.1f}%" if percent else "")
            for share, percent in zip((first, 1 - first), lost, strict=True)
        ]
        connections = [
            Connection(
                BASE_PORT + place,
                end,
                chance.choice((None, *STATUSES)),
                [draw_turn(chance, rtt_s) for _ in range(0 if end == "refused" else chance.randint(2, 8))],
            )
            for place, end in enumerate([*ENDS, "answered", "answered"])
        ]
        lookups = [
            Lookup(f"host{place}.example", code, chance.uniform(0, 0.6)) for place, code in enumerate((*CODES, None))
        ]
        description = f"{1e3 * rtt_s:.0f} ms, {lost[0]:.1f}% and {lost[1]:.1f}% lost"
        scenario = Scenario(name, description, base_first=links[0], base_second=links[1])
        yield Plan(scenario, rtt_s, connections, lookups)
