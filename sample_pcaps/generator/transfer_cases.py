# SPDX-License-Identifier: Apache-2.0
"""Samples of one upload, captured beside its sender."""

from __future__ import annotations

import struct
from pathlib import Path

from sample_files import save_pcap
from simulate_transfer import make_transfer, pattern
from write_captures import SECOND
from write_truth import TCP_COLUMNS, Sighting, Truth, zeros

SNAPLEN = 96


def truth_of_upload(about: str, seen: list[Sighting], length: int) -> Truth:
    """Returns the truth of an upload with that many unique bytes in the capture."""
    sums = {(0, direction): zeros(*TCP_COLUMNS) for direction in (0, 1)}
    sums[0, 0]["unique_bytes"] = length
    return Truth(about, seen, sums)


def make_tcp_losses(path: Path) -> None:
    """300 kB: segment 70 is lost and retransmitted fast, the last is lost and retransmitted after an RTO."""
    length = 300_000
    seen = make_transfer(length, frozenset({70, (length - 1) // 1448}))
    about = (
        "An upload of 300 kB captured beside its sender: one fast retransmission, and the last segment after an RTO."
    )
    save_pcap(path, truth_of_upload(about, seen, length), snaplen=SNAPLEN)


def make_damaged(path: Path) -> None:
    """The first 60 packets of an upload, then a record of 1.8 GB of which the file has 200 bytes."""
    seen = make_transfer(60_000)[:60]
    seconds = seen[-1].record[0] // SECOND
    lie = struct.pack("<IIII", seconds, 999_999, 0x6B6B6B6B, 0x6B6B6B6B)
    about = "The first 60 packets of an upload, without an anomaly; the file is damaged after them."
    truth = truth_of_upload(about, seen, sum(s.payload for s in seen))
    save_pcap(path, truth, snaplen=SNAPLEN, tail=lie + pattern(200))
