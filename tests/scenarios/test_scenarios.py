# SPDX-License-Identifier: Apache-2.0
"""Every scenario of this folder in each of its variants: counters of both directions, events, and further columns; and
scenarios against docs/verdicts.md: rules have scenarios, the table has all cases, and near misses differ from them."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import ROOT
from scenario import Scenario, captured, expected_events, lacking, read_scenario
from scenario_fragments import FORMS, Form
from scenario_wire import WRITERS, Frame, file_length

FOLDER = Path(__file__).parent
ALL = [read_scenario(path, FOLDER) for path in sorted(FOLDER.rglob("*.txt"))]
SCENARIOS = {scenario.name: scenario for scenario in ALL}
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


def check(trace: wiretale.Trace, path: str, sign: str, expected: str) -> None:
    """One line of a scenario's expectation."""
    actual, values = column(trace, path), [value(text) for text in expected.split()]
    if sign == "=":
        assert actual == values, path
    elif sign == "~":
        assert actual == [pytest.approx(number, rel=1e-6, abs=1000) for number in values], path
    elif sign in "<>":
        assert {"<": operator.lt, ">": operator.gt}[sign](actual[0], values[0]), f"{path}: {actual[0]}"
    else:
        assert all((item in actual) == (sign == "has") for item in values), f"{path}: {actual}"


@cache
def frames_of(name: str, address: str, form: Form | None) -> list[Frame]:
    """Built once for all files that hold them."""
    return captured(SCENARIOS[name], address, form)


def counters(row: dict[str, Any]) -> dict[str, Any]:
    """The verdicts that are not 0; gaps that only SACK reports are null if the data itself was captured."""
    return {name: row[name] for name in VERDICTS if row[name] != 0 and (name != "sack_gaps" or row[name] is not None)}


def event(row: dict[str, Any], file_length: int) -> tuple[int, str]:
    """A row of the events table: its frame, counted over all files, and its words."""
    spurious = {True: "spurious", None: "spurious:null"}.get(row["spurious"]) if "retransm" in row["kind"] else None
    words = (row["kind"], row["place"], spurious)
    return row["capture"] * file_length + row["frame"], " ".join(word for word in words if word)


def check_throughput(trace: wiretale.Trace, frames: list[Frame], length: int, row: dict[str, Any]) -> None:
    """Duplicates that the capture made, as their events say in the end, were on the link once, with all their fragments."""
    if row["throughput_bps"] is None or row["unique_bytes"] is None or len(trace.flows) > 1:
        return
    places = [event(verdict, length)[0] for verdict in trace.events.rows() if verdict["kind"] == "mirror_duplicate"]
    copies = {frames[place - 1].group for place in places}
    packets = [packet for packet in trace.packets().rows() if packet["direction"] == row["direction"]]
    sizes = {packet["capture"] * length + packet["frame"]: packet["ip_bytes"] for packet in packets}
    once = sum(size for place, size in sizes.items() if frames[place - 1].group not in copies)
    assert row["throughput_bps"] == once * 8 * 10**9 // (row["last_ns"] - row["first_ns"])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, id=f"{name}-{variant.replace(' ', '-')}")
        for name, scenario in SCENARIOS.items()
        for variant in scenario.variants()
    ],
)
def test_scenario(name: str, variant: str, tmp_path: Path) -> None:
    check_scenario(name, variant, None, tmp_path)


def check_scenario(name: str, variant: str, form: Form | None, tmp_path: Path) -> None:
    """Compares the rows of a variant with what the scenario expects."""
    scenario = SCENARIOS[name]
    address, _, writer = variant.partition(" ")
    frames = frames_of(name, address, form)
    length = file_length(frames) if writer == "rotated" else 0
    trace = wiretale.analyze(*WRITERS[writer or "pcap"](frames, tmp_path))
    events = sorted(event(row, length) for row in trace.events.rows())
    assert events == sorted(expected_events(frames, variant))
    rows = trace.directions.rows(0, 2)
    for end, row in zip(("initiator", "responder"), rows, strict=True):
        expected = scenario.expected(end, variant) if scenario.of_tcp else dict.fromkeys(VERDICTS[:-1])
        assert counters(row) == {name: count for name, count in expected.items() if count != 0}, (end, events)
        if row["unique_bytes"] is not None:
            assert row["payload_bytes"] == sum(row[part] for part in PAYLOAD_PARTS)
        check_throughput(trace, frames, length, row)
    if not any(path == "flows" for path, _, _ in scenario.checks):
        assert len(trace.flows) == 1
    for path, sign, values in scenario.checks:
        values, _, in_fragments = values.partition(" | in fragments: ")
        check(trace, path, sign, in_fragments if form and in_fragments else values)


# --- scenarios and docs/verdicts.md

NEAR = [scenario for scenario in ALL if "near" in scenario.headers and scenario.of_tcp]
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
    rows = [ROW.fullmatch(line) for line in text.splitlines()]
    return {int(row[1]): (set(NAMED.findall(row[2])), set(NAMED.findall(row[3]))) for row in rows if row}


def existing() -> Names:
    """The same, of scenarios with a number."""
    names: Names = defaultdict(lambda: (set(), set()))
    for scenario in ALL:
        for place, header in enumerate(("case", "near")):
            if header in scenario.headers:
                names[int(scenario.headers[header])][place].add(re.sub("_in_ipv[46]$", "", Path(scenario.name).name))
    return dict(names)


def test_every_rule_has_a_scenario_that_names_it() -> None:
    named = {Path(scenario.name).name: scenario.headers["rule"].split(", ") for scenario in ALL}
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
        (scenario.name, rule)
        for scenario in ALL
        for rule in scenario.headers["rule"].split(", ")
        if rule not in {*RULES, *CHAPTERS}
    ]
    assert wrong == []


def test_every_case_has_a_scenario_and_a_near_miss() -> None:
    table = documented()
    assert sorted(table) == list(range(1, len(table) + 1)) and len(table) >= 50
    assert [number for number, (cases, near) in table.items() if not cases or not near] == []


def test_the_table_names_the_scenarios() -> None:
    assert documented() == existing()


@pytest.mark.parametrize("near", NEAR, ids=lambda scenario: scenario.name)
def test_a_near_miss_does_not_have_the_verdict_of_its_case(near: Scenario) -> None:
    cases = [scenario for scenario in ALL if scenario.headers.get("case") == near.headers["near"]]
    assert cases and (near.counters, near.checks) not in [(case.counters, case.checks) for case in cases]


def test_every_scenario_runs() -> None:
    assert [scenario.name for scenario in ALL if not any(scenario.variants())] == []


# --- segments in IP fragments


def variants_in_fragments(scenario: Scenario) -> list[str]:
    """The variants in which each packet has an identification of its own, without which nothing can be put together."""
    lacks = set(scenario.headers.get("without", "").split())
    return [
        variant
        for variant in scenario.variants()
        if scenario.of_tcp
        and not scenario.of_checksums
        and ("ids" not in lacks | lacking(variant) or variant.split()[0] in ("ipv6", "bare"))
    ]


def cases_in_fragments() -> Iterator[tuple[str, str, Form]]:
    """Of each rule one scenario, in each form; over IPv6 in one form more."""
    by_name: dict[str, list[str]] = {}
    for path in SCENARIOS:
        by_name.setdefault(Path(path).name, []).append(path)
    for names in RULES.values():
        paths = [path for name in names for path in by_name.get(name, [])]
        for name in [path for path in paths if variants_in_fragments(SCENARIOS[path])][:1]:
            variants = variants_in_fragments(SCENARIOS[name])
            yield from ((name, variants[0], form) for form in FORMS)
            yield from ((name, variant, FORMS[-1]) for variant in variants[1:] if variant in ("ipv6", "ipv6 pcap"))


CASES_IN_FRAGMENTS = sorted(set(cases_in_fragments()))


@pytest.mark.parametrize(
    ("name", "variant", "form"),
    [pytest.param(*case, id="-".join(map(str, (*case[:2], *case[2])))) for case in CASES_IN_FRAGMENTS],
)
def test_verdicts_on_segments_in_fragments_are_those_on_whole_ones(
    name: str, variant: str, form: Form, tmp_path: Path
) -> None:
    check_scenario(name, variant, form, tmp_path)


def test_every_rule_has_a_scenario_in_fragments() -> None:
    names = {Path(name).name for name, _, _ in CASES_IN_FRAGMENTS}
    of_datagrams = [f"V12.{number}" for number in (1, 2, 3, 4, 5, 7, 8)]
    of_checksums = [rule for rule in RULES if rule.startswith("V14.")]
    assert [rule for rule, scenarios in RULES.items() if not names & set(scenarios)] == of_datagrams + of_checksums
