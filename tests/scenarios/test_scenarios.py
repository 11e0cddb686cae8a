# SPDX-License-Identifier: Apache-2.0
"""Every scenario of this folder in each of its variants: counters of both directions, events, and further columns."""

from __future__ import annotations

import operator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wiretale
from scenario import captured, expected_events, read_scenario
from scenario_wire import WRITERS, file_length

FOLDER = Path(__file__).parent
SCENARIOS = {one.name: one for one in (read_scenario(path, FOLDER) for path in sorted(FOLDER.rglob("*.txt")))}
VERDICTS = (
    *("retransmissions", "fast_retransmissions", "timeout_retransmissions", "timeouts", "probe_retransmissions"),
    *("spurious_retransmissions", "retransmitted_bytes", "out_of_order", "ambiguous", "network_duplicates"),
    *("mirror_duplicates", "lost_upstream", "lost_downstream", "unseen_bytes", "capture_reordered"),
    *("suspected_timeouts", "duplicate_acks", "zero_windows", "window_full", "window_probes", "keep_alives"),
    *("acks_out_of_range", "gap_bytes", "unknown_bytes", "unknown_duplicates", "sack_gaps"),
)
PAYLOAD_PARTS = ("unique_bytes", "retransmitted_bytes", "duplicate_bytes", "probe_bytes")
WORDS = {"null": None, "true": True, "false": False}


def value(text: str) -> Any:
    """A number, a word of the tables, or null."""
    return WORDS.get(text, int(text) if text.lstrip("-").isdigit() else text)


def column(trace: wiretale.Trace, path: str) -> list[Any]:
    """The values of TABLE.COLUMN, of initiator.COLUMN or responder.COLUMN; of TABLE alone, its number of rows."""
    table, _, name = path.removeprefix("sum ").partition(".")
    if table in ("initiator", "responder"):
        return [trace.directions.rows(0, 2)[table == "responder"][name]]
    if not name:
        return [len(trace.table(table))]
    values = trace.table(table).column(name)
    return [sum(values)] if path.startswith("sum ") else values


def check(trace: wiretale.Trace, path: str, sign: str, wanted: str) -> None:
    """One line of a scenario's expectation."""
    found, values = column(trace, path), [value(text) for text in wanted.split()]
    if sign == "=":
        assert found == values, path
    elif sign == "~":
        assert found == [pytest.approx(one, rel=1e-6, abs=1000) for one in values], path
    elif sign in "<>":
        assert {"<": operator.lt, ">": operator.gt}[sign](found[0], values[0]), f"{path}: {found[0]}"
    else:
        assert all((one in found) == (sign == "has") for one in values), f"{path}: {found}"


@cache
def frames_of(name: str, address: str) -> list[Any]:
    """Built once for all files that hold them."""
    return captured(SCENARIOS[name], address)


def counters(row: dict[str, Any]) -> dict[str, Any]:
    """The verdicts that are not 0; gaps that only SACK reports are null if the data itself was captured."""
    return {name: row[name] for name in VERDICTS if row[name] != 0 and (name != "sack_gaps" or row[name] is not None)}


def event(row: dict[str, Any], file_length: int) -> tuple[int, str]:
    """A row of the events table: its frame, counted over all files, and its words."""
    spurious = {True: "spurious", None: "spurious:null"}.get(row["spurious"]) if "retransm" in row["kind"] else None
    words = (row["kind"], row["place"], spurious)
    return row["capture"] * file_length + row["frame"], " ".join(word for word in words if word)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, id=f"{name}-{variant.replace(' ', '-')}")
        for name, one in SCENARIOS.items()
        for variant in one.variants()
    ],
)
def test_scenario(name: str, variant: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    address, _, writer = variant.partition(" ")
    frames = frames_of(name, address)
    trace = wiretale.analyze(*WRITERS[writer or "pcap"](frames, tmp_path))
    events = sorted(event(row, file_length(frames) if writer == "rotated" else 0) for row in trace.events.rows())
    assert events == sorted(expected_events(frames, variant))
    rows = trace.directions.rows(0, 2)
    for end, row in zip(("initiator", "responder"), rows, strict=True):
        wanted = scenario.expected(end, variant) if scenario.of_tcp else dict.fromkeys(VERDICTS[:-1])
        assert counters(row) == {name: count for name, count in wanted.items() if count != 0}, (end, events)
        if row["unique_bytes"] is not None:
            assert row["payload_bytes"] == sum(row[part] for part in PAYLOAD_PARTS)
    if not any(path == "flows" for path, _, _ in scenario.checks):
        assert len(trace.flows) == 1
    for path, sign, values in scenario.checks:
        check(trace, path, sign, values)
