# SPDX-License-Identifier: Apache-2.0
"""Captures changed in a known way: the rows of all tables must change as documented, and in no other column.

CHANGES lists for each change the columns that follow a formula (`becomes`) and those that may differ (`free`). Every other
value must stay the same. Merged captures and captures without one direction have tests of their own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest

import wiretale
from changed_packets import (
    TCP,
    Packet,
    Shift,
    in_vlan,
    later,
    numbers_of,
    other_address_text,
    place_of,
    read_pcap,
    sender,
    shifted,
    with_other_addresses,
    write_packets,
)
from checkout import SAMPLES, SCENARIOS
from scenario import captured, read_scenario
from wiretale.analyzer.table import KEPT_TABLES, OF_FLOWS

CAPTURES = (
    *("fast_retransmissions", "timeouts", "go_back_n", "lost_tail", "reordering", "network_duplicate", "mirror_port"),
    *("mirror_router", "zero_window", "window_full", "ip_fragments", "udp_blocks", "vlan_ipv6", "tcp_losses"),
)
CRAFTED = (
    *("going_back/held_above_a_gap", "sack/dsack_above_the_ack", "timeout/ack_just_late", "window/linux_window_probes"),
    *("probe/tail_loss_probe", "partial_capture/begins_inside_a_loss", "reordering/acks_stored_before_data"),
    *("reordering/reordered_by_four_and_resent", "open_close/ports_again_after_a_fin", "timeout/go_back_n"),
    *("duplicate/one_copy_at_once", "duplicate/network_duplicate", "numbered/rtp_with_another_source"),
)
NAMES = (*CAPTURES, *CRAFTED)
ADDRESS = re.compile(r"(?:\d+\.){3}\d+|[\da-f]*:[\da-f]*:[\da-f:]*")
DAYS_400 = 400 * 86_400 * 10**9
Row = dict[str, Any]
Tables = dict[str, list[Row]]


@cache
def packets_of(name: str) -> list[Packet]:
    """The packets of a sample or of a scenario."""
    if name in CAPTURES:
        return read_pcap(SAMPLES / f"{name}.pcap")
    scenario = read_scenario(SCENARIOS / f"{name}.txt", SCENARIOS)
    frames = captured(scenario, next(iter(scenario.variants())))
    return [Packet(frame.ns, frame.data, frame.length or len(frame.data)) for frame in frames]


@cache
def types_of(table: str) -> dict[str, str]:
    """Types of the columns."""
    from wiretale.analyzer import _core

    return {name: kind for named, _, columns in _core.schemas() if named == table for name, kind, *_ in columns}


def analyzed(*paths: Path) -> Tables:
    """The rows of all tables; the path of the file is none of them."""
    trace = wiretale.analyze(*paths)
    tables = {name: trace.table(name).rows() for name in KEPT_TABLES}
    for row in tables["interfaces"]:
        del row["file"]
    return tables


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tables]:
    """The tables of the unchanged packets, made once."""
    folder = tmp_path_factory.mktemp("before")
    return cache(lambda name: analyzed(write_packets(folder / "a.pcap", packets_of(name))))


# --- one file


@dataclass(frozen=True)
class Change:
    """A change of packets, the values that follow from it, and the columns that may differ.

    These are named `column`, `table.column`, or `code.column` of a finding.
    """

    packets: Callable[[list[Packet]], list[Packet]]
    becomes: Callable[[list[Packet], str, str, Row], Any] = lambda packets, table, column, row: row[column]
    free: frozenset[str] = frozenset()
    snaplen: int = 262_144


def with_later_times(packets: list[Packet], table: str, column: str, row: Row) -> Any:
    """A time of the capture is later, a time that the sender wrote is not; latency is the difference of both."""
    moved = (types_of(table)[column] == "time" and column != "sent_ns") or column == "latency_ns"
    return row[column] + DAYS_400 if moved and row[column] is not None else row[column]


def in_text(match: re.Match[str]) -> str:
    try:
        ip_address(match[0])
    except ValueError:
        return match[0]
    return other_address_text(match[0])


def with_addresses_replaced(packets: list[Packet], table: str, column: str, row: Row) -> Any:
    """Addresses in columns, sentences and filters."""
    kind, value = types_of(table)[column], row[column]
    if value is None or kind not in ("address", "text"):
        return value
    return other_address_text(value) if kind == "address" else ADDRESS.sub(in_text, value)


def shifts(packets: list[Packet]) -> Callable[[tuple[bytes, bytes]], Shift]:
    """For each end the numbers after which the middle one of its own is 0, so that all wrap amid the capture."""
    sequences, stamps, ids = defaultdict(list), defaultdict(list), defaultdict(list)
    for end, (sequence, stamp, ip_id) in numbers_of(packets):
        sequences[end].append(sequence)
        stamps[end] += [stamp] if stamp is not None else []
        ids[end[0]] += [ip_id] if ip_id else []  # a host may have one counter for all connections

    def middle(numbers: list[int]) -> int:
        return -median_low(numbers) if numbers else 0

    return lambda end: Shift(middle(sequences[end]), middle(stamps[end]), middle(ids[end[0]]))


def with_other_numbers(packets: list[Packet]) -> list[Packet]:
    return shifted(packets, shifts(packets))


def with_another_start(packets: list[Packet], table: str, column: str, row: Row) -> Any:
    """The first sequence number and the first TSval alone are the packets' own."""
    value = row[column]
    if column not in ("initial_sequence", "first_tsval") or value is None:
        return value
    end = (ip_address(row["source"]).packed, row["source_port"].to_bytes(2, "big"))
    shift = shifts(packets)(end)
    return (value + (shift.sequence if column == "initial_sequence" else shift.timestamp)) % 2**32


def with_a_tag(packets: list[Packet], table: str, column: str, row: Row) -> Any:
    """Each frame is 4 bytes longer, and the path of each flow begins with the tag."""
    value = row[column]
    if column == "path":
        return f"vlan 7 / {value}" if value else "vlan 7"
    return value + 4 * row["packets"] if table == "interfaces" and column in ("bytes", "captured_bytes") else value


def cut_to_96(packets: list[Packet], table: str, column: str, row: Row) -> Any:
    """The snap length, and the bytes that it leaves."""
    of_cut = {
        "snaplen": 96,
        "captured_bytes": sum(min(96, len(packet.data)) for packet in packets),
        "truncated_packets": sum(min(96, len(packet.data)) < packet.length for packet in packets),
    }
    return of_cut[column] if table == "interfaces" and column in of_cut else row[column]


# Link time has the tag, but frames of less than 60 bytes had room for it; findings with a share of it change with it.
TAG_FREE = {
    *("wire_bytes", "overhead_bytes", "fragment_overhead_bytes"),
    *("findings.impact", "findings.cost", "findings.bytes", "fragmentation.sentence", "causes.bytes", "causes.share"),
    *("burst_10us_bytes", "burst_100us_bytes", "burst_1ms_bytes", "burst_ns", "burst_frame"),
}
CHECKSUMS = frozenset({"checksum_errors", "checksums_verified"})  # of whole packets
CHANGES = {
    "later by 400 days": Change(lambda packets: later(packets, DAYS_400), with_later_times),
    "other addresses in another order": Change(
        lambda packets: [with_other_addresses(packet) for packet in packets],
        with_addresses_replaced,
        frozenset({"findings.headline"}),  # longer names leave less room
    ),
    "numbers that wrap": Change(with_other_numbers, with_another_start),
    "in a VLAN": Change(lambda packets: [in_vlan(packet, 7) for packet in packets], with_a_tag, frozenset(TAG_FREE)),
    "snap length 96": Change(lambda packets: packets, cut_to_96, CHECKSUMS, snaplen=96),
}


def differences(expected: Tables, actual: Tables, free: frozenset[str] = frozenset()) -> list[str]:
    """Values that are not as expected."""
    wrong = [
        f"{table}: {len(rows)} rows, {len(actual[table])}"
        for table, rows in expected.items()
        if len(rows) != len(actual[table])
    ]
    return wrong or [
        f"{table}[{number}].{column}: expected {value!r}, found {after[column]!r}"
        for table, rows in expected.items()
        for number, (row, after) in enumerate(zip(rows, actual[table], strict=True))
        for column, value in row.items()
        if value != after[column] and not free & {column, f"{table}.{column}", f"{row.get('code')}.{column}"}
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_rows_change_as_documented(change: str, name: str, before: Callable[[str], Tables], tmp_path: Path) -> None:
    packets, rule = packets_of(name), CHANGES[change]
    expected = {
        table: [{column: rule.becomes(packets, table, column, row) for column in row} for row in rows]
        for table, rows in before(name).items()
    }
    actual = analyzed(write_packets(tmp_path / "a.pcap", rule.packets(packets), rule.snaplen))
    assert differences(expected, actual, rule.free) == []


# --- several files

# Columns with a frame, and the column with the number of its file; frames without one are free.
FRAMES = {
    "flows": {"first_frame": "first_capture", "pause_frame": "pause_capture"},
    "endings": {"frame": "capture"},
    "loops": {"first_frame": "first_capture"},
    "events": {"frame": "capture"},
    "datagrams": {"first_frame": "capture"},
    "blocks": {"last_frame": "capture"},
    "waits": {"before_frame": "before_capture", "after_frame": "after_capture"},
}
FRAME_FREE = frozenset(
    {"related_frame", "last_frame", "blocks.first_frame", "first_capture", "capture", "before_capture", "after_capture"}
    | {"pause_capture"}
    | {"asked_frame", "answered_frame", "client_hello_frame"}
    | {"server_hello_frame", "finished_frame"}
)
ADDED = (
    *("packets", "bytes", "captured_bytes", "filtered_packets", "truncated_packets", "time_unknown"),
    *("super_segments", "not_ip", "not_understood", "cut_headers", "malformed", "mirror_duplicates"),
)


def of_flows(tables: Tables) -> Tables:
    """The tables whose rows belong to a flow."""
    return {name: tables[name] for name in OF_FLOWS}


def count_through(tables: Tables, starts: range) -> None:
    """Numbers frames of parts as those of the whole, of which each part begins behind so many packets."""
    for table, columns in FRAMES.items():
        for row in tables[table]:
            located = {name: row[capture] for name, capture in columns.items() if row[capture] is not None}
            row.update({name: row[name] and row[name] + starts[capture] for name, capture in located.items()})


def findings_of(tables: Tables) -> set[tuple[str, str]]:
    return {(row["code"], row["severity"]) for row in tables["findings"]}


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_in_parts_has_the_rows_of_the_whole(
    name: str, before: Callable[[str], Tables], tmp_path: Path
) -> None:
    """As `tcpdump -C` leaves it: frames are those of each part."""
    packets, expected = packets_of(name), before(name)
    size = len(packets) // 3 + 1
    starts = range(0, len(packets), size)
    paths = [write_packets(tmp_path / f"{start:06}.pcap", packets[start : start + size]) for start in starts]
    actual = analyzed(*paths)
    count_through(actual, starts)
    mapped = frozenset(f"{table}.{name}" for table, columns in FRAMES.items() for name in columns)
    free = frozenset(f"{table}.{name}" for table in of_flows(actual) for name in FRAME_FREE) - mapped
    free |= FRAME_FREE - {"last_frame"}
    assert differences(of_flows(expected), of_flows(actual), free) == []
    assert findings_of(actual) == {
        code_of_flow for code_of_flow in findings_of(expected) if code_of_flow[0] != "reordering-extent"
    }
    for column in ADDED:
        assert sum(row[column] for row in actual["interfaces"]) == expected["interfaces"][0][column], column


def of_capture(tables: Tables, capture: int) -> Tables:
    """The flows of one of two files, numbered as in that file alone."""
    numbers = [row["flow"] for row in tables["flows"] if row["first_capture"] == capture]
    renumbered = {number: place for place, number in enumerate(numbers)}
    numbers_there = dict.fromkeys(("first_capture", "capture", "before_capture", "after_capture", "pause_capture"), 0)
    return {
        name: [
            {
                **row,
                **{column: numbers_there[column] for column in numbers_there if row.get(column) is not None},
                **{column: renumbered[row[column]] for column in ("flow", "within") if row.get(column) is not None},
            }
            for row in rows
            if row["flow"] in renumbered
        ]
        for name, rows in of_flows(tables).items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_merged_captures_have_the_rows_of_both(name: str, before: Callable[[str], Tables], tmp_path: Path) -> None:
    """Two captures of the same time, whose hosts have different addresses."""
    packets, alone = packets_of(name), before(name)
    moved = [with_other_addresses(packet) for packet in packets]
    actual = analyzed(write_packets(tmp_path / "a.pcap", packets), write_packets(tmp_path / "b.pcap", moved))
    replaced = {
        table: [{column: with_addresses_replaced(packets, table, column, row) for column in row} for row in rows]
        for table, rows in alone.items()
    }
    for capture, expected in enumerate((alone, replaced)):
        flows = {**of_flows(expected), "events": [row for row in expected["events"] if row["flow"] is not None]}
        assert differences(flows, of_capture(actual, capture)) == []
    codes = {code for code, _ in findings_of(alone)}  # severity may depend on the share of all flows
    assert {code for code, _ in findings_of(actual)} == codes - {"reordering-extent"}


# --- one direction

# Columns of what a direction sends, which need no other direction.
OWN = (
    *("packets", "wire_bytes", "ip_bytes", "payload_bytes", "data_packets", "fragments", "fragmented_datagrams"),
    *("incomplete_datagrams", "fragment_overhead_bytes", "mss", "window_scale", "sack_permitted", "timestamps"),
    *("initial_sequence", "first_tsval", "segment_max", "syns", "fins", "resets", "ecn_ce", "ecn_echo", "ecn_cwr"),
    *("unusual_options", "signed_segments"),
    *("ttl_min", "ttl_max", "dscp", "first_ns", "last_ns", "idle_ns_max", "blocks", "blocks_lost", "sack_acks"),
    *("blocks_out_of_order", "blocks_duplicate", "blocks_late", "blocks_corrupt", "jitter_ns"),
)
ABSENT = re.compile(r"other direction was not captured|one direction")
# docs/verdicts.md, "What cannot be determined"
NEEDS_ACKS = {
    *("fast_retransmission", "timeout_retransmission", "probe_retransmission", "acked_unseen_segment"),
    *("keep_alive", "keep_alive_ack", "duplicate_ack", "captured_out_of_order", "window_full"),
}


@cache
def null_without_acks() -> set[str]:
    """Columns that are documented as null if one direction is absent, or as the column before, or as another."""
    from wiretale.analyzer import _core

    names, above = set(), False
    for name, _, _, meaning, _ in next(columns for table, _, columns in _core.schemas() if table == "directions"):
        if "null" not in meaning.lower():
            continue
        same = re.search(r"[Nn]ull as (\w+)", meaning)
        if not same:
            above = bool(ABSENT.search(meaning))
        elif same[1] not in ("above", "there"):
            above = same[1] in names
        if above:
            names.add(name)
    return names


def test_columns_that_need_both_directions_are_documented() -> None:
    assert null_without_acks() >= {"fast_retransmissions", "timeouts", "lost_downstream", "keep_alives", "flight_max"}


# Not of UDP. The SYN alone, which the other end sends, begins a new connection on the same ports.
TALKS = [name for name in NAMES if not re.match("udp|ip_fragments|numbered|.*ports_again", name)]


@pytest.mark.parametrize("name", TALKS)
@pytest.mark.parametrize("side", [0, 1])
def test_what_needs_acknowledgments_is_null_without_them(
    side: int, name: str, before: Callable[[str], Tables], tmp_path: Path
) -> None:
    tables = before(name)
    sides = [row for row in of_tcp(tables["directions"], tables) if row["direction"] == side and row["packets"]]
    ends = {(ip_address(row["source"]).packed, row["source_port"].to_bytes(2, "big")) for row in sides}
    actual = analyzed(
        write_packets(tmp_path / "a.pcap", [packet for packet in packets_of(name) if is_sent_by(packet, ends)])
    )
    rows = {row_key(row): row for row in actual["directions"]}
    for row in sides:
        expected = {**{column: row[column] for column in OWN}, **dict.fromkeys(null_without_acks())}
        assert {column: rows[row_key(row)][column] for column in expected} == expected
    assert found_values(actual["flows"], "one_way") == {True}
    events = of_tcp(actual["events"], actual)
    assert not found_values(events, "kind") & NEEDS_ACKS and True not in found_values(events, "spurious")
    assert found_values(events, "place") <= {None, "upstream", "capture"}


def found_values(rows: list[Row], column: str) -> set[Any]:
    return {row[column] for row in rows}


def of_tcp(rows: list[Row], tables: Tables) -> list[Row]:
    return [row for row in rows if row["flow"] is not None and tables["flows"][row["flow"]]["protocol"] == "tcp"]


def is_sent_by(packet: Packet, ends: set[tuple[bytes, bytes]]) -> bool:
    place = place_of(packet.data)
    return bool(place and place.protocol == TCP and place.transport and sender(packet.data, place) in ends)


def row_key(row: Row) -> tuple[Any, ...]:
    """The first packet distinguishes flows between the same ends."""
    return row["source"], row["source_port"], row["destination"], row["destination_port"], row["first_ns"]
