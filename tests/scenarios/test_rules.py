# SPDX-License-Identifier: Apache-2.0
"""Scenarios and docs/verdicts.md: the table of cases names what runs, and each near miss differs from its case."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from checkout import ROOT, SCENARIOS
from scenario import Scenario, read_scenario

ALL = [read_scenario(path, SCENARIOS) for path in sorted(SCENARIOS.rglob("*.txt"))]
NEAR = [one for one in ALL if "near" in one.headers and one.of_tcp]
ROW = re.compile(r"\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]+) \|")
NAMED = re.compile(r"`(\w+)`")
Names = dict[int, tuple[set[str], set[str]]]


def documented() -> Names:
    """By number: the names of cases and of near misses."""
    text = (ROOT / "docs" / "verdicts.md").read_text().partition("## Cases\n")[2].partition("\n## ")[0]
    found = [ROW.fullmatch(line) for line in text.splitlines()]
    return {int(row[1]): (set(NAMED.findall(row[2])), set(NAMED.findall(row[3]))) for row in found if row}


def existing() -> Names:
    """The same of the scenarios that have a number."""
    found: Names = defaultdict(lambda: (set(), set()))
    for one in ALL:
        for place, header in enumerate(("case", "near")):
            if header in one.headers:
                found[int(one.headers[header])][place].add(re.sub("_in_ipv[46]$", "", Path(one.name).name))
    return dict(found)


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
