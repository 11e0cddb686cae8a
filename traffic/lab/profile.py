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
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.units import one_of, parse_bit_rate, split_number

MEMBERS = {"description", "mtu", "card", "seed", "both", "forward", "reverse", "sysctl", "scenario", "published"}
CARD_LEAST, CARD_MOST = 1000, 10**15  # bit/s
SETTING = re.compile(r"[a-z][a-z-]*")
SYSCTL = re.compile(r"net\.[a-z0-9_.]+")
SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_. \t-]*")
MTU_LEAST, MTU_MOST = 68, 65535


@dataclass(frozen=True)
class Scenario:
    """One flow over the link, as in a study."""

    study: str
    row: int  # in the table of the study
    case: str
    protocol: str
    packet_bytes: int
    rate_bps: float
    seconds: float
    count: int | None = None


@dataclass(frozen=True)
class Profile:
    """A link and the hosts at its ends."""

    name: str
    description: str = ""
    mtu: int = 1500
    card: str = ""
    seed: int = 1
    forward: str = ""
    reverse: str = ""
    sysctl: dict[str, str] = field(default_factory=dict)
    scenario: Scenario | None = None
    published: dict[str, Any] = field(default_factory=dict)


def profile_names() -> list[str]:
    """Returns the names of the built-in profiles."""
    folder = files("wiretale.traffic.lab").joinpath("profiles")
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def table_of(content: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    """Returns a table of the file; empty if it is missing."""
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {name}: expected a table")
    return table


def setting_text(value: Any, name: str, where: str) -> str:
    """Returns the value of a setting as an argument of wiretale-link."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(setting_text(part, name, where) for part in value)
    text = str(value)
    if split_number(text):  # "10 Mbit": blanks separate settings
        text = re.sub(r"\s", "", text)
    if not isinstance(value, (str, int, float)) or not text or re.search(r"\s", text):
        raise UsageError(f"{where}: {name} = {value!r}: expected a number or a text without blanks")
    return text


def check_readable(path: Path, where: str) -> None:
    """Raises InputError if a file of a setting cannot be read."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{where}: {path}: {error.strerror}") from None


def settings(content: dict[str, Any], direction: str, where: str, folder: Path | None) -> str:
    """Returns the settings of a direction: those of both directions, then its own."""
    parts = []
    for name, value in {**table_of(content, "both", where), **table_of(content, direction, where)}.items():
        key = name.replace("_", "-")
        if not SETTING.fullmatch(key):
            raise UsageError(f"{where}: {name!r}: expected a setting of wiretale-link")
        text = setting_text(value, name, where)
        if key == "trace" and folder:
            text = setting_text(str(folder / text), name, where)
            check_readable(Path(text), f"{where}: {name}")
        parts.append(f"{key}={text}")
    return " ".join(parts)


def whole_number(content: dict[str, Any], name: str, least: int, most: int, default: int, where: str) -> int:
    """Returns a whole number within bounds."""
    value = content.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"{where}: {name} = {value!r}: expected a whole number from {least} to {most}")
    return value


def read_card(content: dict[str, Any], where: str) -> str:
    """Returns the speed of the network cards of the hosts."""
    card = content.get("card", "")
    rate = parse_bit_rate(card) if isinstance(card, str) and card else None
    if card and not (rate and CARD_LEAST <= rate <= CARD_MOST):
        raise UsageError(f"{where}: card = {card!r}: expected a speed, such as 100Mbit")
    return f"{int(rate)}bit" if rate else ""


def read_sysctl(content: dict[str, Any], where: str) -> dict[str, str]:
    """Returns the kernel settings of both hosts, which must be settings of a network namespace."""
    chosen = {}
    for name, value in table_of(content, "sysctl", where).items():
        if not SYSCTL.fullmatch(name) or ".." in name or not SYSCTL_VALUE.fullmatch(str(value)):
            raise UsageError(f"{where}: sysctl {name!r} = {value!r}: expected a setting below net.")
        chosen[name] = str(value)
    return chosen


# Members of a scenario: the expected value in words, and as a test.
SCENARIO: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "study": ("a text", lambda value: isinstance(value, str)),
    "row": ("a whole number", lambda value: type(value) is int),
    "case": ("a text", lambda value: isinstance(value, str)),
    "protocol": ('"udp" or "tcp"', lambda value: value in ("udp", "tcp")),
    "packet_bytes": ("a whole number from 84 to 65535", lambda value: type(value) is int and 84 <= value <= 65535),
    "rate_bps": ("a number from 1 to 1e11", lambda value: type(value) in (int, float) and 1 <= value <= 1e11),
    "seconds": ("a number up to 3600", lambda value: type(value) in (int, float) and 0 < value <= 3600),
    "count": ("a whole number from 1", lambda value: type(value) is int and 1 <= value <= 10**9),
}

OPTIONAL = {"count"}


def read_scenario(content: dict[str, Any], where: str) -> Scenario | None:
    """Returns the scenario, or None if the profile has none."""
    table = table_of(content, "scenario", where)
    if not table:
        return None
    for name, (expected, is_right) in SCENARIO.items():
        if name in table and not is_right(table[name]):
            raise UsageError(f"{where}: scenario: {name} = {table[name]!r}: expected {expected}")
    for name in table:
        if name not in SCENARIO:
            raise UsageError(f"{where}: scenario: {name!r}: expected {one_of(SCENARIO)}")
    missing = [name for name in SCENARIO if name not in table and name not in OPTIONAL]
    if missing:
        raise UsageError(f"{where}: scenario: {', '.join(missing)}: missing")
    return Scenario(**table)


def read_published(content: dict[str, Any], where: str) -> dict[str, float]:
    """Returns the published figures."""
    table = table_of(content, "published", where)
    for name, value in table.items():
        if type(value) not in (int, float) or not isfinite(value):
            raise UsageError(f"{where}: published: {name} = {value!r}: expected a number")
    return table


def make_profile(name: str, text: str, where: str, folder: Path | None = None) -> Profile:
    """Returns the profile in a text. UsageError, with the file, if it is invalid."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: expected TOML: {error}") from None
    unknown = sorted(set(content) - MEMBERS)
    if unknown:
        raise UsageError(f"{where}: {unknown[0]!r}: expected {one_of(sorted(MEMBERS))}")
    return Profile(
        name=name,
        description=str(content.get("description", "")),
        mtu=whole_number(content, "mtu", MTU_LEAST, MTU_MOST, 1500, where),
        card=read_card(content, where),
        seed=whole_number(content, "seed", 0, 2**63 - 1, 1, where),
        forward=settings(content, "forward", where, folder),
        reverse=settings(content, "reverse", where, folder),
        sysctl=read_sysctl(content, where),
        scenario=read_scenario(content, where),
        published=read_published(content, where),
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
        given = dict(setting.partition("=")[::2] for setting in spec.split())
        bounds = [given["rate"]] if "rate" in given else []
        bounds += [profile.card] if profile.card else []
        try:
            rates.append(min(map(parse_rate, bounds), default=None))
        except UsageError:  # the link reports it
            rates.append(None)
    known = [rate for rate in rates if rate is not None]
    return max(known) if len(known) == len(rates) else None


def study_profiles(study: str) -> list[Profile]:
    """Returns the profiles of the rows of a study, in order."""
    profiles = map(load_profile, profile_names())
    rows = [
        (profile.scenario.row, profile) for profile in profiles if profile.scenario and profile.scenario.study == study
    ]
    return [profile for _, profile in sorted(rows, key=lambda row: row[0])]
