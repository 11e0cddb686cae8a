# SPDX-License-Identifier: Apache-2.0
"""Retries on the radio of a wireless network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.units import show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

RETRIES_BAD = 0.25  # of the data frames
WEAK_DBM, STRONG_DBM = -75, -65


def signal_words(signal: int | None) -> tuple[str, str, str]:
    """Returns how the signal is told, what follows from it, and what to do."""
    if signal is None:
        return (
            "",
            "the receiver did not get them, or the sender not its acknowledgments",
            "Read the signal of both ends",
        )
    words = f", at {signal} dBm"
    if signal <= WEAK_DBM:
        return words, "it is too far from its access point", "Move the station or the access point nearer"
    if signal >= STRONG_DBM:
        return words, "the signal is strong, so others interfere on the channel", "Choose a channel with less traffic"
    return words, "distance or interference", "Compare other channels and places"


@cause(
    code="wifi-retries",
    title="Wi-Fi frames that are repeated",
    sentence="{share} of the {total} data frames {of_station} are 802.11 retries{signal}: {reason}.",
    advice="{remedy} (`iw dev wlan0 station dump`, 5 GHz instead of 2.4 GHz).",
    shows="25% of 100 data frames or more have the retry bit; from 10% on it is a note. The signal is the mean of the station "
    "with the most retries, from radiotap. From -75 dBm down distance is the reason, from -65 dBm up interference.",
    rivals={"copies": "the retry bit is set: the station repeated them, not the capture"},
    unknown="Frames that the monitor did not hear. On the wire behind the access point only jitter shows.",
    explains=("network-duplicates", "unknown-duplicates", "jitter"),
)
def wifi_retries(case: Case) -> Matches:
    findings = case.findings("wlan-retries")
    rows = [row for row in case.trace.interfaces if row["wlan_retries"]]
    if not findings or not rows:
        return
    row = max(rows, key=lambda each: each["wlan_retries"] or 0)
    frames, retries, station = row["wlan_frames"] or 0, row["wlan_retries"] or 0, row["wlan_station"]
    of_station = "on the air"
    if station and row["wlan_station_frames"]:
        frames, retries, of_station = (
            row["wlan_station_frames"],
            row["wlan_station_retries"] or 0,
            f"of station {station}",
        )
    signal, reason, remedy = signal_words(row["wlan_station_signal_dbm"])
    yield Match(
        certainty="proven",
        place="client",
        findings=findings,
        proof=f"{retries:,} of {frames:,} data frames have the retry bit{signal}",
        excluded={"copies": "the sender set the retry bit"},
        severity="warning" if retries >= RETRIES_BAD * frames else "info",
        share=show_share(retries, frames),
        total=f"{frames:,}",
        of_station=of_station,
        signal=signal,
        reason=reason,
        remedy=remedy,
    )
