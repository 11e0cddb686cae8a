# SPDX-License-Identifier: Apache-2.0
"""Runs whose hosts have offloads on: the sender hands over super-segments (TSO), and the receiver merges packets (GRO).

    sender ── bridge ── first wiretale-link ── tracer ── second wiretale-link ── receiver

The bridge splits super-segments as a network card does. The usual captures of a run are of the wire, before the first and behind
the last link, so its truth is that of any run; two more captures are of the hosts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from score.runs.scenarios import BURSTS, NO_SACK, NO_TIMESTAMPS, OFFLOADS, Scenario
from score.runs.testbed import POINTS, Testbed
from shared import namespaces
from shared.namespaces import run

GRO_WAIT_NS = 400_000
HOSTS = {"sender": "sender-host", "receiver": "receiver-host"}  # names of the captures with offloads


def offloaded(name: str, description: str, both: str = "", **more: Any) -> Scenario:
    return Scenario(
        f"offloads-{name}",
        description,
        both,
        base_first="rate=400Mbit delay=3ms queue=1500",
        base_second="rate=150Mbit delay=7ms queue=600",
        group=OFFLOADS,
        **more,
    )


SCENARIOS = [
    offloaded("random-1", "1% lost", "loss=0.5%"),
    offloaded("random-5", "5% lost, Reno", "loss=2.5%", control="reno"),
    offloaded("bursts", "lost in bursts", BURSTS),
    offloaded("bbr", "BBR, 1% lost", "loss=0.5%", control="bbr"),
    offloaded("no-sack", "without SACK, Reno, 0.6% lost", "loss=0.3%", control="reno", sysctl=NO_SACK),
    offloaded("no-timestamps", "without timestamps, 1% lost", "loss=0.5%", sysctl=NO_TIMESTAMPS),
    offloaded("reordered", "0.3% delayed behind eight others, 0.2% lost", "reorder=0.3% distance=8 loss=0.2%"),
    offloaded("stall", "no packet leaves the second link for 0.4 s: spurious RTOs", second="stall=0.2s-0.6s loss=0.2%"),
    offloaded("outage", "two outages of the second link", "loss=0.2%", second="outage=0.4s-0.7s,1.5s-1.9s"),
]


class OffloadTestbed(Testbed):
    """The testbed with a bridge behind the sender."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__(names)
        self.captures = {
            "sender": ("bridge", "far"),
            "tracer": ("tracer", "behind"),
            "receiver": ("tracer", "right"),
            HOSTS["sender"]: ("sender", "path"),
            HOSTS["receiver"]: ("receiver", "path"),
        }

    def make(self) -> None:
        super().make()
        for end, features in (("sender", "tx on tso on gso on"), ("receiver", "gro on")):
            run(*self.inside(end, *f"ethtool -K path {features}".split()))
        # A card collects packets until an interrupt; here a timer takes its place. `ip netns exec` has a /sys of its own.
        run(*self.inside("receiver", "sh", "-c", f"echo {GRO_WAIT_NS} > /sys/class/net/path/gro_flush_timeout"))

    def connect(self, end: str, wire: str) -> None:
        if end != "sender":
            return super().connect(end, wire)
        bridge = self.names["bridge"]
        run(*f"ip -n {self.names[end]} link add path type veth peer near netns {bridge}".split())
        run(*f"ip -n {bridge} link add far type veth peer {wire} netns {self.names['tracer']}".split())
        run(*f"ip -n {bridge} link add joined type bridge".split())
        for port in ("near", "far"):
            run(*f"ip -n {bridge} link set {port} master joined".split())
        self.bring_up("bridge", "far")
        run(*f"ip -n {bridge} link set near up".split())
        run(*f"ip -n {bridge} link set joined up".split())
        return None


@contextlib.contextmanager
def new_offload_testbed() -> Iterator[OffloadTestbed]:
    with namespaces.namespaces("wtoff", *POINTS, "bridge") as names:
        made = OffloadTestbed(names)
        made.make()
        yield made
