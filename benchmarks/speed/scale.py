# SPDX-License-Identifier: Apache-2.0
"""Measures how the cost of `wiretale analyze` grows with packets, flows, bytes, files and jobs, beside other programs.

    make bench-scale

Each row of scale.json is the least CPU time (user and system) of up to ten runs, the wall time of that run, and the highest
memory. CPU time depends less on other programs of the machine than wall time; their load is noted. The programs alternate. A peer
that needs more than 40 s of CPU is stopped, and not run on larger captures of that axis.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from speed.analyze import BUILD, FULL_SIZE, MANY_PACKETS, QUARTER, ROUNDS, SLOW_SECONDS, Capture, make_capture
from speed.made_capture import FILE_HEADER, RECORD
from speed.measured import MEGABYTE, run_measured

AXES = ("packets", "flows", "ended", "bytes", "files", "jobs")
RESULTS = Path(__file__).with_name("scale.json")
PEER_SECONDS = 40  # of CPU
SHORT_SECONDS, SHORT_ROUNDS = 1.5, 10  # of CPU
MULTIPLES = (
    QUARTER,
    Capture("packets-2.5M-flows-5k", 2_500_000, 5000),
    MANY_PACKETS,
    Capture("packets-10M-flows-5k", 10_000_000, 5000),
)
FLOW_PACKETS = 10  # of each flow on the axis of flows
DECADES = tuple(
    Capture(f"packets-{packets}-flows-{flows}", FLOW_PACKETS * 10**n, 10**n)
    for n, packets, flows in ((3, "10k", "1k"), (4, "100k", "10k"), (5, "1M", "100k"), (6, "10M", "1M"))
)
MIXED = Capture("packets-5M-flows-100k", 5_000_000, 100_000)  # for the projection
HEADERS = Capture("packets-1M-headers", FULL_SIZE.packets, FULL_SIZE.flows, 96, FULL_SIZE.ack_every)
FILES = (1, 10, 100, 1000)
COPIES = (1, 2, 4)  # of the mixed capture, whose flows end one after another
CAPTURES = (*MULTIPLES, *DECADES, MIXED, HEADERS, FULL_SIZE)
OUT = BUILD / "out"
PEERS = {
    "tcptrace": ["tcptrace", "-n"],
    "tshark": ["tshark", "-n", "-q", "-z", "conv,tcp", "-r"],
    "capinfos": ["capinfos", "-T"],
}

Facts = dict[str, Any]


@dataclass
class Run:
    """A program at one point of an axis; `cpu` is null if it was stopped."""

    axis: str
    program: str
    packets: int
    flows: int
    files: int
    bytes: int
    jobs: int | None
    cpu: float | None = None  # s
    wall: float | None = None  # s
    memory: float | None = None  # MB
    output: float | None = None  # MB
    runs: int = 0
    command: list[str] = field(default_factory=list, repr=False)

    @property
    def rounds(self) -> int:
        """Runs that it gets: more if it is short, because a short one differs more from run to run."""
        if self.cpu is None or self.cpu < SHORT_SECONDS:
            return SHORT_ROUNDS
        return ROUNDS if self.cpu < SLOW_SECONDS else 1

    def measure(self) -> None:
        is_wiretale = self.program.startswith("wiretale")
        used = run_measured(self.command, None if is_wiretale else PEER_SECONDS)
        self.runs += 1
        if used is None:
            return
        if self.cpu is None or used.cpu < self.cpu:
            self.cpu, self.wall = used.cpu, used.wall
        self.memory = max(self.memory or 0.0, used.memory)
        if str(OUT) in self.command:
            self.output = sum(path.stat().st_size for path in OUT.iterdir()) / MEGABYTE


def split(capture: Capture, files: int) -> list[str]:
    """Cuts a capture into files of equally many packets, as a daemon would rotate them."""
    if files == 1:
        return [str(capture.path)]
    folder = BUILD / f"{capture.name}-in-{files}"
    paths = [folder / f"{number:04}.pcap" for number in range(files)]
    if not paths[-1].exists():
        folder.mkdir(exist_ok=True)
        data = capture.path.read_bytes()
        begin = at = FILE_HEADER.size
        for path in paths:
            for _ in range(capture.packets // files):
                at += RECORD.size + RECORD.unpack_from(data, at)[2]
            path.write_bytes(data[: FILE_HEADER.size] + data[begin:at])
            begin = at
    return list(map(str, paths))


def a_day_later(capture: Capture, days: int) -> str:
    """Writes a copy of a capture whose times are later, so that its flows are others; returns its path."""
    path = BUILD / f"{capture.name}-{days}-days-later.pcap" if days else capture.path
    if not path.exists():
        data = bytearray(capture.path.read_bytes())
        at = FILE_HEADER.size
        while at < len(data):
            seconds, _, size, _ = RECORD.unpack_from(data, at)
            data[at : at + 4] = (seconds + days * 86400).to_bytes(4, "little")
            at += RECORD.size + size
        path.write_bytes(data)
    return str(path)


def plan(wiretale: str) -> Iterator[Run]:
    """Yields every point of every axis, smallest first."""
    modes = {
        "wiretale --json": [wiretale, "analyze", "--json"],
        "wiretale -o": [wiretale, "analyze", "-q", "-o", str(OUT)],
    }
    programs = {**modes, **{name: words for name, words in PEERS.items() if shutil.which(name)}}

    def at(
        axis: str, capture: Capture, *names: str, paths: list[str] | None = None, jobs: int | None = None
    ) -> Iterator[Run]:
        """Yields the runs of programs on a capture, or on its parts or copies."""
        paths = paths or [str(capture.path)]
        size = sum(os.stat(path).st_size for path in paths)
        copies = round(size / capture.path.stat().st_size)
        for name in filter(programs.__contains__, names):
            words = [*programs[name], *(["--jobs", str(jobs)] if jobs else []), *paths]
            yield Run(
                axis, name, copies * capture.packets, copies * capture.flows, len(paths), size, jobs, command=words
            )

    for capture in MULTIPLES:
        yield from at("packets", capture, "wiretale --json", "tcptrace", "tshark", "capinfos")
    for capture in DECADES:
        yield from at("flows", capture, "wiretale --json", "wiretale -o", "tcptrace", "tshark")
    for copies in COPIES:
        days = [a_day_later(MIXED, number) for number in range(copies)]
        yield from at("ended", MIXED, "wiretale -o", "tcptrace", paths=days)
    for capture in (HEADERS, FULL_SIZE):
        yield from at("bytes", capture, "wiretale --json", "tcptrace", "capinfos")
    for files in FILES:
        yield from at("files", QUARTER, "wiretale --json", "tcptrace", "capinfos", paths=split(QUARTER, files))
    usage = subprocess.run([wiretale, "analyze", "--help"], capture_output=True, text=True, check=True).stdout
    if "--jobs" in usage:
        for jobs in (1, 2):
            yield from at("jobs", MANY_PACKETS, "wiretale --json", jobs=jobs)


def measure(runs: list[Run], facts: Facts, earlier: list[Facts]) -> None:
    """Fills the runs, and saves them after each round, with kept rows of other axes."""
    stopped = set()
    for number in range(SHORT_ROUNDS):
        for run in runs:
            if (run.axis, run.program) in stopped or number >= run.rounds:
                continue
            print(
                f"{number + 1}/{run.rounds} {run.axis} {run.bytes:>13,} B {run.flows:>9,} flows: {run.program}",
                file=sys.stderr,
            )
            run.measure()
            load = round(os.getloadavg()[0], 1)
            facts |= {"load_least": min(load, facts["load_least"]), "load_most": max(load, facts["load_most"])}
            if run.cpu is None:
                stopped.add((run.axis, run.program))
        rows = [{name: value for name, value in asdict(run).items() if name != "command"} for run in runs if run.runs]
        save([*earlier, *rows], facts)


def save(rows: list[Facts], facts: Facts) -> None:
    """Writes scale.json, a line for each row, ordered by axis."""
    rows.sort(key=lambda row: AXES.index(row["axis"]))
    rows = [
        {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
    lines = ",\n".join(map(json.dumps, rows))
    RESULTS.write_text(f'{{"machine": {json.dumps(facts)},\n"runs": [\n{lines}\n]}}\n')


def disk_speed(path: Path) -> float:
    """Returns the best of three sequential readings of a file that is not cached, in MB/s."""
    best = 0.0
    for _ in range(3):
        with path.open("rb", buffering=0) as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            begin, size = time.perf_counter(), 0
            while piece := file.read(1 << 22):
                size += len(piece)
            best = max(best, size / MEGABYTE / (time.perf_counter() - begin))
    return best


def machine() -> Facts:
    facts = Path("/proc/cpuinfo").read_text()
    model = next((line.partition(": ")[2] for line in facts.splitlines() if line.startswith("model name")), "unknown")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": model,
        "processors": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "disk_mb_s": round(disk_speed(FULL_SIZE.path)),
        "peer_seconds": PEER_SECONDS,
        "absent": sorted(name for name in PEERS if not shutil.which(name)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="make bench-scale")
    parser.add_argument("--wiretale", default=shutil.which("wiretale"), help="program to measure")
    parser.add_argument("--axes", nargs="+", choices=AXES, help="measure only these, and keep the rows of the others")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:  # whose memory does not count for the programs, as this one's would
        list(pool.map(make_capture, CAPTURES))
        for files in FILES:
            pool.submit(split, QUARTER, files).result()
        list(pool.map(a_day_later, [MIXED] * max(COPIES), range(max(COPIES))))
    facts, earlier = machine() | {"load_least": math.inf, "load_most": 0.0}, []
    if options.axes:
        before = json.loads(RESULTS.read_text())
        facts |= {name: before["machine"][name] for name in ("load_least", "load_most")}
        earlier = [row for row in before["runs"] if row["axis"] not in options.axes]
    measure([run for run in plan(options.wiretale) if run.axis in (options.axes or AXES)], facts, earlier)
    return 0


if __name__ == "__main__":
    sys.exit(main())
