# SPDX-License-Identifier: Apache-2.0
"""The place of a program of an experiment: this host, another host through ssh, or a network namespace of this host."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, UsageError
from wiretale.traffic.program import find_program, program_path

# Ends the program if the other end of its standard input is closed: on purpose, by a broken connection, or because this process
# ended. The shell ignores SIGUSR1, which is for the program.
WATCHED = (
    "trap '' USR1; exec 3<&0; {command} </dev/null & p=$!; {{ cat <&3; kill -TERM $p; }} >/dev/null 2>&1 & w=$!; "
    "wait $p; s=$?; kill $w 2>/dev/null; exit $s"
)
SSH_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5")
SSH_NAME = re.compile(r"(?!-)[A-Za-z0-9_.@:%\[\]-]+")
NETNS_NAME = re.compile(r"(?!-)[A-Za-z0-9_.-]+")


def watched(arguments: Sequence[str]) -> str:
    """Returns a line of shell that runs a program as long as its standard input is open."""
    return WATCHED.format(command=shlex.join(arguments))


@dataclass(frozen=True)
class Endpoint:
    """This host if both fields are None."""

    ssh: str | None = None
    netns: str | None = None

    def __post_init__(self) -> None:
        if self.ssh is not None and self.netns is not None:
            raise ValueError("expected either ssh or netns")
        if self.ssh is not None and not SSH_NAME.fullmatch(self.ssh):
            raise ValueError(f"ssh: {self.ssh!r}: expected user@host")
        if self.netns is not None and not NETNS_NAME.fullmatch(self.netns):
            raise ValueError(f"netns: {self.netns!r}: expected the name of a network namespace")

    def __str__(self) -> str:
        if self.ssh is not None:
            return f"ssh:{self.ssh}"
        return f"netns:{self.netns}" if self.netns is not None else "here"

    @property
    def is_remote(self) -> bool:
        """Whether it is another host, with its own files."""
        return self.ssh is not None

    def program(self, name: str) -> str:
        """Returns the path of a program, or its name on another host."""
        return name if self.is_remote else program_path(name) or name

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Returns the local command that runs a program at the endpoint and ends it with itself."""
        if self.ssh is not None:
            return self.shell(watched(arguments))
        if self.netns is not None:
            return [program_path("ip") or "ip", "netns", "exec", self.netns, *arguments]
        return list(arguments)

    def shell(self, script: str) -> list[str]:
        """Returns the local command that runs a line of shell on the other host."""
        assert self.ssh is not None
        return [program_path("ssh") or "ssh", *SSH_OPTIONS, "--", self.ssh, script]

    def check(self) -> None:
        """Raises MissingToolError or UsageError if programs cannot run at the endpoint."""
        if self.ssh is not None:
            find_program("ssh")
        if self.netns is None:
            return
        find_program("ip")
        if not Path("/run/netns", self.netns).exists():
            raise UsageError(f"there is no network namespace {self.netns}: `ip netns list` lists them")
        if os.geteuid():
            raise MissingToolError(f"root is needed to run in the network namespace {self.netns}: run with sudo")


def parse_endpoint(text: str) -> Endpoint:
    """Returns the endpoint of `here`, `ssh:user@host` or `netns:NAME`. ValueError for other texts."""
    kind, colon, name = text.partition(":")
    if text == "here":
        return Endpoint()
    if colon and kind == "ssh":
        return Endpoint(ssh=name)
    if colon and kind == "netns":
        return Endpoint(netns=name)
    raise ValueError("expected here, ssh:user@host or netns:NAME")
