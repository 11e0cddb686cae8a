# SPDX-License-Identifier: Apache-2.0
"""The types of the rows of a comparison, for mypy. Columns of a capture point exist only if the comparison has that point."""

from typing import NotRequired, TypedDict


class CaptureInterface(TypedDict):
    """An interface of a file of a capture point, with the counts of its statistics."""

    file: str
    index: int
    name: str | None
    snaplen: int | None
    received: int | None
    dropped_kernel: int | None
    dropped_interface: int | None
    dropped_program: int | None


class ComparedFlowRow(TypedDict):
    """One direction of a flow at all capture points, whose numbers are 0 to 2 in path order."""

    flow: int
    direction: int
    #: 1 from the sender to the receiver, -1 back
    heading: int
    #: protocol, source, source port, destination, destination port and number at a point, as text
    ends0: list[str] | None
    ends1: NotRequired[list[str] | None]
    ends2: NotRequired[list[str] | None]
    #: without copies
    packets: int
    #: of them, those that a point captured whole
    seen_0: int
    seen_1: NotRequired[int]
    seen_2: NotRequired[int]
    copies: int
    #: packets that the last point missed, although later ACKs prove that they arrived
    proven: int
    #: lost by place
    before_tracer: int
    after_tracer: int
    network: int


class LostPacketRow(TypedDict):
    """A packet that was lost: what it was, where each point captured it, and where it was lost."""

    flow: int
    direction: int
    #: sender → receiver, or back
    way: str
    #: tcp data, tcp control, block or datagram
    kind: str
    #: in the stream; null unless TCP
    position: int | None
    #: of a block; null for other packets
    run: int | None
    stream: int | None
    sequence: int | None
    bytes: int
    sender_frame: NotRequired[int | None]
    sender_ns: NotRequired[int | None]
    sender_whole: NotRequired[bool]
    tracer_frame: NotRequired[int | None]
    tracer_ns: NotRequired[int | None]
    tracer_whole: NotRequired[bool]
    receiver_frame: NotRequired[int | None]
    receiver_ns: NotRequired[int | None]
    receiver_whole: NotRequired[bool]
    #: delays between two points
    sender_tracer_ns: NotRequired[int | None]
    tracer_receiver_ns: NotRequired[int | None]
    sender_receiver_ns: NotRequired[int | None]
    copy: bool
    acknowledged: bool
    #: the place
    lost: str
    last_seen: str


class DelaySummary(TypedDict):
    """The one-way delays of a hop in ns; jitter is the mean difference from the packet before (RFC 3550)."""

    packets: int
    min: float
    mean: float
    median: float
    p90: float
    p99: float
    max: float
    deviation: float
    jitter: float | None
    #: delays below zero
    negative: int


class DelayBin(TypedDict):
    """The delays of the packets in a short time, in ns."""

    moment: int
    packets: int
    min: float
    median: float
    p99: float
    max: float
