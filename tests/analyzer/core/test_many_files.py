# SPDX-License-Identifier: Apache-2.0
"""Many files are analyzed as the one file that has their packets in order of time: rotated, overlapping, compressed and damaged
ones, with few descriptors.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import needs
import wiretale
from changed_packets import Packet, read_pcap, write_packets
from checkout import Run
from json_rows import with_values
from wiretale.analyzer.table import OF_FLOWS

SOURCES = ("fast_retransmissions", "udp_blocks", "ip_fragments", "vxlan_loss", "timeouts")
#: name a file or a frame of it, as do the columns that end in _frame
PLACES = {"first_capture", "capture", "frame", "before_capture", "after_capture"}


class Parts(NamedTuple):
    """A folder of files, and the packets of each by the number of the packet in the whole."""

    folder: Path
    numbers: dict[str, list[int]]


@pytest.fixture(scope="module")
def packets(samples: Path) -> list[Packet]:
    """Packets of several samples, 10 minutes apart, because they use the same addresses. No two have the same time."""
    wholes = [read_pcap(samples / f"{name}.pcap") for name in SOURCES]
    return spread(
        replace(packet, ns=packet.ns + place * 600 * 10**9) for place, part in enumerate(wholes) for packet in part
    )


def spread(packets: Iterable[Packet]) -> list[Packet]:
    """The packets in order of time, each some ns later than its own time, so that no two have the same."""
    ordered = sorted(packets, key=lambda packet: packet.ns)
    return [replace(packet, ns=packet.ns + number) for number, packet in enumerate(ordered)]


def write_parts(folder: Path, packets: Sequence[Packet], parts: dict[str, list[int]]) -> Parts:
    folder.mkdir()
    for name, numbers in parts.items():
        path = write_packets(folder / name, [packets[number] for number in numbers])
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
        elif path.suffix in (".zst", ".lz4"):
            tool = {".zst": "zstd", ".lz4": "lz4"}[path.suffix]
            path.write_bytes(
                subprocess.run([tool, "-q", "-c"], input=path.read_bytes(), capture_output=True, check=True).stdout
            )
    return Parts(folder, parts)


def without_places(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in PLACES and not name.endswith("_frame")}


def rows(trace: wiretale.Trace) -> dict[str, list[dict[str, Any]]]:
    """The tables without the columns that name frames of a file."""
    return {name: [without_places(row) for row in trace.table(name).rows()] for name in OF_FLOWS}


def order_of(trace: wiretale.Trace, parts: Parts) -> list[int]:
    """The numbers of the packets in the order in which they were analyzed."""
    files = [Path(file).name for file in trace.interfaces.column("file")]
    table = trace.packets()
    places = zip(table.column("capture"), table.column("frame"), strict=True)
    return [parts.numbers[files[capture]][frame - 1] for capture, frame in places]


def check_as_one(trace: wiretale.Trace, parts: Parts, packets: list[Packet], numbers: Sequence[int], path: Path) -> int:
    """Compares rows, and the order of packets, with those of one file with the packets of these numbers. Returns how many
    waits have the capture of their first packet."""
    joined = wiretale.analyze(write_packets(path, [packets[number] for number in numbers]))
    assert rows(trace) == rows(joined)
    assert order_of(trace, parts) == [numbers[frame - 1] for frame in joined.packets().column("frame")]
    return check_waits(trace, parts, joined, numbers)


def check_waits(trace: wiretale.Trace, parts: Parts, single: wiretale.Trace, numbers: Sequence[int]) -> int:
    """Compares the packets of waits, as far as the file of the first is certain, with those in one file. Returns how many."""
    files = [Path(file).name for file in trace.interfaces.column("file")]
    located = 0
    for row, expected in zip(trace.waits.rows(), single.waits.rows(), strict=True):
        for end in ("before", "after"):
            capture, frame = row[f"{end}_capture"], row[f"{end}_frame"]
            assert (frame is None) == (expected[f"{end}_frame"] is None)
            if capture is not None:
                assert parts.numbers[files[capture]][frame - 1] == numbers[expected[f"{end}_frame"] - 1]
                located += end == "before"
    return located


def rotated(packets: Sequence[Packet], chance: random.Random) -> list[list[int]]:
    """Runs of 1 to 12 packets."""
    runs, at = [], 0
    while at < len(packets):
        runs.append(list(range(at, min(at + chance.randint(1, 12), len(packets)))))
        at = runs[-1][-1] + 1
    return runs


def test_a_rotated_set_is_read_in_order_of_time_whatever_its_names(packets: list[Packet], tmp_path: Path) -> None:
    chance = random.Random(1)
    runs = rotated(packets, chance)
    names = chance.sample(range(10_000), len(runs))
    parts = write_parts(
        tmp_path / "parts", packets, {f"{name:04}.pcap": run for name, run in zip(names, runs, strict=True)}
    )
    assert len(runs) > 200
    assert check_as_one(wiretale.analyze(parts.folder), parts, packets, range(len(packets)), tmp_path / "one.pcap")


def test_files_that_touch_at_one_time_are_read_in_order_of_their_names(packets: list[Packet], tmp_path: Path) -> None:
    """A coarse clock gives the last packets of a file and the first of the next one the same time."""
    coarse = [replace(packet, ns=packet.ns // 50_000_000 * 50_000_000) for packet in packets]
    runs = rotated(coarse, random.Random(2))
    parts = write_parts(tmp_path / "parts", coarse, {f"{name:04}.pcap": run for name, run in enumerate(runs)})
    touching = sum(coarse[run[0]].ns == coarse[run[0] - 1].ns for run in runs[1:])
    assert touching > 100
    check_as_one(wiretale.analyze(parts.folder), parts, coarse, range(len(packets)), tmp_path / "one.pcap")


@needs.marked(needs.programs("zstd", "lz4"))
def test_overlapping_files_of_every_compression_are_merged(packets: list[Packet], tmp_path: Path) -> None:
    chance = random.Random(3)
    suffixes = ("pcap", "pcap.gz", "pcap.zst", "pcap.lz4")
    overlapping: dict[str, list[int]] = {f"{name:02}.{suffixes[name % 4]}": [] for name in range(24)}
    for number in range(len(packets)):
        overlapping[chance.choice(list(overlapping))].append(number)
    parts = write_parts(tmp_path / "parts", packets, overlapping)
    check_as_one(wiretale.analyze(parts.folder), parts, packets, range(len(packets)), tmp_path / "one.pcap")


def test_overlapping_files_need_few_descriptors(wiretale_run: Run, packets: list[Packet], tmp_path: Path) -> None:
    """Each file is larger than a first read, so that it is opened again in the middle, also if it is compressed."""
    padded = spread(replace(packet, data=packet.data.ljust(1400, b"\0"), length=1400) for packet in packets)
    names = [f"{name:03}.pcap" + (".gz" if name % 9 == 0 else "") for name in range(50)]
    numbers = {name: list(range(place, len(padded), len(names))) for place, name in enumerate(names)}
    parts = write_parts(tmp_path / "parts", padded, numbers)
    joined = wiretale.analyze(write_packets(tmp_path / "one.pcap", padded))
    assert min((parts.folder / name).stat().st_size for name in names[1:9]) > 16_384
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, before[1]))
    try:
        done = wiretale_run("analyze", "--json", "--tables", ",".join((*OF_FLOWS, "interfaces")), str(parts.folder))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)
    assert len(tables["interfaces"]) == len(names) and not any("damage" in row for row in tables["interfaces"])
    for name, expected in rows(joined).items():
        placeless = [without_places(row) for row in tables[name]]
        assert placeless == with_values(json.loads(json.dumps(expected))), name


def test_damaged_and_empty_files_do_not_end_the_others(packets: list[Packet], tmp_path: Path) -> None:
    runs = rotated(packets, random.Random(4))
    parts = write_parts(tmp_path / "parts", packets, {f"{name:04}.pcap": run for name, run in enumerate(runs)})
    (parts.folder / "empty.pcap").touch()
    write_packets(parts.folder / "no packets.pcap", [])
    cut, broken = [name for name, run in parts.numbers.items() if len(run) > 8][10:12]
    content = (parts.folder / cut).read_bytes()
    (parts.folder / cut).write_bytes(content[:-7])
    content = (parts.folder / broken).read_bytes()
    (parts.folder / broken).write_bytes(content[:24] + b"\xff" * 16 + content[40:])
    headless = parts.folder / "headless.pcap"
    headless.write_bytes(content[:20])
    with pytest.warns(wiretale.DamagedInputWarning), pytest.warns(wiretale.SkippedFileWarning) as skipped:
        trace = wiretale.analyze(parts.folder)
    assert [str(warning.message) for warning in skipped if warning.category is wiretale.SkippedFileWarning] == [
        f"skipped {parts.folder}/empty.pcap: empty (0 bytes)",
        f"skipped {headless}: truncated: a pcap header needs 24 bytes, the file has 20",
    ]
    damaged = {Path(row["file"]).name: row["damage"] for row in trace.interfaces.rows() if row["damage"]}
    assert set(damaged) == {cut, broken} and all(name in text for name, text in damaged.items())
    lost = {parts.numbers[cut][-1], *parts.numbers[broken]}
    left = [number for number in range(len(packets)) if number not in lost]
    check_as_one(trace, parts, packets, left, tmp_path / "one.pcap")


def large_parts(packets: list[Packet], folder: Path) -> tuple[list[Packet], Parts]:
    """Compressed files that a thread reads ahead in several steps: six rotated ones, and two that overlap all of them."""
    chance = random.Random(5)
    padded = spread(
        replace(
            packet,
            ns=packet.ns + hour * 3600 * 10**9,
            data=(packet.data + chance.randbytes(100)).ljust(1400, b"\0"),
            length=1400,
        )
        for hour in range(8)
        for packet in packets
    )
    files: dict[str, list[int]] = {"all.pcap.gz": [], "all.pcap.zst": []}
    for number in range(len(padded)):
        rotated = f"{number * 6 // len(padded)}.pcap.{('gz', 'zst', 'lz4')[number * 6 // len(padded) % 3]}"
        files.setdefault(chance.choice([rotated, rotated, *list(files)[:2]]), []).append(number)
    return padded, write_parts(folder, padded, files)


@needs.marked(needs.programs("zstd", "lz4"))
def test_files_that_threads_decompress_are_merged(packets: list[Packet], tmp_path: Path) -> None:
    padded, parts = large_parts(packets, tmp_path / "parts")
    assert min(len(run) for run in parts.numbers.values()) * 1400 > 4 * 256 * 1024
    check_as_one(wiretale.analyze(parts.folder, jobs=3), parts, padded, range(len(padded)), tmp_path / "one.pcap")


@needs.marked(needs.programs("zstd", "lz4"))
def test_rows_of_damaged_compressed_files_do_not_depend_on_jobs(
    wiretale_run: Run, packets: list[Packet], tmp_path: Path
) -> None:
    """A gzip file is cut, and a zstd file has wrong bytes in the middle."""
    _, parts = large_parts(packets, tmp_path / "parts")
    cut, broken = parts.folder / "3.pcap.gz", parts.folder / "all.pcap.zst"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    content = broken.read_bytes()
    broken.write_bytes(content[: len(content) // 2] + b"\xff" * 64 + content[len(content) // 2 + 64 :])
    outputs = set()
    for jobs in ("1", "2", "3", "8"):
        command = ("analyze", "--json", "--tables", ",".join((*OF_FLOWS, "interfaces")), "-j", jobs, str(parts.folder))
        done = wiretale_run(*command)
        assert done.returncode == 3, done.stderr
        outputs.add((done.stdout, done.stderr))
    assert len(outputs) == 1
    interfaces = json.loads(outputs.pop()[0])["interfaces"]
    damage = {Path(row["file"]).name: row["damage"] for row in interfaces if row["damage"]}
    assert set(damage) == {cut.name, broken.name}
    plain = zlib.decompressobj(31).decompress(cut.read_bytes())
    left = (len(plain) - 24) // (16 + 1400)
    where = f"at byte {24 + left * (16 + 1400)}: gzip: the compressed stream is truncated (after frame {left})"
    assert damage[cut.name].endswith(where)
