# SPDX-License-Identifier: Apache-2.0
"""The topology of a profile: hosts beside sender and receiver, further links of the path, and cross traffic.

[[hop]]                    # a router and a link behind the first link, in this order
name = "isp"               # of the router, which stands before its link
rate = "20Mbit"            # settings of both directions; [hop.forward] and [hop.reverse] have those of one
[[host]]
name = "client"
at = "sender"              # or "receiver", or a router
delay = "20ms"             # of its access link; forward is from the host
[[cross]]
from = "client"
to = "receiver"
send = "--udp --rate 5M"   # options of wiretale-traffic send
start = "1s"
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from wiretale.traffic.experiment import plan_value as read
from wiretale.traffic.experiment.plan_value import PlanTable
from wiretale.traffic.lab.state import ENDS, HOSTS
from wiretale.traffic.lab.topology.setting import settings

NAME = re.compile(r"[a-z][a-z0-9]{0,14}")  # without -, which stands before the host in the name of a namespace
MOST = {"hop": 8, "host": 32, "cross": 32}


@dataclass(frozen=True)
class Hop:
    """A router of the path and the link behind it."""

    name: str
    forward: str = ""
    reverse: str = ""


@dataclass(frozen=True)
class Host(Hop):
    """A host beside sender and receiver, with its access link."""

    at: str = "sender"


@dataclass(frozen=True)
class Cross:
    """Cross traffic: a test of wiretale-traffic between two hosts."""

    source: str
    target: str
    options: tuple[str, ...]  # of wiretale-traffic send
    start_s: float
    where: str  # its place in the profile, for errors


@dataclass(frozen=True)
class Topology:
    """All that a profile has beside its pair of hosts and its first link."""

    hops: tuple[Hop, ...] = ()
    hosts: tuple[Host, ...] = ()
    cross: tuple[Cross, ...] = ()


def tables(top: PlanTable, kind: str) -> list[PlanTable]:
    """Returns the tables of a kind, which must not be too many."""
    listed = top.tables(kind)
    if len(listed) > MOST[kind]:
        raise top.error(kind, f"expected at most {MOST[kind]}, found {len(listed)}")
    return listed


def take_name(table: PlanTable, names: list[str]) -> str:
    """Returns the name of a host or router, which must be new."""
    expected = f"a name of up to 15 small letters and digits, none of {', '.join(names)}"
    is_new = read.checked(
        lambda value: isinstance(value, str) and NAME.fullmatch(value) and value not in names, expected
    )
    names.append(table.need("name", is_new))
    return names[-1]


def directions(table: PlanTable, folder: Path | None) -> tuple[str, str]:
    """Returns the settings of both directions from the keys that are left."""
    own_tables = [
        PlanTable(table.file, f"{table.where}, {name}", table.data.pop(name, {})) for name in ("forward", "reverse")
    ]
    both = dict(table.data)
    return settings(own_tables[0], both, folder), settings(own_tables[1], both, folder)


def send_options(value: object) -> tuple[str, ...]:
    """Returns the options of a sender; wiretale-traffic checks them before the lab is made (cross.py)."""
    return tuple(shlex.split(read.text(value)))


def read_cross(table: PlanTable, hosts: list[str], has_scenario: bool) -> Cross:
    """Returns a table [[cross]]. A scenario measures all blocks between sender and receiver, so it must not have these ends."""
    source = table.need("from", read.word(*hosts))
    target = table.need("to", read.word(*(host for host in hosts if host != source)))
    if has_scenario and {source, target} == set(ENDS):
        raise table.error("to", f"{target!r}: expected another host, because the flow of [scenario] has the same ends")
    options, start_s = table.need("send", send_options), table.take("start", read.duration, 0.0)
    table.end()
    return Cross(source, target, options, start_s, f"{table.file}: {table.where}")


def read_topology(top: PlanTable, folder: Path | None, has_scenario: bool) -> Topology:
    """Returns the topology of a profile. UsageError, with its place, if a value is invalid."""
    names = list(HOSTS)
    hops = tuple(Hop(take_name(table, names), *directions(table, folder)) for table in tables(top, "hop"))
    places = read.word(*ENDS, *(hop.name for hop in hops))
    hosts = []
    for table in tables(top, "host"):
        name, at = take_name(table, names), table.take("at", places, "sender")
        hosts.append(Host(name, *directions(table, folder), at=at))
    ends = [*ENDS, *(host.name for host in hosts)]
    cross = tuple(read_cross(table, ends, has_scenario) for table in tables(top, "cross"))
    return Topology(hops, tuple(hosts), cross)
