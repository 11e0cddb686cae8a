# SPDX-License-Identifier: Apache-2.0
"""S4's missing blocks, by a receiver that pauses: its program does not read for a tick of Windows' clock, and what its socket
buffer cannot hold is lost.

The study's rows are of Windows 7, whose UDP sockets have 8,192 bytes and whose clock ticks each 15.6 ms. How often a program
must miss a tick follows from the published blocks; here a receiver is stopped as often, over 100 Mb/s.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from studies.lab import RECEIVER_PRIORITY, StudyLab, received, study_lab
from wiretale.analyzer.theory.capacity import Link, block_maximum
from wiretale.traffic.experiment.published import published_rows

Row = tuple[Any, ...]
BUFFER = 8192  # bytes
TICK_S = 0.0156
SECONDS = 6.0  # of a test here
LOAD = 0.95  # of the link
LINK = Link(bps=100_000_000)


class Published(NamedTuple):
    """A row of S4 over UDP on Windows 7."""

    size: int
    sent: int
    missing: int
    late: int
    seconds: float

    @property
    def lost_share(self) -> float:
        return self.missing / self.sent


def published_losses() -> list[Published]:
    """Returns the rows."""
    return [
        Published(
            int(row["block_bytes"]),
            int(row["blocks_sent"]),
            int(row["missing_blocks"]),
            int(row["out_of_order_blocks"]),
            int(row["total_ms"]) / 1e3,
        )
        for row in published_rows("block_benchmark")
        if (row["protocol"], row["system"]) == ("udp", "Windows 7")
    ]


def lost_in_pause(blocks_per_second: float, size: int) -> float:
    """Returns the blocks that arrive in a pause and find no room."""
    return blocks_per_second * TICK_S - max(1, BUFFER // size)


def pauses_per_second(blocks_per_second: float, size: int, share: float) -> float:
    """Returns how often a receiver must pause to lose a share of the blocks."""
    return share * blocks_per_second / lost_in_pause(blocks_per_second, size)


@contextmanager
def urgent() -> Iterator[None]:
    """Runs the body before other programs, if that is permitted: pauses must end in time."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(RECEIVER_PRIORITY))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def pause_often(receiver: subprocess.Popen[str], count: int) -> float:
    """Stops a receiver this often for a tick, evenly over the time of a test; returns for how many s it was stopped."""
    began, stopped_s = time.monotonic() + 0.3, 0.0  # when the sender has begun
    with urgent():
        for number in range(count):
            time.sleep(max(0.0, began + (number + 0.5) * SECONDS / count - time.monotonic()))
            stopped = time.monotonic()
            receiver.send_signal(signal.SIGSTOP)
            try:
                time.sleep(TICK_S)
            finally:
                receiver.send_signal(signal.SIGCONT)
            stopped_s += time.monotonic() - stopped
    return stopped_s


def paused(lab: StudyLab, row: Published) -> Row:
    """Returns the row of a block size: what was published and must have happened, and what was lost here."""
    here = LOAD * LINK.bps / 8 / row.size * block_maximum(LINK, "udp", row.size).block_efficiency
    process = lab.start("--udp", "--size", row.size, "--time", SECONDS, "--rate", f"{here * row.size * 8:.0f}")
    count = round(SECONDS * pauses_per_second(here, row.size, row.lost_share))
    stopped_s = pause_often(lab.receiver, count)
    report = lab.finish(process)
    lost, sent = received(report).get("blocks_lost"), report["blocks_sent"]
    there = row.sent / row.seconds
    return (
        *(row.size, row.sent, row.missing, 100 * row.lost_share, row.late),
        row.missing / lost_in_pause(there, row.size) / row.seconds,
        *(count / SECONDS, 1e3 * stopped_s / count),
        *(None if lost is None else 100 * lost / sent, received(report).get("blocks_out_of_order")),
    )


def paused_receiver(folder: Path) -> list[Row]:
    """S4: block size, published blocks sent, missing, % and late; pauses a second that lose as many there, and here, and their
    ms; % lost and blocks out of order here."""
    with study_lab("same-switch", folder / "paused", apart=True, receiver=("--buffer", str(BUFFER))) as lab:
        return [paused(lab, row) for row in published_losses()]
