# SPDX-License-Identifier: Apache-2.0
"""wiretale doctor: what this machine has, what it lacks, and which command mends it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

EXAMPLES = """\
examples:
  wiretale doctor
  wiretale doctor --json

Checks Python and the libraries, the tools beside (tshark, dumpcap, chromium), the right to capture, offloads that
falsify captures on this machine, the clock, and room on the disk. Exit code 5 when something that wiretale needs is
missing.
"""
MISSING = 5
CAP_NET_RAW = 13  # linux/capability.h
DISK_LEAST = 1 << 30  # bytes
TOOLS = (
    ("tshark", "apt-get install tshark", "to look into single packets"),
    ("dumpcap", "apt-get install wireshark-common", "to capture"),
    ("chromium", "apt-get install chromium", "to test reports"),
)
MODULES = ("duckdb", "plotly", "jinja2", "rich")


class Check(NamedTuple):
    """One line: state is ok, note, warning or missing."""

    state: str
    what: str
    found: str
    mend: str = ""


def check_python() -> Iterator[Check]:
    """The interpreter and the packages that are needed."""
    from importlib.metadata import PackageNotFoundError, version

    yield Check("ok", "Python", platform.python_version())
    for name in MODULES:
        try:
            yield Check("ok", name, version(name))
        except PackageNotFoundError:
            yield Check("missing", name, "not installed", f"{sys.executable} -m pip install {name}")


def check_core() -> Iterator[Check]:
    """The native core and its libraries."""
    try:
        from wiretale.analyzer._core import libraries
    except ImportError as error:
        yield Check("missing", "native core", str(error), "make build")
        return
    for name, found in libraries().items():
        yield Check("ok", name, found)


def check_tools() -> Iterator[Check]:
    """Programs that are useful beside."""
    for name, mend, why in TOOLS:
        path = shutil.which(name)
        yield Check("ok", name, path) if path else Check("note", name, f"not found; {why}", mend)


def effective_capabilities() -> int:
    """The capability set of this process, as bits."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def check_capture() -> Iterator[Check]:
    """Whether this user may capture."""
    try:
        allowed = effective_capabilities() >> CAP_NET_RAW & 1
    except OSError:
        yield Check("note", "capturing", "cannot be told on this system")
        return
    if allowed:
        yield Check("ok", "capturing", "this user may")
    else:
        dumpcap = shutil.which("dumpcap") or "/usr/bin/dumpcap"
        yield Check("note", "capturing", "this user may not", f"sudo setcap cap_net_raw+ep {dumpcap}")


def offload_features(device: str) -> list[str]:
    """Segmentation and receive offloads that are on; empty where ethtool is missing."""
    import subprocess

    if not shutil.which("ethtool"):
        return []
    shown = subprocess.run(["ethtool", "-k", device], capture_output=True, text=True, check=False).stdout
    wanted = (
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "large-receive-offload",
    )
    lines = (line.split(": ", 1) for line in shown.splitlines() if ": " in line)
    return [name.strip() for name, value in lines if name.strip() in wanted and value.startswith("on")]


def check_offloads() -> Iterator[Check]:
    """Offloads of the devices that are up: with them a capture on this host shows segments that no wire carries."""
    for folder in sorted(Path("/sys/class/net").glob("*")):
        if folder.name == "lo" or not (folder / "operstate").exists():
            continue
        if (folder / "operstate").read_text().strip() != "up":
            continue
        features = offload_features(folder.name)
        if features:
            mend = f"ethtool -K {folder.name} tso off gso off gro off lro off"
            yield Check("warning", f"offloads of {folder.name}", ", ".join(features) + " falsify captures here", mend)
        else:
            yield Check("ok", f"offloads of {folder.name}", "none told")


def check_clock() -> Iterator[Check]:
    """The clock that stamps packets, and whether it is kept right."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source.exists():
        yield Check("ok", "clock source", source.read_text().strip())
    if Path("/run/systemd/timesync/synchronized").exists() or shutil.which("chronyc"):
        yield Check("ok", "clock", "kept by a time service")
    else:
        yield Check(
            "note",
            "clock",
            "no time service seen: times of two machines cannot be compared",
            "apt-get install chrony",
        )


def check_disk() -> Iterator[Check]:
    """Room where reports are written."""
    free = shutil.disk_usage(os.getcwd()).free
    found = f"{free / 1e9:.1f} GB free here"
    yield Check("ok", "disk", found) if free >= DISK_LEAST else Check("warning", "disk", found, "make room")


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    check_python,
    check_core,
    check_tools,
    check_capture,
    check_offloads,
    check_clock,
    check_disk,
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "doctor",
        help="what this machine has and lacks",
        usage="wiretale doctor [--json]",
        description=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(command=doctor)


def doctor(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    checks = [check for run in CHECKS for check in run()]
    if arguments.json:
        import json

        print(json.dumps({"schema": "wiretale.doctor/1", "checks": [check._asdict() for check in checks]}))
    else:
        for check in checks:
            mend = f"  →  {check.mend}" if check.mend else ""
            print(f"{check.state:8} {check.what:22} {check.found}{mend}")
    return MISSING if any(check.state == "missing" for check in checks) else 0
