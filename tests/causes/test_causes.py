# SPDX-License-Identifier: Apache-2.0
"""Every cause has an example that shows it, rivals that are causes, and words that keep the rules of sentences."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import ROOT
from wiretale.analyzer.causes.registry import CAUSES
from wiretale.analyzer.findings.registry import RULES

SUPPORT = ROOT / "tests" / "support"
EXAMPLES: dict[str, Any] = {}
for path in sorted(SUPPORT.glob("causes_*.py")):
    EXAMPLES.update(importlib.import_module(path.stem).EXAMPLES)
NAMES_OF_OURS = re.compile(r"\b(?:verdict|upstream|downstream|unplaced|turns?|unique payload)\b")
WORDS = (6, 60)
MAC = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b|(?:[0-9a-f]{1,4}:){2,}[0-9a-f:]+", re.I)


#: of each cause those that it must not be taken for: its rivals, and the causes of which it is one
CONFUSABLE = {
    code: {*rule.rivals, *(rival for rival, each in CAUSES.items() if code in each.rivals)}
    for code, rule in CAUSES.items()
}


def flows_of(trace: wiretale.Trace, cause: int) -> set[int]:
    """The flows that a cause is about."""
    return {row["flow"] for row in trace.cause_flows if row["cause"] == cause}


def test_every_cause_has_an_example() -> None:
    assert set(CAUSES) == set(EXAMPLES)


@pytest.mark.parametrize("code", CAUSES)
def test_rivals_and_effects_exist(code: str) -> None:
    rule = CAUSES[code]
    assert set(rule.rivals) <= set(CAUSES) - {code}
    assert set(rule.explains) <= set(RULES)


def check_heads(trace: wiretale.Trace, code: str, rows: list[Any]) -> None:
    """It heads its capture, unless it is a note or a caveat, and no rival is proven of the same flows, in either direction."""
    assert code == trace.answer.cause or all(row["severity"] == "info" or row["place"] == "capture" for row in rows)
    flows = set().union(*(flows_of(trace, row["cause"]) for row in rows))
    mistaken = [
        row["sentence"]
        for row in trace.causes
        if row["code"] in CONFUSABLE[code] and row["certainty"] == "proven" and flows <= flows_of(trace, row["cause"])
    ]
    assert not mistaken


@pytest.mark.parametrize("code", CAUSES)
def test_the_example_is_said_as_a_colleague_would_and_not_taken_for_a_rival(code: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(EXAMPLES[code](tmp_path / "capture.pcap"))
    rows = [row for row in trace.causes if row["code"] == code]
    assert rows, [row["code"] for row in trace.causes]
    check_heads(trace, code, rows)
    for row in rows:
        sentence = row["sentence"]
        assert WORDS[0] <= len(sentence.split()) <= WORDS[1] and sentence.endswith("."), sentence
        assert not NAMES_OF_OURS.search(sentence), sentence
        assert len(set(ADDRESS.findall(MAC.sub("", sentence)))) <= 2, sentence
        if row["certainty"] != "proven":
            assert re.search(r"probabl|may|possibl", sentence), sentence
        rivals = [rival for rival in trace.cause_rivals if rival["cause"] == row["cause"]]
        assert all(rival["rival"] in CAUSES for rival in rivals), rivals
        assert row["certainty"] == "proven" or not all(rival["excluded"] for rival in rivals), rivals
