# SPDX-License-Identifier: Apache-2.0
"""The analysis in Python: tables, queries, second readings."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wiretale
from checkout import ROOT, SAMPLES
from sample_sets import FEW_SAMPLES
from wiretale.analyzer.causes.case import Case
from wiretale.analyzer.table import KEPT_TABLES
from wiretale.analyzer.time import parse_time, show_time

ARROW_TYPES = {"int": "BIGINT", "time": "TIMESTAMPTZ_NS", "duration": "INTERVAL", "real": "DOUBLE", "bool": "BOOLEAN"}
AS_INTEGERS = {"time": "epoch_ns({})", "duration": "1000 * epoch_us({})"}  # INTERVAL has microseconds


@FEW_SAMPLES
def test_tables_speak_arrow_and_show_themselves(sample: Path) -> None:
    trace = wiretale.analyze(sample)
    for name in KEPT_TABLES:
        table = trace.table(name)
        kinds = {column: kind for column, kind, *_ in table.columns()}
        connection = duckdb.connect()
        relation = connection.from_arrow(table)
        assert relation.columns == list(kinds)
        assert list(map(str, relation.types)) == [ARROW_TYPES.get(kind, "VARCHAR") for kind in kinds.values()]
        values = relation.project(", ".join(AS_INTEGERS.get(kinds[c], "{}").format(f'"{c}"') for c in kinds))
        rounded = [
            [v - v % 1000 if kinds[c] == "duration" and v is not None else v for c, v in row.items()]
            for row in table.rows()
        ]
        assert [list(row) for row in values.fetchall()] == rounded
        exact = connection.from_arrow(table.with_integers())
        assert [dict(zip(kinds, row, strict=True)) for row in exact.fetchall()] == table.rows()
        assert repr(table).startswith(f"{name}: {len(table):,} row")
        assert "<table>" in table._repr_html_()
    assert f"{len(trace.flows):,} flow" in repr(trace) and "<table>" in trace._repr_html_()


@FEW_SAMPLES
def test_the_integers_of_the_documentation_are_exact(sample: Path, tmp_path: Path) -> None:
    """By the sentence in docs/tables.md: its call, and its query of a trace and of the Parquet files."""
    text = (ROOT / "docs" / "tables.md").read_text()
    (call,) = re.findall(r"`(wiretale\.analyze\(\.\.\.\)\.flows\.\w+\(\))`", text)
    (query,) = re.findall(r"`(SELECT flow, epoch_ns[^`]*)`", text)
    table = eval(call.replace("...", repr(str(sample))), {"wiretale": wiretale})
    trace = wiretale.analyze(sample)
    trace.write(tmp_path)
    with duckdb.connect() as connection:
        connection.register("flows", table)
        types = {name: str(kind) for name, kind, *_ in connection.execute("DESCRIBE flows").fetchall()}
        exact = connection.execute("SELECT flow, last_ns - first_ns, handshake_rtt_ns FROM flows").fetchall()
        files = connection.execute(query.replace("FROM flows", f"FROM '{tmp_path}/flows.parquet'")).fetchall()
    assert {types[name] for name, kind, *_ in trace.flows.columns() if kind in ("time", "duration")} == {"BIGINT"}
    assert exact == [(row["flow"], row["last_ns"] - row["first_ns"], row["handshake_rtt_ns"]) for row in trace.flows]
    assert files == trace.query(query).fetchall() == [row[:2] for row in exact]


def test_columns_are_the_rows_turned(sample: Path) -> None:
    directions = wiretale.analyze(sample).directions
    rows = directions.rows()
    for name, *_ in directions.columns():
        assert directions.column(name) == [row[name] for row in rows]
    numbers = list(range(0, len(rows), 2))
    assert (
        directions._rows_at(numbers) == [rows[number] for number in numbers]
        and directions._rows_at([1, 0])[1] == rows[0]
    )
    assert directions._rows_where("packets", rows[0]["packets"]) == [
        number for number, row in enumerate(rows) if row["packets"] >= rows[0]["packets"]
    ]
    with pytest.raises(IndexError, match="no row 2000 in directions"):
        directions._rows_at([2000])
    with pytest.raises(TypeError, match="column source is not of words or integers"):
        directions._rows_where("source", 1)
    assert directions.rows(1, 2) == rows[1:2] and directions.rows(-1) == rows[-1:]


def test_queries_reach_every_table(samples: Path) -> None:
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    assert trace.query("select count(*), sum(packets) from flows").fetchall() == [(7, 66)]
    with pytest.raises(wiretale.UsageError):
        trace.query("select nothing from nowhere")


def test_packets_of_flows_come_from_a_second_reading(samples: Path) -> None:
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    packets = trace.packets([1, 3])
    assert set(packets.column("flow")) == {1, 3} and len(packets) == 20
    assert len(trace.packets([1], most=4)) == 4


@pytest.mark.parametrize("name", ["fast_retransmissions.pcap", "vlan_ipv6.pcap"])
def test_what_causes_computed_is_freed_at_once(name: str, samples: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        wiretale.analyze(samples / name)
        assert not any(isinstance(each, Case) for each in gc.get_objects())
    finally:
        gc.enable()


def test_several_files_are_one_in_order_of_time(samples: Path, tmp_path: Path) -> None:
    from scapy.all import rdpcap, wrpcap

    packets = rdpcap(str(samples / "vlan_ipv6.pcap"))
    for number in range(3):
        wrpcap(str(tmp_path / f"part{number}.pcap"), packets[number::3])
    expected = wiretale.analyze(samples / "vlan_ipv6.pcap")
    merged = wiretale.analyze(*(tmp_path / f"part{n}.pcap" for n in (2, 0, 1)))
    of_files = ["flow", "first_capture", "first_frame", "last_frame"]
    without = [{k: v for k, v in row.items() if k not in of_files[1:]} for row in expected.flows.rows()]
    assert [{k: v for k, v in row.items() if k not in of_files[1:]} for row in merged.flows.rows()] == without
    assert merged.directions.rows() == expected.directions.rows()


def test_options_are_checked() -> None:
    calls: tuple[dict[str, Any], ...] = (
        {"max_flows": 0},
        {"start": "soon"},
        {"filter": "("},
        {"start": 2**63},
        {"end": -(2**63) - 1},
        {"start": 5, "end": 5},
    )
    for wrong in calls:
        with pytest.raises(wiretale.UsageError):
            wiretale.analyze(SAMPLES / "tcp_losses.pcap", **wrong)
    with pytest.raises(wiretale.UsageError):
        wiretale.analyze()
    with pytest.raises(wiretale.InputError):
        wiretale.analyze("/nonexistent.pcap")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("1768478400.25", 1_768_478_400_250_000_000),
        ("2026-01-15T12:00:00Z", 1_768_478_400_000_000_000),
        ("2026-01-15 13:00:00.000000001+01:00", 1_768_478_400_000_000_001),
        ("2026-01-15", 1_768_435_200_000_000_000),
    ],
)
def test_times_as_people_write_them(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@given(st.integers(-(10**18), 4 * 10**18))
def test_a_time_shown_is_a_time_read(ns: int) -> None:
    assert parse_time(show_time(ns)) == ns


@pytest.mark.parametrize("text", ["", "soon", "12:00", "2026-13-01", "1e9", "--1", "1.5.2"])
def test_wrong_times_are_refused(text: str) -> None:
    with pytest.raises(wiretale.UsageError):
        parse_time(text)


def test_captures_only_fills_that_table_as_a_whole_analysis_does(sample: Path) -> None:
    quick, complete = wiretale.analyze(sample, interfaces_only=True), wiretale.analyze(sample)
    of_flows = ("mirror_duplicates", "second_port_duplicates", "second_port_ns_max")
    assert quick.interfaces.rows() == [{**row, **dict.fromkeys(of_flows)} for row in complete.interfaces.rows()]
    assert len(quick.flows) == len(quick.directions) == len(quick.findings) == 0
    assert quick.totals["packets"] == complete.totals["packets"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"filter": 3}, "filter 3: expected a text as 'tcp port 443', or None"),
        ({"max_flows": "a"}, "max_flows 'a': expected a whole number from 1 to 2,147,483,647"),
        ({"max_flows": 0}, "max_flows 0: expected 1 to 2,147,483,647"),
        ({"max_flows": None}, "max_flows None: expected a whole number from 1"),
        ({"block_size": "8KiB"}, "block_size '8KiB': expected a whole number from 32 to 1,073,741,824 bytes"),
    ],
)
def test_arguments_of_another_type_are_refused(samples: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(wiretale.UsageError, match=re.escape(message)):
        wiretale.analyze(samples / "vlan_ipv6.pcap", **options)


def test_no_captures_are_an_error() -> None:
    nothing: list[str] = []
    for paths in ((), (nothing,)):
        with pytest.raises(wiretale.UsageError, match="no capture given"):
            wiretale.analyze(*paths)


def test_results_need_a_path(samples: Path) -> None:
    trace = wiretale.analyze(samples / "vlan_ipv6.pcap")
    nothing: Any = None
    for write in (trace.report, trace.write):
        with pytest.raises(wiretale.UsageError, match="None: expected a path to write to"):
            write(nothing)


def test_a_column_named_twice_is_an_error() -> None:
    flows = wiretale.analyze(SAMPLES / "timeouts.pcap").flows
    with pytest.raises(ValueError, match="column packets is named twice"):
        flows._nonzero(["packets", "packets"])
