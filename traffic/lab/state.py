# SPDX-License-Identifier: Apache-2.0
"""Records of labs. A record is written before its lab is made, so that `lab down` finds it after a crash.

A record is a file `NAME.json` in /run/wiretale/labs (root) or $XDG_RUNTIME_DIR/wiretale/labs; WIRETALE_STATE names
another folder.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
SPACE = re.compile(r"(tracer\.)?[a-z][a-z0-9]{0,14}")  # in the name of a network namespace
LINK_RATE = "WIRETALE_LINK_RATE"  # in the environment of programs on a host: bit/s of the emulated link
USER = "WIRETALE_LAB_USER"  # in the environment, inside a user namespace: the user id outside
HOSTS = ("sender", "tracer", "receiver")
ENDS = ("sender", "receiver")


def start_time(pid: int) -> str:
    """Returns the start time of a process in kernel ticks, which identifies it, because process numbers are reused.

    Empty if it does not exist, or is a zombie.
    """
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if words[0] in "ZX" else words[19]
    except (OSError, IndexError):
        return ""


def own_space() -> int:
    """Returns the number of the user namespace of this process if it was made for a lab, else 0."""
    return os.stat("/proc/self/ns/user").st_ino if USER in os.environ else 0


@dataclass
class Lab:
    """The record of a lab."""

    name: str
    profile: str
    description: str = ""
    folder: str = ""  # of the truth and the log of the link
    keeps: bool = True  # the user chose the directory, which must stay
    owner: int = 0  # process of `lab run`; 0 if the lab stays up
    owner_start: str = ""  # start_time() of the owner
    is_ending: bool = False  # another process removes it
    link_bps: int = 0  # rate of the emulated link; 0 if unlimited
    created_ns: int = field(default_factory=time.time_ns)
    space: int = field(default_factory=own_space)  # user namespace, if an ordinary user made it
    hosts: list[str] = field(default_factory=list)  # beside sender and receiver
    hops: list[str] = field(default_factory=list)  # routers between sender and receiver, each before its link

    @property
    def path(self) -> tuple[str, ...]:
        """The sender, the routers and the receiver, in a row."""
        return "sender", *self.hops, "receiver"

    @property
    def tracers(self) -> list[str]:
        """The namespaces with a link: those of the path in a row, then those of the access links."""
        return ["tracer", *(f"tracer.{name}" for name in (*self.hops, *self.hosts))]

    @property
    def last_tracer(self) -> str:
        """The tracer of the link to the receiver."""
        return self.tracers[len(self.hops)]

    @property
    def spaces(self) -> list[str]:
        """All hosts, routers and tracers."""
        return list(dict.fromkeys((*HOSTS, *self.hosts, *self.hops, *self.tracers)))

    def namespace(self, host: str) -> str:
        """Returns the network namespace of a host."""
        return f"wt-{self.name}-{host}"

    @property
    def is_in_use(self) -> bool:
        """Whether the process of its `lab run` still runs; false for a lab that stays up."""
        started = start_time(self.owner) if self.owner else ""
        return started != "" and self.owner_start in ("", started)

    def environment(self) -> dict[str, str]:
        """Returns the environment of programs on its hosts."""
        return {**os.environ, **({LINK_RATE: str(self.link_bps)} if self.link_bps else {})}

    def inside(self, host: str, *command: str) -> list[str]:
        """Returns a command that runs another on a host."""
        from wiretale.traffic.program import find_program

        return [find_program("ip"), "netns", "exec", self.namespace(host), *command]


MODEL = Lab("", "")  # values of the types of a record


def check_name(name: str) -> str:
    """Returns a name, or raises UsageError if it is invalid."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r}: expected a name of up to 40 letters, digits, - and _")
    return name


def own_folder(folder: Path) -> Path:
    """Returns a directory in a shared place. OutputError if another user owns it."""
    with suppress(FileNotFoundError):
        if folder.lstat().st_uid != os.geteuid():
            raise OutputError(f"{folder}: expected a directory of this user; WIRETALE_STATE sets another")
    return folder


def state_folder() -> Path:
    """Returns the directory of the records of this user."""
    folder = os.environ.get("WIRETALE_STATE")
    if folder:
        return Path(folder)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    user = os.environ.get(USER, str(os.getuid()))
    if user == "0":
        return Path("/run/wiretale/labs")
    if runtime:
        return Path(runtime) / "wiretale" / "labs"
    return own_folder(Path(tempfile.gettempdir(), f"wiretale-{user}")) / "labs"


class TakenError(WiretaleError):
    """Another lab has the name; nothing of it must be removed."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"the lab {name} is up already: wiretale lab down {name}")


def mark_ending(lab: Lab) -> None:
    """Marks a lab, so that its owner can report why its programs end."""
    folder = state_folder()
    partial = folder / f".{lab.name}.{os.getpid()}"
    with suppress(OSError):
        partial.write_text(json.dumps(asdict(replace(lab, is_ending=True))))
        partial.replace(folder / f"{lab.name}.json")


def save_lab(lab: Lab) -> None:
    """Writes the record of a lab, whole or not at all. TakenError if there is one of that name."""
    folder = state_folder()
    partial = folder / f".{lab.name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.write_text(json.dumps(asdict(lab)))
        os.link(partial, folder / f"{lab.name}.json")
    except FileExistsError:
        raise TakenError(lab.name) from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot record the lab {lab.name}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def forget_lab(lab: Lab) -> None:
    """Removes the record of a lab."""
    (state_folder() / f"{lab.name}.json").unlink(missing_ok=True)


def named_spaces(name: str) -> list[str]:
    """Returns the hosts, routers and tracers of which network namespaces exist; no host has a - in its name."""
    parts = (path.name.rpartition("-") for path in Path("/run/netns").glob(f"wt-{name}-*"))
    return sorted(space for lab, _, space in parts if lab == f"wt-{name}" and SPACE.fullmatch(space))


def read_lab(path: Path) -> Lab:
    """Reads a record. If it is damaged, it is still a lab of that name that can be removed, with the hosts that exist."""
    try:
        content = json.loads(path.read_text())
        lab = Lab(**{**content, "name": check_name(path.stem)})
        is_whole = all(type(value) is type(getattr(MODEL, name)) for name, value in asdict(lab).items())
        if is_whole and all(isinstance(host, str) for host in (*lab.hosts, *lab.hops)):
            return lab
    except (OSError, ValueError, TypeError, UsageError):
        pass
    further = {space.removeprefix("tracer.") for space in named_spaces(path.stem)}.difference(HOSTS)
    return Lab(path.stem, "unknown", keeps=False, hosts=sorted(further))


def known_labs() -> list[Lab]:
    """Returns all labs of this user by name."""
    folder = state_folder()
    return [read_lab(path) for path in sorted(folder.glob("*.json")) if NAME.fullmatch(path.stem)]


def find_lab(name: str | None) -> Lab:
    """Returns the lab of a name, or the only lab. UsageError if it does not exist."""
    labs = known_labs()
    matches = [lab for lab in labs if name in (None, lab.name)]
    if len(matches) == 1:
        return matches[0]
    there = ", ".join(lab.name for lab in labs) or "none"
    raise UsageError(f"{'expected the name of a lab' if name is None else f'there is no lab {name!r}'} (labs: {there})")
