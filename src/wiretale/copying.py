# SPDX-License-Identifier: Apache-2.0
"""cut(): chosen packets of captures in a new file, as `wiretale cut` writes it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wiretale.analyzer.capture_paths import Paths, expand_paths
from wiretale.analyzer.cut import writing
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.options import Time, check_range, number_within, output_path, time_ns
from wiretale.analyzer.trace import warn_of_damage
from wiretale.version import __version__

AROUND_MAX = 1_000_000  # seconds
FRAME_MAX = 2**62
NS = 1_000_000_000


@dataclass(frozen=True)
class Cut:
    """The file that cut() wrote.

    >>> import wiretale
    >>> wiretale.cut("sample_pcaps/tcp_losses.pcap", output="first.pcap", frames=[(1, 10)])
    Cut(path=PosixPath('first.pcap'), read=342, written=10, damage=[])
    """

    path: Path
    #: packets of the captures, and those in the file
    read: int
    written: int
    #: where a capture is damaged; the packets before are copied
    damage: list[str]


def frame_ranges(frames: Iterable[int | tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns frames as ranges. UsageError if one is no range of frame numbers."""
    ranges = [(item, item) if isinstance(item, int) else (item[0], item[1]) for item in frames]
    for first, last in ranges:
        if number_within("frames", first, 1, FRAME_MAX) > number_within("frames", last, 1, FRAME_MAX):
            raise UsageError(f"frames ({first}, {last}): expected the first frame before the last")
    return ranges


def cut(
    *captures: Paths,
    output: str | os.PathLike[str],
    flows: Iterable[int] = (),
    findings: Iterable[int | str] = (),
    frames: Iterable[int | tuple[int, int]] = (),
    start: Time = None,
    end: Time = None,
    around: float = 0,
    annotate: bool = False,
    anonymize: bool = False,
    key: str | os.PathLike[str] | None = None,
    headers: bool = False,
    overwrite: bool = False,
) -> Cut:
    """Copies chosen packets into a pcapng file, or a pcap file if `output` ends in .pcap.

    Flows, findings (number from 1, or code) and frames (numbers, or first and last) add up; `start` and `end` limit them.
    Without a choice, all packets are copied.

    `around` adds all packets within that many seconds of a chosen one. `annotate` writes verdicts as comments, `anonymize`
    replaces addresses and payload (docs/cut.md) with the secret in file `key`, and `headers` leaves payload out. Raises
    InputError, OutputError or UsageError.

    >>> import wiretale
    >>> made = wiretale.cut("sample_pcaps/tcp_losses.pcap", output="loss.pcapng", findings=["lost-downstream"], around=0.01)
    >>> made.read, made.written > 0
    (342, True)
    """
    from wiretale.reports.export.destination import check_outputs, output_file

    if key is not None and not anonymize:
        raise UsageError("key: expected anonymize=True with it")
    if not 0 <= around <= AROUND_MAX:
        raise UsageError(f"around {around}: expected 0 to {AROUND_MAX:,} seconds")
    place, secret = output_path(output), Path(key) if key is not None else None
    order = writing.Order(
        paths=expand_paths(captures, local=True),
        flows=list(flows),
        findings=list(findings),
        frames=frame_ranges(frames),
        start_ns=time_ns(start),
        end_ns=time_ns(end),
        around_ns=round(around * NS),
        annotate=annotate,
        headers=headers,
        classic=writing.is_classic(place),
        key=writing.key_of(secret) if anonymize else None,
    )
    if not order.paths:
        raise UsageError("no capture given: expected a file, a folder, or - for standard input")
    check_range(order.start_ns, order.end_ns)
    check_outputs([place], [*order.paths, *([str(secret)] if secret else [])], overwrite)
    with output_file(place) as out:
        outcome = writing.cut(order, out.fileno(), __version__)
    warn_of_damage(outcome.damage)
    return Cut(place, outcome.read, outcome.written, outcome.damage)
