# SPDX-License-Identifier: Apache-2.0
"""Measures `wiretale view` on one flow of 10 million packets: opening, zooms and frames, as a browser asks for them.

    make bench

The index is made once and kept; the second start opens it. Zooms halve the range from the whole flow down to single packets, at
three places. If a bound is exceeded, the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from speed.analyze import BUILD, Capture, make_capture
from speed.check import Check, print_checks
from speed.measured import MEGABYTE

VIEWED = Capture("packets-10M-one-flow", 10_000_000, 1)
PLACES = (0.01, 0.4, 0.9)  # of the flow, where zooms end
ZOOMS = 20
FRAMES = (1, 2_500_123, 9_999_999)


@contextmanager
def viewing(*command: str) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """A running viewer, its address, and the seconds until it was printed."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    url = process.stdout.readline().strip()
    try:
        yield process, url, time.perf_counter() - begin
    finally:
        process.send_signal(signal.SIGINT)
        if process.wait(60) != 0:
            sys.exit(f"{' '.join(command)} failed ({process.returncode})")


def seconds_of(url: str) -> tuple[float, bytes]:
    begin = time.perf_counter()
    with urlopen(url, timeout=60) as answer:
        body = answer.read()
    return time.perf_counter() - begin, body


def zooms(url: str, last_ns: int) -> Iterator[float]:
    """Yields the seconds of each answer."""
    for place in PLACES:
        for step in range(ZOOMS):
            width = last_ns >> step
            begin = int(place * (last_ns - width))
            took, body = seconds_of(f"{url}packets?flow=0&from={begin}&to={begin + width}")
            answer = json.loads(body)
            assert answer["count"] <= 20_000, answer["count"]
            yield took


def highest_memory(process: subprocess.Popen[str]) -> float:
    """Returns the highest resident memory of a process in MB."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024 / MEGABYTE


def checks(wiretale: str, capture: Path, folder: Path) -> Iterator[Check]:
    shutil.rmtree(folder, ignore_errors=True)
    with viewing(wiretale, "view", str(capture), "-o", str(folder), "-q") as (_, _, seconds):
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{capture.name}: analysis and index in {seconds:.1f} s; the index has {size / MEGABYTE:.0f} MB")
    with viewing(wiretale, "view", str(folder), "-q") as (process, url, seconds):
        yield Check("view, 10 M packets: opens, with its page", seconds + seconds_of(url)[0], 3, "s")
        yield Check("view, 10 M packets: slowest zoom", max(zooms(url, VIEWED.packets * 2000)), 0.3, "s", 3)
        frames = (seconds_of(f"{url}frame?interface=0&frame={frame}&flow=0")[0] for frame in FRAMES)
        yield Check("view, 10 M packets: slowest frame, with tshark", max(frames), 3, "s")
        yield Check("view, 10 M packets: memory", highest_memory(process), 300, "MB", 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="make bench")
    parser.add_argument("--wiretale", default=shutil.which("wiretale"), help="program to measure")
    parser.add_argument("--capture", type=Path, help="another capture of the same packets, such as a compressed one")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    if not options.capture:
        with ProcessPoolExecutor() as pool:
            list(pool.map(make_capture, [VIEWED]))
    return 0 if print_checks(checks(options.wiretale, options.capture or VIEWED.path, BUILD / "view")) else 1


if __name__ == "__main__":
    sys.exit(main())
