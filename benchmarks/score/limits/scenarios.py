# SPDX-License-Identifier: Apache-2.0
"""The scenarios whose limits are scored: each kind of limit under three congestion controls, with and without timestamps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from score.runs.scenarios import NO_TIMESTAMPS, Scenario, Talk

CONTROLS = ("cubic", "bbr", "reno")
LIMITS, DRAWN_LIMITS = "limits", "drawn limits"  # groups
NEAR = "rate=200Mbit delay=50us queue=400"  # ACKs come back before a shaper has sent the next segment
FAR = "rate=200Mbit delay=5ms queue=400"
SHAPER = "rate 20mbit burst 4000 latency 60ms"  # of tbf


@dataclass(frozen=True)
class LimitTalk(Talk):
    """A transfer that ends after `seconds`, or with its last byte if there is a number of bytes."""

    bytes: int = 0
    send_buffer: int = 0  # bytes; 0: the system's


@dataclass(frozen=True)
class LimitScenario(Scenario):
    """A transfer, and the kind of limit that it is made for. The truth is that of the kernel."""

    kind: str = ""
    shaper: str = ""  # tbf at the sender's interface, before the capture
    super_segments: bool = False  # handed to the shaper, which splits them (GSO)
    talk: LimitTalk = LimitTalk()
    base_first: str = FAR
    base_second: str = "rate=20Mbit delay=5ms queue=200"
    group: str = LIMITS


def shaped(kind: str, description: str, name: str = "", **more: Any) -> LimitScenario:
    """Returns a scenario with a shaper at the sender, on a path that is short and fast unless `more` says otherwise."""
    settings = {"base_first": NEAR, "base_second": NEAR, "shaper": SHAPER, **more}
    return LimitScenario(f"shaped-{name or kind}", description, kind=kind, **settings)


SMALL_WRITES = LimitTalk(chunk=1_448, pause=0.0024)  # 4.8 Mbit/s
MESSAGES = LimitTalk(chunk=500, pause=0.002)  # 2 Mbit/s
LARGE_WRITES = LimitTalk(chunk=131_072, pause=0.21)  # 5 Mbit/s
KINDS = (
    LimitScenario("path", "as fast as the path", kind="path"),
    LimitScenario("window", "SO_RCVBUF of 16 kB", kind="window", talk=LimitTalk(receive_buffer=16_384)),
    LimitScenario("window-32k", "SO_RCVBUF of 32 kB", kind="window", talk=LimitTalk(receive_buffer=32_768)),
    LimitScenario(
        "slow-reader",
        "64 kB read every 100 ms",
        kind="window",
        talk=LimitTalk(receive_buffer=131_072, read_pause=0.1),
    ),
    LimitScenario("small-writes", "1,448 bytes every 2.4 ms", kind="application", talk=SMALL_WRITES),
    LimitScenario("messages", "500 bytes every 2 ms", kind="application", talk=MESSAGES),
    LimitScenario("large-writes", "131 kB every 210 ms", kind="application", talk=LARGE_WRITES),
    LimitScenario(
        "slow-start",
        "1.5 MB over a round trip of 200 ms",
        kind="slow start",
        talk=LimitTalk(bytes=1_500_000),
        base_second="rate=100Mbit delay=95ms queue=2000",
    ),
    LimitScenario("loss", "4% lost", second="loss=4%", kind="loss"),
    LimitScenario("outages", "two outages of the second link", second="outage=500ms-1100ms,1.5s-2.2s", kind="loss"),
    LimitScenario("send-buffer", "SO_SNDBUF of 8 kB", kind="application", talk=LimitTalk(send_buffer=8_192)),
    shaped("path", "as fast as the shaper"),
    shaped("path", "the same in super-segments", "super-segments", super_segments=True),
    shaped(
        "path", "as fast as the shaper, a round trip of 40 ms", "far", base_second="rate=200Mbit delay=15ms queue=400"
    ),
    shaped("window", "SO_RCVBUF of 4 kB", talk=LimitTalk(receive_buffer=4_096)),
    shaped("application", "1,448 bytes every 2.4 ms", "small-writes", talk=SMALL_WRITES),
    shaped("application", "131 kB every 210 ms", "large-writes", talk=LARGE_WRITES),
    shaped("application", "SO_SNDBUF of 8 kB", "send-buffer", talk=LimitTalk(send_buffer=8_192)),
)
SCENARIOS = [
    replace(kind, name=f"limits-{kind.name}-{control}{suffix}", control=control, sysctl=sysctl)
    for kind in KINDS
    for control in CONTROLS
    for suffix, sysctl in (("", {}), ("-no-timestamps", NO_TIMESTAMPS))
]
