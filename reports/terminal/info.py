# SPDX-License-Identifier: Apache-2.0
"""`wiretale info`: file and interface metadata, and the sums over their packets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate

if TYPE_CHECKING:
    from wiretale.analyzer.rows import InterfaceRow
    from wiretale.analyzer.table import Table

LINES = (
    ("format", "format"),
    ("compression", "compression"),
    ("interface", "name"),
    ("link type", "link_type_name"),
    ("snap length", "snaplen"),
    ("hardware", "hardware"),
    ("system", "system"),
    ("written by", "capture_application"),
    ("capture filter", "capture_filter"),
    ("comment", "comment"),
    ("damage", "damage"),
)
COUNTS = (
    ("packets", "packets"),
    ("truncated (snap length)", "truncated_packets"),
    ("with a comment", "packet_comments"),
    ("received", "received"),
    ("dropped by the kernel", "dropped_kernel"),
    ("dropped by the interface", "dropped_interface"),
    ("dropped by the capturing program", "dropped_program"),
    ("time steps backward", "backward_steps"),
    ("without a time", "time_unknown"),
    ("not IP", "not_ip"),
    ("not understood", "not_understood"),
    ("not decoded", "undecoded_packets"),
    ("records cut short", "lengths_cut"),
    ("malformed", "malformed"),
)


def info_lines(row: InterfaceRow) -> list[tuple[str, str]]:
    """Returns label and value of each field that is known."""
    fields: Mapping[str, object] = row
    lines = [(label, printable(str(fields[name]))) for label, name in LINES if fields[name] is not None]
    for label, name in COUNTS:
        count = integer_in(row, name)
        if count or name == "packets":
            lines.append((label, show_count(count)))
    lines.append(("frame bytes", f"{show_bytes(row['bytes'])} ({show_bytes(row['captured_bytes'])} captured)"))
    first_ns, last_ns = row["first_ns"], row["last_ns"]
    if first_ns is not None and last_ns is not None:
        span = last_ns - first_ns
        lines += [("first", show_time(first_ns)), ("last", show_time(last_ns))]
        lines.append(("duration", show_duration(span)))
        if span:
            lines.append(("rate of frames", show_rate(row["bytes"] * 8e9 / span)))
    return lines


def print_info(captures: Table[InterfaceRow], out: IO[str]) -> None:
    """Prints a paragraph for each input interface."""
    for number, row in enumerate(captures.rows()):
        out.write("\n" * bool(number) + printable(row["file"]) + "\n")
        for label, value in info_lines(row):
            out.write(f"  {label + ':':26}{value}\n")
