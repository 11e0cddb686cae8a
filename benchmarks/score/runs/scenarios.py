# SPDX-License-Identifier: Apache-2.0
"""The scenarios: each is a transfer over two links in a row, with captures before, between and after them.

The name of a scenario seeds its random losses, so it must not change: scores would no longer be comparable. If a scenario is
added to the short set, tests/ take longer; a kind should have at least 20 cases there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

FIRST = "rate=200Mbit delay=3ms queue=400"  # from the sender to the tracer
SECOND = "rate=40Mbit delay=7ms queue=160"  # from the tracer to the receiver
COMMITTED, OFFLOADS = "committed", "offloads"  # groups: below, by offloads.py
DRAWN, WITHOUT_DSACK = "drawn", "without DSACK"  # groups by drawn.py: receivers that send DSACKs, and those that do not
NS3 = ("SACK", "no SACK")  # groups by second_stack.py


@dataclass(frozen=True)
class Talk:
    """The transfer between the two hosts."""

    bytes: int = 6_000_000  # of each connection
    connections: int = 1  # one after the other
    parallel: int = 1
    chunk: int = 65_536  # bytes of a write
    pause: float = 0  # s after each chunk
    receive_buffer: int = 0  # bytes; 0: the system's
    read_bytes: int = 65_536
    read_pause: float = 0  # s between two reads
    stop_reading: float = 0  # s, once, after a third of the bytes
    udp_bps: int = 0  # if not 0, the transfer is UDP at this rate
    udp_bytes: int = 1_000
    seconds: float = 3  # of UDP


@dataclass(frozen=True)
class Scenario:
    """A transfer, the impairments of the path, and the variants of its captures."""

    name: str  # also the seed
    description: str
    both: str = ""  # of both links towards the receiver, in addition to FIRST and SECOND
    first: str = ""  # of the first link alone
    second: str = ""
    first_back: str = ""  # towards the sender
    second_back: str = ""
    control: str = "cubic"
    sysctl: dict[str, str] = field(default_factory=dict)  # of both hosts
    talk: Talk = Talk()
    base_first: str = FIRST
    base_second: str = SECOND
    capture_loss: str = ""  # second set of captures with frames removed: `random` or `bursts`
    mirror: bool = False  # third set of captures with each frame stored twice
    short: bool = False  # in the short set, which the tests run
    chance: int = 0  # another number gives other random losses
    conditions: bool = False  # its captures are scored under each of conditions.py as well
    group: str = COMMITTED  # whose scores are together

    @property
    def seed(self) -> int:
        return crc32(self.name.encode()) ^ self.chance << 8

    def own_spec(self, link: int, back: bool) -> str:
        """Returns the impairments of a link (0 or 1) in one direction, without its base."""
        if back:
            return (self.first_back, self.second_back)[link]
        return f"{self.both} {(self.first, self.second)[link]}".strip()

    def spec(self, link: int, back: bool) -> str:
        """Returns the settings of a link for wiretale-link."""
        return f"{(self.base_first, self.base_second)[link]} {self.own_spec(link, back)}".strip()


NO_SACK = {"net.ipv4.tcp_sack": "0"}
NO_TIMESTAMPS = {"net.ipv4.tcp_timestamps": "0"}
NEITHER = {**NO_SACK, **NO_TIMESTAMPS}
NO_DSACK = {"net.ipv4.tcp_dsack": "0"}
BURSTS = "gilbert=0.3%,35%"
OUTAGES = "outage=0.4s-0.7s,1.5s-2.2s,3.2s-3.6s"
SPANS = ",".join(f"{ms}ms-{ms + 45}ms" for ms in range(200, 9_200, 150))

SCENARIOS = (
    Scenario("clean", "a short queue that overflows, no other loss", second="queue=60"),
    Scenario(
        "random-1", "1% of the packets lost, captures that miss frames", "loss=0.5%", capture_loss="random", mirror=True
    ),
    Scenario("random-01", "0.1% lost, Reno", "loss=0.05%", control="reno"),
    Scenario("random-5", "5% lost, Reno", "loss=2.5%", control="reno", talk=Talk(bytes=2_500_000)),
    Scenario(
        "bursts", "lost in bursts (Gilbert-Elliott), captures that miss frames in bursts", BURSTS, capture_loss="bursts"
    ),
    Scenario("bbr", "BBR, 1% lost", "loss=0.5%", control="bbr"),
    Scenario("bbr-bursts", "BBR, lost in bursts", BURSTS, control="bbr"),
    Scenario("no-sack", "without SACK, Reno, 1% lost", "loss=0.5%", control="reno", sysctl=NO_SACK, conditions=True),
    Scenario("no-timestamps", "without timestamps, 1% lost", "loss=0.5%", sysctl=NO_TIMESTAMPS),
    Scenario(
        "bare",
        "neither SACK nor timestamps, 0.6% lost, captures that miss frames",
        "loss=0.3%",
        sysctl=NEITHER,
        capture_loss="random",
    ),
    Scenario("reordered", "1% of the packets delayed behind three others", "reorder=1% distance=3"),
    Scenario(
        "reordered-lost",
        "0.5% of the packets delayed behind eight others, 0.3% lost",
        "reorder=0.5% distance=8 loss=0.3%",
        capture_loss="random",
        conditions=True,
    ),
    Scenario(
        "reordered-bare",
        "0.5% delayed behind five others, 0.3% lost, neither SACK nor timestamps",
        "reorder=0.5% distance=5 loss=0.3%",
        sysctl=NEITHER,
    ),
    Scenario(
        "jitter",
        "2 ms of jitter that reorders",
        second="jitter=2ms distribution=exponential jitter-reorders=yes",
        control="bbr",
    ),
    Scenario("copied", "1% of the packets duplicated", "duplicate=1%", short=True),
    Scenario("copied-mirrored", "1% of the packets duplicated, in front of a mirror port", "duplicate=1%", mirror=True),
    Scenario(
        "everything",
        "lost, reordered and duplicated; ACKs too",
        "loss=0.3% reorder=0.5% distance=4 duplicate=0.3%",
        first_back="loss=1% reorder=0.5% distance=2",
        second_back="loss=1% reorder=0.5% distance=2",
        capture_loss="random",
        short=True,
    ),
    Scenario(
        "lost-acks",
        "20% of the ACKs lost, 0.6% of the data",
        "loss=0.3%",
        first_back="loss=10%",
        second_back="loss=10%",
    ),
    Scenario(
        "requests",
        "4 kB every 60 ms, 8% lost: delayed ACKs, tail losses and their probes",
        "loss=4%",
        talk=Talk(bytes=400_000, chunk=4_000, pause=0.06),
    ),
    Scenario(
        "requests-large",
        "30 kB every 120 ms, 5% lost: tail losses behind other losses",
        "loss=2.5%",
        talk=Talk(bytes=1_200_000, chunk=30_000, pause=0.12),
    ),
    Scenario(
        "tails",
        "four segments every 100 ms, lost in bursts, and no ACKs for a third of the time: tail losses and their probes",
        "gilbert=2%,50%",
        second_back=f"outage={SPANS}",
        talk=Talk(bytes=231_680, chunk=5_792, pause=0.1, parallel=4),
        short=True,
    ),
    Scenario(
        "requests-reno",
        "4 kB every 60 ms, 6% lost, without SACK: RTOs",
        "loss=3%",
        control="reno",
        sysctl=NO_SACK,
        talk=Talk(bytes=240_000, chunk=4_000, pause=0.06),
        short=True,
    ),
    Scenario("short", "sixty connections of 30 kB, 5% lost", "loss=2.5%", talk=Talk(bytes=30_000, connections=60)),
    Scenario(
        "small-window",
        "a receive buffer of 24 kB, 0.6% lost",
        "loss=0.3%",
        talk=Talk(bytes=3_000_000, receive_buffer=24_000),
    ),
    Scenario(
        "slow-reader",
        "a receiver that reads slowly and stops for 1 s: zero windows and probes",
        second="loss=0.3%",
        talk=Talk(bytes=2_000_000, receive_buffer=60_000, read_bytes=16_384, read_pause=0.012, stop_reading=1.0),
    ),
    Scenario(
        "outage",
        "three outages of the second link, up to 0.7 s",
        first="loss=0.2%",
        second=f"{OUTAGES} loss=0.2%",
        short=True,
    ),
    Scenario(
        "outage-before",
        "three outages of the first link, up to 0.7 s",
        first=f"{OUTAGES} loss=0.2%",
        second="loss=0.2%",
        conditions=True,
    ),
    Scenario("stall", "no packet leaves the second link for 0.6 s: spurious RTOs", second="stall=0.4s-1s,1.6s-2.1s"),
    Scenario(
        "stall-bare", "the same without SACK, and ACKs stall", second_back="stall=0.4s-1s,1.6s-2.1s", sysctl=NO_SACK
    ),
    Scenario(
        "near",
        "0.4 ms of round trip, 0.6% lost, 0.6% reordered",
        "loss=0.3% reorder=0.3% distance=3",
        base_first="rate=100Mbit delay=0.1ms queue=400",
        base_second="rate=40Mbit delay=0.1ms queue=120",
    ),
    Scenario(
        "far",
        "200 ms of round trip, 0.3% lost",
        "loss=0.15%",
        base_first="rate=100Mbit delay=20ms queue=2000",
        base_second="rate=20Mbit delay=80ms queue=600",
        control="bbr",
    ),
    Scenario(
        "deep-queue",
        "a queue of 300 ms, 0.3% lost",
        "loss=0.15%",
        base_second="rate=40Mbit delay=7ms queue=1000",
        conditions=True,
    ),
    Scenario("deeper-queue", "a queue of 1 s, 0.3% lost", "loss=0.15%", base_second="rate=20Mbit delay=7ms queue=1700"),
    Scenario(
        "overshoot",
        "slow start overshoots a long path and queue: hundreds of gaps in one window, Reno",
        control="reno",
        base_first="rate=200Mbit delay=3ms queue=2000",
        base_second="rate=40Mbit delay=20ms queue=450",
        mirror=True,
    ),
    Scenario("four", "four connections at once, 1% lost", "loss=0.5%", talk=Talk(bytes=1_200_000, parallel=4)),
    Scenario(
        "udp",
        "UDP: 2% lost, 1% reordered, 1% duplicated",
        "loss=1% reorder=0.5% distance=3 duplicate=0.5%",
        talk=Talk(udp_bps=8_000_000),
        short=True,
    ),
    Scenario(
        "udp-bursts",
        "UDP: lost in bursts, delayed behind ten others",
        "gilbert=0.5%,20% reorder=0.5% distance=10",
        talk=Talk(udp_bps=8_000_000),
    ),
)
