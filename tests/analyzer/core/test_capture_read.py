# SPDX-License-Identifier: Apache-2.0
"""Capture files of every kind, whole and broken, against the same packets known beforehand."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, Ether, Raw, raw

import needs
import wiretale
from capture_files import block, enhanced, interface, option, section

START = 1_700_000_000_123_456_789
Stamped = tuple[int, bytes]


def frame(number: int, size: int = 50) -> bytes:
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    return bytes(raw(ether / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=number + 1, dport=9) / Raw(b"x" * size)))


PACKETS: list[Stamped] = [(START + 1_000_000 * n, frame(n, n)) for n in range(40)]


def pcap(
    packets: Iterable[Stamped], order: str = "<", magic: int = 0xA1B2C3D4, unit: int = 1000, link: int = 1
) -> bytes:
    """A pcap file; `unit` is ns of the time stamps' fraction."""
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)]
    for ns, data in packets:
        head = struct.pack(order + "IIII", ns // 10**9, ns % 10**9 // unit, len(data), len(data))
        extra = struct.pack(order + "IHBx", 1, 8, 0) if magic == 0xA1B2CD34 else b""
        parts += [head, extra, data]
    return b"".join(parts)


def analyzed(tmp_path: Path, content: bytes, name: str = "file.bin") -> wiretale.Trace:
    path = tmp_path / name
    path.write_bytes(content)
    return wiretale.analyze(path)


def times(trace: wiretale.Trace) -> list[int]:
    return [int(ns) for ns in trace.packets(range(len(trace.flows))).column("time_ns")]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("magic", "unit", "name"),
    [(0xA1B2C3D4, 1000, "pcap"), (0xA1B23C4D, 1, "pcap-ns"), (0xA1B2CD34, 1000, "pcap-modified")],
)
def test_every_pcap_variant(tmp_path: Path, order: str, magic: int, unit: int, name: str) -> None:
    trace = analyzed(tmp_path, pcap(PACKETS, order, magic, unit))
    (row,) = trace.interfaces.rows()
    assert (row["format"], row["packets"], row["damage"], row["time_resolution_ns"]) == (name, 40, None, unit)
    assert times(trace) == [ns // unit * unit for ns, _ in PACKETS]


def resolution(code: int, order: str, offset: int = 0) -> bytes:
    shift = option(14, struct.pack(order + "q", offset), order) if offset else b""
    return option(9, bytes([code]), order) + shift


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("code", "offset", "ticks_of"),
    [
        (6, 0, lambda ns: ns // 1000),
        (9, 0, lambda ns: ns),
        (3, 0, lambda ns: ns // 10**6),
        (0x80 | 20, 0, lambda ns: (ns << 20) // 10**9),
        (9, 10**9, lambda ns: ns - 10**18),
    ],
)
def test_pcapng_resolutions_and_offsets(tmp_path: Path, order: str, code: int, offset: int, ticks_of: Any) -> None:
    content = section(order) + interface(resolution(code, order, offset), order)
    content += b"".join(enhanced(ticks_of(ns), data, 0, order) for ns, data in PACKETS)
    trace = analyzed(tmp_path, content)
    assert trace.interfaces.rows()[0]["packets"] == 40
    assert all(abs(a - ns) < 1_000_000 for a, (ns, _) in zip(times(trace), PACKETS, strict=True))


def test_sections_interfaces_link_types_statistics_and_comments(tmp_path: Path) -> None:
    ip_only = PACKETS[1][1][14:]
    statistics = struct.pack("<III", 0, 0, 0) + option(4, struct.pack("<Q", 100)) + option(7, struct.pack("<Q", 7))
    commented = struct.pack("<IIIII", 0, 0, 5, 40, 45) + PACKETS[3][1][:40] + option(1, b"look here") + option(0, b"")
    content = (
        section()
        + interface(option(2, b"eth0") + option(11, b"\0tcp port 80") + option(12, b"Linux"))
        + interface(option(2, b"tun0"), link_type=101)
        + enhanced(1, PACKETS[0][1])
        + enhanced(2, ip_only, 1)
        + block(0x0BAD, b"a block that nobody knows")
        + block(6, commented)
        + block(5, statistics)
        + section(">")
        + interface(option(2, b"eth9", ">"), ">")
        + enhanced(9, PACKETS[2][1], 0, ">")
    )
    rows = analyzed(tmp_path, content).interfaces.rows()
    assert [(r["name"], r["link_type"], r["packets"]) for r in rows] == [
        ("eth0", 1, 2),
        ("tun0", 101, 1),
        ("eth9", 1, 1),
    ]
    assert (rows[0]["received"], rows[0]["dropped_kernel"], rows[1]["received"]) == (100, 7, None)
    assert (rows[0]["capture_filter"], rows[0]["system"], rows[0]["packet_comments"]) == ("tcp port 80", "Linux", 1)
    assert all(r["damage"] is None and r["malformed"] == 0 for r in rows)


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("c" * 4095, "c" * 4095),
        ("c" * 4096, "c" * 4092 + "…"),
        ("é" * 2048, "é" * 2046 + "…"),  # 4,096 bytes, cut between characters
        ("€" * 9000, "€" * 1364 + "…"),
    ],
)
def test_a_comment_that_is_cut_ends_in_a_mark(tmp_path: Path, comment: str, text: str) -> None:
    content = section() + interface(option(1, comment.encode())) + enhanced(1, PACKETS[0][1])
    assert analyzed(tmp_path, content).interfaces.rows()[0]["comment"] == text


def test_comments_above_the_limit_of_all_texts_are_a_mark(tmp_path: Path) -> None:
    """32 MB of texts are stored; a later one is not missing, but cut."""
    described = interface(option(2, b"eth0") + option(1, b"c" * 4000))
    content = section() + described * 8_400 + enhanced(1, PACKETS[0][1])
    comments = analyzed(tmp_path, content).interfaces.column("comment")
    assert comments[:8_000] == ["c" * 4000] * 8_000 and set(comments[8_390:]) == {"…"}


@pytest.mark.parametrize(
    "statistics, counts",
    [
        ({4: 100, 5: 3, 6: 100, 7: 7, 8: 80}, (100, 7, 3, 13)),  # the program dropped the rest
        ({6: 90, 7: 7, 8: 83}, (90, 7, None, 0)),
        ({4: 100, 6: 90, 8: 80}, (100, None, None, 10)),
        ({4: 100, 5: 4, 7: 7}, (100, 7, 4, None)),  # as other programs do
        ({8: 80}, (None, None, None, None)),
        ({6: 90, 7: 100, 8: 80}, (90, 100, None, 0)),  # counts that cannot be
        ({6: 2**64 - 2, 7: 2**64 - 3, 8: 0}, (-2, -3, None, 1)),
    ],
)
def test_the_rest_of_the_statistics_was_dropped_by_the_program(
    tmp_path: Path, statistics: dict[int, int], counts: tuple[int | None, ...]
) -> None:
    options = b"".join(option(code, struct.pack("<Q", count)) for code, count in statistics.items())
    content = section() + interface() + enhanced(1, PACKETS[0][1]) + block(5, struct.pack("<III", 0, 0, 0) + options)
    trace = analyzed(tmp_path, content)
    (row,) = trace.interfaces.rows()
    names = ("received", "dropped_kernel", "dropped_interface", "dropped_program")
    if all(count is None or count >= 0 for count in counts):
        assert tuple(row[name] for name in names) == counts
        lost = [finding["cost"] for finding in trace.findings.rows() if finding["code"] == "capture-dropped"]
        assert lost == [sum(filter(None, counts[1:]))] * any(counts[1:])


@pytest.mark.parametrize("tool", ["gzip", "zstd", "lz4"])
def test_compressed_captures_also_in_several_parts(tmp_path: Path, tool: str) -> None:
    needs.skip_without(needs.programs(tool))
    plain = tmp_path / "plain"
    content = pcap(PACKETS)
    parts = []
    for piece in (content[:1000], content[1000:]):
        plain.write_bytes(piece)
        parts.append(subprocess.run([tool, "-c", plain], capture_output=True, check=True).stdout)
    trace = analyzed(tmp_path, b"".join(parts), "compressed")
    (row,) = trace.interfaces.rows()
    assert (row["compression"], row["packets"], row["damage"]) == (tool, 40, None)
    cut = analyzed(tmp_path, parts[0] + parts[1][: len(parts[1]) // 2], "cut").interfaces.rows()[0]
    assert 0 < cut["packets"] < 40 and cut["damage"]


def test_every_prefix_of_a_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packets = PACKETS[:4]
    for content, first in (
        (pcap(packets), 24),
        (section() + interface() + b"".join(enhanced(ns // 1000, data) for ns, data in packets), 28),
    ):
        last = 0
        for size in range(len(content) + 1):
            try:
                trace = analyzed(tmp_path, content[:size])
            except wiretale.InputError as error:
                assert size < first, (size, error)
                continue
            assert trace.totals["packets"] >= last
            last = trace.totals["packets"]
        assert last == 4


def test_files_that_are_none_are_one_clear_error(tmp_path: Path) -> None:
    for content in (
        b"",
        b"\n",
        b"GET / HTTP/1.1\r\n",
        random.Random(11).randbytes(1000),
        b"\x1f\x8bnot really gzip",
    ):
        with pytest.raises(wiretale.InputError) as caught:
            analyzed(tmp_path, content)
        assert str(tmp_path / "file.bin") in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFFFFF, 300_000])
def test_wrong_lengths_are_damage(tmp_path: Path, length: int) -> None:
    lie = struct.pack("<IIII", 1_700_000_000, 0, length, length) + b"short"
    (row,) = analyzed(tmp_path, pcap(PACKETS[:5]) + lie + pcap(PACKETS)[24:]).interfaces.rows()
    assert (row["packets"], row["damage_frame"]) == (5, 5)
    assert str(row["damage_offset"]) in row["damage"]
    blocks = section() + interface() + enhanced(5, PACKETS[0][1]) + struct.pack("<II", 6, length) + b"\0" * 40
    (row,) = analyzed(tmp_path, blocks).interfaces.rows()
    assert row["packets"] == 1 and row["damage"]


def test_random_damage_never_crashes(tmp_path: Path, sample: Path) -> None:
    original, chance = bytearray(sample.read_bytes()), random.Random(7)
    for _ in range(60):
        content = bytearray(original)
        for _ in range(chance.choice((1, 5, 50))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        with contextlib.suppress(wiretale.InputError):
            analyzed(tmp_path, bytes(content))


def test_a_rotated_set_larger_than_the_file_limit(tmp_path: Path) -> None:
    count = 1500
    for number in range(count):
        (tmp_path / f"part{number:05}.pcap").write_bytes(pcap([(START + 1000 * number, frame(number % 50))]))
    trace = wiretale.analyze(tmp_path)
    assert trace.totals["packets"] == count
    assert trace.interfaces.column("file") == sorted(trace.interfaces.column("file"))
    assert all(row["damage"] is None for row in trace.interfaces.rows())
    assert trace.flows.column("packets") == [30] * 50


def test_overlapping_files_are_merged_by_time(tmp_path: Path) -> None:
    chance = random.Random(3)
    parts: list[list[Stamped]] = [[], [], []]
    for number in range(600):
        chance.choice(parts).append((START // 1000 * 1000 + 1000 * number, frame(0)))
    paths = []
    for number, part in enumerate(parts):
        content = pcap(part)
        paths.append(tmp_path / f"{number}.pcap")
        paths[-1].write_bytes(gzip.compress(content) if number == 1 else content)
    trace = wiretale.analyze(*paths)
    assert trace.totals["packets"] == 600
    assert times(trace) == [START // 1000 * 1000 + 1000 * n for n in range(600)]


def test_a_pipe_can_be_merged_with_a_file(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file.pcap"
    os.mkfifo(pipe)
    file.write_bytes(pcap(PACKETS[::2]))
    writer = threading.Thread(target=pipe.write_bytes, args=(pcap(PACKETS[1::2]),))
    writer.start()
    trace = wiretale.analyze(pipe, file)
    writer.join()
    assert trace.totals["packets"] == 40 and trace.flows.column("source_port") == list(range(1, 41))


@needs.marked(needs.plain_processes())  # a sanitizer keeps freed memory
def test_memory_does_not_grow_with_packets(tmp_path: Path) -> None:
    """The most memory of a run over twice the packets of the same flows is within 8 MB: 11 bytes for each more.

    Threads take batches by chance, so the memory differs by some MB.

    The fewer ones fill both batches already (analyzer/core/pipeline/batch.h).
    """
    code = (
        "import sys, wiretale; wiretale.analyze(sys.argv[1])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    peaks = []
    for times_over in (18, 36):
        path = tmp_path / "many.pcap"
        many = [(START + 1000 * n, PACKETS[n % 40][1]) for n in range(40_000 * times_over)]
        path.write_bytes(pcap(many))
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 8192
