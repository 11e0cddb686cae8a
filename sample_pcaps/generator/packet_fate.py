# SPDX-License-Identifier: Apache-2.0
"""What a sample wants to happen to a packet, and where its capture point lies."""

from __future__ import annotations

from dataclasses import dataclass

from write_captures import MICROSECOND, MILLISECOND


@dataclass(frozen=True)
class Fate:
    """What befalls one packet."""

    lost: str = ""  # "upstream" of the capture point or "downstream"
    late_ns: int = 0  # held up before the capture point, so that others overtake it
    copy_ns: int = 0  # the network makes a copy, that much later, before the capture point
    stalled_ns: int = 0  # held up beyond the capture point, with all behind it
    unstored: bool = False  # the capture drops it


PLAIN = Fate()


@dataclass(frozen=True)
class Distance:
    """From the capture point to who sends the data and to who receives it."""

    to_sender_ns: int = 10 * MICROSECOND
    to_receiver_ns: int = 10 * MILLISECOND - 10 * MICROSECOND
    segment_ns: int = 120 * MICROSECOND  # a whole segment on the sender's link: 100 Mbit/s


BESIDE_SENDER = Distance()
MIDWAY = Distance(4 * MILLISECOND, 6 * MILLISECOND)
BESIDE_RECEIVER = Distance(10 * MILLISECOND - 10 * MICROSECOND, 10 * MICROSECOND)
