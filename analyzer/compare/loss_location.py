# SPDX-License-Identifier: Apache-2.0
"""Where packets and blocks were lost: a ledger from what was to be sent to what the application got.

The stages are known by the sender's log, by captures, and by the receiver's log. What a later stage saw, every earlier one
had, whether its capture shows it or not: so each stage is raised to the union of those behind it, and what is missing
between two stages was lost between them. The sum over all places is what was to be sent less what arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: places, in the order of the way, with what they are called
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
#: which place lies between two stages
BETWEEN = {
    ("planned", "sent"): "never_sent",
    ("planned", "sender"): "sender_host",
    ("planned", "tracer"): "before_tracer",
    ("planned", "receiver"): "network",
    ("planned", "received"): "network_or_host",
    ("sent", "sender"): "sender_host",
    ("sent", "tracer"): "before_tracer",
    ("sent", "receiver"): "network",
    ("sent", "received"): "network_or_host",
    ("sender", "tracer"): "before_tracer",
    ("sender", "receiver"): "network",
    ("sender", "received"): "network_or_host",
    ("tracer", "receiver"): "after_tracer",
    ("tracer", "received"): "after_tracer_or_host",
    ("receiver", "received"): "receiver_host",
}
#: what is left of these when the receiver's kernel told what it dropped
BESIDE_KERNEL = {
    "receiver_host": "application",
    "after_tracer_or_host": "after_tracer_or_host",
    "network_or_host": "network_or_host",
}


@dataclass
class Stage:
    """What is known of one stage."""

    #: on the way: planned, sent, sender, tracer, receiver (the capture points in the order of the way) or received
    name: str
    #: what it saw itself
    seen: int
    #: the capture point's own role, which is another one on the way back
    role: str = ""
    #: what it must have had: that, and what later stages saw
    had: int = 0

    @property
    def missed(self) -> int:
        """What passed without being seen: a capture's fault, and no loss."""
        return self.had - self.seen


@dataclass
class Ledger:
    """One kind of thing, one way."""

    #: blocks, bytes or packets
    unit: str
    title: str
    stages: list[Stage] = field(default_factory=list)
    #: by place
    lost: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    run: int | None = None
    flow: int | None = None
    direction: int | None = None
    #: copies that the network made, and datagrams of which some fragments arrived
    copies: int = 0
    incomplete: int = 0

    @property
    def sent(self) -> int:
        """What the first stage had."""
        return self.stages[0].had if self.stages else 0

    @property
    def arrived(self) -> int:
        """What the last stage had."""
        return self.stages[-1].had if self.stages else 0

    @property
    def balanced(self) -> bool:
        """Whether nothing is unaccounted for."""
        return self.sent == self.arrived + sum(self.lost.values())


def settle(
    ledger: Ledger,
    unions: dict[str, int],
    host_dropped: int | None = None,
    own: bool = False,
    capture_dropped: int | None = None,
) -> Ledger:
    """Raises stages and finds the losses between them; `unions` tells of a capture what it or a later one saw.

    What the last capture dropped is taken for what is missing there, unless a log behind it tells more.

    What the kernel dropped had come to the host, if the counter is the socket's `own`: a host's counts others' too.
    """
    least = 0
    for stage in reversed(ledger.stages):
        if stage.name == "received":
            stage.had = stage.seen
            least = stage.seen + (host_dropped or 0 if own else 0)
            continue
        stage.had = max(stage.seen, unions.get(stage.name, 0), least)
        least = stage.had
    for before, after in pairwise(ledger.stages):
        missing = before.had - after.had
        place = BETWEEN[before.name, after.name]
        if after.name == "received" and host_dropped is not None:
            kernel = min(host_dropped, missing)
            add(ledger, "receiver_kernel", kernel)
            missing -= kernel
            place = BESIDE_KERNEL[place]
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
    """The stages that something tells of, in the order of the way."""
    named = dict(zip(places, roles, strict=True))
    order = ("planned", "sent", *places, "received")
    return [Stage(name, count, named.get(name, name)) for name in order if (count := counts.get(name)) is not None]
