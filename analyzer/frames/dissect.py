# SPDX-License-Identifier: Apache-2.0
"""Dissects a few frames with tshark into trees of labels, with the bytes that each label is about.

tshark reads a small file with these frames only, never the capture. It renumbers the frames and lacks their
neighbors, so that fields which depend on other frames are left out of the trees: analysis of sequence numbers, times
between frames, references to frames. Frames of the beginning of their connection, given as context, keep window scale
and relative sequence numbers right. Output is limited in time, size, nodes and depth, because the frames may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any
from xml.parsers import expat

from wiretale.analyzer.frames.raw_frames import RawFrame, pcapng
from wiretale.analyzer.printable import printable
from wiretale.analyzer.verify.tshark import Dissector, running

Node = list[Any]  # label, first byte, bytes, and a list of nodes below it if there are any
Tree = list[Node]

SECONDS_MAX = 30
OUTPUT_MAX = 48 * 2**20  # bytes
PIECE = 2**16
NODES_MAX, DEPTH_MAX, LABEL_MAX = 400, 14, 200  # of a frame, of a node, characters
# Each frame by itself: what a reassembly of frames that are not in the small file yields would differ.
PREFERENCES = (
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:TRUE",
)
ABOUT_OTHERS = re.compile(
    r"(eth|ip|ipv6|tcp|udp)\.(stream|completeness|time_relative|time_delta|pdu)"
    r"|tcp\.analysis|_ws\.expert\.|geninfo|frame(\.|$)"
    r"|.*[._](in|to|frame|framenum|frame_number|segment|fragment|time|delta|response_time|resptime)$"
)


class TreeBuilder:
    """Builds the trees of PDML while it is parsed. Nodes without a label, such as tshark's containers, pass their nodes on."""

    def __init__(self, frames: Sequence[RawFrame]) -> None:
        self._frames = frames
        self._nodes = 0
        # A node, the list of its nodes, and whether the element made them; no node below one that is left out.
        self._open: list[tuple[Node | None, Tree, bool]] = []
        self.trees: list[Tree] = []
        self.made_by = "tshark"
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "pdml":
            self.made_by = printable(attributes.get("creator", "")[:40]).replace("wireshark/", "tshark ")
        elif name == "packet":
            self._nodes, self._open = 0, [(["", 0, 0], [], True)]
        elif name in ("proto", "field") and self._open:
            self._open.append(self._entered(attributes))

    def _entered(self, attributes: dict[str, str]) -> tuple[Node | None, Tree, bool]:
        """Returns the entry of an element; that of a container without a meaning is the one above."""
        above, below, _ = self._open[-1]
        if attributes.get("name") == "fake-field-wrapper":
            return above, below, False
        label = attributes.get("showname") or attributes.get("show") or attributes.get("name", "")
        hidden = attributes.get("hide") == "yes" or is_about_others(attributes) or not label
        if above is None or hidden or self._nodes >= NODES_MAX or len(self._open) > DEPTH_MAX:
            return None, [], False
        self._nodes += 1
        node: Node = [shortened(label), *self._place(attributes)]
        below.append(node)
        return node, [], True

    def _place(self, attributes: dict[str, str]) -> tuple[int, int]:
        """Returns the bytes of an element; none if the frame does not have them there, such as those of decoded data."""
        frame = self._frames[len(self.trees)] if len(self.trees) < len(self._frames) else None
        start, size = (
            int(attributes.get(name, "")) if attributes.get(name, "").isdigit() else 0 for name in ("pos", "size")
        )
        if frame is None or size == 0 or start + size > len(frame.data):
            return 0, 0
        value = attributes.get("unmaskedvalue") or attributes.get("value")
        if value and value.lower() != frame.data[start : start + size].hex():
            return 0, 0
        return start, size

    def _end(self, name: str) -> None:
        if name not in ("packet", "proto", "field") or not self._open:
            return
        node, below, made = self._open.pop()
        if name == "packet":
            self.trees.append(below)
        elif node is None or not made:
            return
        elif below:
            node.append(below)
        elif node[2] == 0 and node[0] == "Timestamps":  # its fields are about other frames
            self._open[-1][1].remove(node)


def is_about_others(attributes: dict[str, str]) -> bool:
    """Returns whether a field is computed from other frames, which the small file lacks."""
    generated = "value" not in attributes or attributes.get("size") == "0"
    return generated and ABOUT_OTHERS.match(attributes.get("name", "")) is not None


def shortened(label: str) -> str:
    """Returns a label in one line of bounded length."""
    text = printable(" ".join(label.split()))
    return text if len(text) <= LABEL_MAX else text[: LABEL_MAX - 1] + "…"


def command(program: str, path: Path) -> list[str]:
    """Returns the arguments of tshark."""
    return [
        program,
        "-n",
        "-r",
        str(path),
        "-T",
        "pdml",
        *(word for preference in PREFERENCES for word in ("-o", preference)),
    ]


def dissect(frames: Sequence[RawFrame]) -> tuple[str, list[Tree]]:
    """Returns name and version of tshark, and the trees of the first frames: of all if it does not fail.

    Raises MissingToolError without tshark.
    """
    builder, read = TreeBuilder(frames), 0
    program = Dissector().program
    with TemporaryDirectory(prefix="wiretale-") as folder:
        path = Path(folder) / "frames.pcapng"
        path.write_bytes(pcapng(frames))
        with running(*command(program, path)) as run:
            timer = Timer(SECONDS_MAX, run.process.kill)
            timer.start()
            try:
                while read < OUTPUT_MAX and (piece := run.lines.read(PIECE)):
                    builder.parser.Parse(piece)
                    read += len(piece)
            except expat.ExpatError:
                pass  # the trees before it are complete
            finally:
                timer.cancel()
    return builder.made_by, builder.trees[: len(frames)]
