# SPDX-License-Identifier: Apache-2.0
"""Cost of `wiretale analyze` as captures grow, in instructions, which do not depend on the load of the machine; and its page."""

from __future__ import annotations

import io
import json
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


def made(packets: int, flows: int) -> bytes:
    file = io.BytesIO()
    write_capture(file, packets, flows)
    return file.getvalue()


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


def instructions(path: Path) -> int:
    """Runs analyze --json; returns the instructions of all threads."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "wiretale", "analyze", "--json", path], capture_output=True, timeout=300
    )
    counted = re.search(rb"I +refs: +([\d,]+)", done.stderr)
    assert done.returncode == 0 and counted, done.stderr[-500:]
    return int(counted[1].replace(b",", b""))


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The instructions of the smallest capture, in one file."""
    file = tmp_path_factory.mktemp("least") / "least.pcap"
    file.write_bytes(made(PACKETS, FLOWS))
    return instructions(file)


@needs.marked(needs.programs("valgrind"), needs.plain_processes())
@pytest.mark.xdist_group("cost")  # one process measures the smallest capture
@pytest.mark.parametrize("axis", ["packets", "flows", "files"])
def test_cost_is_proportional(least: int, tmp_path: Path, axis: str) -> None:
    """Doubling twice: of packets in the same flows, of flows with their packets, or of the files of the same packets."""
    costs = [] if axis == "files" else [least]
    for times in (1, 2, 4)[len(costs) :]:
        if axis == "files":
            path = write_in_files(made(PACKETS, FLOWS), tmp_path / str(times), FILES * times)
        else:
            path = tmp_path / f"{times}.pcap"
            path.write_bytes(made(PACKETS * times, FLOWS * (times if axis == "flows" else 1)))
        costs.append(instructions(path))
    first, second = costs[1] - costs[0], costs[2] - costs[1]
    assert first > 0 and second / first < MOST, costs


def test_the_page_is_made_of_the_measured_results() -> None:
    results = json.loads(scale.RESULTS.read_text("utf-8"))
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert performance_page.page(results) == page
    assert not re.search(r"@[a-z_]+@", page) and (ROOT / "docs" / "performance.svg").is_file()
