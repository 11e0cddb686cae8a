# SPDX-License-Identifier: Apache-2.0
"""The table of cases in docs/verdicts.md names every case's tests and near misses, and there are such tests."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
import test_datagram_scenes
import test_near_misses
import test_verdict_scenes
import test_verdicts

from checkout import ROOT
from talk import Talk

DOCUMENT = ROOT / "docs" / "verdicts.md"
ROW = re.compile(r"\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]+) \|")
NAMED = re.compile(r"`(\w+)`")
TALKS = {**test_verdicts.CASES, **test_near_misses.NEAR_MISSES}
Names = dict[int, tuple[set[str], set[str]]]


def documented() -> Names:
    """By number: the names of cases and of near misses."""
    text = DOCUMENT.read_text().partition("## Cases\n")[2].partition("\n## ")[0]
    found = [ROW.fullmatch(line) for line in text.splitlines()]
    return {int(row[1]): (set(NAMED.findall(row[2])), set(NAMED.findall(row[3]))) for row in found if row}


def running() -> Names:
    """The same of what runs."""
    found: Names = defaultdict(lambda: (set(), set()))
    for name in [*TALKS, *test_verdict_scenes.SCENES, *test_datagram_scenes.SCENES]:
        number, *kind, function = name.split()
        found[int(number)][kind == ["near"]].add(function)
    return dict(found)


def test_every_case_has_a_test_and_a_near_miss() -> None:
    table = documented()
    assert sorted(table) == list(range(1, len(table) + 1)) and len(table) >= 50
    assert [number for number, (cases, near) in table.items() if not cases or not near] == []


def test_the_table_names_what_runs() -> None:
    assert documented() == running()


@pytest.mark.parametrize("name", [name for name in TALKS if " near " in name])
def test_a_near_miss_has_not_the_verdict_of_its_case(name: str) -> None:
    number = name.split()[0]
    cases = [case for case in TALKS if case.split()[0] == number and " near " not in case]
    assert cases and TALKS[name][0](Talk()) not in [TALKS[case][0](Talk()) for case in cases]
