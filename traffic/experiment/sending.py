# SPDX-License-Identifier: Apache-2.0
"""How a session sends: options of the generator beyond amount, size and rate, and the variants of a test if one is a list."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from wiretale.traffic.experiment import plan_value as read
from wiretale.traffic.experiment.plan_value import PlanTable

OF_TCP = ("no_delay", "write_each", "congestion", "mss", "fq_rate")
OF_UDP = ("offload", "kernel_pacing")
OF_A_RATE = ("poisson", "burst", "burst_cap", "kernel_pacing")
OFFLOADS = {"always": "--offload", "never": "--no-offload"}
BUFFER_MOST = 1 << 30
FQ_RATE_LEAST, FQ_RATE_LIMIT = 1e5, 1e13  # bit/s, as in transfer_plan.h
VARIANTS_MOST = 1000


def buffer_bytes(value: object) -> int:
    """Returns the bytes of a socket's buffers."""
    count = read.byte_count(value)
    if count > BUFFER_MOST:
        raise ValueError("expected at most 1 GiB")
    return count


def dscp(value: object) -> str:
    """Returns a code point as the generator reads it: 46 or "ef"."""
    if type(value) is int and 0 <= value <= 63:
        return str(value)
    if isinstance(value, str) and value.isalnum():
        return value
    raise ValueError('expected 0 to 63, or a name such as "ef", "af41" or "cs1"')


def fq_rate(value: object) -> int:
    """Returns the bit/s at which the kernel sends at most."""
    rate = read.bit_rate(value)
    if rate is None or not FQ_RATE_LEAST <= rate < FQ_RATE_LIMIT:
        raise ValueError('expected bits per second from 100k on, such as "50M" or "1.5Gbit"')
    return round(rate)


def algorithm(value: object) -> str:
    """Returns the name of a congestion control."""
    name = read.text(value)
    if len(name) > 15 or name.startswith("-"):
        raise ValueError('expected a name of at most 15 characters, such as "cubic", "reno" or "bbr"')
    return str(name)


def joined(value: object) -> str | None:
    """Returns whether the kernel gets joined datagrams; None, the generator's default, only if captures stay true to the wire."""
    setting = read.word("default", *OFFLOADS)(value)
    return None if setting == "default" else setting


@dataclass(frozen=True)
class Sending:
    """Options of `wiretale-traffic send`, by their names; None and false leave its default."""

    buffer: int | None = read.key(buffer_bytes, None)
    no_delay: bool = read.key(read.switch, False)
    write_each: bool = read.key(read.switch, False)
    congestion: str | None = read.key(algorithm, None)
    dscp: str | None = read.key(dscp, None)
    ttl: int | None = read.key(read.integer(1, 255), None)
    mss: int | None = read.key(read.integer(88, 32_767), None)
    fq_rate: int | None = read.key(fq_rate, None)
    df: str | None = read.key(read.word("do", "dont", "want", "probe"), None)
    offload: str | None = read.key(joined, None)
    kernel_pacing: bool = read.key(read.switch, False)
    poisson: bool = read.key(read.switch, False)
    burst: int | None = read.key(read.integer(1, 1_000_000), None)
    burst_cap: int | None = read.key(read.integer(1, 1_000_000), None)
    reverse: bool = read.key(read.switch, False)

    def set_values(self) -> dict[str, Any]:
        """Returns the options that differ from the defaults."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def options(self) -> list[str]:
        """Returns the options of the command."""
        settings_set = self.set_values()
        offload = settings_set.pop("offload", None)
        return [
            *([OFFLOADS[offload]] if offload else []),
            *(
                word
                for name, value in settings_set.items()
                for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
            ),
        ]


NAMES = tuple(item.name for item in fields(Sending))
IN_LISTS = (*NAMES, "streams")


def settings(sending: dict[str, Any]) -> str:
    """Returns the options of a session of a stored plan as text: `buffer=65536 no_delay`."""
    settings_set = Sending(**sending).set_values()
    return " ".join(name if value is True else f"{name}={value}" for name, value in settings_set.items())


def read_sending(table: PlanTable, protocol: str, has_rate: bool, has_file: bool) -> Sending:
    """Returns the options of a session. UsageError if they contradict each other or the session."""
    sending = Sending(**table.values(Sending))
    settings_set = sending.set_values()
    wrong = [
        *((name, "expected only in tcp") for name in OF_TCP if protocol != "tcp"),
        *((name, "expected only in udp") for name in OF_UDP if protocol != "udp"),
        *((name, "expected a rate as well") for name in OF_A_RATE if not has_rate),
        *([("reverse", "expected no file, which goes to the receiver")] if has_file else []),
        *([("poisson", "expected no burst as well")] if sending.burst else []),
        *([("burst_cap", "expected at least burst")] if (sending.burst_cap or 0) < (sending.burst or 0) else []),
    ]
    for name, why in wrong:
        if name in settings_set:
            raise table.error(name, why)
    return sending


def variants(table: PlanTable) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yields the data of a table for each combination of the values in its lists, with the words that name it."""
    listed = [name for name in IN_LISTS if isinstance(table.data.get(name), list)]
    for name in listed:
        if not table.data[name]:
            raise table.error(name, "expected at least one value")
    combinations = itertools.product(*(table.data[name] for name in listed))
    for number, values in enumerate(combinations):
        if number == VARIANTS_MOST:
            raise table.error("", f"expected at most {VARIANTS_MOST} combinations of {', '.join(listed)}")
        combination = dict(zip(listed, values, strict=True))
        yield [word(name, value) for name, value in combination.items()], {**table.data, **combination}


def word(name: str, value: object) -> str:
    """Returns the value of an option for the name of a test: "bbr", "no_delay-on", "burst4", "offload-never"."""
    if name == "offload":
        return f"{name}-{value}"
    if isinstance(value, bool):
        return f"{name}-{'on' if value else 'off'}"
    return str(value) if isinstance(value, str) else f"{name}{value}"
