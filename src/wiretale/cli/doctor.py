# SPDX-License-Identifier: Apache-2.0
"""wiretale doctor: what this machine has, what it lacks, and which command mends it."""

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

from wiretale.cli.parser import exit_codes
from wiretale.installation import missing_library, repair
from wiretale.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Check this machine: Python and its packages, the C programs, other tools (tshark, tcpdump, chromium), the permission to
capture, offloads that distort captures, the clock, and disk space.
"""
EXAMPLES = """\
wiretale doctor
wiretale doctor --json
"""
MISSING = 5
CAP_NET_RAW = 13  # linux/capability.h
RUN_SECONDS = 30  # chromium on a busy machine
DISK_LEAST = 1 << 30  # bytes
TOOLS = (
    ("tshark", "apt-get install tshark", "for wiretale verify"),
    ("tcpdump", "apt-get install tcpdump", "for labs and experiments where wiretale-capture may not"),
    ("chromium", "apt-get install chromium", "to test reports"),
)
# Python packages, with the first version that serves and the first that is known not to (as in setup.cfg).
MODULES = (
    ("duckdb", (2,), (3,)),
    ("plotly", (6, 1), (8,)),
    ("jinja2", (3, 1), None),
    ("rich", (13,), None),
)
SIOCETHTOOL = 0x8946  # linux/sockios.h
# linux/ethtool.h: the command that asks for an offload, the bit of its answer, the name that ethtool -K takes
OFFLOADS = ((0x1E, 1, "tso"), (0x23, 1, "gso"), (0x2B, 1, "gro"), (0x25, 1 << 15, "lro"))
DUMPCAP_MEND = "dpkg-reconfigure wireshark-common && adduser $USER wireshark"
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronized


class Check(NamedTuple):
    """One line: state is ok, note, warning or missing."""

    state: str
    what: str
    found: str
    mend: str = ""


def version_numbers(text: str) -> tuple[int, ...]:
    """(1, 5, 2) of `1.5.2` or `1.5.2rc1`."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def check_module(name: str, least: tuple[int, ...], beyond: tuple[int, ...] | None) -> Check:
    """A Python package that is needed, and its version."""
    from importlib.metadata import PackageNotFoundError, version

    bounds = f">={'.'.join(map(str, least))}" + (f",<{'.'.join(map(str, beyond))}" if beyond else "")
    mend = f"{sys.executable} -m pip install '{name}{bounds}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check("missing", name, "not installed", mend)
    if version_numbers(found) < least or (beyond and version_numbers(found) >= beyond):
        return Check("warning", name, f"{found}, and {bounds} is what serves", mend)
    return Check("ok", name, found)


def check_python() -> Iterator[Check]:
    """The interpreter and the packages that are needed."""
    yield Check("ok", "Python", platform.python_version())
    for module in MODULES:
        yield check_module(*module)


def check_core() -> Iterator[Check]:
    """The native core and its libraries."""
    try:
        from wiretale.analyzer._core import libraries
    except ImportError as error:
        absent = missing_library(str(error))
        found, mend = (f"{absent[0]} is missing", absent[1]) if absent else (str(error), repair())
        yield Check("missing", "native core", found, mend)
        return
    for name, found in libraries().items():
        yield Check("ok", name, found)


@cache
def version_of(program: str) -> tuple[str, str, str]:
    """Runs a program with --version: its version, or else why it does not run and the command that repairs that."""
    try:
        command = [program, "--version"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=RUN_SECONDS
        )
    except OSError as error:
        return "", f"cannot be run: {error.strerror}", ""
    except subprocess.TimeoutExpired:
        return "", f"did not answer to --version within {RUN_SECONDS} s", ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode == 0:
        number = re.search(r"\d+(\.\d+)+\S*", lines[0] if lines else "")
        return number[0].rstrip(".") if number else "runs", "", ""
    said = lines[-1] if lines else f"--version ended with {done.returncode}"
    if absent := missing_library(said):
        return "", f"{absent[0]} is missing", absent[1]
    problem, command_given, mend = said.removeprefix(f"{Path(program).name}: ").partition(": apt-get ")
    return "", problem, (command_given + mend).removeprefix(": ")


def check_tools() -> Iterator[Check]:
    """Programs of others that wiretale can use."""
    for name, mend, why in TOOLS:
        path = shutil.which(name)
        if not path:
            yield Check("note", name, f"not found; {why}", mend)
            continue
        version, problem, other_mend = version_of(path)
        install = mend.replace("install", "install --reinstall")
        yield (
            Check("ok", name, f"{version} ({path})") if version else Check("note", name, problem, other_mend or install)
        )


def check_programs() -> Iterator[Check]:
    """The C programs that are installed with wiretale."""
    from wiretale.traffic.program import PROGRAM_OF_COMMAND, program_path

    for name in sorted({words[0] for words in PROGRAM_OF_COMMAND.values()}):
        path = program_path(name)
        if not path:
            yield Check("missing", name, "not found", repair())
            continue
        version, problem, mend = version_of(path)
        if not version:
            yield Check("missing", name, f"{problem} ({path})", mend or repair())
        elif version != __version__:
            yield Check("warning", name, f"{version} ({path}), expected {__version__}", repair())
        else:
            yield Check("ok", name, f"{version} ({path})")


def effective_capabilities() -> int:
    """The capability set of this process, as bits."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def check_capture() -> Iterator[Check]:
    """Whether this user may capture, by himself or through wiretale-capture or dumpcap."""
    from wiretale.traffic.program import program_path

    try:
        allowed = effective_capabilities() >> CAP_NET_RAW & 1
    except OSError:
        yield Check("note", "capturing", "cannot be told on this system")
        return
    dumpcap = shutil.which("dumpcap")  # finds only what this user may run
    own = program_path("wiretale-capture")
    own = own if own and version_of(own)[0] else None
    if allowed:
        yield Check("ok", "capturing", "this user may")
    elif own and has_capabilities(own):
        yield Check("ok", "capturing", "this user may, through wiretale-capture")
    elif dumpcap and has_capabilities(dumpcap):
        yield Check("ok", "capturing", "this user may, through dumpcap")
    elif own:
        yield Check("note", "capturing", "this user may not", f"sudo setcap cap_net_raw,cap_net_admin+ep {own}")
    elif Path("/usr/bin/dumpcap").exists():
        yield Check("note", "capturing", "this user may not", DUMPCAP_MEND)
    else:
        yield Check("note", "capturing", "this user may not, and no program to capture with is there", repair())


def has_capabilities(program: str) -> bool:
    """Whether a program file carries capabilities of its own, or is run as root by anybody."""
    try:
        return bool(os.getxattr(program, "security.capability"))
    except OSError:
        return bool(os.stat(program).st_mode & 0o4000)


def offload_features(device: str) -> list[str] | None:
    """Segmentation and receive offloads that are on, as `ethtool -K` names them; None where that cannot be told."""
    from array import array
    from fcntl import ioctl
    from socket import AF_INET, SOCK_DGRAM, socket
    from struct import pack

    found: list[str] | None = None
    with socket(AF_INET, SOCK_DGRAM) as asking:  # sends nothing: the kernel answers by it
        for command, bit, name in OFFLOADS:
            value = array("I", [command, 0])  # struct ethtool_value
            try:
                ioctl(asking, SIOCETHTOOL, pack("16sP16x", device.encode(), value.buffer_info()[0]))
            except OSError:
                continue
            found = [*(found or []), *([name] if value[1] & bit else [])]
    return found


def check_offloads() -> Iterator[Check]:
    """Offloads of the devices that are up: with them a capture on this host shows segments that no wire carries."""
    for folder in sorted(Path("/sys/class/net").glob("*")):
        if folder.name == "lo" or not (folder / "operstate").exists():
            continue
        if (folder / "operstate").read_text().strip() != "up":
            continue
        features = offload_features(folder.name)
        if features is None:
            yield Check("note", f"offloads of {folder.name}", "cannot be told")
        elif features:
            mend = f"ethtool -K {folder.name} " + " ".join(f"{name} off" for name in features)
            found = f"{', '.join(features)} on: a capture here shows packets that no wire carries"
            yield Check("warning", f"offloads of {folder.name}", found, mend)
        else:
            yield Check("ok", f"offloads of {folder.name}", "off")


def clock_state() -> int:
    """What the kernel says of its clock, as adjtimex(2); -1 where it does not say."""
    import ctypes

    try:
        return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024)))  # struct timex of 0: only asks
    except (OSError, AttributeError):
        return -1


def check_clock() -> Iterator[Check]:
    """The clock that stamps packets, and whether it is kept right."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source.exists():
        yield Check("ok", "clock source", source.read_text().strip())
    state = clock_state()
    if state < 0:
        yield Check("note", "clock", "cannot be told whether it is synchronized")
    elif state == TIME_ERROR:
        found = "not synchronized: times of two machines cannot be compared"
        yield Check("note", "clock", found, "apt-get install chrony")
    else:
        yield Check("ok", "clock", "synchronized")


def check_disk() -> Iterator[Check]:
    """Room where reports are written."""
    free = shutil.disk_usage(os.getcwd()).free
    found = f"{free / 1e9:.1f} GB free here"
    yield Check("ok", "disk", found) if free >= DISK_LEAST else Check("warning", "disk", found, "make room")


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


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser("doctor", usage="wiretale doctor [--json]", description=DESCRIPTION)
    parser.examples = EXAMPLES
    parser.exit_codes = {**exit_codes(0, 2), 5: "something that wiretale needs is missing"}
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=doctor)


def doctor(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.printable import printable

    checks = [check for run in CHECKS for check in run()]
    if arguments.json:
        import json

        print(json.dumps({"schema": "wiretale.doctor/1", "checks": [check._asdict() for check in checks]}))
    else:
        for check in checks:
            mend = f"  →  {check.mend}" if check.mend else ""
            print(printable(f"{check.state:8} {check.what:22} {check.found}{mend}"))
    return MISSING if any(check.state == "missing" for check in checks) else 0
