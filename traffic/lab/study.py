# SPDX-License-Identifier: Apache-2.0
"""Runs the rows of a study again, and compares them with the published figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiretale.analyzer.units import plural
from wiretale.traffic.experiment.store import write_json
from wiretale.traffic.lab.flow import FlowMeasures, measure_flow
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.scenario import block_bytes, interval_ns, run_scenario
from wiretale.traffic.lab.state import ENDS
from wiretale.version import __version__

KIB = 1024
ATTEMPTS = 3
FLOW_PACKETS = " and ".join(f"host {ADDRESSES[end][0]}" for end in ENDS)  # without those of cross traffic
LATE_MS_MOST = 15.0  # at 95% load, the queue of a burst takes twenty times its length to drain
# Published figure, measured figure, allowed difference: relative, absolute.
COMPARED = (
    ("throughput_kibps", "throughput_kibps", 0.01, 0.0),
    ("latency_ms", "latency_ms", 0.0, 1.0),
    ("jitter_ms", "jitter_ms", 0.0, 1.0),
    ("kb_transferred", "kb_transferred", 0.0, 3.0),
    ("packets_sent", "packets_sent", 0.0, 3.0),
    ("packets_received", "packets_received", 0.0, 3.0),
    ("queue_length_packets", "queue_packets", 0.0, 1.0),
)
NO_QUEUE = {"queue_packets": None, "queue_packets_max": None}
# Figures that had not converged when the study ended.
LOOSER = {("narrow link", "latency_ms"): 8.0}


def compare(row: dict[str, Any], case: str) -> dict[str, bool]:
    """Returns for each published figure whether the measured one is near enough."""
    near = {}
    for published, measured, share, absolute in COMPARED:
        figure = row["published"].get(published)
        if figure is not None:
            room = max(abs(figure) * share, LOOSER.get((case, published), absolute))
            near[published] = row[measured] is not None and abs(row[measured] - figure) <= room
    return near


def is_shared(profile: Profile) -> bool:
    """Returns whether other packets wait in the flow's queue, or the flow in several: its own then do not show a queue."""
    return bool(profile.topology.cross or profile.topology.hops)


def study_row(profile: Profile, measures: FlowMeasures, run: dict[str, Any]) -> dict[str, Any]:
    """Returns one row: measured and published figures."""
    scenario = profile.scenario
    assert scenario
    totals = measures.totals
    row = {
        "schema": "wiretale.lab/1",
        "wiretale": __version__,
        "profile": profile.name,
        **{name: getattr(scenario, name) for name in ("study", "case", "protocol", "packet_bytes")},
        "block_bytes": block_bytes(scenario),
        **{name: rounded(value) for name, value in totals.items()},
        **(NO_QUEUE if is_shared(profile) else {}),
        "throughput_kibps": rounded(totals["throughput_bps"] / KIB if totals["throughput_bps"] else None),
        "kb_transferred": totals["bytes_received"] / KIB,
        "capture_drops": run["capture_drops"],
        "link": run["link"]["directions"],
        "links": run["link"]["links"],
        "cross": run["cross"],
        "fidelity": run["link"]["fidelity"],
        "published": profile.published,
    }
    return {**row, "as_published": compare(row, scenario.case)}


def rounded(value: Any) -> Any:
    """Returns a number with at most six decimals, which no clock exceeds."""
    if not isinstance(value, float):
        return value
    return int(value) if value == int(value) else round(value, 6)


def disturbances(row: dict[str, Any]) -> list[str]:
    """Returns disturbances by this machine, which make the figures of a run doubtful."""
    sentences = [
        f"The capture {point} the link dropped {plural(drops, 'packet')}: the figures are doubtful."
        for point, drops in row["capture_drops"].items()
        if drops
    ]
    links = {"": row["link"], **{f" {name}": link["directions"] for name, link in row["links"].items()}}
    for name, direction in ((name, direction) for name, link in links.items() for direction in link):
        if direction["overruns"]:
            lost = plural(direction["overruns"], "packet")
            sentences.append(f"The link{name} itself lost {lost} from {direction['from']}: this machine was too slow.")
    late_ms = row.get("sender_late_ms") or 0
    if late_ms > LATE_MS_MOST:
        sentences.append(f"The sender was up to {late_ms:.0f} ms late and sent a burst: this machine was too busy.")
    return sentences


def run_row(profile: Profile, folder: Path, note: Callable[[str], None]) -> tuple[dict[str, Any], FlowMeasures]:
    """Runs a scenario, again if this machine disturbed it; result.json has the last attempt."""
    scenario = profile.scenario
    assert scenario
    for attempt in range(1, ATTEMPTS + 1):
        run = run_scenario(profile, scenario, folder)
        places = Path(run["before"]), Path(run["after"])
        measures = measure_flow(*places, scenario.packet_bytes, interval_ns(scenario), FLOW_PACKETS)
        row = study_row(profile, measures, run)
        if is_shared(profile):
            measures.bins["waiting"] = [None] * len(measures.bins["waiting"])
        disturbed = disturbances(row)
        row.update(attempts=attempt, disturbances=disturbed)
        if not disturbed or attempt == ATTEMPTS:
            break
        note(f"{profile.name} is run again: {disturbed[0]}")
    write_json(folder / "result.json", row)
    return row, measures
