# SPDX-License-Identifier: Apache-2.0
"""Random scenarios of limits: each draw gives others, so the rules cannot have been fitted to them.

The kinds take turns; congestion control, timestamps, rates, round trips, queues, buffers and writes are drawn. Buffers are
shares of the bandwidth-delay product of the path; a receive buffer may exceed it, then the path is the limit. The truth is the
kernel's, as always. The number of the draw seeds all of them, and the page records it: `--draw N` repeats them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from score.limits.scenarios import CONTROLS, DRAWN_LIMITS, LimitScenario, LimitTalk
from score.runs.scenarios import NO_TIMESTAMPS

PACKET_BITS = 1500 * 8
MSS = 1448
LEAST_BUFFER = 4 * MSS
LEAST_FLIGHT = 16  # packets that the path holds in a round trip: a small buffer is below it


@dataclass(frozen=True)
class Path:
    """The drawn path; each kind adds to it."""

    chance: random.Random
    rate_bps: float
    rtt_s: float

    def share_of_flight(self, least: float, most: float) -> int:
        """Returns a drawn share, in bytes, of the bandwidth-delay product."""
        share: float = self.chance.uniform(least, most)
        return max(LEAST_BUFFER, round(share * self.rate_bps / 8 * self.rtt_s))


Settings = Mapping[str, Any]  # of a LimitScenario


def bulk(path: Path) -> Settings:
    return {"description": "as fast as the path"}


def small_receive_buffer(path: Path) -> Settings:
    size = path.share_of_flight(0.2, 1.2)
    return {"description": f"SO_RCVBUF of {size:,} bytes", "talk": LimitTalk(receive_buffer=size)}


def slow_reader(path: Path) -> Settings:
    pause = path.chance.uniform(0.02, 0.15)
    size = round(path.chance.uniform(0.2, 0.8) * path.rate_bps / 8 * pause)
    talk = LimitTalk(receive_buffer=2 * size, read_bytes=size, read_pause=pause)
    return {"description": f"{size:,} bytes read every {1e3 * pause:.0f} ms", "talk": talk}


def writes(path: Path) -> Settings:
    pause = 10 ** path.chance.uniform(-2.7, -0.5)
    size = max(100, round(path.chance.uniform(0.1, 0.8) * path.rate_bps / 8 * pause))
    return {"description": f"{size:,} bytes every {1e3 * pause:.1f} ms", "talk": LimitTalk(chunk=size, pause=pause)}


def small_send_buffer(path: Path) -> Settings:
    size = path.share_of_flight(0.1, 0.8)
    return {"description": f"SO_SNDBUF of {size:,} bytes", "talk": LimitTalk(send_buffer=size)}


def short_transfer(path: Path) -> Settings:
    size = path.share_of_flight(1, 12)
    return {"description": f"{size:,} bytes in all", "talk": LimitTalk(bytes=size)}


def random_loss(path: Path) -> Settings:
    loss = path.chance.uniform(0.5, 6)
    return {"description": f"{loss:.1f}% lost", path.chance.choice(("first", "second")): f"loss={loss:.2f}%"}


def outage(path: Path) -> Settings:
    begin, length = path.chance.randint(400, 900), path.chance.randint(250, 900)
    lost = f"outage={begin}ms-{begin + length}ms"
    return {"description": f"an outage of {length} ms", path.chance.choice(("first", "second")): lost}


def shaper(path: Path) -> Settings:
    bits = round(path.rate_bps / 1e6)
    near = f"rate=200Mbit delay={path.rtt_s * 1e3 / 4:.2f}ms queue=600"
    settings = {"base_first": near, "base_second": near, "super_segments": path.chance.random() < 0.5}
    return {
        "description": f"as fast as a shaper of {bits} Mbit/s",
        "shaper": f"rate {bits}mbit burst 4000 latency 60ms",
        **settings,
    }


DRAWS: tuple[Callable[[Path], Settings], ...] = (
    *(bulk, small_receive_buffer, slow_reader, writes, small_send_buffer, short_transfer, random_loss, outage, shaper),
    *(small_send_buffer, small_receive_buffer, writes),
)


def draw_scenario(draw: int, number: int) -> LimitScenario:
    """Rates of 4 to 60 Mbit/s, round trips of 3 to 120 ms, and a bottleneck queue of 20 to 200 ms."""
    chance = random.Random(f"limits/{draw}/{number}")
    rate, rtt, queue_ms = 10 ** chance.uniform(0.6, 1.78), 10 ** chance.uniform(-2.7, -0.92), chance.uniform(20, 200)
    rtt = max(rtt, LEAST_FLIGHT * PACKET_BITS / (rate * 1e6))
    first = chance.uniform(0.1, 0.9)
    delays = (rtt * 1e3 / 2 * first, rtt * 1e3 / 2 * (1 - first))
    timestamps = chance.random() < 0.5
    queue = max(8, round(rate * 1e6 * queue_ms / 1e3 / PACKET_BITS))
    scenario = LimitScenario(
        f"limits-drawn-{draw}-{number}",
        "",
        control=chance.choice(CONTROLS),
        sysctl={} if timestamps else NO_TIMESTAMPS,
        base_first=f"rate=200Mbit delay={delays[0]:.2f}ms queue=1000",
        base_second=f"rate={rate:.1f}Mbit delay={delays[1]:.2f}ms queue={queue}",
        group=DRAWN_LIMITS,
    )
    settings = DRAWS[(number - 1) % len(DRAWS)](Path(chance, rate * 1e6, rtt))
    where = f"{rate:.0f} Mbit/s, {1e3 * rtt:.0f} ms, a queue of {queue_ms:.0f} ms"
    if "shaper" in settings:
        where = f"{1e3 * rtt:.0f} ms"
    return replace(scenario, **{**settings, "description": f"{settings['description']}; {where}"})


def draw_scenarios(draw: int, count: int) -> list[LimitScenario]:
    return [draw_scenario(draw, number) for number in range(1, count + 1)]
