# SPDX-License-Identifier: Apache-2.0
"""Runs a tracer while everything around it fails, and accounts for each frame that was sent.

    PYTHONPATH=benchmarks python -m soak --program build/soak/wiretale-capture --seconds 1800

The sender numbers its frames and never stops. Each number must be in exactly one file, or be one of the losses that the tracer
counted in its phase, or belong to the stretch in which no tracer listened, as after kill -9. The exit status is 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from shared.namespaces import PathError, missing
from soak.phases import PHASES, Phase, carry_out
from soak.tracer import Soak, made_soak

ROW = "{:<22} {:>5} {:>12} {:>12} {:>9} {:>9} {:>8} {:>6}"
BURST_SECONDS = 0.2  # that the sender may catch up
HEADS = ("phase", "runs", "sent", "in files", "counted", "deaf", "doubled", "wrong")


def absent_within(gaps: list[tuple[int, int]], first: int, last: int) -> int:
    """Returns how many numbers of a range are in gaps. A tracer that opens an interface gets some frames and misses some more."""
    return sum(max(0, min(end, last) - max(begin, first)) for begin, end in gaps)


def fault_of(soak: Soak, phase: Phase) -> tuple[int, int, int]:
    """Returns the frames that are missing although nothing explains it, those of the gap without a tracer, and those that are
    in two files."""
    gaps = soak.frames.gaps(phase.first, phase.last)
    absent = sum(end - begin for begin, end in gaps)
    doubled = soak.frames.doubled(phase.first, phase.last)
    deaf = absent - phase.counted if phase.deaf_seconds is not None else 0
    stretch = int(((phase.deaf_seconds or 0) + BURST_SECONDS) * soak.rate)
    is_gap = 0 <= deaf <= max((absent_within(gaps, begin, begin + stretch) for begin, _ in gaps), default=0)
    if not is_gap:
        print(
            f"{phase.name}: missing {gaps[:8]}, {phase.counted:,} counted, {phase.deaf_seconds or 0:.3f} s without a tracer"
        )
    return abs(absent - phase.counted - (deaf if is_gap else 0)), deaf if is_gap else 0, doubled


def absent_in(soak: Soak, first: int, last: int) -> int:
    """Returns how many numbers of a range are in no file."""
    return sum(end - begin for begin, end in soak.frames.gaps(first, last))


def row_of(soak: Soak, runs: list[Phase]) -> list[int]:
    """Returns the cells of a phase, for all its runs."""
    faults = [fault_of(soak, phase) for phase in runs]
    wrong, deaf, doubled = (sum(fault[place] for fault in faults) for place in range(3))
    sent = sum(phase.last - phase.first for phase in runs)
    absent = sum(absent_in(soak, phase.first, phase.last) for phase in runs)
    return [len(runs), sent, sent - absent, sum(phase.counted for phase in runs), deaf, doubled, wrong]


def print_account(soak: Soak, phases: list[Phase]) -> bool:
    """Prints the table. Returns whether each frame is accounted for."""
    rows = {name: row_of(soak, [phase for phase in phases if phase.name == name]) for name in PHASES}
    sums = [sum(column) for column in zip(*rows.values(), strict=True)]
    sent, absent = soak.sent(), absent_in(soak, 0, soak.sent())
    between = sent - sums[1]
    calm_absent = absent - (sums[1] - sums[2])
    calm_wrong, counted = abs(calm_absent - soak.calm_counted), sums[3] + soak.calm_counted
    rows["between them"] = [0, between, between - calm_absent, soak.calm_counted, 0, 0, calm_wrong]
    rows["all"] = [sums[0], sent, sent - absent, counted, *sums[4:6], sums[6] + calm_wrong]
    print(ROW.format(*HEADS))
    for name, cells in rows.items():
        print(ROW.format(name, *(f"{cell:,}" for cell in cells)))
    parts = (f"in files {sent - absent:,}", f"counted losses {counted:,}", f"while no tracer listened {sums[4]:,}")
    print(f"\nsent {sent:,} = {' + '.join(parts)} + unexplained {absent - counted - sums[4]:,}")
    print(f"{soak.frames.files:,} files with {soak.frames.packets:,} packets")
    return not (sums[5] or sums[6] or calm_wrong)


def main() -> int:
    """Repeats the phases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--only", default="", help="phases with this word")
    parser.add_argument("--rate", type=int, default=10_000, help="frames per second (default: 10,000)")
    options = parser.parse_args()
    if reason := missing("test", "ip", "mkfs.ext4", "mount", "fsfreeze"):
        print(f"soak: {reason}", file=sys.stderr)
        return 77
    until, phases = time.monotonic() + options.seconds, list[Phase]()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            with made_soak(Path(folder), options.program.resolve(), options.rate) as soak:
                while time.monotonic() < until:
                    for name in PHASES:
                        if options.only in name and time.monotonic() < until:
                            phases.append(carry_out(soak, name))
                            print(f"{time.strftime('%H:%M:%S')} {name}: {soak.sent():,} sent", file=sys.stderr)
                code = soak.stop()
                is_good = print_account(soak, phases)
                print(f"exit code of the tracer: {code} (3: losses are counted)")
        except (PathError, ValueError, OSError) as error:
            print(f"soak: {error}\n{(Path(folder) / 'log').read_text()[-3000:]}", file=sys.stderr)
            return 1
    return 0 if is_good and code in (0, 3) else 1


if __name__ == "__main__":
    sys.exit(main())
