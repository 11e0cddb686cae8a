# SPDX-License-Identifier: Apache-2.0
"""S4's missing and late blocks: UDP at the published rates into receivers with small and large socket buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.lab import percent_received, received, study_lab
from wiretale.traffic.experiment.published import block_rate, published_rows

Row = tuple[Any, ...]
BUFFERS = (8192, 65536, 4_000_000)  # bytes; 8 kB was the default of Windows
BYTES = 40_000_000  # of each test


def small_buffers(folder: Path) -> list[Row]:
    """S4: block size, Mbit/s as published, receive buffer, percent missing, of them dropped by the receiver's host, percent late,
    then published: percent missing, percent late."""
    rows: list[Row] = []
    published = [
        row for row in published_rows("block_benchmark") if (row["protocol"], row["system"]) == ("udp", "Windows 7")
    ]
    for buffer in BUFFERS:
        receiver = ("--buffer", str(buffer))
        with study_lab("same-lan", folder / f"buffer-{buffer}", apart=True, receiver=receiver) as lab:
            for row in published:
                size, sent = int(row["block_bytes"]), int(row["blocks_sent"])
                rate = block_rate(row)
                report = lab.send("--udp", "--size", size, "--rate", f"{rate:.1f}M", "--count", BYTES // size)
                got, count = percent_received(report), report["blocks_sent"]
                part = received(report)
                missing = None if got is None else 100 - got
                late = part.get("blocks_out_of_order")
                figures = (missing, part.get("host_dropped"), None if late is None else 100 * late / count)
                expected = (100 * int(row["missing_blocks"]) / sent, 100 * int(row["out_of_order_blocks"]) / sent)
                rows.append((size, rate, buffer, *figures, *expected))
    return rows
