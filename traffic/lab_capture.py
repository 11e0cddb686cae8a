# SPDX-License-Identifier: Apache-2.0
"""Captures before and after the link, on the tracer's interfaces, while something runs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wiretale.analyzer.errors import OutputError, WiretaleError
from wiretale.traffic.lab_link import end_program, start_program
from wiretale.traffic.lab_program import find_program, program_path
from wiretale.traffic.lab_state import Lab

POINTS = {"before": "left", "after": "right"}
SNAPLEN = 256  # the headers, and the beginning of the payload: a block's header is in it
SETTLE_SECONDS = 0.2
BUFFER_KIB = 32768


def capture_command(interface: str, folder: Path) -> tuple[list[str], str]:
    """The program that captures an interface into a folder, and the word that it says when it does."""
    own = program_path("wiretale-capture")
    if own:
        return [own, "-i", interface, "-s", str(SNAPLEN), "-w", str(folder)], "capturing"
    options = ["-n", "-s", str(SNAPLEN), "-B", str(BUFFER_KIB), "--time-stamp-precision=nano", "-Z", "root"]
    target = ["-w", str(folder / f"{interface}.pcap")]
    return [find_program("tcpdump"), "-i", interface, *options, *target], "listening on"


@contextmanager
def captures(lab: Lab, folder: Path) -> Iterator[dict[str, Path]]:
    """Captures both points into folders of their own as long as the body runs."""
    places = {point: folder / point for point in POINTS}
    running = []
    try:
        for point, interface in POINTS.items():
            try:
                places[point].mkdir(parents=True, exist_ok=True)
                for old in [*places[point].glob("*.pcap"), *places[point].glob("*.pcapng")]:
                    old.unlink()
            except OSError as error:
                raise OutputError(f"{places[point]}: cannot write into it: {error.strerror}") from None
            command, word = capture_command(interface, places[point])
            running.append(start_program(lab.inside("tracer", *command), folder, f"capture-{point}", word))
        yield places
        time.sleep(SETTLE_SECONDS)  # what was just sent is still on its way to the captures
    finally:
        for process in running:
            end_program(process)


def capture_drops(folder: Path) -> dict[str, int | None]:
    """Packets that each capture did not get, as its program said; None when it did not say."""
    drops: dict[str, int | None] = {}
    for point in POINTS:
        said = (folder / f"capture-{point}.log").read_text("utf-8", "replace")
        found = re.search(r"(\d+) packets? dropped by kernel", said) or re.search(r"dropped[_ ]kernel\D+(\d+)", said)
        drops[point] = int(found.group(1)) if found else None
    return drops


def check_captured(places: dict[str, Path]) -> None:
    """Both captures are there."""
    for point, place in places.items():
        if not any(place.glob("*.pcap*")):
            raise WiretaleError(f"nothing was captured {point} the link: {place} is empty")
