# SPDX-License-Identifier: Apache-2.0
"""Rules about 802.11 frames of a capture in monitor mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.model import Match, Matches, finding
from wiretale.analyzer.units import show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers

CHAPTER = "Wi-Fi"
FRAMES_MIN = 100
RETRIES_NOTED, RETRIES_MANY = 0.1, 0.2  # of the data frames


@finding(
    code="wlan-retries",
    title="Wi-Fi frames that are repeated",
    severity="warning from 20% of the frames on, else info",
    scope="capture",
    unit="packets",
    without_packets="any frame with the retry bit shows it",
    computed="IEEE 802.11 data frames with the retry bit (interfaces.wlan_retries), if they are 10% or more "
    "of at least 100 frames (interfaces.wlan_frames). A station repeats a frame that was not acknowledged.",
    unknown="Frames that the monitor did not receive; whether noise, distance or collisions are the reason.",
    sentence="{share} of the {count:Wi-Fi data frame} on {name} are retries: stations got no acknowledgment on the radio.",
    advice="Compare signal and data rate of the stations (radiotap), choose a channel with less traffic, or "
    "move the access point nearer.",
)
def wlan_retries(transfers: Transfers) -> Matches:
    for row in transfers.trace.interfaces.rows():
        frames, retries = row["wlan_frames"] or 0, row["wlan_retries"] or 0
        if frames < FRAMES_MIN or retries < RETRIES_NOTED * frames:
            continue
        yield Match(
            "warning" if retries >= RETRIES_MANY * frames else "info",
            cost=float(retries),
            packets=retries,
            filter="wlan.fc.retry == 1 && wlan.fc.type == 2",
            impact=retries / max(row["packets"], 1),
            share=show_share(retries, frames),
            count=frames,
            name=row["name"] or "the interface",
        )
