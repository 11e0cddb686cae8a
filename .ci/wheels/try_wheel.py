# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel beside it without a network, and runs each command once: in a bare root file system (.ci/wheels/roots).

If qemu runs the root's programs, it cannot start others, and has no packet sockets: then the wheel is unpacked, each C program
prints its version, and a sample is analyzed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path("/venv/bin")
SAMPLE = HERE / "tcp_losses.pcap"
QEMU = Path("/usr/bin/qemu-aarch64-static")
UNPACKED = Path("/unpacked")
PROGRAMS = ("wiretale-traffic", "wiretale-capture", "wiretale-link")
COMMANDS = "from wiretale.cli.commands import KNOWN; print(*KNOWN)"


def run(*command: str | Path) -> str:
    """Runs a command, and returns what it prints. If it fails, the trial ends."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def install() -> None:
    run(sys.executable, "-m", "venv", "/venv")
    wheel = next(HERE.glob("*.whl"))
    run(BIN / "pip", "install", "-q", "--no-index", "--find-links", HERE / "needed", wheel)


def run_commands() -> int:
    """Runs each command with --help, and the analyzer with a sample. Returns the number of commands."""
    names = run(BIN / "python", "-c", COMMANDS).split()
    for name in names:
        run(BIN / "wiretale", name, "--help")
    for program in PROGRAMS:
        run(BIN / program, "--version")
    analyze(BIN / "wiretale")
    run(BIN / "wiretale", "doctor")
    return len(names)


def analyze(*wiretale: str | Path) -> None:
    """Analyzes a sample, and writes its report."""
    report = Path("/tmp/report.html")
    if "tail-loss" not in run(*wiretale, SAMPLE, "--report", report) or not report.stat().st_size:
        raise SystemExit("the analysis of a sample has no answer, or no report")


def run_emulated() -> None:
    """Runs the C programs and the analyzer by qemu."""
    wheels = [*HERE.glob("*.whl"), *HERE.glob("needed/*-any.whl"), *HERE.glob("needed/*-cp311-*aarch64.whl")]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(UNPACKED)
    for program in PROGRAMS:
        path = next(UNPACKED.glob(f"*.data/scripts/{program}"))
        path.chmod(0o755)
        run(QEMU, path, "--version")
    os.environ["PYTHONPATH"] = str(UNPACKED)
    analyze(QEMU, sys.executable, "-m", "wiretale")


def up_loopback() -> None:
    """Sets lo up, without the tools of iproute2."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        fcntl.ioctl(asking, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def capture_transfer() -> None:
    """Captures a transfer of the generator on lo, and analyzes the capture."""
    up_loopback()
    file, quiet = "/tmp/lo.pcapng", subprocess.DEVNULL
    receiver = subprocess.Popen([BIN / "wiretale", "receive", "-p", "6011", "--once"], stdout=quiet, stderr=quiet)
    recording = subprocess.Popen(
        [BIN / "wiretale", "capture", "-i", "lo", "-w", file, "-Z", "root"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert recording.stderr
        time.sleep(1)
        run(BIN / "wiretale", "send", "127.0.0.1", "-p", "6011", "-n", "100")
    finally:
        recording.terminate()
        receiver.terminate()
        messages = recording.communicate()[1]
    if recording.returncode or not Path(file).exists():
        raise SystemExit(f"wiretale capture ended with {recording.returncode}: {messages}")
    if "6011" not in run(BIN / "wiretale", file):
        raise SystemExit("the capture does not have the transfer")


def main() -> None:
    if QEMU.exists():
        run_emulated()
        print(
            f"    the programs and the analyzer run by qemu, on Python {platform.python_version()} for {platform.machine()}"
        )
        return
    install()
    print(f"    installed on glibc {platform.libc_ver()[1]}, Python {platform.python_version()}")
    print(f"    {run_commands()} commands and the analyzer run")
    capture_transfer()
    print("    a transfer was sent, captured and analyzed")


if __name__ == "__main__":
    main()
