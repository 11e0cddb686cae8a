# SPDX-License-Identifier: Apache-2.0
"""Rows of another machine whose hash is right, but whose values no analysis writes: one line, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP

from application_wire import Talk
from checkout import SAMPLES
from crafted import write_timed
from processes import refusal
from row_bytes import COLUMNS, POSITION_SIZE, Part, Value, content_of, part_bytes, parts_of, take_part
from wiretale.analyzer import _core
from wiretale.analyzer.shards import layout, steps
from wiretale.analyzer.table import OF_FLOWS
from wiretale.cli import main

FILES = (
    "tcp_losses.pcap",
    "udp_fragments.pcap",
    "findings/blocks-corrupt.pcap.gz",
    "findings/dns-failed.pcap.gz",
    "findings/tls-alert.pcap.gz",
)
CAPTURE_HEAD = 16  # before the interfaces of a capture
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
        talk = Talk(8080).send(0.02, b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n")
        talk.timed.append((0.03, talk.segment(True, 0, b"", "R")))
        circling = Talk(8081, handshake=False).segment(False, 0, b"")
        for passes in range(6):
            circling[IP].ttl = 60 - passes
            talk.timed.append((0.04, circling.copy()))
        web = write_timed(folder.parent / "web.pcap", talk.timed)
        layout.plan([*(str(SAMPLES / name) for name in FILES), str(web)], folder, 1)
        steps.split_captures(folder, "test")
        steps.analyze_shard(folder, 0)
        self._split = layout.open_split(folder)
        self.path = self._split.rows_path(0)
        rows = layout.read_rows(self._split, 0)
        assert rows
        self._rows, self.content = rows, rows.content
        self._head, self.parts = parts_of(self.content)
        assert content_of(self._head, self.parts) == self.content
        self._facts = layout.all_facts(self._split)
        self.captures = [fact.rows for fact in self._facts]

    def write_content(self, content: bytes) -> None:
        layout.write_rows(self._split, 0, self._rows._replace(content=content))

    def write(self, table: str, part: Part) -> None:
        self.write_content(content_of(self._head, {**self.parts, table: part}))

    def write_value(self, table: str, column: str, value: Value) -> None:
        """Writes it in each row."""
        number = [name for name, _ in COLUMNS[table]].index(column)
        part = self.parts[table]
        self.write(table, Part(part.positions, [[*row[:number], value, *row[number + 1 :]] for row in part.rows]))

    def write_capture(self, file: int, interfaces: bytes) -> None:
        """Writes the interfaces of a capture."""
        layout.write_facts(self._split, file, self._facts[file]._replace(rows=interfaces))

    def restore(self) -> None:
        self.write_content(self.content)
        for file, content in enumerate(self.captures):
            self.write_capture(file, content)


@pytest.fixture(scope="module")
def split_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return Rows(tmp_path_factory.mktemp("rows") / "split")


@pytest.fixture
def rows(split_rows: Rows) -> Rows:
    """The rows as they were split, whatever an earlier test wrote."""
    split_rows.restore()
    return split_rows


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("flows", "packets", None),
        ("flows", "protocol", None),
        ("flows", "first_frame", -1),
        ("flows", "first_capture", len(FILES) + 1),
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
    positions, table_rows = rows.parts[table]
    for part in (
        Part(positions[POSITION_SIZE:], table_rows[1:]),
        Part(positions + positions[:POSITION_SIZE], [*table_rows, table_rows[0]]),
        Part(positions, [table_rows[-1], *table_rows[1:]]),
    ):
        rows.write(table, part)
        assert f"{rows.path}: damaged" in refusal(wiretale_run("gather", rows.folder), 4)


@pytest.mark.parametrize("table", OF_FLOWS)
@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_any_value_gives_results_or_one_line(rows: Rows, capsys: pytest.CaptureFixture[str], table: str) -> None:
    assert rows.parts[table].rows
    for column, kind in COLUMNS[table]:
        for value, outputs in ((None, []), (STRANGE[kind], ["--json"])):
            rows.write_value(table, column, value)
            check_end(rows, capsys, outputs, column, value)


def test_an_interface_without_a_value_gives_results_or_one_line(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    content, codes = rows.captures[0], {}
    part = take_part(content, CAPTURE_HEAD, "interfaces")
    head, tail = content[:CAPTURE_HEAD], content[CAPTURE_HEAD + len(part_bytes(part)) :]
    assert content == head + part_bytes(part) + tail
    for number, (column, _) in enumerate(COLUMNS["interfaces"]):
        changed_rows = [[*row[:number], None, *row[number + 1 :]] for row in part.rows]
        rows.write_capture(0, head + part_bytes(Part(part.positions, changed_rows)) + tail)
        codes[column] = check_end(rows, capsys, ["--json"], column)
    assert codes["packets"] == codes["file"] == 4 and codes["name"] == codes["snaplen"] == 0


@pytest.mark.parametrize(
    ("capture", "outcome", "packets", "code"),
    [(0, "malformed", 3, 0), (1, "malformed", 3, 4), (0, "tcp", 3, 4), (0, "malformed", -1, 4), (0, None, 3, 0)],
)
def test_undecoded_packets_of_an_interface_that_the_file_lacks_are_refused(
    rows: Rows, capsys: pytest.CaptureFixture[str], capture: int, outcome: str | None, packets: int, code: int
) -> None:
    content, words = rows.captures[0], _core.vocabulary()
    word = None if outcome is None else words.index(outcome)
    start = CAPTURE_HEAD + len(part_bytes(take_part(content, CAPTURE_HEAD, "interfaces")))
    tail = content[start + len(part_bytes(take_part(content, start, "decode_stops"))) :]
    stops = part_bytes(Part(b"", [[capture, word, b"ip-length", None, packets]]))
    rows.write_capture(0, content[:start] + stops + tail)
    assert check_end(rows, capsys, ["--json"], capture, outcome, packets) == code


def check_end(rows: Rows, capsys: pytest.CaptureFixture[str], outputs: list[str], *change: object) -> int:
    """Gathers the rows. The end is a result, or one line; returns the exit code."""
    code = main(["gather", str(rows.folder), "--inexact", *outputs])
    stdout, stderr = capsys.readouterr()
    assert code in (0, 4), change
    assert bool(stdout) == (code == 0), change
    assert stderr.count("\n") == (code == 4), (change, stderr)
    return code


def changed(draw: random.Random, content: bytes) -> bytes:
    """Changes, removes or adds some bytes."""
    content_changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at, size = draw.randrange(len(content_changed)), draw.choice((0, 1, 1, 1, 1, 8, 100))
        content_changed[at : at + size] = draw.randbytes(draw.choice((size, size, size, 0, 8)))
    return bytes(content_changed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_any_bytes_give_results_or_one_line(rows: Rows, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    draw, codes = random.Random(seed), set()
    for number in range(100):
        rows.write_content(changed(draw, rows.content))
        codes.add(check_end(rows, capsys, ["--json"], seed, number))
    rows.write_content(rows.content)
    for number in range(20):
        file = draw.randrange(len(FILES))
        rows.write_capture(file, changed(draw, rows.captures[file]))
        codes.add(check_end(rows, capsys, ["--json"], seed, file, number))
        rows.write_capture(file, rows.captures[file])
    assert codes == {0, 4}
    assert check_end(rows, capsys, []) == 0


def random_value(draw: random.Random, kind: str, column_values: list[Value]) -> Value:
    """A value of its kind, or one of another row."""
    values: list[Value] = [None, draw.choice(column_values)]
    if kind in ("text", "path", "address"):
        return draw.choice([*values, draw.randbytes(draw.choice((0, 4, 16, 300)))])
    bits = {"bool": 1, "word": 6}.get(kind) or draw.choice((1, 8, 32, 59, 64))
    return draw.choice([*values, draw.getrandbits(bits) - (1 << 63 if bits == 64 else 0)])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_any_rows_give_results_or_one_line(rows: Rows, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    draw, codes = random.Random(seed), set()
    tables = [name for name, part in rows.parts.items() if part.rows]
    for number in range(100):
        table = draw.choice(tables)
        table_rows = [list(row) for row in rows.parts[table].rows]
        for _ in range(draw.choice((1, 2, 4))):
            column = draw.randrange(len(COLUMNS[table]))
            value = random_value(draw, COLUMNS[table][column][1], [row[column] for row in table_rows])
            for row in table_rows if draw.random() < 0.4 else [draw.choice(table_rows)]:
                row[column] = value
        rows.write(table, Part(rows.parts[table].positions, table_rows))
        codes.add(check_end(rows, capsys, draw.choice(([], ["--json"])), seed, number, table))
    assert codes == {0, 4}
