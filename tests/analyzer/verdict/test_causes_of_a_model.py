# SPDX-License-Identifier: Apache-2.0
"""Causes of retransmissions against the log of a sender whose timer is that of RFC 6298, without SACK, behind a queue."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import wiretale
from reno_model import Reno

SENDER, RECEIVER = range(2)
QUEUES = (20, 100, 300)  # ms
SEEDS = range(4)
# Capture point, queue, least RTO (ms), timestamps. Beside the receiver, timestamps alone show the queue's delay.
CASES = [
    *product([SENDER], QUEUES, [200, 1000], [True, False]),
    *product([RECEIVER], QUEUES, [1000], [True]),
    *product([RECEIVER], QUEUES[:2], [1000], [False]),
]


def causes(model: Reno, point: int, folder: Path, timestamps: bool) -> Counter[tuple[str, str]]:
    """Retransmissions by their true cause and by wiretale's; one that arrives in order has none."""
    capture = folder / "model.pcap"
    packets = model.write(point, capture, timestamps)
    events = {row["frame"]: row["kind"] for row in wiretale.analyze(capture).events.rows() if row["frame"]}
    kinds = {frame: kind.removesuffix("_retransmission") for frame, kind in events.items() if "retrans" in kind}
    sent = [(frame, packet.cause) for frame, packet in enumerate(packets, 1) if packet and packet.cause]
    return Counter((cause, kinds.get(frame, "none")) for frame, cause in sent)


@pytest.mark.parametrize(("point", "queue", "least_rto", "timestamps"), CASES)
def test_timers_and_duplicate_acks_are_distinguished(
    point: int, queue: int, least_rto: int, timestamps: bool, tmp_path: Path
) -> None:
    tally: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        model = Reno(seed, queue, least_rto, loss=0.01 + 0.02 * (seed % 2)).run()
        tally += causes(model, point, tmp_path, timestamps)
    right = tally["fast", "fast"] + tally["timeout", "timeout"]
    wrong = sum(tally.values()) - right - tally["timeout", "none"]
    assert right > 100 and wrong <= 0.01 * right, tally
