# SPDX-License-Identifier: Apache-2.0
"""Random scenarios: each draw gives others, so the rules cannot have been fitted to them.

The number of the draw seeds all of them, and the page records it: `--draw N` repeats them."""

from __future__ import annotations

import random

from score.runs.scenarios import DRAWN, NEITHER, NO_DSACK, NO_SACK, NO_TIMESTAMPS, WITHOUT_DSACK, Scenario, Talk

OPTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("SACK and timestamps", {}),
    ("no SACK", NO_SACK),
    ("no timestamps", NO_TIMESTAMPS),
    ("neither", NEITHER),
)
#: Settings of both kernels, each drawn for itself: no DSACK, no RACK, no F-RTO, no tail loss probes
SETTINGS = (
    NO_DSACK,
    {"net.ipv4.tcp_recovery": "0"},
    {"net.ipv4.tcp_frto": "0"},
    {"net.ipv4.tcp_early_retrans": "0"},
)
SETTING_CHANCE = 0.25
PACKET_BITS = 1500 * 8


def draw_impairments(chance: random.Random) -> str:
    """Returns the loss, reordering and duplication of one link; each may be absent."""
    loss = chance.choice(("", f"loss={chance.uniform(0.1, 2):.2f}%", f"gilbert={chance.uniform(0.1, 0.6):.2f}%,35%"))
    reorder = (
        f"reorder={chance.uniform(0.1, 0.8):.2f}% distance={chance.randint(2, 9)}" if chance.random() < 0.4 else ""
    )
    duplicate = f"duplicate={chance.uniform(0.05, 0.4):.2f}%" if chance.random() < 0.25 else ""
    return " ".join(part for part in (loss, reorder, duplicate) if part)


def draw_settings(chance: random.Random) -> list[dict[str, str]]:
    return [setting for setting in SETTINGS if chance.random() < SETTING_CHANCE]


def sends_dsacks(sysctl: dict[str, str]) -> bool:
    """Returns whether a receiver with these settings sends DSACKs, which need SACK (RFC 2883)."""
    return not sysctl.keys() & {**NO_SACK, **NO_DSACK}


def draw_scenario(draw: int, number: int) -> Scenario:
    """Rates of 10 to 60 Mbit/s, round trips of 1 to 120 ms, a bottleneck queue of 20 ms to 1 s, and settings of the kernel."""
    chance = random.Random(f"{draw}/{number}")
    rate, queue_ms = chance.uniform(10, 60), 10 ** chance.uniform(1.3, 3)
    delays = [chance.uniform(0.25, 30) for _ in range(2)]
    description, sysctl = chance.choice(OPTIONS)
    sysctl = {name: value for settings in (sysctl, *draw_settings(chance)) for name, value in settings.items()}
    control = chance.choice(("cubic", "cubic", "reno", "bbr"))
    size = int(chance.uniform(3e6, 6e6))
    talk = chance.choice(
        (
            Talk(bytes=size),
            Talk(bytes=size // 4, chunk=8_000, pause=0.03),
            Talk(bytes=size // 3, parallel=3),
            Talk(bytes=size // 2, chunk=1_200),
            Talk(bytes=size // 2, receive_buffer=chance.randint(12_000, 60_000)),
        )
    )
    queue = max(4, round(rate * 1e6 * queue_ms / 1e3 / PACKET_BITS))
    return Scenario(
        f"drawn-{draw}-{number}",
        f"drawn: {description}, a queue of {queue_ms:.0f} ms",
        first=draw_impairments(chance),
        second=draw_impairments(chance),
        second_back=f"loss={chance.uniform(0.5, 8):.1f}%" if chance.random() < 0.3 else "",
        control=control,
        sysctl=sysctl,
        talk=talk,
        base_first=f"rate=200Mbit delay={delays[0]:.2f}ms queue=1000",
        base_second=f"rate={rate:.1f}Mbit delay={delays[1]:.2f}ms queue={queue}",
        group=DRAWN if sends_dsacks(sysctl) else WITHOUT_DSACK,
    )


def draw_scenarios(draw: int, count: int) -> list[Scenario]:
    return [draw_scenario(draw, number) for number in range(1, count + 1)]
