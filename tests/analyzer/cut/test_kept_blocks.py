# SPDX-License-Identifier: Apache-2.0
"""Processes and decryption secrets in pcapng: flows have the process that the file names, and a cut keeps both."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from capture_files import block, interface, option, padded, section, wireshark_process
from process_captures import FILES, TLS, WIREGUARD, Flow, by_block, by_id, packet
from report_page import Page


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name, (content, _) in FILES.items():
        (tmp_path / f"{name}.pcapng").write_bytes(content)
    return {name: tmp_path / f"{name}.pcapng" for name in FILES}


def flows(*paths: Path) -> list[Flow]:
    rows = wiretale.analyze(*paths).flows.rows()
    return sorted((row["source_port"] or 0, row["process_id"], row["process_name"]) for row in rows)


def blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each block of a little-endian file."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        yield kind, content[at + 8 : at + size - 4]
        at += size


def test_flows_have_the_process_that_the_file_names(files: dict[str, Path]) -> None:
    for name, path in files.items():
        assert flows(path) == FILES[name][1], name


@pytest.mark.parametrize("width", ["60", "80"])
def test_the_flows_on_screen_have_their_process(wiretale_run: Any, files: dict[str, Path], width: str) -> None:
    """A row is of one process, or of flows without; rows by server, because there are too many, have their number."""
    screen = wiretale_run("analyze", files["macos"], env={"COLUMNS": width}).stdout
    table = [line.split()[4:] for line in screen.partition("\nFlows ")[2].splitlines()[1:4]]
    assert table == [["2", "12", "B"], ["l\u00e4unchd", "1", "4", "B"], ["Safari", "1", "4", "B"]]
    every = wiretale_run("analyze", files["wireshark"], "--all", env={"COLUMNS": width}).stdout
    assert re.findall(r"10\.0\.0\.1:100(\d) → +(\w+) +1 ", every) == [("1", "curl"), ("2", "78"), ("3", "sshd")]
    path = files["in-order"]
    path.write_bytes(
        section()
        + interface()
        + b"".join(
            wireshark_process(9 + at % 9, option(2, b"p%d" % (at % 9))) + packet(at, 4000 + at, by_id(9 + at % 9))
            for at in range(18)
        )
    )
    screen = wiretale_run("analyze", path, env={"COLUMNS": width}).stdout
    assert "10.0.0.2:5000 (UDP)  9 processes     18   72 B" in screen


def test_the_page_lists_and_finds_flows_by_process(page: Page, files: dict[str, Path], tmp_path: Path) -> None:
    page.open(wiretale.analyze(files["wireshark"]).report(tmp_path / "page.html"))
    cells = "[...document.querySelectorAll('#flows tbody tr')].map(row => row.cells[2].innerText)"
    assert page.page.evaluate(cells) == ["curl", "78", "sshd"]
    page.page.fill("#find", "SSHD")
    page.until(f"String({cells}) === 'sshd'")
    assert page.complaints == []


def test_a_cut_keeps_processes_also_if_two_hosts_gave_them_one_number(files: dict[str, Path], tmp_path: Path) -> None:
    for name, path in files.items():
        assert flows(wiretale.cut(path, output=tmp_path / f"cut-{name}.pcapng").path) == FILES[name][1], name
    merged = wiretale.cut(*files.values(), output=tmp_path / "merged.pcapng").path
    assert flows(merged) == flows(*files.values()) == sorted(row for _, rows in FILES.values() for row in rows)
    again = wiretale.cut(merged, output=tmp_path / "again.pcapng").path
    assert flows(again) == flows(merged)


def test_blocks_and_options_are_those_of_the_input(files: dict[str, Path], tmp_path: Path) -> None:
    cut_blocks = list(blocks(wiretale.cut(files["wireshark"], output=tmp_path / "one.pcapng").path))
    assert [body for kind, body in cut_blocks if kind == 10] == [
        struct.pack("<II", kind, len(text)) + padded(text)
        for kind, text in ((TLS, b"CLIENT_RANDOM aa bb"), (WIREGUARD, b"LOCAL_STATIC"))
    ]
    entry = struct.pack("<I", 77) + option(2, b"curl") + option(4, b"curl\0-v")
    assert [body for kind, body in cut_blocks if kind == 0xBAD] == [
        struct.pack("<III", 32622, 3, len(entry)) + entry,
        struct.pack("<I", 4711) + b"anything",
    ]
    assert next(body for kind, body in cut_blocks if kind == 6).endswith(by_id(77, 5) + option(0, b""))
    darwin = list(blocks(wiretale.cut(files["macos"], output=tmp_path / "two.pcapng").path))
    assert next(body for kind, body in darwin if kind == 0x80000001) == (
        struct.pack("<I", 501) + option(2, b"Safari") + option(4, bytes(range(16))) + option(0, b"")
    )
    first, _, third, *_ = (body for kind, body in darwin if kind == 6)
    assert first.endswith(by_block(0, "<") + by_block(7, "<", 0x8002) + option(0x8006, b"\2\1") + option(0, b""))
    assert third.endswith(by_block(0, "<") + by_block(1, "<", 0x8003) + option(0, b""))


@pytest.mark.parametrize("order", ["<", ">"])
def test_custom_options_keep_their_vendor_and_some_must_not_be_copied(tmp_path: Path, order: str) -> None:
    vendor = struct.pack(order + "I", 4711)
    options = (option(code, vendor + b"text", order) for code in (2988, 2989, 19372, 19373))
    body = struct.pack(order + "II", TLS, 4) + b"abcd" + b"".join(options) + option(2989, b"odd", order)
    (tmp_path / "in.pcapng").write_bytes(section(order) + interface(order=order) + block(10, body, order))
    made = wiretale.cut(tmp_path / "in.pcapng", output=tmp_path / "out.pcapng").path
    copied = [option(code, struct.pack("<I", 4711) + b"text") for code in (2988, 2989)]
    assert [body for kind, body in blocks(made) if kind == 10] == [
        struct.pack("<II", TLS, 4) + b"abcd" + b"".join(copied) + option(2989, b"odd") + option(0, b"")
    ]


@pytest.mark.parametrize(
    ("words", "name", "texts"),
    [
        ((), "out.pcapng", ("kept: 2 blocks of decryption secrets", "kept: 2 blocks of process information")),
        (("--headers",), "out.pcapng", ("left out: 2 blocks of decryption", "kept: 2 blocks of process")),
        (("--anonymize",), "out.pcapng", ("left out: 2 blocks of decryption", "left out: 2 blocks of process")),
        ((), "out.pcap", ("left out: 2 blocks of decryption", "left out: 2 blocks of process")),
    ],
)
def test_secrets_leave_only_with_payload_and_the_cut_says_so(
    wiretale_run: Any, files: dict[str, Path], tmp_path: Path, words: tuple[str, ...], name: str, texts: tuple[str, ...]
) -> None:
    done = wiretale_run("cut", files["wireshark"], "-o", tmp_path / name, *words)
    assert done.returncode == 0
    assert all(text in done.stderr for text in texts), done.stderr
    content = (tmp_path / name).read_bytes()
    assert (b"CLIENT_RANDOM" in content) == (b"LOCAL_STATIC" in content) == texts[0].startswith("kept")
    assert (b"curl" in content) == texts[1].startswith("kept")
    assert b"anything" not in content or not words or words == ("--headers",)


def test_shards_of_a_cluster_have_the_processes(wiretale_run: Any, files: dict[str, Path], tmp_path: Path) -> None:
    words = ("--cluster", "local", "--workers", "1", "--shards", "3", "-o", tmp_path / "run")
    done = wiretale_run("analyze", *files.values(), *words)
    assert done.returncode == 0, done.stderr
    assert flows_of(tmp_path / "run") == flows(*files.values())


def flows_of(folder: Path) -> list[Flow]:
    import duckdb

    rows = duckdb.sql(f"select source_port, process_id, process_name from '{folder}/flows.parquet'").fetchall()
    return sorted(rows)


def test_blocks_of_another_form_are_skipped(tmp_path: Path) -> None:
    odd = (
        b"",
        struct.pack("<I", 32622),
        struct.pack("<III", 32622, 3, 4),  # an entry longer than its block
        struct.pack("<III", 32622, 3, 0xFFFFFFFF) + bytes(8),
        struct.pack("<IIII", 32622, 3, 3, 1),  # shorter than a process id
    )
    content = section() + interface() + b"".join(block(kind, body) for body in odd for kind in (0xBAD, 0x40000BAD))
    content += block(0x80000001, b"") + b"".join(
        block(10, struct.pack("<II", TLS, size) + b"abcd") for size in (5, 2**32 - 1)
    )
    content += packet(1, 5001, by_block(0, "<") + option(8, b"short")) + packet(2, 5002, by_id(3))
    (tmp_path / "odd.pcapng").write_bytes(content)
    made = wiretale.cut(tmp_path / "odd.pcapng", output=tmp_path / "cut.pcapng")
    assert (made.written, made.damage) == (2, [])
    assert flows(made.path) == [(5001, None, None), (5002, 3, None)]
    assert not {kind for kind, _ in blocks(made.path)} & {10, 0x80000001, 0x40000BAD}


@needs.marked(needs.programs("tshark"))
def test_frames_are_numbered_as_by_wireshark(files: dict[str, Path]) -> None:
    """Version 4.0 does not read processes of Wireshark, and numbers them as frames as it does other custom blocks."""
    listing = subprocess.run(
        ["tshark", "-r", files["macos"], "-T", "fields", "-e", "frame.number", "-e", "udp.srcport"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = wiretale.analyze(files["macos"]).flows.rows()
    frames = {port: number for number, port in (line.split("\t") for line in reversed(listing.stdout.splitlines()))}
    assert {str(row["source_port"]): str(row["first_frame"]) for row in rows} == frames
    custom = section() + interface() + block(0xBAD, struct.pack("<I", 4711) + b"anything") + packet(1, 6001)
    files["macos"].write_bytes(custom)
    assert wiretale.analyze(files["macos"]).flows.rows()[0]["first_frame"] == 2
