# SPDX-License-Identifier: Apache-2.0
"""Every flow of a capture as columns of the page: some 13 bytes each, so that a search in the page reaches all of them."""

from __future__ import annotations

import shlex
from array import array
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.time import show_time
from wiretale.reports.html.packing import encoded, numbered_words
from wiretale.reports.phrases import problem_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.trace import Trace

FLOWS_MOST = 1_000_000  # in the page; of more, the largest
REAL_BYTES = 3  # kept of a float32: five digits
# Name in the page, column of the flows table, array code.
FIELDS = (
    ("number", "flow", "I"),
    ("protocol", "protocol", "B"),
    ("protocol_number", "protocol_number", "B"),
    ("ip_version", "ip_version", "B"),
    ("application", "application", "B"),
    ("state", "state", "B"),
    ("source_port", "source_port", "I"),
    ("destination_port", "destination_port", "I"),
    ("packets", "packets", "d"),
    ("bytes", "wire_bytes", "d"),
)
WORDS = ("protocol", "application", "state")

Column = list[Any]


def planes(code: str, data: bytes, kept: int = 0) -> Column:
    """A column as the first bytes of all values, then the second ones and so on (the highest first): like bytes side by
    side compress better. Of a float the lowest bytes can be left out."""
    size = array(code).itemsize
    order = range(size - 1, size - 1 - (kept or size), -1)
    return [code, len(order), encoded(b"".join(data[place::size] for place in order))]


def texts(values: Sequence[str | None]) -> tuple[list[str], array[int]]:
    """Different texts, and of each value the number of its text; 0 is the empty text."""
    numbers: dict[str | None, int] = {"": 0, None: 0}
    chosen = array("I", [numbers.setdefault(value, len(numbers) - 1) for value in values])
    return [text for text in numbers if text is not None], chosen


def chosen_flows(trace: Trace) -> list[int]:
    """All flows, or the largest of more than the page takes, ascending."""
    count = len(trace.flows)
    if count <= FLOWS_MOST:
        return list(range(count))
    sizes = trace.flows.column("wire_bytes")
    return sorted(nlargest(FLOWS_MOST, range(count), key=sizes.__getitem__))


def of_chosen(values: Sequence[Any], chosen: Sequence[int]) -> Sequence[Any]:
    """Values of these flows."""
    return values if len(values) == len(chosen) else [values[flow] for flow in chosen]


def greater(values: array[Any]) -> array[float]:
    """Of the two directions of each flow the greater value; NaN where neither has one."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return array("f", [there if there >= back or back != back else back for there, back in pairs])


def measured_columns(trace: Trace, chosen: list[int], base_ns: int) -> dict[str, Column]:
    """Throughput, round trip, duration, start; and whether the second direction carries more."""
    of_flows = [
        ("handshake_rtt_ns", "f", 0, 1),
        ("first_ns", "d", base_ns, 1_000_000),
        ("last_ns", "d", base_ns, 1_000_000),
    ]
    handshakes, firsts, lasts = (
        array(code, data)
        for (_, code, *_), data in zip(of_flows, trace.flows.packed_columns(of_flows, chosen), strict=True)
    )
    of_directions = [("throughput_bps", "f", 0, 1), ("rtt_ns_median", "f", 0, 1), ("payload_bytes", "d", 0, 1)]
    rates, round_trips, payload = (
        array(code, data)
        for (_, code, *_), data in zip(
            of_directions, trace.directions.packed_columns(of_directions, chosen), strict=True
        )
    )
    medians = greater(round_trips)
    rtts = array("f", [known if known == known else median for known, median in zip(handshakes, medians, strict=True)])
    lasted = array("f", [last - first for first, last in zip(firsts, lasts, strict=True)])
    main = bytes([back > there for there, back in zip(payload[::2], payload[1::2], strict=True)])
    return {
        "throughput": planes("f", greater(rates).tobytes(), REAL_BYTES),
        "rtt": planes("f", rtts.tobytes(), REAL_BYTES),
        "lasted": planes("f", lasted.tobytes(), REAL_BYTES),
        "start": planes("d", array("d", [first // 1 for first in firsts]).tobytes()),
        "main": planes("B", main),
    }


def sparse_troubles(trace: Trace, chosen: list[int]) -> list[dict[str, Any]]:
    """Each kind of trouble: word, unit, the flows that had it and how much."""
    held = set(chosen)
    found = []
    for word, unit, sums in problem_sums(trace):
        flows = sorted(held & sums.keys())
        counts = array("d", [sums[flow] for flow in flows])
        found.append(
            {
                "word": word,
                "unit": unit,
                "flows": planes("I", array("I", flows).tobytes()),
                "counts": planes("d", counts.tobytes()),
            }
        )
    return found


def flow_columns(trace: Trace, base_ns: int) -> dict[str, Any]:
    """All that the page lists, searches and filters by."""
    chosen = chosen_flows(trace)
    packed = trace.flows.packed_columns([(column, code, 0, 1) for _, column, code in FIELDS], chosen)
    columns = {name: planes(code, data) for (name, _, code), data in zip(FIELDS, packed, strict=True)}
    ends = [of_chosen(trace.flows.column(name), chosen) for name in ("source", "destination")]
    addresses, numbers = texts([*ends[0], *ends[1]])
    paths, path_numbers = texts(of_chosen(trace.flows.column("path"), chosen))
    fragmented = trace.datagrams.rows_by_flow(len(trace.flows))
    columns |= {
        "source": planes("I", numbers[: len(chosen)].tobytes()),
        "destination": planes("I", numbers[len(chosen) :].tobytes()),
        "path": planes("I", path_numbers.tobytes()),
        "fragmented": planes("B", bytes([fragmented[flow] > 0 for flow in chosen])),
        **measured_columns(trace, chosen, base_ns),
    }
    return {
        "count": len(trace.flows),
        "held": len(chosen),
        "columns": columns,
        "words": {name: numbered_words(trace.flows, name) for name in WORDS},
        "addresses": encoded("\n".join(addresses).encode()),
        "paths": paths,
        "troubles": sparse_troubles(trace, chosen),
    }


def again(trace: Trace) -> dict[str, str]:
    """Files and options of this analysis: the page adds those of one flow, and has the command for a report of it."""
    options = trace.options
    words = ["FILE" if name == "-" else name for name in trace.inputs]
    if options["block_size"]:
        words += ["--block-size", str(options["block_size"])]
    times = {name: options[f"{name}_ns"] for name in ("start", "end")}
    return {
        "command": shlex.join(["wiretale", "analyze", *words]),
        "filter": options["filter"] or "",
        **{name: "" if ns is None else show_time(ns).replace(" ", "T") for name, ns in times.items()},
    }
