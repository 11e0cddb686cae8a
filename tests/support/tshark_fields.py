# SPDX-License-Identifier: Apache-2.0
"""Fields of single frames by tshark, which reads the file on its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path


def fields_of(path: Path, frames: Iterable[int], names: Iterable[str]) -> dict[int, dict[str, str]]:
    """Returns the fields of frames by number; those that a frame lacks are empty, of several values the last one counts.

    A file that is damaged gives the frames before the damage.
    """
    columns = list(names)
    numbers = ", ".join(map(str, sorted(set(frames))))
    command = (
        f"tshark -n -T fields -E occurrence=l -e frame.number {' '.join(f'-e {name}' for name in columns)}".split()
    )
    command += ["-r", str(path), "-Y", f"frame.number in {{{numbers}}}"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = (line.split("\t") for line in answer.stdout.splitlines())
    return {int(line[0]): dict(zip(columns, line[1:], strict=True)) for line in lines}


def times_of(path: Path, frames: Iterable[int]) -> dict[int, int]:
    """Returns the times of frames in ns since the epoch."""
    by_frame = fields_of(path, frames, ["frame.time_epoch"])
    return {frame: int(Decimal(fields["frame.time_epoch"]) * 10**9) for frame, fields in by_frame.items()}
