# SPDX-License-Identifier: Apache-2.0
"""Check this machine: Python and its packages, the C programs, other tools (tshark, tcpdump, chromium), the permission to
capture, offloads that distort captures, the clock, and disk space.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from wiretale.cli.help_text import text_lines
from wiretale.cli.options import add_json, print_json
from wiretale.installation import missing_libraries, repair
from wiretale.system_packages import install_command, manager, what_works
from wiretale.version import __version__

USAGE = "wiretale doctor [--json]"
EXAMPLES = """\
wiretale doctor
wiretale doctor --json
"""
EXIT_CODES = (0, 2, 5)
EXIT_TEXTS = {5: "a required library, program or package is missing"}
MISSING = 5
CAP_NET_RAW = 13  # linux/capability.h
RUN_SECONDS = 30  # chromium on a busy machine
DISK_LEAST = 1 << 30  # bytes
TOOLS = (
    ("tshark", install_command("tshark"), "for wiretale verify"),
    ("tcpdump", install_command("tcpdump"), "for labs and experiments, if wiretale-capture is not allowed to capture"),
    ("chromium", install_command("chromium"), "to test reports"),
)
# Python packages with the first version that is supported and the first that is not (as in setup.cfg).
MODULES = (("duckdb", (2,), (3,)), ("plotly", (6, 1), (8,)), ("jinja2", (3, 1), None), ("rich", (13,), None))
SIOCETHTOOL = 0x8946  # linux/sockios.h
# linux/ethtool.h: command that reads an offload, bit in its answer, name for ethtool -K
OFFLOADS = ((0x1E, 1, "tso"), (0x23, 1, "gso"), (0x2B, 1, "gro"), (0x25, 1 << 15, "lro"))
DUMPCAP_FIX = "dpkg-reconfigure wireshark-common && adduser $USER wireshark"
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronized


class Check(NamedTuple):
    """One line of the result; the names are those of the JSON output."""

    state: str  # ok, note, warning or missing
    name: str
    found: str
    remedy: str = ""  # the command that fixes it


def version_numbers(text: str) -> tuple[int, ...]:
    """Returns (1, 5, 2) for `1.5.2` or `1.5.2rc1`."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def check_module(name: str, least: tuple[int, ...], beyond: tuple[int, ...] | None) -> Check:
    """Checks the version of a required Python package."""
    from importlib.metadata import PackageNotFoundError, version

    bounds = f">={'.'.join(map(str, least))}" + (f",<{'.'.join(map(str, beyond))}" if beyond else "")
    fix = f"{sys.executable} -m pip install '{name}{bounds}'"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Check("missing", name, "not installed", fix)
    if version_numbers(installed) < least or (beyond and version_numbers(installed) >= beyond):
        return Check("warning", name, f"{installed}, expected {bounds}", fix)
    return Check("ok", name, installed)


def check_python() -> Iterator[Check]:
    """Checks the system, the interpreter and the required packages."""
    state, text = what_works()
    yield Check(state, "system", text)
    yield Check("ok", "Python", platform.python_version())
    for module in MODULES:
        yield check_module(*module)


def check_core() -> Iterator[Check]:
    """Checks the native core and its libraries."""
    try:
        from wiretale.analyzer._core import libraries
        from wiretale.analyzer.core_stamp import check_core as check_stamp

        check_stamp()
    except ImportError as error:
        text, fix = missing_libraries(str(error), error.path) or (str(error), repair())
        yield Check("missing", "native core", text, fix)
        return
    for name, text in libraries().items():
        yield Check("ok", name, text)


@cache
def version_of(program: str) -> tuple[str, str, str]:
    """Runs a program with --version. Returns its version, or the reason why it does not run and the command that fixes it."""
    try:
        command = [program, "--version"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=RUN_SECONDS
        )
    except OSError as error:
        return "", f"cannot be run: {error.strerror}", ""
    except subprocess.TimeoutExpired:
        return "", f"did not answer --version within {RUN_SECONDS} s", ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode == 0:
        number = re.search(r"\d+(\.\d+)+\S*", lines[0] if lines else "")
        return number[0].rstrip(".") if number else "runs", "", ""
    last = lines[-1] if lines else f"--version ended with {done.returncode}"
    if absent := missing_libraries(last):
        return "", *absent
    problem, _, command_text = last.removeprefix(f"{Path(program).name}: ").partition(f": {manager()} ")
    return "", problem, command_text and f"{manager()} {command_text}"


def check_tools() -> Iterator[Check]:
    """Checks optional programs of other projects."""
    for name, fix, why in TOOLS:
        path = shutil.which(name)
        version, problem, other_fix = version_of(path) if path else ("", f"not found; {why}", fix)
        if version:
            yield Check("ok", name, f"{version} ({path})")
        else:
            yield Check("note", name, problem, other_fix or fix.replace("install", "install --reinstall"))


def check_programs() -> Iterator[Check]:
    """Checks the C programs that are installed with wiretale."""
    from wiretale.traffic.program import PROGRAM_OF_COMMAND, program_path

    for name in sorted({words[0] for words in PROGRAM_OF_COMMAND.values()}):
        if sys.platform != "linux":
            yield Check("note", name, "runs on Linux only")
            continue
        path = program_path(name)
        version, problem, fix = version_of(path) if path else ("", "not found", "")
        if not version:
            yield Check("missing", name, f"{problem} ({path})" if path else problem, fix or repair(name))
        elif version != __version__:
            yield Check("warning", name, f"{version} ({path}), expected {__version__}", repair(name))
        else:
            yield Check("ok", name, f"{version} ({path})")


def check_capture() -> Iterator[Check]:
    """Checks whether this user may capture, directly or through wiretale-capture or dumpcap."""
    from wiretale.traffic.program import program_path

    try:
        effective = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
        allowed = effective and int(effective[1], 16) >> CAP_NET_RAW & 1
    except OSError:
        yield Check("note", "capturing", "unknown on this system")
        return
    program = program_path("wiretale-capture")
    programs = {"wiretale-capture": program if program and version_of(program)[0] else None}
    programs["dumpcap"] = shutil.which("dumpcap")  # finds only programs that this user may run
    able = [name for name, path in programs.items() if path and has_capabilities(path)]
    if allowed or able:
        yield Check("ok", "capturing", "this user may" + ("" if allowed else f", through {able[0]}"))
    elif path := programs["wiretale-capture"]:
        yield Check("note", "capturing", "this user may not", f"sudo setcap cap_net_raw,cap_net_admin+ep {path}")
    elif Path("/usr/bin/dumpcap").exists():
        yield Check("note", "capturing", "this user may not", DUMPCAP_FIX)
    else:
        yield Check(
            "note", "capturing", "this user may not, and no capture program is installed", repair("wiretale-capture")
        )


def has_capabilities(program: str) -> bool:
    """Returns whether a program has file capabilities or the setuid bit."""
    try:
        return bool(os.getxattr(program, "security.capability"))
    except OSError:
        return bool(os.stat(program).st_mode & 0o4000)


def offload_features(device: str) -> list[str] | None:
    """Returns the segmentation and receive offloads that are on, as `ethtool -K` names them; None if unknown."""
    from array import array
    from fcntl import ioctl
    from socket import AF_INET, SOCK_DGRAM, socket
    from struct import pack

    features: list[str] | None = None
    with socket(AF_INET, SOCK_DGRAM) as asking:  # sends nothing; ioctl needs a socket
        for command, bit, name in OFFLOADS:
            value = array("I", [command, 0])  # struct ethtool_value
            try:
                ioctl(asking, SIOCETHTOOL, pack("16sP16x", device.encode(), value.buffer_info()[0]))
            except OSError:
                continue
            features = [*(features or []), *([name] if value[1] & bit else [])]
    return features


def check_offloads() -> Iterator[Check]:
    """Checks offloads of the devices that are up, because with them captures on this host have oversized segments."""
    for folder in sorted(Path("/sys/class/net").glob("*")):
        if folder.name == "lo" or not (folder / "operstate").exists():
            continue
        if (folder / "operstate").read_text().strip() != "up":
            continue
        features = offload_features(folder.name)
        if features is None:
            yield Check("note", f"offloads of {folder.name}", "unknown")
        elif features:
            fix = f"ethtool -K {folder.name} " + " ".join(f"{name} off" for name in features)
            text = f"{', '.join(features)} on: captures on this host have segments larger than on the wire"
            yield Check("warning", f"offloads of {folder.name}", text, fix)
        else:
            yield Check("ok", f"offloads of {folder.name}", "off")


def clock_state() -> int:
    """Returns the state of the kernel's clock by adjtimex(2), or -1 if it is unknown."""
    import ctypes

    try:
        return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024)))  # a zeroed struct timex only reads
    except (OSError, AttributeError):
        return -1


def check_clock() -> Iterator[Check]:
    """Checks the clock that timestamps packets, and whether it is synchronized."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source.exists():
        yield Check("ok", "clock source", source.read_text().strip())
    state = clock_state()
    if state < 0:
        yield Check("note", "clock", "synchronization unknown")
    elif state == TIME_ERROR:
        text = "not synchronized: times of two machines cannot be compared"
        yield Check("note", "clock", text, install_command("chrony"))
    else:
        yield Check("ok", "clock", "synchronized")


def check_disk() -> Iterator[Check]:
    """Checks the free space in the current directory."""
    free = shutil.disk_usage(os.getcwd()).free
    text = f"{free / 1e9:.1f} GB free in this directory"
    yield Check("ok", "disk", text) if free >= DISK_LEAST else Check("warning", "disk", text, "free disk space")


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    check_python,
    check_core,
    check_programs,
    check_tools,
    check_capture,
    check_offloads,
    check_clock,
    check_disk,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.printable import printable

    checks = [check for run in CHECKS for check in run()]
    if arguments.json:
        print_json({"schema": "wiretale.doctor/1", "checks": [check._asdict() for check in checks]})
    else:
        for check in checks:
            print("\n".join(text_lines(f"{check.state:8} {check.name:22} ", printable(f"{check.found}"))))
            if check.remedy:
                print("\n".join(text_lines(f"{'':8} {'':22} → ", printable(check.remedy))))
    return MISSING if any(check.state == "missing" for check in checks) else 0
