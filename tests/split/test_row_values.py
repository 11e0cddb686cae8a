# SPDX-License-Identifier: Apache-2.0
"""Rows of another machine whose hash is right, but whose values no analysis writes: one line, never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkout import SAMPLES
from processes import refusal
from row_bytes import COLUMNS, POSITION_SIZE, Part, Value, content_of, parts_of
from wiretale.analyzer.shards import layout, steps
from wiretale.cli import main

FILES = ("tcp_losses.pcap", "udp_fragments.pcap")
#: a value that no analysis writes, or that contradicts other rows
STRANGE: dict[str, Value] = {
    "int": 1 << 59,
    "time": -1,
    "duration": -(1 << 62),
    "bool": 1,
    "word": 0,
    "text": b"\0\xff<&\n" * 1000,
    "path": b"\xff",
    "address": bytes(16),
}


class Rows:
    """The rows of the only shard of a split, to be written with other values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        layout.plan([str(SAMPLES / name) for name in FILES], folder, 1)
        steps.split_captures(folder, "test")
        steps.analyze_shard(folder, 0)
        self._split = layout.open_split(folder)
        self.path = self._split.rows_path(0)
        found = layout.read_rows(self._split, 0)
        assert found
        self._options, content = found
        self._head, self.parts = parts_of(content)
        assert content_of(self._head, self.parts) == content

    def write(self, table: str, part: Part) -> None:
        layout.write_rows(self._split, 0, self._options, content_of(self._head, {**self.parts, table: part}))

    def write_value(self, table: str, column: str, value: Value) -> None:
        """Writes it in each row."""
        number = [name for name, _ in COLUMNS[table]].index(column)
        part = self.parts[table]
        self.write(table, Part(part.positions, [[*row[:number], value, *row[number + 1 :]] for row in part.rows]))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return Rows(tmp_path_factory.mktemp("rows") / "split")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("flows", "packets", None),
        ("flows", "protocol", None),
        ("flows", "first_frame", -1),
        ("flows", "first_capture", 2),
        ("flows", "state", 1),
        ("flows", "last_ns", (1 << 63) - 1),
        ("directions", "wire_bytes", None),
        ("directions", "direction", 0),
        ("directions", "fragments", -1),
        ("events", "kind", None),
        ("events", "kind", 1),
        ("events", "flow", 1_000_000),
        ("events", "capture", 99),
        ("events", "direction", None),
        ("series", "start_ns", None),
        ("series", "direction", 2),
        ("datagrams", "state", None),
        ("datagrams", "flow", -1),
    ],
)
def test_a_value_that_no_analysis_writes_is_refused(
    rows: Rows, wiretale_run: Any, table: str, column: str, value: Value
) -> None:
    rows.write_value(table, column, value)
    text = refusal(wiretale_run("gather", rows.folder), 4)
    assert text.startswith(f"{rows.path}: damaged, or of another version of wiretale: remove it")


@pytest.mark.parametrize("table", ["flows", "directions"])
def test_rows_that_are_missing_or_twice_are_refused(rows: Rows, wiretale_run: Any, table: str) -> None:
    positions, found = rows.parts[table]
    for part in (
        Part(positions[POSITION_SIZE:], found[1:]),
        Part(positions + positions[:POSITION_SIZE], [*found, found[0]]),
        Part(positions, [found[-1], *found[1:]]),
    ):
        rows.write(table, part)
        assert f"{rows.path}: damaged" in refusal(wiretale_run("gather", rows.folder), 4)


@pytest.mark.parametrize("table", ["flows", "directions", "events", "series", "turns", "datagrams"])
@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_any_value_gives_results_or_one_line(rows: Rows, capsys: pytest.CaptureFixture[str], table: str) -> None:
    for column, kind in COLUMNS[table]:
        for value, outputs in ((None, []), (STRANGE[kind], ["--json"])):
            rows.write_value(table, column, value)
            code = main(["gather", str(rows.folder), "--inexact", *outputs])
            stdout, stderr = capsys.readouterr()
            assert code in (0, 4), (column, value)
            assert bool(stdout) == (code == 0), (column, value)
            assert stderr.count("\n") == (code == 4), (column, value, stderr)
