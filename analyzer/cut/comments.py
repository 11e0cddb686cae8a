# SPDX-License-Identifier: Apache-2.0
"""Verdicts and findings as comments of packets, and server names, which Wireshark shows and filters.

A comment begins with the verdicts on its packet, in the words of docs/verdicts.md with blanks, as in `fast retransmission,
downstream`. The first frame of a finding has its title and code. The last part is the number of the frame in the
input, as in `original frame 149`, because frames of a cut have others.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from itertools import chain
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.cut.choice import files_of_interfaces

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Comments = tuple[bytes, list[bytes]]  # file and frame of each, texts
NO_COMMENTS: Comments = (b"", [])
COLUMNS = ("capture", "frame", "kind", "place", "spurious", "detail")
COMMENT_MAX = 4096  # bytes, as COMMENT_SIZE_MAX of the core
NAME_BLOCK, NAME_IPV4, NAME_IPV6 = 4, 1, 2
NAME_MAX = 255
NAMES_MAX = 100_000


def verdict_text(kind: str, place: str | None, spurious: bool | None, detail: str | None) -> str:
    """Returns a verdict as text.

    >>> verdict_text("fast_retransmission", "downstream", False, None)
    'fast retransmission, downstream'
    """
    return ", ".join(filter(None, (kind.replace("_", " "), "spurious" if spurious else None, place, detail)))


def verdicts_of(trace: Trace, files: list[int], details: bool) -> Iterator[tuple[int, int, str]]:
    """Yields file, frame and text of each verdict on a packet."""
    columns = (trace.events.column(name) for name in COLUMNS)
    for capture, frame, kind, place, spurious, detail in zip(*columns, strict=True):
        if capture is not None and frame is not None and kind is not None:
            yield files[capture], frame, verdict_text(kind, place, spurious, detail if details else None)


def findings_of(trace: Trace, files: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yields file, first frame, and title and code of each finding."""
    from wiretale.analyzer.findings.registry import RULES

    codes = trace.findings.column("code")
    for row in trace.finding_frames.rows():
        if row["role"] == "first":
            code = codes[row["finding"] - 1]
            yield files[row["capture"]], row["frame"], f"finding: {RULES[code].title} ({code})"


def comments_of(trace: Trace, details: bool = True) -> Comments:
    """Returns the comments of a trace; `details` of verdicts may contain addresses."""
    files = files_of_interfaces(trace)
    texts: dict[tuple[int, int], dict[str, None]] = {}
    for file, frame, text in (*verdicts_of(trace, files, details), *findings_of(trace, files)):
        texts.setdefault((file, frame), {})[text] = None
    places = sorted(texts)
    lines = (f"{'; '.join(texts[place])}; original frame {place[1]}" for place in places)
    return (
        array("Q", chain.from_iterable(places)).tobytes(),
        [shortened(line.encode(errors="replace")) for line in lines],
    )


def shortened(text: bytes) -> bytes:
    """Returns at most COMMENT_MAX bytes of UTF-8, without a part of a character at the end."""
    return text if len(text) <= COMMENT_MAX else text[:COMMENT_MAX].decode(errors="ignore").encode()


def server_names(trace: Trace) -> dict[str, str]:
    """Returns the name of each server, by address: that of its first flow with one that is no DNS question."""
    flows = trace.flows
    names: dict[str, str] = {}
    columns = [flows.column(name) for name in ("destination", "server_name", "application")]
    for address, name, application in zip(*columns, strict=True):
        if name and address and application not in ("dns", "mdns", "llmnr") and len(names) < NAMES_MAX:
            names.setdefault(str(address), name)
    return names


def padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def name_record(address: str, name: str) -> bytes:
    """Returns a record of a name resolution block."""
    parsed: Any = ip_address(address)
    value = parsed.packed + name.encode(errors="replace")[:NAME_MAX] + b"\0"
    return struct.pack("<HH", NAME_IPV4 if parsed.version == 4 else NAME_IPV6, len(value)) + padded(value)


def name_block(names: Iterable[tuple[str, str]]) -> bytes:
    """Returns a name resolution block; no bytes if there are no names."""
    records = b"".join(name_record(*pair) for pair in names)
    if not records:
        return b""
    length = 12 + len(records) + 4
    return struct.pack("<II", NAME_BLOCK, length) + records + struct.pack("<II", 0, length)
