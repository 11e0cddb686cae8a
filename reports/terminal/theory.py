# SPDX-License-Identifier: Apache-2.0
"""What a link can carry, in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from typing import IO, Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.theory import Link
from wiretale.analyzer.units import UNKNOWN, show_rate
from wiretale.reports.terminal.analyze import make_console

Figures = dict[str, Any]
Line = tuple[str, Callable[[Figures], str]]


def count(name: str) -> Callable[[Figures], str]:
    """A whole number."""
    return lambda figures: f"{figures[name]:,}" if name in figures else UNKNOWN


def real(name: str, digits: int, unit: str = "", factor: float = 1) -> Callable[[Figures], str]:
    """A number with digits and unit."""
    return lambda figures: f"{factor * figures[name]:,.{digits}f}{unit}" if name in figures else UNKNOWN


def streamed(name: str, digits: int) -> Callable[[Figures], str]:
    """A number of TCP's stream."""
    return lambda figures: f"{figures['stream'][name]:,.{digits}f}" if "stream" in figures else UNKNOWN


FRAME_LINES: tuple[Line, ...] = (
    ("payload a frame", count("payload_per_frame")),
    ("extra bytes a frame", count("extra_bytes_per_frame")),
    ("bytes on the wire a frame", count("wire_bytes_per_frame")),
    ("frames/s, whole ones", count("frames_per_second")),
    ("maximum payload, MB/s", real("max_payload_mb_per_s", 3)),
    ("maximum payload, bit/s", lambda figures: show_rate(figures["max_payload_bps"])),
    ("efficiency", real("efficiency", 2, "%", 100)),
    ("largest payload without fragments", count("largest_unfragmented_payload")),
)
BLOCK_LINES: tuple[Line, ...] = (
    ("frames a block", count("frames_per_block")),
    ("of them IP fragments", count("fragments_per_block")),
    ("bytes on the wire a block", count("wire_bytes_per_block")),
    ("maximum blocks/s", real("max_blocks_per_s", 1)),
    ("maximum payload, MB/s", real("block_payload_mb_per_s", 3)),
    ("efficiency", real("block_efficiency", 2, "%", 100)),
)
STREAM_LINES: tuple[Line, ...] = (
    ("frames a block, on average", streamed("frames_per_block", 3)),
    ("bytes on the wire a block", streamed("wire_bytes_per_block", 1)),
    ("maximum blocks/s", streamed("max_blocks_per_s", 1)),
)


def figures_grid(title: str, protocols: Sequence[Figures], names: Sequence[str], lines: Sequence[Line]) -> Grid:
    """A table of figures, a column for each protocol."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column(Text(title), overflow="fold")
    for name in names:
        grid.add_column(name.upper(), justify="right", overflow="fold")
    for label, cell in lines:
        cells = [cell(figures) for figures in protocols]
        if any(text != UNKNOWN for text in cells):
            grid.add_row(label, *cells)
    return grid


def heading(link: Link) -> Text:
    """What is computed."""
    more = f", {link.tcp_options} bytes of TCP options" if link.tcp_options else ""
    return Text(f"{show_rate(link.bps)}, MTU {link.mtu}, {link.framing}, IPv{link.ip}{more}", style="bold")


def theory_text(link: Link, told: Figures) -> list[Text | Grid]:
    """The parts to print, of what reports/export/theory.py makes."""
    names = [name for name in ("tcp", "udp") if name in told]
    protocols = [told[name] for name in names]
    parts: list[Text | Grid] = [heading(link), Text(), figures_grid("Full frames", protocols, names, FRAME_LINES)]
    block = told["block_bytes"]
    if block is not None:
        parts += [Text(), figures_grid(f"Blocks of {block:,} bytes, each sent alone", protocols, names, BLOCK_LINES)]
    parts += [Text(told[name]["block_problem"], style="yellow") for name in names if "block_problem" in told[name]]
    if block is not None and "tcp" in names:
        title = f"Blocks of {block:,} bytes, one behind the other"
        parts += [Text(), figures_grid(title, [told["tcp"]], ["tcp"], STREAM_LINES)]
    return parts


def print_theory(link: Link, told: Figures, out: IO[str]) -> None:
    """Writes it; in colour on a terminal."""
    plain = out if out.isatty() else StringIO()
    console = make_console(plain)
    for part in theory_text(link, told):
        console.print(part)
    if isinstance(plain, StringIO):
        out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())
