# SPDX-License-Identifier: Apache-2.0
"""The data that the page asks for while it is open, in the formats of the data inside a report.

Packets are packed by the core (analyzer/core/export/export.h), frames as in reports/html/frames.py, so that the page has one
decoder of each.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.frames.dissect import Tree, dissect
from wiretale.analyzer.frames.raw_frames import RawFrame
from wiretale.analyzer.index.capture_index import CaptureIndex
from wiretale.analyzer.index.packet_store import PACKET_COLUMNS
from wiretale.analyzer.index.queries import Queries
from wiretale.reports.html.analyze import TABLES, fields
from wiretale.reports.html.frames import BYTES_KEPT, described
from wiretale.reports.html.packing import TIMES, encoded
from wiretale.reports.html.time_bands import packed_spans, span_fields

CAPTURE, FRAME = map(PACKET_COLUMNS.index, ("capture", "frame"))
FRAME_ROOM = 16 * 2**20  # bytes of a frame
STREAM_FRAMES, STREAM_ROOM = 400, 2**20  # packets with payload, bytes of their frames
NUMBER_MOST = 2**62  # a number of the page


def number(query: Mapping[str, str], name: str, otherwise: int | None = None) -> int | None:
    """Returns a whole number of a query. UsageError if it is something else."""
    text = query.get(name)
    if text is None:
        return otherwise
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or int(digits) > NUMBER_MOST:
        raise UsageError(f"{name}: expected a whole number, found {text[:40]!r}")
    return int(text)


def required(query: Mapping[str, str], name: str) -> int:
    """Returns a number from 0. UsageError if it is missing."""
    value = number(query, name)
    if value is None or value < 0:
        raise UsageError(f"{name}: expected a whole number from 0")
    return value


class Answers:
    """Answers of one index. Each raises UsageError for a wrong query, InputError if a capture is gone or has changed."""

    def __init__(self, index: CaptureIndex) -> None:
        self._index = index
        self._queries = Queries(index)
        self._base_ns: int = index.about["base_ns"]
        self.by_path = {"packets": self.packets, "tables": self.tables, "frame": self.frame, "stream": self.stream}

    def close(self) -> None:
        self._queries.close()

    def _range(self, query: Mapping[str, str]) -> tuple[int | None, int | None]:
        """Returns begin and end in ns since the epoch; the query has them since the base of the page."""
        begin, end = number(query, "from"), number(query, "to")
        return (
            None if begin is None else begin + self._base_ns,
            None if end is None else end + self._base_ns,
        )

    def packets(self, query: Mapping[str, str]) -> dict[str, Any]:
        """flow, from, to: the packets of a flow in a range, or those that stand for them (analyzer/index/queries.py).

        They are packed as in the data of a report (page/numbers.js). `begin` is the time of the first packet of the flow,
        whatever the range.
        """
        self._index.check()
        flow = required(query, "flow")
        begin = self._queries.begin_ns(flow)
        packets = self._queries.packets(flow, *self._range(query))
        rows = _core.packet_rows(packets.rows)
        count, streams = rows.packet_streams([flow], self._base_ns, packets.bucket > 1)
        packed = {name: [len(data), encoded(data)] for name, data in streams.items()}
        return {
            **{"count": count, "flows": [flow], "cut": False, "streams": packed},
            **{"of": packets.of, "bucket": packets.bucket, "begin": None if begin is None else begin - self._base_ns},
        }

    def tables(self, query: Mapping[str, str]) -> dict[str, Any]:
        """flow: series, events and other tables of a flow, and its time spans, packed as in a report; the page has those
        of some flows."""
        self._index.check()
        flow = required(query, "flow")
        packed = {}
        for name, (_, columns) in TABLES.items():
            wire_fields = [
                (column, code, self._base_ns * (column in TIMES), by) for column, code, by in fields(columns)
            ]
            columns_of_fields = zip(wire_fields, self._queries.columns(name, flow, wire_fields), strict=True)
            packed[name] = {column: [code, encoded(data.tobytes())] for (column, code, *_), data in columns_of_fields}
        span_columns = self._queries.columns("time_spans", flow, span_fields(self._base_ns))
        spans = packed_spans(span_columns, self._queries.words("time_spans", "part"))
        return {"tables": packed, "spans": spans, "wire_mss": self._queries.segment_sizes(flow)}

    def _raw(self, interface: int, frame: int) -> RawFrame:
        """Returns a frame, read by the core from a capture file of this frame alone."""
        cut = self._index.cut(interface, frame)
        with tempfile.NamedTemporaryFile(prefix="wiretale-", suffix=".pcap") as file:
            Path(file.name).write_bytes(cut)
            (raw,) = _core.frames([file.name], [1], FRAME_ROOM)
        if raw is None or raw[1] is None:
            raise InputError(f"frame {frame:,} has no packet")
        return RawFrame(interface, frame, *raw[1])

    def stream(self, query: Mapping[str, str]) -> dict[str, Any]:
        """flow, from, to: the first packets with payload of a flow in a range, packed as `packets`, and the bytes of their
        frames, of each `kept`; `of` counts all packets with payload."""
        self._index.check()
        flow = required(query, "flow")
        packets = self._queries.carrying(flow, *self._range(query), STREAM_FRAMES)
        sizes, parts, room = [], [], STREAM_ROOM
        for row in packets.rows:
            raw = self._raw(int(row[CAPTURE] or 0), int(row[FRAME] or 0)).data[:room] if room else b""
            sizes.append(len(raw))
            parts.append(raw)
            room -= len(raw)
        count, streams = _core.packet_rows(packets.rows).packet_streams([flow], self._base_ns)
        packed = {name: [len(data), encoded(data)] for name, data in streams.items()}
        return {
            **{"count": count, "flows": [flow], "cut": False, "streams": packed},
            **{"of": packets.of, "kept": sizes, "bytes": encoded(b"".join(parts)) if parts else ""},
        }

    def frame(self, query: Mapping[str, str]) -> dict[str, Any]:
        """interface, frame, flow: bytes and tshark's tree of a frame, as the frames of a report.

        If the flow is given, tshark reads the beginning of it first, for window scale and relative sequence numbers.
        """
        interface, number_of_frame = required(query, "interface"), required(query, "frame")
        flow = number(query, "flow")
        raw = self._raw(interface, number_of_frame)
        context = self._queries.beginning(flow) if flow is not None else []
        before = [self._raw(*place) for place in context if place[1] < number_of_frame]
        made_by, reason = None, None
        trees: list[Tree] = []
        try:
            made_by, trees = dissect([*before, raw])
        except MissingToolError as error:
            reason = str(error)
        tree = trees[len(before) :]
        data = raw.data[:BYTES_KEPT]
        return {
            "list": [described(raw, len(data), self._base_ns)],
            "bytes": encoded(data),
            "trees": encoded(json.dumps(tree, separators=(",", ":")).encode()),
            "decoded": len(tree),
            "made_by": made_by,
            "reason": reason,
        }
