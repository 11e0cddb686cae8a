# SPDX-License-Identifier: Apache-2.0
"""The link, the disk, the sender and the tracer of a soak."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.namespaces import inside, namespaces, run, wait_until
from soak.files import Frames

NOBODY = 65534  # user and group
DISK_MB = 256
MEMORY = "4MiB"  # so that stalls of some seconds lose packets, which must be counted
FILTER = "ether proto 0x88b5"
COUNTS = ("received", "written", "queued", "dropped_kernel", "dropped_interface", "dropped_queue", "dropped_disk")


def lost_in(line: dict[str, Any]) -> int:
    """The packets that the tracer counts as lost."""
    return sum(int(line[name]) for name in COUNTS if name.startswith("dropped"))


class Soak:
    """A sender that never stops, and a tracer that is started again when it was killed."""

    def __init__(self, home: Path, program: Path, rate: int, names: dict[str, str]) -> None:
        self.home, self.program, self.rate, self.names = home, program, rate, names
        self.disk = home / "disk"
        self.folder = self.disk / "captures"
        self.status_path, self.log_path, self.progress_path = home / "status", home / "log", home / "progress"
        self.frames = Frames(self.folder)
        self.daemon: subprocess.Popen[bytes] | None = None
        self.sender: subprocess.Popen[bytes] | None = None
        self.counted = 0  # losses until the end of the last phase
        self.calm_counted = 0  # those between phases

    # --- the link

    def make_link(self) -> None:
        sender, tracer = self.names["sender"], self.names["tracer"]
        run("ip", "-n", sender, "link", "add", "out0", "type", "veth", "peer", "name", "in0", "netns", tracer)
        run("ip", "-n", tracer, "link", "set", "in0", "up")
        run("ip", "-n", sender, "link", "set", "out0", "up")

    def start_sender(self) -> None:
        self.progress_path.write_bytes(bytes(8))
        with self.progress_path.open("r+b") as file:
            self.progress = mmap.mmap(file.fileno(), 8)
        script = str(Path(__file__).with_name("sender.py"))
        command = (sys.executable, "-S", script, "out0", str(self.rate), str(self.progress_path))
        self.sender = subprocess.Popen(inside(self.names["sender"], *command))

    def sent(self) -> int:
        """Frames that the sender has sent so far, by its own count."""
        (number,) = struct.unpack("=Q", self.progress[:])
        return int(number)

    # --- the tracer

    def start_tracer(self) -> None:
        """Starts it and waits until it captures."""
        self.status_path.unlink(missing_ok=True)
        before = self.log_path.stat().st_size if self.log_path.exists() else 0
        options = (
            "-w",
            str(self.folder),
            "-C",
            "2MB",
            "-G",
            "10",
            "-B",
            MEMORY,
            "--wait",
            "--status",
            str(self.status_path),
        )
        with self.log_path.open("ab") as log:
            command = inside(self.names["tracer"], str(self.program), "-i", "in0", *options, FILTER)
            self.daemon = subprocess.Popen(command, stderr=log)
        wait_until(lambda: b"capturing\n" in self.log_path.read_bytes()[before:], "the tracer captures", 60)

    def signal_tracer(self, number: int) -> None:
        assert self.daemon
        self.daemon.send_signal(number)

    def kill_tracer(self) -> None:
        assert self.daemon
        self.daemon.kill()
        self.daemon.wait()

    def status(self) -> dict[str, Any]:
        """The counts at this moment, which must add up."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(30)
            client.connect(str(self.status_path))
            line: dict[str, Any] = json.loads(client.makefile().readline())
        parts = sum(line[name] for name in ("written", "queued", "dropped_queue", "dropped_disk"))
        if line["received"] != parts:
            raise ValueError(f"received is not the sum of its parts: { {name: line[name] for name in COUNTS} }")
        return line

    def wait_settled(self, seconds: float = 60) -> dict[str, Any]:
        """The status once the disk takes packets again, and all that were sent until now are written or counted."""
        until, steady = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            line = self.status()
            is_steady = line["state"] == "capturing" and line["queued"] < self.rate
            steady = steady + 1 if is_steady else 0
            if steady >= 4:
                return line
            time.sleep(0.5)
        raise ValueError(f"the capture has not settled within {seconds:g} s: {line['state']}, {line['queued']} queued")

    # --- the end

    def stop(self) -> int:
        """Ends the sender, then the tracer, and takes the last files. Returns the tracer's exit code."""
        assert self.sender and self.daemon
        self.sender.terminate()
        self.sender.wait(30)
        time.sleep(1)
        self.calm_counted += lost_in(self.status()) - self.counted
        self.daemon.terminate()
        code = self.daemon.wait(60)
        self.frames.take_files()
        return code


@contextlib.contextmanager
def mounted(image: Path, folder: Path) -> Iterator[None]:
    """An ext4 file system in a file."""
    image.touch()
    os.truncate(image, DISK_MB << 20)
    run("mkfs.ext4", "-q", str(image))
    folder.mkdir()
    run("mount", "-o", "loop", str(image), str(folder))
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "-u", str(folder)], capture_output=True, timeout=20)
        for _ in range(20):
            if not subprocess.run(["umount", str(folder)], capture_output=True, timeout=60).returncode:
                break
            time.sleep(0.5)


@contextlib.contextmanager
def made_soak(home: Path, program: Path, rate: int) -> Iterator[Soak]:
    """A soak that runs. Its processes, namespaces and disk are removed at the end."""
    with mounted(home / "image", home / "disk"), namespaces("soak", "sender", "tracer") as names:
        soak = Soak(home, program, rate, names)
        soak.folder.mkdir()
        os.chown(soak.folder, NOBODY, NOBODY)
        home.chmod(0o755)
        try:
            soak.make_link()
            soak.start_tracer()
            soak.start_sender()
            yield soak
        finally:
            for process in (soak.sender, soak.daemon):
                if process and process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
