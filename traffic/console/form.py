# SPDX-License-Identifier: Apache-2.0
"""The form of the page that runs experiments: a built-in plan or a test of one's own, on this host or over a profile's link.

A form names plans, profiles and numbers, an address of this host or of a lab, and a file of one folder: no path, other host or
command of a page reaches a program.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.units import RATE_MOST, one_of, parse_bit_rate
from wiretale.traffic.experiment.plan import BLOCK_LEAST, BLOCK_MOST, BUILT_IN, plan_text, read_plan
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.profile import load_profile, profile_names

FORM_PLAN = "own"  # the plan of a test that the form describes
PROTOCOLS = ("tcp", "udp")
AMOUNTS = {"count": 10**7, "seconds": 3600, "bytes": 10**11}  # key of a plan, and its most
FILE = "file"  # an amount as well
FILES_MOST = 200  # that are offered
NAME_MOST = 240  # bytes
LOOPBACK = ("127.0.0.1", "::1")
TRIALS_MOST = 100
SIZES_MOST = 20
FIELDS = ("plan", "profile", "trials", "scale", "protocols", "sizes", "amount", "value", "rate", "address", FILE)


@dataclass(frozen=True)
class Form:
    """What a person chose; `trials` and `scale` may be left to a built-in plan, the others are of a test of one's own."""

    plan: str
    profile: str = ""  # "" for this host
    trials: int | None = None
    scale: float = 1.0
    protocols: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    amount: str = "count"
    value: int = 0
    rate: str = ""
    address: str = LOOPBACK[0]
    file: str = ""  # path


def whole_number(text: str, field: str, least: int, most: int) -> int:
    """Returns a number of a field. UsageError names the field."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
        raise UsageError(f"{field} {text!r}: expected a whole number from {least} to {most:,}")
    return int(text)


def read_scale(text: str) -> float:
    """Returns the factor for counts and times."""
    try:
        value = float(text or 1)
    except ValueError:
        value = 0
    if not 0 < value <= 1000:
        raise UsageError(f"scale {text!r}: expected a factor over 0, such as 0.1")
    return value


def named(text: str, field: str, names: tuple[str, ...]) -> str:
    """Returns a name of a list. UsageError names the field."""
    if text not in names:
        raise UsageError(f"{field} {text!r}: expected {one_of(names)}")
    return text


def links() -> tuple[str, ...]:
    """Returns the profiles that a plan can run over: those without a scenario of their own."""
    return tuple(name for name in profile_names() if not load_profile(name).scenario)


def addresses(profile: str) -> tuple[str, ...]:
    """Returns the addresses of the receiver: on this host, or over the link of a lab."""
    return ADDRESSES["receiver"] if profile else LOOPBACK


def files_of(folder: Path | None) -> tuple[str, ...]:
    """Returns the names of the files that may be sent: regular ones that a receiver takes. InputError if the folder cannot be
    read."""
    if folder is None:
        return ()
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    return tuple(sorted(name for name in names if is_taken(name)))[:FILES_MOST]


def is_taken(name: str) -> bool:
    """Returns whether a receiver takes a file of this name (traffic/generator/transfer/content.c)."""
    return name.isprintable() and name[0] not in ".-" and "\\" not in name and len(name.encode()) <= NAME_MOST


def read_file(fields: Mapping[str, str], folder: Path | None) -> str:
    """Returns the path of the file that a form names. UsageError if it is none of the folder's."""
    if folder is None:
        raise UsageError("file: expected wiretale experiment serve --files FOLDER")
    name = fields.get(FILE, "")
    if name not in files_of(folder):
        raise UsageError(f"file {name!r}: expected the name of a file in {folder}")
    return str(folder.absolute() / name)


def read_form(fields: Mapping[str, str], folder: Path | None = None) -> Form:
    """Returns the form of the fields of a request; files are those of `folder`. UsageError names a field that is unknown or
    wrong."""
    if unknown := [name for name in fields if name not in FIELDS]:
        raise UsageError(f"{unknown[0]!r}: expected {one_of(FIELDS)}")
    plan = named(fields.get("plan", ""), "plan", (*BUILT_IN, FORM_PLAN))
    profile = named(fields["profile"], "profile", links()) if fields.get("profile") else ""
    trials = whole_number(fields["trials"], "trials", 1, TRIALS_MOST) if fields.get("trials") else None
    scale = read_scale(fields.get("scale", ""))
    if plan != FORM_PLAN:
        return Form(plan, profile, trials, scale)
    protocols = tuple(dict.fromkeys(fields.get("protocols", "").split()))
    for protocol in protocols:
        named(protocol, "protocol", PROTOCOLS)
    if not protocols:
        raise UsageError("protocols: expected tcp, udp or both")
    most = min(BLOCK_MOST[protocol] for protocol in protocols)
    words = fields.get("sizes", "").replace(",", " ").split()
    sizes = tuple(dict.fromkeys(whole_number(word, "block size", BLOCK_LEAST, most) for word in words))
    if not 0 < len(sizes) <= SIZES_MOST:
        raise UsageError(f"block sizes: expected 1 to {SIZES_MOST}, such as 64 1024 8192")
    form = Form(plan, profile, trials or 1, scale, protocols, sizes, address=read_address(fields, profile))
    return with_amount(form, fields, folder)


def read_address(fields: Mapping[str, str], profile: str) -> str:
    """Returns the address of the receiver."""
    allowed = addresses(profile)
    return named(fields.get("address") or allowed[0], "address", allowed)


def with_amount(form: Form, fields: Mapping[str, str], folder: Path | None) -> Form:
    """Returns a form with what is sent, and how fast."""
    amount = named(fields.get("amount", "count"), "amount", (*AMOUNTS, FILE))
    rate = fields.get("rate", "").strip()
    if rate and not 1 <= (parse_bit_rate(rate) or 0) <= RATE_MOST:
        raise UsageError(f"rate {rate!r}: expected bits per second, such as 10M")
    if amount == FILE:
        return replace(form, amount=amount, rate=rate, file=read_file(fields, folder))
    value = whole_number(fields.get("value", ""), amount, 1, AMOUNTS[amount])
    return replace(form, amount=amount, rate=rate, value=value)


def own_plan(form: Form) -> str:
    """Returns the plan of a test of one's own, in TOML; each of its values was checked."""
    texts = {"bytes": f'"{form.value}"', FILE: json.dumps(form.file, ensure_ascii=False)}
    amount = texts.get(form.amount, str(form.value))
    tests = [
        f'[[test]]\nname = "{protocol}"\nprotocol = "{protocol}"\nsizes = {list(form.sizes)}\n{form.amount} = {amount}\n'
        + (f'rates = ["{parse_bit_rate(form.rate):.0f}"]\n' if form.rate else "")
        for protocol in form.protocols
    ]
    receiver = f'[receiver]\naddress = "{form.address}"\n\n'
    return f'title = "A test of one\'s own"\ntrials = {form.trials}\ninterval = "200ms"\n\n{receiver}' + "\n".join(
        tests
    )


def check(form: Form) -> None:
    """Reads the plan of a form as the run will. UsageError or InputError if that fails."""
    read_plan(*((own_plan(form), "form", "form") if form.plan == FORM_PLAN else plan_text(form.plan)))


def command(form: Form, folder: Path) -> list[str]:
    """Returns the command of a run, which writes into a folder; the plan of one's own is there already."""
    plan = str(folder / "plan.toml") if form.plan == FORM_PLAN else form.plan
    words = [sys.executable, "-P", "-m", "wiretale", *(["lab", "run"] if form.profile else ["experiment", "run"]), plan]
    words += ["-o", str(folder), *(["--profile", form.profile] if form.profile else ["--no-capture"])]
    words += ["--trials", str(form.trials)] if form.trials and form.plan != FORM_PLAN else []
    return [*words, *(["--scale", f"{form.scale:g}"] if form.scale != 1 else [])]
