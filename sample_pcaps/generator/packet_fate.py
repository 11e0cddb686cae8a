# SPDX-License-Identifier: Apache-2.0
"""The fate of a packet in a sample, and the place of the capture point."""

from __future__ import annotations

from dataclasses import dataclass

from write_captures import MICROSECOND, MILLISECOND


@dataclass(frozen=True)
class Fate:
    """The events on the path of one packet."""

    lost: str = ""  # "upstream" of the capture point or "downstream"
    late_ns: int = 0  # delayed before the capture point, so that later packets overtake it
    copy_ns: int = 0  # delay of a copy that the network makes before the capture point; 0: no copy
    stalled_ns: int = 0  # delayed behind the capture point, with all later packets
    unstored: bool = False  # the capture drops it


PLAIN = Fate()


@dataclass(frozen=True)
class Distance:
    """Delays from the capture point to the sender and to the receiver of the data."""

    to_sender_ns: int = 10 * MICROSECOND
    to_receiver_ns: int = 10 * MILLISECOND - 10 * MICROSECOND
    segment_ns: int = 120 * MICROSECOND  # serialization of a full segment on the sender's link: 100 Mbit/s


BESIDE_SENDER = Distance()
MIDWAY = Distance(4 * MILLISECOND, 6 * MILLISECOND)
BESIDE_RECEIVER = Distance(10 * MILLISECOND - 10 * MICROSECOND, 10 * MICROSECOND)
