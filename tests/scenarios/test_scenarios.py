# SPDX-License-Identifier: Apache-2.0
"""Every scenario of this folder in each of its variants: counters of both directions, events, and further columns; and
scenarios against docs/verdicts.md: rules have scenarios, the table has all cases, and near misses differ from them."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import ROOT
from scenario import Scenario, captured, expected_events, read_scenario
from scenario_wire import WRITERS, file_length

FOLDER = Path(__file__).parent
SCENARIOS = {one.name: one for one in (read_scenario(path, FOLDER) for path in sorted(FOLDER.rglob("*.txt")))}
VERDICTS = (
    *("retransmissions", "fast_retransmissions", "timeout_retransmissions", "timeouts", "probe_retransmissions"),
    *("spurious_retransmissions", "retransmitted_bytes", "out_of_order", "ambiguous", "network_duplicates"),
    *("mirror_duplicates", "lost_upstream", "lost_downstream", "unseen_bytes", "capture_reordered"),
    *("suspected_timeouts", "duplicate_acks", "zero_windows", "window_full", "window_probes", "keep_alives"),
    *("acks_out_of_range", "gap_bytes", "unknown_bytes", "unknown_duplicates", "unplaced_retransmissions", "sack_gaps"),
)
PAYLOAD_PARTS = ("unique_bytes", "retransmitted_bytes", "duplicate_bytes", "probe_bytes")
WORDS = {"null": None, "true": True, "false": False}


def value(text: str) -> Any:
    """A number, a word of the tables, or null."""
    return WORDS.get(text, int(text) if text.lstrip("-").isdigit() else text)


def column(trace: wiretale.Trace, path: str) -> list[Any]:
    """The values of TABLE.COLUMN, of initiator.COLUMN or responder.COLUMN; of TABLE alone, its number of rows."""
    table, _, name = path.removeprefix("sum ").partition(".")
    if table in ("initiator", "responder"):
        return [trace.directions.rows(0, 2)[table == "responder"][name]]
    if not name:
        return [len(trace.table(table))]
    values = trace.table(table).column(name)
    return [sum(values)] if path.startswith("sum ") else values


def check(trace: wiretale.Trace, path: str, sign: str, wanted: str) -> None:
    """One line of a scenario's expectation."""
    found, values = column(trace, path), [value(text) for text in wanted.split()]
    if sign == "=":
        assert found == values, path
    elif sign == "~":
        assert found == [pytest.approx(one, rel=1e-6, abs=1000) for one in values], path
    elif sign in "<>":
        assert {"<": operator.lt, ">": operator.gt}[sign](found[0], values[0]), f"{path}: {found[0]}"
    else:
        assert all((one in found) == (sign == "has") for one in values), f"{path}: {found}"


@cache
def frames_of(name: str, address: str) -> list[Any]:
    """Built once for all files that hold them."""
    return captured(SCENARIOS[name], address)


def counters(row: dict[str, Any]) -> dict[str, Any]:
    """The verdicts that are not 0; gaps that only SACK reports are null if the data itself was captured."""
    return {name: row[name] for name in VERDICTS if row[name] != 0 and (name != "sack_gaps" or row[name] is not None)}


def event(row: dict[str, Any], file_length: int) -> tuple[int, str]:
    """A row of the events table: its frame, counted over all files, and its words."""
    spurious = {True: "spurious", None: "spurious:null"}.get(row["spurious"]) if "retransm" in row["kind"] else None
    words = (row["kind"], row["place"], spurious)
    return row["capture"] * file_length + row["frame"], " ".join(word for word in words if word)


def check_throughput(trace: wiretale.Trace, direction: int, row: dict[str, Any]) -> None:
    """Duplicates that the capture made, as their events say in the end, were on the link once."""
    if row["throughput_bps"] is None or row["unique_bytes"] is None or len(trace.flows) > 1:
        return
    copies = {(e["capture"], e["frame"]) for e in trace.events.rows() if e["kind"] == "mirror_duplicate"}
    sizes = {(p["capture"], p["frame"]): p["ip_bytes"] for p in trace.packets().rows() if p["direction"] == direction}
    once = sum(size for frame, size in sizes.items() if frame not in copies)
    assert row["throughput_bps"] == once * 8 * 10**9 // (row["last_ns"] - row["first_ns"])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, id=f"{name}-{variant.replace(' ', '-')}")
        for name, one in SCENARIOS.items()
        for variant in one.variants()
    ],
)
def test_scenario(name: str, variant: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    address, _, writer = variant.partition(" ")
    frames = frames_of(name, address)
    trace = wiretale.analyze(*WRITERS[writer or "pcap"](frames, tmp_path))
    events = sorted(event(row, file_length(frames) if writer == "rotated" else 0) for row in trace.events.rows())
    assert events == sorted(expected_events(frames, variant))
    rows = trace.directions.rows(0, 2)
    for direction, (end, row) in enumerate(zip(("initiator", "responder"), rows, strict=True)):
        wanted = scenario.expected(end, variant) if scenario.of_tcp else dict.fromkeys(VERDICTS[:-1])
        assert counters(row) == {name: count for name, count in wanted.items() if count != 0}, (end, events)
        if row["unique_bytes"] is not None:
            assert row["payload_bytes"] == sum(row[part] for part in PAYLOAD_PARTS)
        check_throughput(trace, direction, row)
    if not any(path == "flows" for path, _, _ in scenario.checks):
        assert len(trace.flows) == 1
    for path, sign, values in scenario.checks:
        check(trace, path, sign, values)


# --- scenarios and docs/verdicts.md

ALL = list(SCENARIOS.values())
NEAR = [one for one in ALL if "near" in one.headers and one.of_tcp]
DOCUMENT = (ROOT / "docs" / "verdicts.md").read_text()
RULE = re.compile(r"^- \*\*(V\d+\.\d+)\*\* .*Scenarios? (.*)\.$", re.MULTILINE)
RULES = {number: re.findall(r"`(\w+)`", names) for number, names in RULE.findall(DOCUMENT)}
CITED = re.compile(r"\bV\d+\.\d+\b")
CHAPTERS = {number.partition(".")[0] for number in RULES} | {"datagrams"}
ROW = re.compile(r"\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]+) \|")
NAMED = re.compile(r"`(\w+)`")
Names = dict[int, tuple[set[str], set[str]]]


def documented() -> Names:
    """Names of cases and near misses, by number."""
    text = DOCUMENT.partition("## Cases\n")[2].partition("\n## ")[0]
    found = [ROW.fullmatch(line) for line in text.splitlines()]
    return {int(row[1]): (set(NAMED.findall(row[2])), set(NAMED.findall(row[3]))) for row in found if row}


def existing() -> Names:
    """The same, of scenarios with a number."""
    found: Names = defaultdict(lambda: (set(), set()))
    for one in ALL:
        for place, header in enumerate(("case", "near")):
            if header in one.headers:
                found[int(one.headers[header])][place].add(re.sub("_in_ipv[46]$", "", Path(one.name).name))
    return dict(found)


def test_every_rule_has_a_scenario_that_names_it() -> None:
    named = {Path(one.name).name: one.headers["rule"].split(", ") for one in ALL}
    assert len(RULES) >= 50 and len(RULES) == DOCUMENT.count("\n- **V")
    assert [(rule, name) for rule, names in RULES.items() for name in names if rule not in named.get(name, [])] == []


def test_rules_are_numbered_in_order() -> None:
    numbers = [tuple(map(int, rule[1:].split("."))) for rule in RULES]
    chapters = [chapter for chapter, _ in numbers]
    assert numbers == sorted(numbers)
    assert numbers == [
        (chapter, count + 1) for chapter in sorted(set(chapters)) for count in range(chapters.count(chapter))
    ]


def test_a_rule_that_is_cited_exists() -> None:
    """In comments, the reasons of `wiretale verify`, column descriptions, tests and documents."""
    folders = [ROOT / folder for folder in ("analyzer", "benchmarks", "docs", "reports", "src", "tests", "traffic")]
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in (".c", ".h", ".py", ".md", ".txt")
    ]
    cited = {(path.name, rule) for path in files for rule in CITED.findall(path.read_text("utf-8", "replace"))}
    assert len(cited) >= 200
    assert sorted((name, rule) for name, rule in cited if rule not in RULES) == []


def test_every_scenario_names_a_rule() -> None:
    wrong = [
        (one.name, rule) for one in ALL for rule in one.headers["rule"].split(", ") if rule not in {*RULES, *CHAPTERS}
    ]
    assert wrong == []


def test_every_case_has_a_scenario_and_a_near_miss() -> None:
    table = documented()
    assert sorted(table) == list(range(1, len(table) + 1)) and len(table) >= 50
    assert [number for number, (cases, near) in table.items() if not cases or not near] == []


def test_the_table_names_the_scenarios() -> None:
    assert documented() == existing()


@pytest.mark.parametrize("near", NEAR, ids=lambda one: one.name)
def test_a_near_miss_does_not_have_the_verdict_of_its_case(near: Scenario) -> None:
    cases = [one for one in ALL if one.headers.get("case") == near.headers["near"]]
    assert cases and (near.counters, near.checks) not in [(case.counters, case.checks) for case in cases]
