# SPDX-License-Identifier: Apache-2.0
"""Captures before the first link and after the last one of the path, on their tracers."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wiretale.analyzer.errors import OutputError, WiretaleError
from wiretale.traffic.lab.process import end_program, real_time, start_program
from wiretale.traffic.lab.state import USER, Lab
from wiretale.traffic.program import find_program, program_path

POINTS = {"before": "left", "after": "right"}
SNAPLEN = 256  # all headers, also that of a block
SETTLE_SECONDS, SETTLE_MOST_SECONDS = 0.4, 5.0  # without growth; in all
BUFFER_KIB = 32768
CAPTURE_PRIORITY = 6  # below the link, above sender and receiver, which must not starve the captures
DROPPED = r"(\d+) packets? dropped by kernel"  # in the last lines of tcpdump, whose files have no counts


def capture_command(interface: str, folder: Path) -> tuple[list[str], str]:
    """Returns the command that captures an interface into a directory, and the word of its log once it captures."""
    program = program_path("wiretale-capture")
    if program:
        options = ["-s", str(SNAPLEN), "-w", str(folder)]  # on SIGTERM, it reads the packets in the kernel first
        with suppress(OSError):
            folder.rmdir()  # it must make the directory itself: in one of root it would make a subdirectory
        return [program, "-i", interface, *options], "capturing"
    if USER in os.environ:  # tcpdump drops its groups, which a user namespace does not allow
        target = str(folder / f"{interface}.pcapng")
        return [find_program("dumpcap"), "-q", "-i", interface, "-s", str(SNAPLEN), "-w", target], "Capturing on"
    options = ["-n", "-s", str(SNAPLEN), "-B", str(BUFFER_KIB), "--time-stamp-precision=nano", "-Z", "root"]
    options += ["-U", "--immediate-mode"]  # else packets in a partial buffer would be missing at the end
    target = str(folder / f"{interface}.pcap")
    return [find_program("tcpdump"), "-i", interface, *options, "-w", target], "listening on"


def wait_until_settled(folders: list[Path]) -> None:
    """Waits until the captures do not grow, because the last packets are still being written."""
    size, since = -1, time.monotonic()
    deadline = since + SETTLE_MOST_SECONDS
    while (now := time.monotonic()) < min(since + SETTLE_SECONDS, deadline):
        grown = sum(path.stat().st_size for folder in folders for path in folder.rglob("*.pcap*"))
        if grown != size:
            size, since = grown, now
        time.sleep(0.05)


@contextmanager
def captures(lab: Lab, folder: Path) -> Iterator[dict[str, Path]]:
    """Captures both points, each into its directory, as long as the body runs."""
    places = {point: folder / point for point in POINTS}
    running = []
    try:
        for point, interface in POINTS.items():
            try:
                places[point].mkdir(parents=True, exist_ok=True)
                for old in [*places[point].glob("*.pcap"), *places[point].glob("*.pcapng")]:
                    old.unlink()
            except OSError as error:
                raise OutputError(f"{places[point]}: cannot create the output directory: {error.strerror}") from None
            command, word = capture_command(interface, places[point])
            tracer = "tracer" if point == "before" else lab.last_tracer
            inside = lab.inside(tracer, *real_time(CAPTURE_PRIORITY), *command)
            running.append(start_program(inside, folder, f"capture-{point}", word))
        yield places
        wait_until_settled(list(places.values()))
    finally:
        for process in running:
            end_program(process)


def capture_drops(folder: Path) -> dict[str, int | None]:
    """Returns the drop count of each capture, as its files or the log of tcpdump have it; None without one."""
    drops: dict[str, int | None] = {}
    for point in POINTS:
        logged = re.search(DROPPED, (folder / f"capture-{point}.log").read_text("utf-8", "replace"))
        drops[point] = int(logged[1]) if logged else drops_in(sorted((folder / point).rglob("*.pcapng")))
    return drops


def drops_in(files: list[Path]) -> int | None:
    """Returns the drops that the interface statistics of captures count; None without any."""
    from wiretale.analyzer.trace import analyze
    from wiretale.reports.phrases import drops_of

    if not files:
        return None
    rows = analyze(*files, interfaces_only=True).interfaces.rows()
    counts = [count for row in rows if (count := drops_of(row)) is not None]
    return sum(counts) if counts else None


def check_captured(places: dict[str, Path]) -> None:
    """Raises WiretaleError if a capture is missing."""
    for point, place in places.items():
        if not any(place.rglob("*.pcap*")):
            raise WiretaleError(f"nothing was captured {point} the link: {place} is empty")
