# SPDX-License-Identifier: Apache-2.0
"""Every flow as columns of the page, at about 13 bytes per flow, because its search must reach all of them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import chain, count, repeat
from operator import floordiv, gt, sub
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.model import process_str
from wiretale.reports.html.packing import Column, encoded, numbered_words, planes
from wiretale.reports.phrases import problem_sums, relation_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

FLOWS_MOST = 1_000_000  # if there are more, the largest
REAL_BYTES = 3  # of a float32, which keep five digits
DROPPED_BITS = 10  # of a float32, without which it keeps four digits and compresses better
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

Field = tuple[str, str, int, int]  # column, array code, base, divisor


def texts(values: Iterable[str | None]) -> tuple[list[str], array[int]]:
    """Returns the distinct texts, and the number of the text of each value; 0 is the empty text."""
    numbers: defaultdict[str | None, int] = defaultdict(count(1).__next__, {"": 0, None: 0})
    packed = array("I", map(numbers.__getitem__, values))
    return ["", *filter(None, numbers)], packed


def chosen_flows(trace: Trace) -> list[int] | None:
    """Returns the numbers of the flows in the page, ascending, if there are too many for it: the largest. None is all."""
    count = len(trace.flows)
    if count <= FLOWS_MOST:
        return None
    return sorted(trace.transfers.largest_flows(FLOWS_MOST))


def of_chosen(values: Sequence[Any], flows: list[int] | None) -> Sequence[Any]:
    """Returns the values of these flows."""
    return values if flows is None else [values[flow] for flow in flows]


def greater(values: array[Any]) -> array[float]:
    """Returns the greater value of both directions of each flow; NaN if both are unknown."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return array("f", (there if there >= back or back != back else back for there, back in pairs))


def of_main(values: array[Any], main: bytes) -> array[float]:
    """Returns the value of each flow's direction that carries more payload; the other one's if it is unknown."""
    sides = zip(values[::2], values[1::2], main, strict=True)
    pairs = ((back, there) if is_back else (there, back) for there, back, is_back in sides)
    return array("f", (first if first == first else second for first, second in pairs))


def rounded(values: array[float]) -> bytes:
    """Returns float32 values rounded to four digits, for columns of which the page shows three."""
    half, mask = 1 << (DROPPED_BITS - 1), 0xFFFFFFFF >> DROPPED_BITS << DROPPED_BITS
    return array("I", ((bits + half) & mask for bits in array("I", values.tobytes()))).tobytes()


def arrays(table: Table, fields: list[Field], flows: list[int] | None) -> Iterator[array[Any]]:
    """Yields columns of some flows."""
    for (_, code, *_), data in zip(fields, table._packed_columns(fields, flows), strict=True):
        yield array(code, data)


def measured_columns(trace: Trace, flows: list[int] | None, base_ns: int) -> dict[str, Column]:
    """Returns throughput, RTT, duration and start, and whether the second direction carries more payload."""
    of_flows = [("handshake_rtt_ns", "f", 0, 1), *((name, "d", base_ns, 1_000_000) for name in ("first_ns", "last_ns"))]
    handshakes, firsts, lasts = arrays(trace.flows, of_flows, flows)
    of_directions = [("throughput_bps", "f", 0, 1), ("rtt_ns_median", "f", 0, 1), ("payload_bytes", "d", 0, 1)]
    rates, round_trips, payload = arrays(trace.directions, of_directions, flows)
    medians = greater(round_trips)
    rtts = array(
        "f",
        (
            handshake_ns if handshake_ns == handshake_ns else median
            for handshake_ns, median in zip(handshakes, medians, strict=True)
        ),
    )
    lasted = array("f", map(sub, lasts, firsts))
    main = bytes(map(gt, payload[1::2], payload[::2]))
    return {
        "throughput": planes("f", rounded(of_main(rates, main)), REAL_BYTES),
        "rtt": planes("f", rounded(rtts), REAL_BYTES),
        "lasted": planes("f", lasted.tobytes(), REAL_BYTES),
        "start": planes("d", array("d", map(floordiv, firsts, repeat(1))).tobytes()),
        "main": planes("B", main),
    }


def sparse_problems(trace: Trace, flows_kept: list[int] | None) -> list[dict[str, Any]]:
    """Returns label and unit of each problem, the flows that have it, and their counts."""
    kept_set = None if flows_kept is None else set(flows_kept)
    problems = []
    for label, unit, sums in problem_sums(trace):
        flows = sorted(sums if kept_set is None else kept_set & sums.keys())
        columns = {"flows": ("I", flows), "counts": ("d", [sums[flow] for flow in flows])}
        packed = {name: planes(code, array(code, values).tobytes()) for name, (code, values) in columns.items()}
        problems.append({"label": label, "unit": unit, **packed})
    return problems


def flow_columns(trace: Trace, base_ns: int) -> dict[str, Any]:
    """Returns the columns that the page lists, searches and filters by."""
    flows_kept = chosen_flows(trace)
    packed = trace.flows._packed_columns([(column, code, 0, 1) for _, column, code in FIELDS], flows_kept)
    columns = {name: planes(code, data) for (name, _, code), data in zip(FIELDS, packed, strict=True)}
    ends = (of_chosen(trace.flows.column(name), flows_kept) for name in ("source", "destination"))
    addresses, numbers = texts(chain.from_iterable(ends))
    flow_count = len(numbers) // 2
    paths, path_numbers = texts(of_chosen(trace.flows.column("path"), flows_kept))
    servers, server_numbers = texts(of_chosen(trace.flows.column("server_name"), flows_kept))
    owners = (of_chosen(trace.flows.column(name), flows_kept) for name in ("process_name", "process_id"))
    processes, process_numbers = texts(map(process_str, *owners))
    related = relation_texts(trace)
    relations, relation_numbers = texts([related.get(flow) for flow in flows_kept or range(flow_count)])
    fragmented = trace.datagrams._rows_by_flow(len(trace.flows))
    columns |= {
        "source": planes("I", numbers[:flow_count].tobytes()),
        "destination": planes("I", numbers[flow_count:].tobytes()),
        "path": planes("I", path_numbers.tobytes()),
        "server": planes("I", server_numbers.tobytes()),
        "process": planes("I", process_numbers.tobytes()),
        "relation": planes("I", relation_numbers.tobytes()),
        "fragmented": planes("B", bytes([count > 0 for count in of_chosen(fragmented, flows_kept)])),
        **measured_columns(trace, flows_kept, base_ns),
    }
    return {
        "count": len(trace.flows),
        "held": flow_count,
        "columns": columns,
        "words": {name: numbered_words(data) for (name, *_), data in zip(FIELDS, packed, strict=True) if name in WORDS},
        "addresses": encoded("\n".join(addresses).encode()),
        "paths": paths,
        "servers": servers,
        "processes": processes,
        "relations": relations,
        "problems": sparse_problems(trace, flows_kept),
    }
