# SPDX-License-Identifier: Apache-2.0
"""The advice about RTOs follows from the position of the lost data and from what both ends negotiated."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from checkout import CAPTURES, SCENARIOS
from scenario import captured, read_scenario
from scenario_wire import write_pcap

TAIL, PROBING, THREE, RACK = (
    "with tail loss probes",
    "has tail loss probes",
    "Keep four segments",
    "repairs a lost retr",
)
ENABLE, CHECK = "Enable SACK at both ends", "Check that both ends permit SACK"


def advice(path: Path, flow: int) -> str:
    rows = [row for row in wiretale.analyze(path).findings if (row["code"], row["flow"]) == ("timeout-stalls", flow)]
    return str(rows[0]["advice"])


def contains(text: str, *phrases: str) -> bool:
    return [phrase for phrase in (TAIL, PROBING, THREE, RACK, ENABLE, CHECK) if phrase in text] == list(phrases)


@pytest.mark.parametrize(
    ("sample", "flow", "phrases"),
    [
        ("tcp_losses.pcap", 0, (TAIL,)),  # the last 264 bytes
        ("lost_tail.pcap", 0, (TAIL,)),  # upstream
        ("timeouts.pcap", 0, (TAIL,)),  # one segment behind the lost one
        ("timeouts.pcap", 1, (TAIL,)),  # two segments behind it
        ("timeouts.pcap", 2, (THREE, RACK)),  # a retransmission was lost
    ],
)
def test_after_sack_was_negotiated(samples: Path, sample: str, flow: int, phrases: tuple[str, ...]) -> None:
    assert contains(advice(samples / sample, flow), *phrases)


@pytest.mark.parametrize(
    ("variant", "keeps", "phrases"),
    [
        ("ipv4", 0, (TAIL,)),
        ("no-sack", 0, (ENABLE,)),
        ("ipv4", 3, (TAIL, CHECK)),  # without the handshake
    ],
)
def test_a_tail(tmp_path: Path, variant: str, keeps: int, phrases: tuple[str, ...]) -> None:
    frames = captured(read_scenario(SCENARIOS / "timeout" / "timeout_downstream.txt", SCENARIOS), variant)
    assert contains(advice(write_pcap(frames[keeps:], tmp_path / "tail.pcap"), 0), *phrases)


def test_no_capture_of_connections_with_sack_has_the_advice_to_enable_it() -> None:
    for path in CAPTURES:
        trace = wiretale.analyze(path)
        for row in trace.findings:
            if "SACK at both ends" in row["advice"] or "enable SACK" in row["advice"]:
                assert row["flow"] is not None
                assert not all(way["sack_permitted"] for way in trace.flow(row["flow"]).directions), path.name
