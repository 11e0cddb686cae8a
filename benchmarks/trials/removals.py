# SPDX-License-Identifier: Apache-2.0
"""Removes an interface again and again while packets come, and compares what the kernel delivered with what was recorded.

    PYTHONPATH=benchmarks python -m trials.removals [--program wiretale-capture] [--count 50]

The kernel holds packets in a block that it delivers up to 0.1 s late, also after the interface is gone. None of them may be
missing in the counts. The exit status is 1 if any is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shared.namespaces import PathError, inside, missing, namespaces, run, wait_until

RATE, LEAST = 20_000, 6_000  # packets per second, and packets before each removal
FRAME = "{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:03), fill(0x41, 50) }"


class Status:
    """Lines of the status socket of a capture."""

    def __init__(self, path: Path) -> None:
        wait_until(path.exists, "the status socket is there")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile()

    def wait(self, state: str, received: int = 0) -> dict[str, Any]:
        """Returns the counts of the interface once it has this state and so many packets came."""
        for line in self.lines:
            interface: dict[str, Any] = json.loads(line)["interfaces"][0]
            if interface["state"] == state and interface["received"] >= received:
                return interface
        raise PathError("the capture ended")


def remove_often(ends: dict[str, str], status: Status, folder: Path, count: int) -> int:
    """Returns how many removals left packets that no counter has."""
    wrong, received = 0, 0
    frame = folder / "frame"
    frame.write_text(FRAME)
    for number in range(1, count + 1):
        link = ("ip", "-n", ends["sender"], "link")
        run(*link, "add", "out0", "type", "veth", "peer", "name", "in0", "netns", ends["tracer"])
        run(*link, "set", "out0", "up")
        run("ip", "-n", ends["tracer"], "link", "set", "in0", "up")
        status.wait("reading")
        options = ("-o", "out0", "-c", str(frame), "-b", f"{RATE}pps", "-P1", "-q")
        sender = subprocess.Popen(
            inside(ends["sender"], "trafgen", *options), stdout=subprocess.DEVNULL, start_new_session=True
        )
        status.wait("reading", received + LEAST)
        run("ip", "-n", ends["tracer"], "link", "del", "in0")
        os.killpg(sender.pid, signal.SIGKILL)  # trafgen's children outlive it
        sender.wait()
        counts = status.wait("waiting")
        received = counts["received"]
        if counts["kernel_received"] != received + counts["dropped_kernel"]:
            wrong += 1
            print(f"removal {number}: {counts}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Remove a captured interface again and again; count packets that no counter has."
    )
    parser.add_argument("--program", default="wiretale-capture")
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    if reason := missing("bench", "ip", "trafgen"):
        print(reason, file=sys.stderr)
        return 5
    with tempfile.TemporaryDirectory() as place, namespaces("wttrial", "sender", "tracer") as ends:
        folder = Path(place)
        folder.chmod(0o755)
        command = (
            options.program,
            "-i",
            "in0",
            "--wait",
            "-w",
            str(folder / "captures"),
            "-C",
            "64MB",
            "-b",
            "files:3",
            "-q",
        )
        paths = ("--status", str(folder / "status"), "--interval", "50ms")
        capture = subprocess.Popen(inside(ends["tracer"], *command, *paths))
        try:
            wrong = remove_often(ends, Status(folder / "status"), folder, options.count)
        finally:
            capture.send_signal(signal.SIGTERM)
            capture.wait(30)
    print(f"{options.count} removals at {RATE:,} packets/s: {wrong} left packets that no counter has")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
