# SPDX-License-Identifier: Apache-2.0
"""Cost of `wiretale analyze` as captures grow, in instructions, which do not depend on the load of the machine; and its page."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from checkout import ROOT

needs.benchmarks()

from speed import performance_page, scale
from speed.made_capture import FILE_HEADER, RECORD, write_capture

FLOWS, PACKETS, FILES = 500, 20_000, 50  # many packets: what Python does of few flows must not matter
MOST = 2.3  # the second doubling beside the first: 2 if the cost is linear, 4 if quadratic
# Runs the command for each path in a fork of one process, and prints their numbers.
FORKS = """
import os, sys
import wiretale.cli.analyze, wiretale.analyzer.trace, wiretale.analyzer.causes.registry
from wiretale.cli import command
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv[1:] = ["analyze", "--json", path]
        command()
    print(child, flush=True)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""


def made(packets: int, flows: int) -> bytes:
    file = io.BytesIO()
    write_capture(file, packets, flows)
    return file.getvalue()


def next_day(data: bytes) -> bytes:
    """Returns the packets of a capture a day later."""
    packets, at = bytearray(data[FILE_HEADER.size :]), 0
    while at < len(packets):
        seconds, fraction, size, length = RECORD.unpack_from(packets, at)
        RECORD.pack_into(packets, at, seconds + 86_400, fraction, size, length)
        at += RECORD.size + size
    return bytes(packets)


def write_in_files(data: bytes, folder: Path, count: int) -> Path:
    """Writes a capture cut into files of equally many packets; returns the folder."""
    folder.mkdir()
    ends = [FILE_HEADER.size]
    while ends[-1] < len(data):
        ends.append(ends[-1] + RECORD.size + RECORD.unpack_from(data, ends[-1])[2])
    step = (len(ends) - 1) // count
    for number in range(count):
        records = data[ends[number * step] : ends[(number + 1) * step]]
        (folder / f"{number:04}.pcap").write_bytes(data[: FILE_HEADER.size] + records)
    return folder


def instructions(paths: list[Path]) -> list[int]:
    """Runs analyze --json of each path; returns the instructions of all its threads, and of the start that all share: a fork
    counts on, and a start takes most of the time."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*command, sys.executable, "-c", FORKS, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    counted = {
        pid: int(count.replace(",", "")) for pid, count in re.findall(r"==(\d+)== I +refs: +([\d,]+)", done.stderr)
    }
    return [counted[pid] for pid in done.stdout.split()]


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The instructions by axis, doubled twice: of packets in the same flows, of flows with their packets, or of the files of the
    same packets."""
    folder = tmp_path_factory.mktemp("cost")
    paths = {}
    for packets, flows in ((1, 1), (2, 1), (4, 1), (2, 2), (4, 4)):
        paths[packets, flows] = folder / f"{packets}-{flows}.pcap"
        paths[packets, flows].write_bytes(made(PACKETS * packets, FLOWS * flows))
    least = paths[1, 1].read_bytes()
    folders = [write_in_files(least, folder / f"{times}", FILES * times) for times in (1, 2, 4)]
    first, *counts = instructions([*paths.values(), *folders])
    return {"packets": [first, *counts[:2]], "flows": [first, *counts[2:4]], "files": counts[4:]}


@needs.marked(needs.programs("valgrind"), needs.plain_processes())
@pytest.mark.xdist_group("cost")  # one process measures all
@pytest.mark.parametrize("axis", ["packets", "flows", "files"])
def test_cost_is_proportional(costs: dict[str, list[int]], axis: str) -> None:
    less, middle, more = costs[axis]
    assert middle > less and (more - middle) / (middle - less) < MOST, costs


# Prints rows, and how many of the parts that have them are files that nobody else can find.
ROWS = """
import sys, wiretale
trace = wiretale.analyze(sys.argv[1], jobs=2)
sys.stdout.buffer.writelines(trace.flows.json(["source", "source_port", "server_name", "packets", "last_ns"]))
sys.stdout.buffer.writelines(trace.directions.json(["flow", "payload_bytes", "rtt_ns_median", "zero_windows"]))
print(open("/proc/self/maps").read().count(" (deleted)\\n"), file=sys.stderr)
"""


def test_rows_of_many_flows_are_on_disk_and_the_same_as_in_memory(tmp_path: Path) -> None:
    capture = tmp_path / "flows.pcap"
    data = made(80_000, 20_000)
    capture.write_bytes(data + next_day(data))  # whose first packets end the flows of the first day
    on_disk, in_memory = (
        subprocess.run([sys.executable, "-c", ROWS, capture], capture_output=True, env={**os.environ, "TMPDIR": folder})
        for folder in (str(ROOT), "/dev/shm")
    )
    flows = on_disk.stdout.count(b"source_port")
    assert flows > 30_000 and on_disk.stdout.count(b"payload_bytes") == 2 * flows
    assert hashlib.sha256(on_disk.stdout).digest() == hashlib.sha256(in_memory.stdout).digest()
    assert int(on_disk.stderr) >= 2 and int(in_memory.stderr) == 0


def test_the_page_is_made_of_the_measured_results() -> None:
    results = json.loads(scale.RESULTS.read_text("utf-8"))
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert performance_page.page(results) == page
    assert not re.search(r"@[a-z_]+@", page) and (ROOT / "docs" / "performance.svg").is_file()
