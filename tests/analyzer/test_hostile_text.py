# SPDX-License-Identifier: Apache-2.0
"""Text from captures and file names in JSON and CSV: nothing obeys it, and nothing of it is lost."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from capture_files import enhanced, interface, option, section
from capture_points import udp
from forked_commands import run_command
from sample_sets import FEW_SAMPLES
from wiretale.reports.export import csv_text

FORMULA = "=cmd|'/C calc'!A1\"\t\\x1b"
ESCAPES = "\x1b]0;title\x07 \x9b31m \x7f\r\nnext line\\n"
BIDI = "\u202e\u2066txt\u2069\u200e\u200f\u061c\u202a"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EARLIER = -(10**9) * 100  # of the first packet's time, ns


def run(*words: str | bytes | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return run_command(*words, text=False, **options)


def texts_capture(path: Path, name: str, comment: str, program: str) -> Path:
    """A capture of one packet, before 1970, whose texts are these."""
    texts = option(1, comment.encode()) + option(4, program.encode()) + option(0, b"")
    packet = bytes(12) + b"\x08\0" + udp(b"text")
    texts_of_it = option(2, name.encode()) + option(14, struct.pack("<q", EARLIER // 10**9)) + option(0, b"")
    path.write_bytes(section(options=texts) + interface(texts_of_it) + enhanced(0, packet))
    return path


def unescaped(cell: str) -> str:
    """The text of a cell, as the documentation has it."""
    escapes = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
    cell = cell.removeprefix("'")
    return re.sub(
        r"\\(?:x(..)|u(....)|(.))",
        lambda m: escapes[m[3]] if m[3] else chr(int(m[1] or m[2], 16)),
        cell,
        flags=re.DOTALL,
    )


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("texts", [(FORMULA, ESCAPES, BIDI), ("-5", "'quoted", "@SUM(1)"), ("+1", "\t=1", "\\")])
def test_csv_neither_steers_a_terminal_nor_computes(tmp_path: Path, texts: tuple[str, str, str]) -> None:
    capture = texts_capture(tmp_path / "texts.pcapng", *texts)
    printed = run("analyze", capture, "--csv", "--tables", "interfaces")
    assert printed.returncode == 0, printed.stderr
    assert run("analyze", capture, "-q", "-o", tmp_path / "out", "--csv").returncode == 0
    for written in (printed.stdout, (tmp_path / "out" / "interfaces.csv").read_bytes()):
        text = written.decode().replace("\r\n", "\n")
        assert not STEERING.search(text)
        (row,) = rows_of(text)
        assert not any(
            cell[:1] in "=+-@\t\r" for cell in (row["name"], row["comment"], row["capture_application"]) if cell
        )
        cells = tuple(unescaped(row[name]) for name in ("name", "comment", "capture_application"))
        assert cells == texts
        # Numbers are as they were, negative ones too.
        assert (row["first_ns"], row["packets"], row["dropped_kernel"]) == (str(EARLIER), "1", "")


def test_csv_files_and_standard_output_have_the_same_texts(samples: Path, tmp_path: Path) -> None:
    for sample, names in {
        "two_interfaces.pcapng": ("interfaces", "flows", "findings"),
        "damaged.pcap": ("interfaces", "events", "handshakes"),
        "ip_fragments.pcap": ("datagrams", "exchanges"),
    }.items():
        run("analyze", samples / sample, "-q", "-o", tmp_path / sample, "--csv")
        trace = wiretale.analyze(samples / sample)
        for name in names:
            printed = rows_of(run("analyze", samples / sample, "--csv", "--tables", name).stdout.decode())
            written = rows_of((tmp_path / sample / f"{name}.csv").read_text())
            texts = [column for column, kind, *_ in trace.table(name).columns() if kind in ("text", "path")]
            assert [[row[text] for text in texts] for row in printed] == [
                [row[text] for text in texts] for row in written
            ]
            assert len(printed) == len(written)


def test_json_shows_no_other_text_than_the_one_that_is_there(tmp_path: Path) -> None:
    capture = texts_capture(tmp_path / f"{BIDI}.pcapng", BIDI, f"é {ESCAPES}{BIDI}", f"名 {BIDI}")
    again = tmp_path / f"{BIDI}2.pcapng"
    shutil.copy(capture, again)
    commands = {"analyze": [capture], "info": [capture], "explain": [capture, "--all"], "diff": [capture, again]}
    commands["compare"] = [capture, again]
    if not needs.programs("tshark"):
        commands["verify"] = [capture]
    for command, files in commands.items():
        done = run(command, *files, "--json")
        assert done.returncode == 0, done.stderr
        assert not STEERING.search(done.stdout.decode()), command
        assert str(capture) in json.dumps(json.loads(done.stdout), ensure_ascii=False)
    (row,) = json.loads(run("info", capture, "--json").stdout)["interfaces"]
    assert (row["name"], row["comment"]) == (BIDI, f"é {ESCAPES}{BIDI}")
    assert row["capture_application"] == f"名 {BIDI}" and row["file"] == str(capture)


def files_in(document: dict[str, object]) -> list[str]:
    """The names of files in a JSON object, whatever member holds them."""
    names: list[str] = []
    for key, value in document.items():
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, dict):
                names += files_in(member)
            elif key in ("inputs", "files", "file", "path") and isinstance(member, str):
                names.append(member)
    return names


@pytest.mark.parametrize("command", ["analyze", "info", "explain", "diff", "compare", "verify"])
def test_a_file_name_that_is_not_utf8_survives_json(samples: Path, tmp_path: Path, command: str) -> None:
    if command == "verify":
        needs.skip_without(needs.programs("tshark"))
    paths = [os.path.join(os.fsencode(tmp_path), name) for name in (b"caf\xe9.pcap", b"\xff\xc3(\xed\xa0\x80.pcap")]
    for path in paths:
        with open(path, "wb") as file:
            file.write((samples / "tcp_losses.pcap").read_bytes())
    if command not in ("diff", "compare"):
        paths = paths[:1]
    done = run(command, *paths, "--json")
    assert done.returncode == 0 and b"\xe9" not in done.stdout, done.stderr
    names = [os.fsencode(name) for name in files_in(json.loads(done.stdout))]
    assert sorted(set(names)) == sorted(paths)
    for path in names:
        assert Path(os.fsdecode(path)).read_bytes() == (samples / "tcp_losses.pcap").read_bytes()


def test_a_file_name_that_is_not_utf8_is_readable_text_elsewhere(samples: Path, tmp_path: Path) -> None:
    import duckdb

    needs.skip_without(needs.proc())  # DuckDB is given such a path by a descriptor
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.pcap")
    out = os.path.join(os.fsencode(tmp_path), b"out\xe9")
    with open(path, "wb") as file:
        file.write((samples / "tcp_losses.pcap").read_bytes())
    for words in (
        ["analyze", path],
        ["info", path],
        ["analyze", path, "--all"],
        ["compare", path, samples / "tcp_losses.pcap"],
    ):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        done.stdout.decode()
    done = run("analyze", path, "-o", out, "--csv", "--report", os.path.join(os.fsencode(tmp_path), b"p\xe9"))
    assert done.returncode == 0, done.stderr
    for page in (b"p\xe9", b"out\xe9/report.html"):
        with open(os.path.join(os.fsencode(tmp_path), page), "rb") as file:
            assert "caf\ufffd.pcap" in file.read().decode()
    with open(os.path.join(out, b"interfaces.csv"), encoding="utf-8") as table:
        assert next(csv.DictReader(table))["file"].endswith("caf\ufffd.pcap")
    assert run("diff", out, path).returncode == 0
    os.rename(out, tmp_path / "out")
    assert (
        duckdb.sql(f"select file from '{tmp_path}/out/interfaces.parquet'").fetchall()[0][0].endswith("caf\ufffd.pcap")
    )

    trace = wiretale.analyze(os.fsdecode(path))
    assert trace.interfaces.column("file") == trace.inputs == [os.fsdecode(path)]
    ((name,),) = trace.query("select file from interfaces").fetchall()
    assert name.endswith("caf\ufffd.pcap") and trace._repr_html_().encode()


@FEW_SAMPLES
@pytest.mark.parametrize("rows_at_once", [1, 3, 4096])
def test_csv_on_a_stream_has_the_rows_of_the_table(
    sample: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(csv_text, "ROWS_AT_ONCE", rows_at_once)
    trace = wiretale.analyze(sample)
    for name in ("interfaces", "flows", "directions", "findings"):
        out = io.StringIO()
        csv_text.write_csv([trace.table(name)], out)
        records = list(csv.DictReader(io.StringIO(out.getvalue())))
        rows = trace.table(name).rows()
        assert records == [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
