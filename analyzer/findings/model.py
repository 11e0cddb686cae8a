# SPDX-License-Identifier: Apache-2.0
"""One finding, and what rules need to make one: sums and names from the tables."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

HARMLESS = -1.0  # impact of what is odd about the capture and makes nothing doubtful: it comes last
SHOWN = 5  # rows that a sentence or its evidence names


class Finding(NamedTuple):
    """A row of the findings table (docs/tables.md)."""

    code: str
    severity: str
    scope: str
    sentence: str
    advice: str
    flow: int | None = None
    cost: float | None = None
    cost_unit: str | None = None
    evidence: str | None = None
    filter: str | None = None
    impact: float = 0.0  # share of the whole trace that it costs: the order within a severity; not in the table

    def row(self) -> tuple[str, str, str, int, str, float, str | None, str | None, str | None, str | None]:
        """As the core takes it: -1 and NaN for null."""
        flow = -1 if self.flow is None else self.flow
        cost = math.nan if self.cost is None else self.cost
        return (
            *(self.code, self.severity, self.scope, flow, self.sentence),
            *(cost, self.cost_unit, self.evidence, self.advice, self.filter),
        )


Rule = Callable[["Trace"], Iterator[Finding]]


def total(table: Table, column: str) -> int:
    """The sum of a column; nulls count nothing."""
    return table.total(column)


def rows_with(table: Table, column: str) -> list[int]:
    """Numbers of the rows in which a column is neither null nor 0 nor false."""
    return [number for number, _ in table.nonzero([column])[column]]


def row_at(table: Table, number: int) -> dict[str, Any]:
    """One row."""
    return table.rows(number, number + 1)[0]


def end_named(address: str, port: int | None) -> str:
    """One end of a flow as people write it: `10.0.0.1:80`, `[2001:db8::1]:80`."""
    shown = f"[{address}]" if ":" in address and port is not None else address
    return shown if port is None else f"{shown}:{port}"


def named(row: dict[str, Any]) -> str:
    """A flow or a direction as people write it."""
    return f"{end_named(row['source'], row['source_port'])} → {end_named(row['destination'], row['destination_port'])}"


def frame_span(row: dict[str, Any]) -> str:
    """Where a flow or a datagram lies in its file: `frames 3–70`, `frame 3`."""
    first, last = row["first_frame"], row["last_frame"]
    return f"frame {first}" if first == last else f"frames {first}–{last}"


def stalls_of(row: dict[str, Any]) -> list[tuple[int, int]]:
    """The frames with which the longest silences of a direction began and ended, the longest first."""
    pairs = [pair.split("-") for pair in (row["stall_frames"] or "").split(", ") if pair]
    return [(int(first), int(last)) for first, last in pairs]


def stalls_named(stalls: Sequence[tuple[int, int]], count: int) -> str:
    """Some silences of `count` in all: `frames 340 and 341; frames 90 and 120; 2 more stalls`."""
    shown = [f"frames {first} and {last}" for first, last in stalls]
    return "; ".join([*shown, f"{plural(count - len(stalls), 'more stall')}"] if count > len(stalls) else shown)


def flows_named(trace: Trace, numbers: Sequence[int]) -> str:
    """The first few flows by name."""
    shown = "; ".join(f"flow {n} {named(row_at(trace.flows, n))}" for n in numbers[:SHOWN])
    return shown + (f"; and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else "")


@cache
def word_numbers() -> dict[str, int]:
    """The number that each word of the events table is packed as."""
    return {word: number for number, word in enumerate(_core.vocabulary())}


#: columns of the events table that are read in bulk, and the code of each
EVENT_CODES = {"flow": "I", "direction": "B", "kind": "B", "place": "B", "spurious": "B"}


def events_of(trace: Trace, flows: list[int], names: Iterable[str]) -> list[array[Any]]:
    """Columns of the events of some flows (ascending): small numbers for words, and times and frames as doubles."""
    codes = [(name, EVENT_CODES.get(name, "d"), 0, 1) for name in names]
    packed = trace.events.packed_columns(codes, flows)
    return [array(code, data) for (_, code, _, _), data in zip(codes, packed, strict=True)]


def rows_of_kind(events: Table, kind: str, most: int) -> list[dict[str, Any]]:
    """The first rows of a kind of the events table."""
    packed, number = events.packed("kind", "B"), word_numbers()[kind]
    found: list[int] = []
    while len(found) < most:
        following = packed.find(number, found[-1] + 1 if found else 0)
        if following < 0:
            break
        found.append(following)
    return [row_at(events, i) for i in found]


def frames_of_kinds(
    trace: Trace, flows: Iterable[int], kinds: Iterable[str], place: str | None = None, needless: bool = False
) -> dict[tuple[int, int], list[int]]:
    """The first frames of events of these kinds (and place; or proven needless), for each (flow, direction) of these flows.

    Events stay packed: as Python objects, millions of them would take more memory than the analysis.
    """
    chosen = sorted(set(flows))
    numbers = word_numbers()
    wanted, where = {numbers[kind] for kind in kinds}, place and numbers[place]
    columns = zip(*events_of(trace, chosen, ("flow", "direction", "kind", "place", "spurious", "frame")), strict=True)
    frames: dict[tuple[int, int], list[int]] = {}
    for flow, direction, what, there, spurious, frame in columns:
        if what not in wanted or (place and there != where) or (needless and spurious != 1):
            continue
        shown = frames.setdefault((flow, direction), [])
        if len(shown) < SHOWN:
            shown.append(int(frame))
    return frames


def frames_named(frames: Sequence[int], count: int) -> str | None:
    """Some frames of `count` in all: `frames 4, 7, 9 and 12 more`."""
    more = f" and {count - len(frames):,} more" if count > len(frames) else ""
    return f"{'frame' if count == 1 else 'frames'} {', '.join(map(str, frames))}{more}" if frames else None
