# SPDX-License-Identifier: Apache-2.0
"""Pairs of runs: a transfer with a fault, and the same without it. Path, sizes and faults are drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from score.limits.drawn import MSS, Path
from score.limits.scenarios import LimitScenario, LimitTalk

BULK_S, LOSSY_S = 2.0, 12.0  # about the length of a transfer without faults, and the most with losses
CUBIC_OR_RENO = ("cubic", "reno")  # BBR keeps its rate in spite of losses


@dataclass(frozen=True)
class Turns(LimitTalk):
    """Requests and responses, one at a time."""

    turns: int = 30
    writes: int = 1  # of a request
    request_bytes: int = 400
    response_bytes: int = 20_000
    think_s: float = 0


@dataclass(frozen=True)
class Pair:
    """`codes` are the findings about this kind of fault."""

    kind: str
    codes: tuple[str, ...]
    faulty: LimitScenario
    sound: LimitScenario

    @property
    def name(self) -> str:
        return self.faulty.name


Faults = tuple[LimitScenario, LimitScenario]  # with and without it


def bulk(path: Path, **settings: int) -> LimitTalk:
    return LimitTalk(bytes=round(path.rate_bps / 8 * BULK_S), seconds=60, **settings)


def impaired(sound: LimitScenario, path: Path, description: str, impairment: str) -> LimitScenario:
    """Returns the scenario with an impairment of one of the links."""
    if path.chance.random() < 0.5:
        return replace(sound, description=description, first=impairment)
    return replace(sound, description=description, second=impairment)


def loss(base: LimitScenario, path: Path) -> Faults:
    """Transfers so short that they last LOSSY_S at most at the rate of Mathis et al. (1997)."""
    share = 10 ** path.chance.uniform(-2.5, -1.5)
    most = LOSSY_S * 1.22 * MSS / (path.rtt_s * math.sqrt(share))
    talk = replace(bulk(path), bytes=round(min(bulk(path).bytes, most)))
    sound = replace(base, talk=talk, control=path.chance.choice(CUBIC_OR_RENO))
    return impaired(sound, path, f"{100 * share:.1f}% lost", f"loss={100 * share:.2f}%"), sound


def outage(base: LimitScenario, path: Path) -> Faults:
    begin, length = path.chance.randint(300, 900), path.chance.randint(150, 900)
    sound = replace(base, talk=bulk(path), control=path.chance.choice(CUBIC_OR_RENO))
    return impaired(sound, path, f"an outage of {length} ms", f"outage={begin}ms-{begin + length}ms"), sound


def delayed_ack(base: LimitScenario, path: Path) -> Faults:
    turns = Turns(response_bytes=path.chance.randint(100, 1_400))
    faulty = replace(base, description="requests of two writes", talk=replace(turns, writes=2))
    return faulty, replace(base, talk=turns)


def slow_server(base: LimitScenario, path: Path) -> Faults:
    think = path.chance.uniform(0.03, 0.4)
    turns = Turns(turns=15, response_bytes=path.chance.randint(200, 100_000))
    faulty = replace(base, description=f"{1e3 * think:.0f} ms for each response", talk=replace(turns, think_s=think))
    return faulty, replace(base, talk=turns)


def window(base: LimitScenario, path: Path) -> Faults:
    size, sound = path.share_of_flight(0.15, 0.6), replace(base, talk=bulk(path))
    return replace(sound, description=f"SO_RCVBUF of {size:,} bytes", talk=bulk(path, receive_buffer=size)), sound


def send_buffer(base: LimitScenario, path: Path) -> Faults:
    size, sound = path.share_of_flight(0.15, 0.4), replace(base, talk=bulk(path))
    return replace(sound, description=f"SO_SNDBUF of {size:,} bytes", talk=bulk(path, send_buffer=size)), sound


LOSS_CODES = ("lost-downstream", "lost-upstream", "retransmission-unlocated", "recovery-limited")
KINDS: dict[str, tuple[Callable[[LimitScenario, Path], Faults], tuple[str, ...]]] = {
    "loss": (loss, LOSS_CODES),
    "RTO": (outage, ("timeout-stalls",)),
    "delayed ACK": (delayed_ack, ("delayed-ack",)),
    "slow server": (slow_server, ("slow-server",)),
    "receive window": (window, ("receive-window-limited", "zero-window", "window-full")),
    "send buffer": (send_buffer, ("send-buffer-limited",)),
}


def draw_pairs(draw: int, repeats: int) -> Iterator[Pair]:
    """Yields pairs at rates of 4 to 40 Mbit/s, round trips of 10 to 120 ms and queues of one bandwidth-delay product or more."""
    for kind, (faults, codes) in KINDS.items():
        for number in range(1, repeats + 1):
            name = f"saving-{kind.lower().replace(' ', '-')}-{draw}-{number}"
            chance = random.Random(name)
            rate_mbit, rtt_s = 10 ** chance.uniform(0.6, 1.6), 10 ** chance.uniform(-2, -0.92)
            flight = rate_mbit * 1e6 * rtt_s / 8 / 1500
            queue, first = max(16, round(chance.uniform(1, 2) * flight)), chance.uniform(0.1, 0.9)
            delays_ms = (500 * rtt_s * first, 500 * rtt_s * (1 - first))
            base = LimitScenario(
                name,
                "",
                kind=kind,
                control=chance.choice(("cubic", "bbr", "reno")),
                base_first=f"rate=200Mbit delay={delays_ms[0]:.2f}ms queue=1000",
                base_second=f"rate={rate_mbit:.1f}Mbit delay={delays_ms[1]:.2f}ms queue={queue}",
            )
            faulty, sound = faults(base, Path(chance, rate_mbit * 1e6, rtt_s))
            where = f"{rate_mbit:.0f} Mbit/s, {1e3 * rtt_s:.0f} ms"
            yield Pair(
                kind,
                codes,
                replace(faulty, description=f"{faulty.description}; {where}, {faulty.control}"),
                replace(sound, name=f"{name}-without"),
            )
