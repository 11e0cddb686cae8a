# SPDX-License-Identifier: Apache-2.0
"""Air time of a frame in a wireless LAN with one sender: IEEE 802.11b and 802.11a/g, without aggregation (docs/theory.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

MAC_HEADER, LLC_SNAP, FCS = 24, 8, 4
CONTROL_BYTES = 14  # of an ACK or CTS
SIFS = 10  # all times in microseconds; 802.11a has 16 and no signal extension, in sum the same
LONG_SLOT, SHORT_SLOT = 20, 9
DSSS_RATES = (1_000_000, 2_000_000, 5_500_000, 11_000_000)
OFDM_RATES = tuple(mbps * 1_000_000 for mbps in (6, 9, 12, 18, 24, 36, 48, 54))
DSSS_CONTROL, OFDM_CONTROL = (1_000_000, 2_000_000), (6_000_000, 12_000_000, 24_000_000)  # mandatory rates of ACKs
LONG_PREAMBLE, SHORT_PREAMBLE = 192, 96  # of 802.11b, with the PLCP header
OFDM_PREAMBLE, SIGNAL_EXTENSION = 20, 6
SYMBOL, SERVICE_AND_TAIL = 4, 16 + 6  # microseconds; bits
DSSS_WINDOW, OFDM_WINDOW = 31, 15  # CWmin: a lone sender waits half of it on average


def dsss(length: int, bps: int, preamble: int) -> Fraction:
    """Returns the time of a frame of 802.11b; 1 Mbit/s has the long preamble alone."""
    return (preamble if bps > DSSS_RATES[0] else LONG_PREAMBLE) + Fraction(8 * length * 1_000_000, bps)


def ofdm(length: int, bps: int) -> Fraction:
    """Returns the time of a frame of 802.11a or g."""
    bits = SYMBOL * bps // 1_000_000
    return Fraction(OFDM_PREAMBLE + SYMBOL * -(-(SERVICE_AND_TAIL + 8 * length) // bits) + SIGNAL_EXTENSION)


def control_rate(bps: int, rates: tuple[int, ...]) -> int:
    """Returns the rate of the ACK: the highest mandatory one that is not above that of the frame."""
    return max(rate for rate in rates if rate <= bps)


@dataclass(frozen=True)
class Air:
    """The air as one sender has it, alone, or beside 802.11b with what protects its frames from it."""

    protected: bool = False

    def frame_seconds(self, length: int, bps: int) -> Fraction:
        """Returns the time from one frame to the next: DIFS, mean backoff, frame, SIFS and ACK, for bytes with header and FCS."""
        if bps in DSSS_RATES:
            slot, window = LONG_SLOT, DSSS_WINDOW
            preamble = LONG_PREAMBLE if self.protected else SHORT_PREAMBLE
            sent = dsss(length, bps, preamble) + SIFS + dsss(CONTROL_BYTES, control_rate(bps, DSSS_CONTROL), preamble)
        else:
            slot, window = LONG_SLOT if self.protected else SHORT_SLOT, OFDM_WINDOW
            sent = ofdm(length, bps) + SIFS + ofdm(CONTROL_BYTES, control_rate(bps, OFDM_CONTROL))
            if self.protected:  # CTS to itself, which stations of 802.11b understand
                sent += dsss(CONTROL_BYTES, DSSS_CONTROL[-1], LONG_PREAMBLE) + SIFS
        return (SIFS + 2 * slot + Fraction(window * slot, 2) + sent) / 1_000_000
