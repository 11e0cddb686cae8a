# SPDX-License-Identifier: Apache-2.0
"""The true fate of each packet of a sample, and the file that holds it.

The truth comes from the script that loses, delays or copies the packets, never from an analyzer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from write_captures import Record

RETRANSMISSIONS = ("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission")
TCP_COLUMNS = (
    "unique_bytes",
    "retransmissions",
    "fast_retransmissions",
    "timeout_retransmissions",
    "probe_retransmissions",
    "spurious_retransmissions",
    "retransmitted_bytes",
    "out_of_order",
    "network_duplicates",
    "mirror_duplicates",
    "lost_upstream",
    "lost_downstream",
    "unseen_bytes",
    "duplicate_acks",
    "zero_windows",
    "window_full",
    "window_probes",
    "keep_alives",
)
DATAGRAM_COLUMNS = ("fragments", "fragmented_datagrams", "incomplete_datagrams")
BLOCK_COLUMNS = ("blocks", "blocks_lost", "blocks_out_of_order", "blocks_duplicate")

# Columns that count a verdict and are not its plural; retransmissions count in several columns.
COLUMN_OF = {
    "out_of_order": "out_of_order",
    "window_full": "window_full",
    "datagram_incomplete": "incomplete_datagrams",
    "block_out_of_order": "blocks_out_of_order",
    "block_duplicate": "blocks_duplicate",
}


@dataclass(frozen=True)
class Verdict:
    """The truth about one packet."""

    word: str
    bytes: int = 0  # payload that the verdict covers
    place: str = ""  # of a retransmission: "upstream" or "downstream" of the capture point
    spurious: bool = False  # of a retransmission: the receiver had the bytes, or they were in flight
    blocks: int = 0  # lost ones
    missing: str = ""  # byte ranges of an incomplete datagram

    def fields(self) -> dict[str, object]:
        """Returns the verdict's fields in the truth file."""
        fields: dict[str, object] = {"verdict": self.word}
        if self.word in RETRANSMISSIONS:
            fields |= {"place": self.place, "spurious": self.spurious}
        extra = {"bytes": self.bytes, "blocks": self.blocks, "missing": self.missing}
        return fields | {name: value for name, value in extra.items() if value}

    def columns(self) -> list[tuple[str, int]]:
        """Returns the columns of the packet's direction that count it, with the amounts."""
        if self.word == "block_lost":
            return [("blocks_lost", self.blocks)]
        if self.word not in RETRANSMISSIONS:
            column = COLUMN_OF.get(self.word, f"{self.word}s")
            return [(column, 1)] if column in (*TCP_COLUMNS, *COLUMN_OF.values()) else []
        counted = ["retransmissions"]
        counted += [] if self.word == "retransmission" else [self.word + "s"]
        counted += ["spurious_retransmissions"] if self.spurious else [f"lost_{self.place}"]
        # By schema.h, only bytes that passed the capture point before count.
        return [(name, 1) for name in counted] + [("retransmitted_bytes", self.bytes * (self.place == "downstream"))]


@dataclass
class Sighting:
    """A stored packet and its truth."""

    record: Record
    flow: int
    direction: int
    verdict: Verdict | None = None
    payload: int = 0  # bytes


@dataclass
class Truth:
    """The content of a sample's truth file."""

    about: str
    seen: list[Sighting]
    # Columns that no single packet determines, such as unique_bytes: {(flow, direction): {column: value}}.
    sums: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    # Further tables, such as datagrams: {name: rows}.
    tables: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def frames(self) -> dict[str, dict[str, object]]:
        """Returns every packet with a verdict, by its frame number."""
        return {
            str(number): {**s.verdict.fields(), "flow": s.flow, "direction": s.direction}
            for number, s in enumerate(self.seen, 1)
            if s.verdict
        }

    def counts(self) -> list[dict[str, int]]:
        """Returns the sums of each direction that has any; a listed column is complete, with zeros."""
        sums = {key: Counter(columns) for key, columns in self.sums.items()}
        for s in self.seen:
            if s.verdict:
                for column, value in s.verdict.columns():
                    sums[s.flow, s.direction][column] += value
                if s.verdict.word == "acked_unseen_segment":  # the missing data belongs to the other direction
                    sums[s.flow, 1 - s.direction]["unseen_bytes"] += s.verdict.bytes
        return [{"flow": key[0], "direction": key[1], **columns} for key, columns in sorted(sums.items())]

    def write(self, capture: Path) -> None:
        """Writes NAME.truth.json beside NAME.pcap, one line per packet, direction and row."""
        lines = [f'"about": {json.dumps(self.about, ensure_ascii=False)}']
        frames = (f'    "{number}": {json.dumps(frame)}' for number, frame in self.frames().items())
        lines.append('"frames": ' + enclosed("{}", frames))
        tables: dict[str, Sequence[Mapping[str, object]]] = {"counts": self.counts(), **self.tables}
        for name, rows in tables.items():
            lines.append(f'"{name}": ' + enclosed("[]", (f"    {json.dumps(row)}" for row in rows)))
        text = enclosed("{}", (f"  {line}" for line in lines), end="")
        capture.with_suffix(".truth.json").write_text(text + "\n", encoding="utf-8")


def enclosed(brackets: str, lines: Iterable[str], end: str = "  ") -> str:
    """Joins lines with commas between brackets."""
    inside = ",\n".join(lines)
    return f"{brackets[0]}\n{inside}\n{end}{brackets[1]}" if inside else brackets
