# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel beside it without a network, and runs each command once: in a bare root file system (.ci/wheels/roots)."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path("/venv/bin")
SAMPLE = HERE / "tcp_losses.pcap"
EMULATED = Path("/usr/bin/qemu-aarch64-static").exists()
COMMANDS = "from wiretale.cli.commands import KNOWN; print(*KNOWN)"


def run(*command: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    """Runs a command, and returns what it prints. Any other exit code ends the trial."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode not in codes:
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
    for program in ("wiretale-traffic", "wiretale-capture", "wiretale-link"):
        run(BIN / program, "--version")
    report = Path("/tmp/report.html")
    if "tail-loss" not in run(BIN / "wiretale", SAMPLE, "--report", report) or not report.stat().st_size:
        raise SystemExit("the analysis of a sample has no answer, or no report")
    run(BIN / "wiretale", "doctor", codes=(0,))
    return len(names)


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


install()
print(f"    installed on {platform.libc_ver()[1]}, Python {platform.python_version()}")
print(f"    {run_commands()} commands and the analyzer run")
if not EMULATED:  # qemu-user has no packet sockets
    capture_transfer()
    print("    a transfer was sent, captured and analyzed")
