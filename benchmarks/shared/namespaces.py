# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of a benchmark, and the programs that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PathError(Exception):
    """The path could not be set up, or a run on it cannot be used."""


def run(*command: str) -> str:
    """Returns the output of a command. Raises PathError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise PathError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def missing(packages: str, *programs: str) -> str | None:
    """Returns why no namespaces can be made, None if they can. `packages` is the set of .ci/packages that has the programs."""
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        return f"needs {', '.join(absent)}: .ci/packages {packages}"
    return "needs root, for network namespaces" if os.geteuid() else None


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 10) -> None:
    """Raises PathError if the condition does not hold within `seconds`."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise PathError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


@contextmanager
def namespaces(prefix: str, *ends: str) -> Iterator[dict[str, str]]:
    """Yields the names of new namespaces without IPv6, by end, and removes them at the end of the block."""
    names = {end: f"{prefix}{os.getpid()}{end[0]}" for end in ends}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
            for which in ("all", "default"):
                run(*inside(name, "sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1"))
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


def tcp_sockets(namespace: str) -> list[list[str]]:
    """Returns the lines of /proc/net/tcp and tcp6, in cells."""
    lines = run(*inside(namespace, "cat", "/proc/net/tcp", "/proc/net/tcp6")).splitlines()
    return [cells for line in lines if (cells := line.split())[1] != "local_address"]


def listens(namespace: str, port: int) -> bool:
    return any(cells[1].endswith(f":{port:04X}") and cells[3] == "0A" for cells in tcp_sockets(namespace))
