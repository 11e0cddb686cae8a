# SPDX-License-Identifier: Apache-2.0
"""Runs of a second TCP, that of ns-3, whose sender and receiver differ from those of Linux.

ns-3 sends no tail-loss probes and no DSACKs, does not check PAWS, and recovers by RFC 6675 and RFC 6582 without RACK. Its least
RTO is 1 s (RFC 6298), unless a scenario has that of Linux. Settings are written as for wiretale-link; orders for ns3_run.py are
made of them."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from score.runs.drawn import draw_scenarios
from score.runs.scenarios import BURSTS, NEITHER, NO_SACK, NO_TIMESTAMPS, NS3, Scenario, Talk

RUN = Path(__file__).with_name("ns3_run.py")
PACKAGE = "ns3"
HOW_TO = "the second stack is left out, because ns-3 is not installed: .venv/bin/pip install '.[ns3]'"
CONTROLS = {"reno": "TcpNewReno", "cubic": "TcpCubic", "bbr": "TcpBbr"}
(SACK_OFF,), (TIMESTAMPS_OFF,) = NO_SACK, NO_TIMESTAMPS
LINUX_RTO = {"least_rto": "0.2"}
# Names of wiretale-link, and the fields of score::Wire that they set.
FIELDS = {
    "loss": ("loss",),
    "gilbert": ("burst_begins", "burst_ends"),
    "reorder": ("reorder",),
    "duplicate": ("duplicate",),
}
SPANS = {"outage": "outages", "stall": "stalls"}
NEAR = "rate=200Mbit delay=1ms queue=400"


def in_ns3(scenario: Scenario) -> Scenario:
    return replace(scenario, name=f"ns3-{scenario.name}", group=NS3[SACK_OFF in scenario.sysctl])


def simulated(name: str, description: str, both: str = "", **more: Any) -> Scenario:
    return in_ns3(Scenario(name, description, both, **more))


SCENARIOS = (
    simulated("queue", "a short queue that overflows, NewReno", second="queue=60", control="reno"),
    simulated("random-1", "1% lost, NewReno", "loss=0.5%", control="reno"),
    simulated("cubic", "1% lost", "loss=0.5%"),
    simulated("random-5", "5% lost", "loss=2.5%", talk=Talk(bytes=2_500_000)),
    simulated("bursts", "lost in bursts", BURSTS, control="reno"),
    simulated("no-sack", "without SACK, NewReno, 1% lost", "loss=0.5%", control="reno", sysctl=NO_SACK),
    simulated("no-timestamps", "without timestamps, 1% lost", "loss=0.5%", sysctl=NO_TIMESTAMPS),
    simulated("bare", "neither SACK nor timestamps, 0.6% lost", "loss=0.3%", control="reno", sysctl=NEITHER),
    simulated("bare-bursts", "neither, lost in bursts", BURSTS, control="reno", sysctl=NEITHER),
    simulated("reordered", "0.5% delayed behind eight others, 0.3% lost", "reorder=0.5% distance=8 loss=0.3%"),
    simulated(
        "reordered-bare",
        "0.5% delayed behind five others, 0.3% lost, neither",
        "reorder=0.5% distance=5 loss=0.3%",
        control="reno",
        sysctl=NEITHER,
    ),
    simulated("copied", "0.5% duplicated, 0.3% lost", "duplicate=0.5% loss=0.3%"),
    simulated(
        "lost-acks",
        "20% of the ACKs lost, 0.6% of the data",
        "loss=0.3%",
        first_back="loss=10%",
        second_back="loss=10%",
        control="reno",
    ),
    simulated(
        "requests", "4 kB every 60 ms, 8% lost: RTOs of 1 s", "loss=4%", talk=Talk(200_000, chunk=4_000, pause=0.06)
    ),
    simulated("short", "forty connections of 30 kB, 5% lost", "loss=2.5%", talk=Talk(30_000, connections=40)),
    simulated(
        "outage",
        "three outages of the second link, an RTO of 200 ms or more",
        "loss=0.2%",
        second="outage=0.4s-0.7s,1.5s-2.2s,3.2s-3.6s",
        sysctl=LINUX_RTO,
    ),
    simulated(
        "stall",
        "no packet leaves the second link for 0.6 s: spurious RTOs",
        second="stall=0.4s-1s,1.6s-2.1s",
        control="reno",
        sysctl=LINUX_RTO,
    ),
    simulated(
        "near",
        "10 ms of round trip, 1% lost",
        "loss=0.5%",
        base_first=NEAR,
        base_second="rate=40Mbit delay=4ms queue=160",
    ),
    simulated("far", "200 ms of round trip, 0.3% lost", "loss=0.15%", base_second="rate=20Mbit delay=97ms queue=600"),
    simulated(
        "deep-queue", "a queue of 300 ms, 0.3% lost", "loss=0.15%", base_second="rate=40Mbit delay=7ms queue=1000"
    ),
    simulated("four", "four connections at once, 1% lost", "loss=0.5%", talk=Talk(bytes=1_200_000, parallel=4)),
)


def scenarios(draw: int, drawn: int) -> list[Scenario]:
    """Returns the scenarios above and the TCP scenarios of a draw."""
    return [*SCENARIOS, *map(in_ns3, draw_scenarios(draw, drawn))]


def version() -> str | None:
    """Returns the version of ns-3, or None if it is not installed."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def seconds(text: str) -> float:
    return float(text.removesuffix("ms")) / 1e3 if text.endswith("ms") else float(text.removesuffix("s"))


def wire_of(settings: dict[str, str]) -> dict[str, Any]:
    wire: dict[str, Any] = {"distance": int(settings.get("distance", "0"))}
    for name, fields in FIELDS.items():
        for field, text in zip(fields, settings.get(name, "").split(","), strict=False):
            if text:
                wire[field] = float(text.removesuffix("%")) / 100
    for name, field in SPANS.items():
        if name in settings:
            wire[field] = [[seconds(end) for end in span.split("-")] for span in settings[name].split(",")]
    return wire


def order_of(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Returns the fields of score::Order."""
    settings = [
        [dict(part.split("=", 1) for part in scenario.spec(link, back).split()) for back in (False, True)]
        for link in (0, 1)
    ]
    links = [
        {
            "rate": towards["rate"].replace("Mbit", "Mbps"),
            "delay": towards["delay"],
            "wires": [wire_of(towards), wire_of(back)],
        }
        for towards, back in settings
    ]
    talk, sysctl = scenario.talk, scenario.sysctl
    return {
        "folder": str(folder),
        "links": links,
        "queue": f"{settings[1][0]['queue']}p",
        "control": CONTROLS[scenario.control],
        "sack": SACK_OFF not in sysctl,
        "timestamps": TIMESTAMPS_OFF not in sysctl,
        "least_rto": float(sysctl.get("least_rto", "1")),
        "bytes": talk.bytes,
        "chunk": talk.chunk,
        "pause": float(talk.pause),
        "connections": talk.connections,
        "parallel": talk.parallel,
        "receive_buffer": talk.receive_buffer,
        "seed": scenario.seed % 2**30,
    }


def simulate(scenarios: Iterable[Scenario], folder: Path) -> set[str]:
    """Carries out runs, each into a folder of its name, and returns the names of the complete ones."""
    waiting = {str(folder / scenario.name): scenario for scenario in scenarios}
    if not waiting:
        return set()
    orders = ""
    for name, scenario in waiting.items():
        Path(name).mkdir(parents=True, exist_ok=True)
        orders += json.dumps(order_of(scenario, Path(name))) + "\n"
    with (folder / "ns3.log").open("w") as log:
        done = subprocess.run([sys.executable, RUN], input=orders, stdout=subprocess.PIPE, stderr=log, text=True)
    complete = done.stdout.split("\n")[:-1]
    for name in complete:
        (Path(name) / "counters.json").write_text("{}")
    return {waiting[name].name for name in complete}
