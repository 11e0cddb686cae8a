# SPDX-License-Identifier: Apache-2.0
"""Locates losses of packets and blocks with a ledger from the planned amount to the amount that the application received.

The stages are counts of the sender's log, the captures and the receiver's log. A packet at a later stage must have passed
every earlier one, even if a capture missed it. So each stage is raised to the union of the later ones, and the difference
of two stages was lost between them. Invariant: the losses of all places add up to planned minus received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

#: places of loss in path order, and their names
PLACES = {
    "never_sent": "never sent",
    "sender_host": "in the sender's host, or missed by its capture",
    "before_tracer": "in the network before the tracer",
    "after_tracer": "in the network after the tracer",
    "network": "in the network",
    "capture": "unseen by the last capture, which dropped as many by its own statistics",
    "receiver_kernel": "by the receiver's kernel",
    "application": "by the receiving application",
    "after_tracer_or_host": "after the tracer: network or receiving host",
    "network_or_host": "in the network or the receiving host",
    "receiver_host": "in the receiving host: kernel or application",
}
#: advice for the place of most losses; packets that a capture may have missed need none
REMEDIES = {
    "never_sent": "look for the sender's errors in its log (send_errors), and lower its rate or raise its send buffer",
    "sender_host": "compare the drop counters of the sender's queue and card (tc -s qdisc, ethtool -S) with those of its capture",
    "before_tracer": "check queues, links and policers between sender and tracer",
    "after_tracer": "check queues, links and policers between tracer and receiver",
    "network": "check queues, links and policers between sender and receiver; a tracer between them shows the side",
    "receiver_kernel": "raise the receive buffer of the socket (SO_RCVBUF, net.core.rmem_max), or let the program read faster",
    "application": "check the receiving program and its log, because its kernel delivered them",
    "after_tracer_or_host": "capture at the receiver, or add its log (--receiver-log), to separate network and host",
    "network_or_host": "capture at the receiver, or add its log (--receiver-log), to separate network and host",
    "receiver_host": "compare the drop counters of the receiver's sockets (ss -uam, nstat UdpRcvbufErrors) with its log",
}
#: places in the hosts between a log and a capture outside of them, or between two logs
HOST_PLACES = {
    ("sent", "tracer"): ("sender_host",),
    ("tracer", "received"): ("receiver_kernel", "application"),
    ("sent", "received"): ("sender_host", "receiver_kernel", "application"),
}


@dataclass
class Stage:
    """The amounts of one stage."""

    #: in path order: planned, sent, sender, tracer, receiver (captures) or received
    name: str
    #: counted by its log or capture
    seen: int
    #: role of the capture point, which differs from the name in the opposite direction
    role: str = ""
    #: must have passed it, by its own and later counts
    had: int = 0

    @property
    def missed(self) -> int:
        """Amount that passed uncaptured, which is not a loss."""
        return self.had - self.seen


@dataclass
class Ledger:
    """The stages and losses of one unit in one direction.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> ledger = comparison.losses[0]
    >>> ledger.unit, ledger.sent, ledger.arrived, ledger.lost
    ('packets', 214, 213, {'network': 1})
    """

    #: blocks, bytes or packets
    unit: str
    title: str
    stages: list[Stage] = field(default_factory=list)
    #: by place
    lost: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    run: int | None = None
    #: copies that the network made, and datagrams of which some fragments arrived
    copies: int = 0
    incomplete: int = 0

    @property
    def sent(self) -> int:
        """Amount of the first stage."""
        return self.stages[0].had if self.stages else 0

    @property
    def arrived(self) -> int:
        """Amount of the last stage."""
        return self.stages[-1].had if self.stages else 0

    @property
    def balanced(self) -> bool:
        """Whether the losses explain the whole difference."""
        return self.sent == self.arrived + sum(self.lost.values())


def place_between(before: str, after: str, kernel_known: bool = False) -> str:
    """Returns the place between two stages; with `kernel_known`, drops of the receiver's kernel are booked apart."""
    if after == "receiver":
        return "after_tracer" if before == "tracer" else "network"
    if after == "received":
        host = "application" if kernel_known else "receiver_host"
        return {"tracer": "after_tracer_or_host", "receiver": host}.get(before, "network_or_host")
    return {"sent": "never_sent", "sender": "sender_host", "tracer": "before_tracer"}[after]


def settle(
    ledger: Ledger,
    unions: dict[str, int],
    host_dropped: int | None = None,
    by_host: bool = False,
    capture_dropped: int | None = None,
    counted: Mapping[str, int] = MappingProxyType({}),
) -> Ledger:
    """Raises the stages and books the losses between them.

    `unions` is the amount that a capture or a later one has. `host_dropped` counts drops of the receiver's kernel; only if
    the counter is the socket's `own`, these packets arrived at the host. `capture_dropped` counts drops of the last
    capture, which explain missing packets there unless a log after it has more. `counted` has the losses in both hosts by
    place; if it is not empty, the network had all others between a capture outside of the hosts and a log.
    """
    least = 0
    for stage in reversed(ledger.stages):
        if stage.name == "received":
            stage.had = stage.seen
            least = stage.seen + (host_dropped or 0 if by_host else 0)
            continue
        stage.had = max(stage.seen, unions.get(stage.name, 0), least)
        least = stage.had
    for before, after in pairwise(ledger.stages):
        missing = before.had - after.had
        place = place_between(before.name, after.name, host_dropped is not None)
        if counted and {before.name, after.name} <= {"sent", "tracer", "received"}:
            for host in HOST_PLACES[before.name, after.name]:
                part = min(counted.get(host, 0), missing)
                add(ledger, host, part)
                missing -= part
            place = place_between(before.name, "receiver" if after.name == "received" else after.name)
        elif after.name == "received" and host_dropped is not None:
            kernel = min(host_dropped, missing)
            add(ledger, "receiver_kernel", kernel)
            missing -= kernel
        elif after is ledger.stages[-1] and capture_dropped:
            unseen = min(max(capture_dropped - after.missed, 0), missing)
            add(ledger, "capture", unseen)
            missing -= unseen
        add(ledger, place, missing)
    return ledger


def add(ledger: Ledger, place: str, count: int) -> None:
    """Books a loss."""
    if count > 0:
        ledger.lost[place] = ledger.lost.get(place, 0) + count


def stages_of(places: Sequence[str], roles: Sequence[str], counts: dict[str, int | None]) -> list[Stage]:
    """Returns the stages with a count, in path order."""
    named = dict(zip(places, roles, strict=True))
    order = ("planned", "sent", *places, "received")
    return [Stage(name, count, named.get(name, name)) for name in order if (count := counts.get(name)) is not None]
