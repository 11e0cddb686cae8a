# SPDX-License-Identifier: Apache-2.0
"""What is tried: each a transfer over two links in a row, with a capture before, between and behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

FIRST = "rate=200Mbit delay=3ms queue=400"  # from the sender to the tracer
SECOND = "rate=40Mbit delay=7ms queue=160"  # from the tracer to the receiver


@dataclass(frozen=True)
class Talk:
    """What the two hosts do."""

    bytes: int = 6_000_000  # of each connection
    connections: int = 1  # one after the other
    parallel: int = 1
    chunk: int = 65_536
    pause: float = 0  # s after each chunk
    receive_buffer: int = 0  # bytes; 0: the system's
    read_bytes: int = 65_536
    read_pause: float = 0  # s between two reads
    stop_reading: float = 0  # s, once, after a third of the bytes
    udp_bps: int = 0  # UDP at this rate instead
    udp_bytes: int = 1_000
    seconds: float = 3  # of UDP


@dataclass(frozen=True)
class Scenario:
    """A transfer, what the path does to it, and how it is captured."""

    name: str
    what: str
    first: str = ""  # towards the receiver, beyond FIRST and SECOND
    second: str = ""
    first_back: str = ""  # towards the sender
    second_back: str = ""
    control: str = "cubic"
    sysctl: dict[str, str] = field(default_factory=dict)  # of both hosts
    talk: Talk = Talk()
    base_first: str = FIRST
    base_second: str = SECOND
    capture_loss: str = ""  # a second set of captures with frames left out: `random` or `bursts`
    mirror: bool = False  # a third set: each frame stored twice by a mirror of both directions
    short: bool = False  # in the fixed short set
    chance: int = 0  # another number is another run of chance

    @property
    def seed(self) -> int:
        """Of all chance: the same in every run."""
        return crc32(self.name.encode()) ^ self.chance << 8

    def spec(self, link: int, back: bool) -> str:
        """A link's settings in one direction."""
        base = (self.base_first, self.base_second)[link]
        own = ((self.first, self.second), (self.first_back, self.second_back))[back][link]
        return f"{base} {own}".strip()


NO_SACK = {"net.ipv4.tcp_sack": "0"}
NO_TIMESTAMPS = {"net.ipv4.tcp_timestamps": "0"}
NEITHER = {**NO_SACK, **NO_TIMESTAMPS}
BURSTS = "gilbert=0.3%,35%"
SPANS = ",".join(f"{ms}ms-{ms + 45}ms" for ms in range(200, 9_200, 150))

SCENARIOS = (
    Scenario("clean", "a short queue that overflows, nothing else", second="queue=60"),
    Scenario(
        *("random-1", "1% of the packets lost on either side, captures that miss frames"),
        first="loss=0.5%",
        second="loss=0.5%",
        capture_loss="random",
        mirror=True,
    ),
    Scenario("random-01", "0.1% lost, Reno", first="loss=0.05%", second="loss=0.05%", control="reno"),
    Scenario(
        *("random-5", "5% lost, Reno"),
        first="loss=2.5%",
        second="loss=2.5%",
        control="reno",
        talk=Talk(bytes=2_500_000),
    ),
    Scenario(
        *("bursts", "lost in bursts (Gilbert-Elliott), captures that miss frames in bursts"),
        first=BURSTS,
        second=BURSTS,
        capture_loss="bursts",
    ),
    Scenario("bbr", "BBR, 1% lost", first="loss=0.5%", second="loss=0.5%", control="bbr"),
    Scenario("bbr-bursts", "BBR, lost in bursts", first=BURSTS, second=BURSTS, control="bbr"),
    Scenario(
        *("no-sack", "without SACK, Reno, 1% lost"),
        first="loss=0.5%",
        second="loss=0.5%",
        control="reno",
        sysctl=NO_SACK,
    ),
    Scenario(
        "no-timestamps", "without timestamps, 1% lost", first="loss=0.5%", second="loss=0.5%", sysctl=NO_TIMESTAMPS
    ),
    Scenario(
        *("bare", "neither SACK nor timestamps, 0.6% lost, captures that miss frames"),
        first="loss=0.3%",
        second="loss=0.3%",
        sysctl=NEITHER,
        capture_loss="random",
    ),
    Scenario(
        *("reordered", "1% of the packets overtaken by three, on either side"),
        first="reorder=1% distance=3",
        second="reorder=1% distance=3",
    ),
    Scenario(
        *("reordered-lost", "overtaken by eight, and lost"),
        first="reorder=0.5% distance=8 loss=0.3%",
        second="reorder=0.5% distance=8 loss=0.3%",
        capture_loss="random",
    ),
    Scenario(
        *("reordered-bare", "overtaken by five, and lost, neither SACK nor timestamps"),
        first="reorder=0.5% distance=5 loss=0.3%",
        second="reorder=0.5% distance=5 loss=0.3%",
        sysctl=NEITHER,
    ),
    Scenario(
        *("jitter", "2 ms of jitter that reorders"),
        second="jitter=2ms distribution=exponential jitter-reorders=yes",
        control="bbr",
    ),
    Scenario(
        "copied", "1% of the packets copied on either side", first="duplicate=1%", second="duplicate=1%", short=True
    ),
    Scenario(
        *("everything", "lost, overtaken and copied; acknowledgments too"),
        first="loss=0.3% reorder=0.5% distance=4 duplicate=0.3%",
        second="loss=0.3% reorder=0.5% distance=4 duplicate=0.3%",
        first_back="loss=1% reorder=0.5% distance=2",
        second_back="loss=1% reorder=0.5% distance=2",
        capture_loss="random",
        short=True,
    ),
    Scenario(
        *("lost-acks", "20% of the acknowledgments lost, 0.6% of the data"),
        first="loss=0.3%",
        second="loss=0.3%",
        first_back="loss=10%",
        second_back="loss=10%",
    ),
    Scenario(
        *("requests", "4 kB now and then, 8% lost: delayed acknowledgments, lost tails and their probes"),
        first="loss=4%",
        second="loss=4%",
        talk=Talk(bytes=400_000, chunk=4_000, pause=0.06),
    ),
    Scenario(
        *("requests-large", "30 kB now and then, 5% lost: tails behind other losses"),
        first="loss=2.5%",
        second="loss=2.5%",
        talk=Talk(bytes=1_200_000, chunk=30_000, pause=0.12),
    ),
    Scenario(
        *(
            "tails",
            "four segments now and then, some lost, and a third of the time no acknowledgments: tails and their probes",
        ),
        first="gilbert=2%,50%",
        second="gilbert=2%,50%",
        second_back=f"outage={SPANS}",
        talk=Talk(bytes=231_680, chunk=5_792, pause=0.1, parallel=4),
        short=True,
    ),
    Scenario(
        *("requests-reno", "4 kB now and then, 6% lost, without SACK: timeouts"),
        first="loss=3%",
        second="loss=3%",
        control="reno",
        sysctl=NO_SACK,
        talk=Talk(bytes=240_000, chunk=4_000, pause=0.06),
        short=True,
    ),
    Scenario(
        *("short", "sixty connections of 30 kB, 5% lost"),
        first="loss=2.5%",
        second="loss=2.5%",
        talk=Talk(bytes=30_000, connections=60),
    ),
    Scenario(
        *("small-window", "a receive buffer of 24 kB, 0.6% lost"),
        first="loss=0.3%",
        second="loss=0.3%",
        talk=Talk(bytes=3_000_000, receive_buffer=24_000),
    ),
    Scenario(
        *("slow-reader", "a receiver that reads late and stops for 1 s: closed windows and probes"),
        second="loss=0.3%",
        talk=Talk(bytes=2_000_000, receive_buffer=60_000, read_bytes=16_384, read_pause=0.012, stop_reading=1.0),
    ),
    Scenario(
        *("outage", "three times without the second link, up to 0.7 s"),
        first="loss=0.2%",
        second="outage=0.4s-0.7s,1.5s-2.2s,3.2s-3.6s loss=0.2%",
        short=True,
    ),
    Scenario(
        *("outage-before", "three times without the first link, up to 0.7 s"),
        first="outage=0.4s-0.7s,1.5s-2.2s,3.2s-3.6s loss=0.2%",
        second="loss=0.2%",
    ),
    Scenario("stall", "nothing leaves the second link for 0.7 s: needless timeouts", second="stall=0.4s-1s,1.6s-2.1s"),
    Scenario(
        *("stall-bare", "the same without SACK, and acknowledgments stalled"),
        second_back="stall=0.4s-1s,1.6s-2.1s",
        sysctl=NO_SACK,
    ),
    Scenario(
        *("near", "0.4 ms of round trip, 0.6% lost, some overtaken"),
        base_first="rate=100Mbit delay=0.1ms queue=400",
        base_second="rate=40Mbit delay=0.1ms queue=120",
        first="loss=0.3% reorder=0.3% distance=3",
        second="loss=0.3% reorder=0.3% distance=3",
    ),
    Scenario(
        *("far", "200 ms of round trip, 0.3% lost"),
        base_first="rate=100Mbit delay=20ms queue=2000",
        base_second="rate=20Mbit delay=80ms queue=600",
        first="loss=0.15%",
        second="loss=0.15%",
        control="bbr",
    ),
    Scenario(
        *("four", "four connections at once, 1% lost"),
        first="loss=0.5%",
        second="loss=0.5%",
        talk=Talk(bytes=1_200_000, parallel=4),
    ),
    Scenario(
        *("udp", "UDP: 2% lost, 1% overtaken, 1% copied"),
        first="loss=1% reorder=0.5% distance=3 duplicate=0.5%",
        second="loss=1% reorder=0.5% distance=3 duplicate=0.5%",
        talk=Talk(udp_bps=8_000_000),
        short=True,
    ),
    Scenario(
        *("udp-bursts", "UDP: lost in bursts, overtaken by ten"),
        first="gilbert=0.5%,20% reorder=0.5% distance=10",
        second="gilbert=0.5%,20% reorder=0.5% distance=10",
        talk=Talk(udp_bps=8_000_000),
    ),
)
