# SPDX-License-Identifier: Apache-2.0
"""Measures what many small files cost beyond their packets: `wiretale analyze DIR`, and `wiretale store add`; and how much sooner
two jobs have read a folder of rotated, compressed files than one.

    make bench

The folder has 10,000 rotated files of 10 to 400 packets, whose names are not in order of time. The CPU time for it, less that
for one file with the same packets, is divided by the files, and compared with capinfos, which reads each file and prints some
lines of it. `store add` analyzes each file alone; it gets 1,000 of them. The best of up to three runs counts.

The rotated files are 20 of 250,000 packets, compressed by gzip. The least wall times are compared, on a machine that is idle.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import struct
import sys
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path

from speed.analyze import BUILD, MANY_PACKETS, QUARTER, Capture, make_capture
from speed.check import Check, print_checks
from speed.measured import Usage, run_measured

FILES, STORED = 10_000, 1_000
LEAST, MOST = 10, 400  # packets of a file
FILE_HEADER, RECORD = 24, struct.Struct("<IIII")
FOLDER, PART, ONE = BUILD / "files", BUILD / "files-stored", BUILD / "files.pcap"
ROTATED, ROTATED_PACKETS = BUILD / "files-rotated", 250_000
OUT, STORE = BUILD / "files-out", BUILD / "files-store"
ROUNDS = 3


def records(capture: Capture) -> Iterator[bytes]:
    """Yields the records of a capture."""
    with capture.path.open("rb") as file:
        file.seek(FILE_HEADER)
        while head := file.read(RECORD.size):
            yield head + file.read(RECORD.unpack(head)[2])


def make_files() -> None:
    """Cuts a capture into the files, unless that was done, and writes their packets into one."""
    if ONE.exists() and ONE.stat().st_mtime > QUARTER.path.stat().st_mtime:
        return
    print(f"==> making {FOLDER}", file=sys.stderr, flush=True)
    for folder in (FOLDER, PART):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    chance, left = random.Random(1), records(QUARTER)
    names = [f"{number:05}.pcap" for number in range(FILES)]
    chance.shuffle(names)
    partial = ONE.with_suffix(".partial")
    with QUARTER.path.open("rb") as source, partial.open("wb") as joined:
        header = source.read(FILE_HEADER)
        joined.write(header)
        for number, name in enumerate(names):
            count = int(LEAST * (MOST / LEAST) ** chance.random())
            body = b"".join(islice(left, count))
            (FOLDER / name).write_bytes(header + body)
            if number < STORED:
                (PART / name).write_bytes(header + body)
            joined.write(body)
    partial.rename(ONE)


def make_rotated() -> None:
    """Cuts a capture into compressed files in order of time, unless that was done."""
    if ROTATED.exists() and ROTATED.stat().st_mtime > MANY_PACKETS.path.stat().st_mtime:
        return
    print(f"==> making {ROTATED}", file=sys.stderr, flush=True)
    partial = ROTATED.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    with MANY_PACKETS.path.open("rb") as source:
        header = source.read(FILE_HEADER)
    left = records(MANY_PACKETS)
    for number in range(MANY_PACKETS.packets // ROTATED_PACKETS):
        body = b"".join(islice(left, ROTATED_PACKETS))
        (partial / f"{number:02}.pcap.gz").write_bytes(gzip.compress(header + body, 6))
    shutil.rmtree(ROTATED, ignore_errors=True)
    partial.rename(ROTATED)


def best(*command: str | Path, by: str = "cpu") -> Usage:
    """Returns the run of a command with the least CPU or wall time."""

    def run() -> Usage:
        shutil.rmtree(OUT, ignore_errors=True)
        shutil.rmtree(STORE, ignore_errors=True)
        usage = run_measured(list(map(str, command)))
        assert usage  # it has no limit
        return usage

    return min((run() for _ in range(ROUNDS)), key=attrgetter(by))


def checks(wiretale: str) -> Iterator[Check]:
    """Measures, and yields the bounds."""
    capinfos = best("capinfos", *sorted(FOLDER.iterdir())).cpu
    for name, options in (("--json", ["--json"]), ("-o", ["-o", OUT])):
        folder = best(wiretale, "analyze", *options, FOLDER)
        single = best(wiretale, "analyze", *options, ONE)
        extra = folder.cpu - single.cpu
        yield Check(f"{FILES:,} files, {name}: CPU time for each beyond its packets", extra / FILES * 1e3, 1, "ms", 3)
        yield Check(f"{FILES:,} files, {name}: that / capinfos'", extra / capinfos, 2 if name == "--json" else 6)
        yield Check(
            f"{FILES:,} files, {name}: memory for each beyond one file",
            (folder.memory - single.memory) / FILES * 1e3,
            15,
            "kB",
        )
    one_job, two_jobs = (
        best(wiretale, "analyze", "--json", "-j", jobs, ROTATED, by="wall").wall for jobs in ("1", "2")
    )
    yield Check("rotated gzip files: wall time of 2 jobs / that of 1", two_jobs / one_job, 0.7)
    alone = best(wiretale, "analyze", "--json", next(PART.iterdir())).cpu
    stored = best(wiretale, "store", "add", "-q", STORE, PART)
    yield Check(f"{STORED:,} files, store add: CPU time for each", stored.cpu / STORED * 1e3, 10, "ms")
    yield Check(f"{STORED:,} files, store add: that / one `analyze` of one", stored.cpu / STORED / alone, 0.25)


def main() -> int:
    parser = argparse.ArgumentParser(description="make bench")
    parser.add_argument("--wiretale", default=shutil.which("wiretale"), help="program to measure")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    make_capture(QUARTER)
    make_capture(MANY_PACKETS)
    make_files()
    make_rotated()
    return 0 if print_checks(checks(options.wiretale)) else 1


if __name__ == "__main__":
    sys.exit(main())
