# SPDX-License-Identifier: Apache-2.0
"""Scenarios and docs/verdicts.md: rules have scenarios, the table has all cases, and near misses differ from them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from checkout import ROOT, SCENARIOS
from scenario import Scenario, read_scenario

ALL = [read_scenario(path, SCENARIOS) for path in sorted(SCENARIOS.rglob("*.txt"))]
NEAR = [one for one in ALL if "near" in one.headers and one.of_tcp]
DOCUMENT = (ROOT / "docs" / "verdicts.md").read_text()
RULE = re.compile(r"^- \*\*(V\d+\.\d+)\*\* .*Scenarios? (.*)\.$", re.MULTILINE)
RULES = {number: re.findall(r"`(\w+)`", names) for number, names in RULE.findall(DOCUMENT)}
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
