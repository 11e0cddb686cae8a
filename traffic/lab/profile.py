# SPDX-License-Identifier: Apache-2.0
"""Profiles in TOML: the settings of a link and its hosts. A profile is built in, or a file.

description = "100 Mb/s Ethernet through one switch"
mtu = 1500                 # MTU of the hosts
seed = 1                   # random seed of the link
[both]                     # or [forward] and [reverse]: settings of wiretale-link
rate = "100Mbit"
[sysctl]                   # of both hosts
"net.ipv4.tcp_sack" = 0
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.units import one_of, parse_bit_rate
from wiretale.traffic.experiment import plan_value as read
from wiretale.traffic.experiment.plan_value import PlanTable
from wiretale.traffic.lab.topology.description import Topology, read_topology
from wiretale.traffic.lab.topology.setting import settings

CARD_LEAST, CARD_MOST = 1000, 10**15  # bit/s
SYSCTL = re.compile(r"net\.[a-z0-9_.]+")
SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_. \t-]*")
MTU_LEAST, MTU_MOST = 68, 65535


def card_speed(value: object) -> str:
    """Returns the speed of the network cards of the hosts."""
    if value == "":
        return ""
    rate = parse_bit_rate(value) if isinstance(value, str) else None
    if not rate or not CARD_LEAST <= rate <= CARD_MOST:
        raise ValueError("expected a speed, such as 100Mbit")
    return f"{int(rate)}bit"


@dataclass(frozen=True)
class Scenario:
    """One flow over the link, as in a study."""

    study: str = read.key(read.text)
    row: int = read.key(read.plain(0, 10**9))  # in the table of the study
    case: str = read.key(read.text)
    protocol: str = read.key(read.word("udp", "tcp"))
    packet_bytes: int = read.key(read.plain(84, 65_535))
    rate_bps: float = read.key(read.real(1, 1e11))
    seconds: float = read.key(read.real(1e-9, 3600))
    count: int | None = read.key(read.plain(1, 10**9), None)


@dataclass(frozen=True)
class Profile:
    """A link and the hosts at its ends."""

    name: str
    description: str = read.key(str, "")
    mtu: int = read.key(read.plain(MTU_LEAST, MTU_MOST), 1500)
    card: str = read.key(card_speed, "")
    seed: int = read.key(read.plain(0, 2**63 - 1), 1)
    forward: str = ""
    reverse: str = ""
    sysctl: dict[str, str] = field(default_factory=dict)
    scenario: Scenario | None = None
    published: dict[str, Any] = field(default_factory=dict)
    topology: Topology = field(default_factory=Topology)


def profile_names() -> list[str]:
    """Returns the names of the built-in profiles."""
    folder = files("wiretale.traffic.lab").joinpath("profiles")
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def kernel_value(value: object) -> str:
    """Returns a kernel setting of both hosts."""
    if not SYSCTL_VALUE.fullmatch(str(value)):
        raise ValueError("expected a value of a kernel setting")
    return str(value)


def read_sysctl(table: PlanTable) -> dict[str, str]:
    """Returns the kernel settings of both hosts, which must be settings of a network namespace."""
    for name in table.data:
        if not SYSCTL.fullmatch(name) or ".." in name:
            raise table.error(name, "expected a setting below net.")
    return {name: table.need(name, kernel_value) for name in list(table.data)}


def make_profile(name: str, text: str, where: str, folder: Path | None = None) -> Profile:
    """Returns the profile in a text. UsageError, with the file, if it is invalid."""
    try:
        top = PlanTable(where, "", tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: expected TOML: {error}") from None
    both, published, scenario = top.table("both").data, top.table("published"), top.table("scenario")
    topology = read_topology(top, folder, has_scenario=bool(scenario.data))
    return top.fill(
        Profile,
        name=name,
        forward=settings(top.table("forward"), both, folder),
        reverse=settings(top.table("reverse"), both, folder),
        sysctl=read_sysctl(top.table("sysctl")),
        scenario=scenario.fill(Scenario) if scenario.data else None,
        published={name: published.need(name, read.real(-1e18, 1e18)) for name in list(published.data)},
        topology=topology,
    )


def load_profile(name: str) -> Profile:
    """Returns a built-in profile, or the one in a .toml file."""
    if name.endswith(".toml"):
        path = Path(name)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        return make_profile(path.stem, text, str(path), path.resolve().parent)
    if name not in profile_names():
        raise UsageError(f"there is no profile {name!r} (expected {one_of([*profile_names(), 'FILE.toml'])})")
    text = files("wiretale.traffic.lab").joinpath("profiles", f"{name}.toml").read_text("utf-8")
    return make_profile(name, text, f"profile {name}")


def link_bps(profile: Profile) -> int | None:
    """Returns the rate that no flow over the link can exceed: that of the faster direction, or of the cards.

    None if a direction has no fixed rate, as with a trace.
    """
    from wiretale.analyzer.units import parse_rate

    rates = []
    for spec in (profile.forward, profile.reverse):
        settings = dict(setting.partition("=")[::2] for setting in spec.split())
        bounds = [settings["rate"]] if "rate" in settings and "schedule" not in settings else []
        bounds += [profile.card] if profile.card else []
        try:
            rates.append(min(map(parse_rate, bounds), default=None))
        except UsageError:  # the link reports it
            rates.append(None)
    rates_known = [rate for rate in rates if rate is not None]
    return max(rates_known) if len(rates_known) == len(rates) else None


def study_profiles(study: str) -> list[Profile]:
    """Returns the profiles of the rows of a study, in order."""
    profiles = map(load_profile, profile_names())
    rows = {
        profile.scenario.row: profile for profile in profiles if profile.scenario and profile.scenario.study == study
    }
    return [rows[row] for row in sorted(rows)]
