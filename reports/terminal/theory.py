# SPDX-License-Identifier: Apache-2.0
"""`wiretale theory`: the figures of export/theory.py as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from rich.console import RenderableType
from rich.text import Text

from wiretale.analyzer.theory.capacity import Link
from wiretale.analyzer.units import UNKNOWN, show_bytes, show_duration, show_rate, show_share
from wiretale.reports.terminal.console import print_parts
from wiretale.reports.terminal.fitted import Column, fitted

Figures = dict[str, Any]
Line = tuple[str, Callable[[Figures], str]]


def real(name: str, digits: int = 0, unit: str = "", factor: float = 1) -> Callable[[Figures], str]:
    """Returns the cell of a figure, with digits and unit; a whole number without digits."""
    return lambda figures: f"{factor * figures[name]:,.{digits}f}{unit}" if name in figures else UNKNOWN


def streamed(name: str, digits: int) -> Callable[[Figures], str]:
    """Returns the cell of a figure of blocks in a TCP stream."""
    return lambda figures: real(name, digits)(figures.get("stream", {}))


FRAME_LINES: tuple[Line, ...] = (
    ("payload per frame", real("payload_per_frame")),
    ("extra bytes per frame", real("extra_bytes_per_frame")),
    ("bytes on the wire per frame", real("wire_bytes_per_frame")),
    ("time on the link per frame, µs", real("seconds_per_frame", 1, factor=1e6)),
    ("full frames/s", real("frames_per_second")),
    ("maximum payload, MB/s", real("max_payload_mb_per_s", 3)),
    ("maximum payload, bit/s", lambda figures: show_rate(figures["max_payload_bps"])),
    ("efficiency", real("efficiency", 2, "%", 100)),
    ("largest payload without fragments", real("largest_unfragmented_payload")),
)
BLOCK_LINES: tuple[Line, ...] = (
    ("frames per block", real("frames_per_block")),
    ("of them IP fragments", real("fragments_per_block")),
    ("bytes on the wire per block", real("wire_bytes_per_block")),
    ("maximum blocks/s", real("max_blocks_per_s", 1)),
    ("maximum payload, MB/s", real("block_payload_mb_per_s", 3)),
    ("efficiency", real("block_efficiency", 2, "%", 100)),
)
STREAM_LINES: tuple[Line, ...] = (
    ("frames per block, on average", streamed("frames_per_block", 3)),
    ("bytes on the wire per block", streamed("wire_bytes_per_block", 1)),
    ("maximum blocks/s", streamed("max_blocks_per_s", 1)),
)


def figures_grid(
    title: str, figures: Figures, names: Sequence[str], lines: Sequence[Line], width: int
) -> RenderableType:
    """Returns a table with a column for each protocol, without lines that no protocol has."""
    rows = [(label, *(cell(figures[name]) for name in names)) for label, cell in lines]
    filled = [row for row in rows if any(text != UNKNOWN for text in row[1:])]
    return fitted([Column(title), *(Column(name.upper(), True) for name in names)], filled, width)


def tcp_sentence(figures: Figures) -> str:
    """Returns what TCP carries at most, with and without timestamps."""
    most, timed_bps = show_rate(figures["tcp"]["max_payload_bps"]), figures["tcp_with_timestamps_bps"]
    if timed_bps is None:
        return f"TCP carries {most} of payload at most."
    timed = f"{show_rate(timed_bps)} of payload at most with TCP timestamps, the default of most hosts"
    return f"TCP carries {timed}; {most} without."


def path_sentences(path: Figures) -> Iterator[str]:
    """Yields what a round trip, a window and losses permit."""
    rtt = show_duration(path["rtt_seconds"] * 1e9)
    yield f"Round trip of {rtt}: {show_bytes(round(path['bytes_in_flight']))} must be in flight to fill the link."
    if path["window_bps"] is not None:
        window = show_bytes(path["window_bytes"])
        yield f"Window of {window}: {show_rate(path['window_bps'])} at most (window / round trip)."
    if path["loss_bps"] is not None:
        yield (
            f"Loss of {show_share(path['loss'], 1)}: about {show_rate(path['loss_bps'])} for Reno (Mathis et al. 1997: "
            "MSS / RTT × √1.5 / √loss); CUBIC and BBR can exceed it."
        )
    rate = show_rate(path["bound_bps"])
    if path["bound_by"] == "loss":
        yield f"So one Reno connection carries about {rate}: the losses limit it."
    else:
        yield f"So one connection carries {rate} at most: the {path['bound_by']} limits it."


def theory_parts(link: Link, figures: Figures, width: int) -> Iterator[RenderableType]:
    """Yields the link, then a table for each way of sending."""
    names = [name for name in ("tcp", "udp") if name in figures]
    options = f", {link.tcp_options} bytes of TCP options" if link.tcp_options else ""
    yield Text(f"{show_rate(link.bps)}, MTU {link.mtu}, {link.framing}, IPv{link.ip}{options}", style="bold")
    block = figures["block_bytes"]
    if "tcp" in figures:
        yield Text(tcp_sentence(figures))
    if figures["path"]:
        yield from map(Text, path_sentences(figures["path"]))
    yield Text()
    yield figures_grid("Full frames", figures, names, FRAME_LINES, width)
    if block is None:
        return
    yield Text()
    yield figures_grid(f"Blocks of {block:,} bytes, each sent alone", figures, names, BLOCK_LINES, width)
    for name in names:
        if "block_problem" in figures[name]:
            yield Text(figures[name]["block_problem"], style="yellow")
    if "tcp" in names:
        yield Text()
        yield figures_grid(f"Blocks of {block:,} bytes, back to back", figures, ["tcp"], STREAM_LINES, width)


def print_theory(link: Link, figures: Figures, out: IO[str]) -> None:
    """Prints the figures."""
    print_parts(out, lambda console: theory_parts(link, figures, console.width))
