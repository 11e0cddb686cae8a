# SPDX-License-Identifier: Apache-2.0
"""Freezes the file system under wiretale-capture, tcpdump and dumpcap for 2 s, each with the same memory for packets.

    PYTHONPATH=benchmarks python -m speed.stall

Rounds of the three alternate. Of 100,000 frames/s of 64 bytes, wiretale must lose none with its defaults; of 60,000/s of 1500
bytes, which fill more memory than they have, no larger share than the better of the others. The exit status is 1 if it does.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from shared.namespaces import inside, missing, run
from speed.capture import Bench, count_packets, made_link
from speed.check import Check, print_checks

MEMORY_MIB, STALL_SECONDS, SECONDS = 160, 2.0, 5.0
FRAME = "{{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:03), fill(0x41, {payload}) }}"
CASES = ((64, 100_000), (1500, 60_000))  # bytes, and frames per second


@contextlib.contextmanager
def made_disk(folder: Path) -> Iterator[Path]:
    """Yields a file system of its own, which can be frozen."""
    image, place = folder / "image", folder / "disk"
    with image.open("wb") as file:
        file.truncate(8 << 30)
    place.mkdir()
    run("mkfs.ext4", "-q", "-F", str(image))
    run("mount", "-o", "loop", str(image), str(place))
    place.chmod(0o777)
    try:
        yield place
    finally:
        subprocess.run(["fsfreeze", "-u", str(place)], capture_output=True)
        run("umount", "-l", str(place))


class Stall:
    """Captures of which the disk stands still."""

    def __init__(self, bench: Bench, disk: Path, program: str) -> None:
        self.bench, self.disk = bench, disk
        self.commands = {
            "wiretale": [program, "-i", "in0", "-Z", "root", "-w", str(disk / "x.pcapng")],
            "tcpdump": ["tcpdump", "-i", "in0", "-Z", "root", "-B", str(MEMORY_MIB << 10), "-w", str(disk / "x.pcap")],
            "dumpcap": ["dumpcap", "-i", "in0", "-B", str(MEMORY_MIB), "-w", str(disk / "x.dump"), "-q"],
        }

    def freeze(self) -> None:
        time.sleep(1)
        run("fsfreeze", "-f", str(self.disk))
        time.sleep(STALL_SECONDS)
        run("fsfreeze", "-u", str(self.disk))

    def lost(self, tool: str, size: int, rate: int) -> tuple[float, float]:
        """Returns the share of frames that a tool lost, and the rate at which they came."""
        log, frame = self.bench.folder / "log", self.bench.folder / "frame"
        frame.write_text(FRAME.format(payload=size - 14))
        for file in self.disk.glob("x.*"):
            file.unlink()
        process = self.bench.begin(self.commands[tool], log)
        before = self.sent()
        speed = ("-b", f"{rate}pps")
        command = inside(self.bench.ends["sender"], "trafgen", "-o", "out0", "-c", str(frame), "-P1", "-q", *speed)
        freezing = threading.Thread(target=self.freeze)
        freezing.start()
        subprocess.run(
            ["timeout", "-s", "INT", f"{SECONDS}", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        freezing.join()
        sent = self.sent() - before
        time.sleep(2)
        self.bench.end(process, log)
        stored = sum(count_packets(file) for file in self.disk.glob("x.*"))
        return 1 - stored / sent, sent / SECONDS

    def sent(self) -> int:
        path = "/sys/class/net/out0/statistics/tx_packets"
        return int(run(*inside(self.bench.ends["sender"], "cat", path)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-capture")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if problem := missing("bench", "ip", "trafgen", "tcpdump", "dumpcap", "capinfos", "fsfreeze", "mkfs.ext4"):
        sys.exit(problem)
    checks = []
    with (
        tempfile.TemporaryDirectory(prefix="wiretale-bench-", dir="/var/tmp") as place,
        made_link() as ends,
        made_disk(Path(place)) as disk,
    ):
        program = str(Path(options.program).resolve())
        stall = Stall(Bench(ends, program, Path(place), 0, 1), disk, program)
        for size, rate in CASES:
            shares: dict[str, list[float]] = {tool: [] for tool in stall.commands}
            for _ in range(options.rounds):
                for tool, lost in shares.items():
                    share, reached = stall.lost(tool, size, rate)
                    lost.append(share)
                    print(f"{tool}, {size} B at {reached:,.0f}/s: {100 * share:.2f} % lost", flush=True)
            median = {tool: 100 * statistics.median(lost) for tool, lost in shares.items()}
            best = min(median["tcpdump"], median["dumpcap"]) if size > 64 else 0.0
            checks.append(Check(f"{size} B lost while the disk is frozen", median["wiretale"], best, "%", 2))
    return 0 if print_checks(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
