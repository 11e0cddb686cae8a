# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts on one capture file, of which tshark and wiretale each read all frames."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.verify.comparison import Comparison
from wiretale.analyzer.verify.frame_events import FrameEvents, around, unread_frames

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace
    from wiretale.analyzer.verify.tshark import Dissector

FRAMES_AT_ONCE = 65_536  # flagged frames per comparison, which bounds memory


def compare_file(trace: Trace, path: str, dissector: Dissector, most: int | None) -> Comparison:
    """Compares wiretale's events with the frames that Wireshark flags, and keeps `most` differences per reason.

    If Wireshark stops where wiretale could read, frames up to the last one that it flags are compared. InputError if there is
    none.
    """
    events = FrameEvents(trace.events)
    comparison = Comparison(around(trace), most)
    frames = iter(dissector.frames(path))
    while batch := dict(islice(frames, FRAMES_AT_ONCE)):
        comparison.last_frame = max(batch)
        event_rows = events.take(comparison.last_frame)
        comparison.take(event_rows, batch, unread_frames(path, batch.keys() | event_rows.keys()))
    if not dissector.problem or trace.damaged:
        comparison.last_frame = None
        event_rows = events.take(float("inf"))
        comparison.take(event_rows, {}, unread_frames(path, event_rows))
    elif comparison.last_frame is None:
        raise InputError(f"tshark: {dissector.problem}")
    else:
        comparison.problem = f"tshark stopped after frame {comparison.last_frame}: {dissector.problem}"
    return comparison
