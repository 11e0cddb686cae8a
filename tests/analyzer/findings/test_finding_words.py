# SPDX-License-Identifier: Apache-2.0
"""Findings are said as a person would say them, whatever their figures: 0, 1, 2, very many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from drawn_trace import DrawnTrace
from wiretale.analyzer.findings import retransmission as verdict_rules
from wiretale.analyzer.findings.catalogue import pages
from wiretale.analyzer.findings.explain import carried, explain
from wiretale.analyzer.findings.model import Finding
from wiretale.analyzer.findings.registry import RULES, find

SEEDS = 300
SELDOM = {
    "idle-reset",
    "loss-limited-window",
    "sent-again",
    "udp-above-path",
    "window-per-round-trip",
}  # figures must fit
NOUNS = (
    "packet|segment|block|frame|fragment|datagram|gap|pause|time|run|byte|flow|connection|connection attempt|direction|"
    "transfer|sender|timeout|retransmission timeout|keep-alive|loss|duplicate ACK|event|time bin|numbered packet"
)
WRONG = {
    "several of one": rf"(?<![\d.,:–-])1 (?:more )?(?:{NOUNS})e?s\b",
    "one of several": rf"(?<![\d.,])(?:[02-9]|\d[\d,]*\d) (?:more )?(?:{NOUNS})\b(?!-)(?= (?!of\b|attempt)|[.,;:)])",
    "one that are": r"(?<![\d.,])1 (?:more )?(?:(?!because)[a-z -])*? (?:were|are|have|carry|break)\b",
    "none of it": rf"(?<![\d.,])0 (?:more )?(?:{NOUNS})",
    "nothing counted": r"(?<![\d.,:–#a-z-])0 (?:by the|fast|as tail|B|bit|ns|s)\b",
    "no figure": r"\bnan\b|\binf\b|None|–%|– (?:were|longer)|\{|\}",
    "an absurd unit": r"(?<![\d,])\d{4,}(?:\.\d+)? (?:ns|µs|ms|[kMGT]?B|[kMG]?bit/s)\b|\d\.\d{3,}|\de[+-]?\d",
    "three digits badly rounded": r"\d{3}\.\d (?:ns|µs|ms|s|[kMG]?B|[kMG]?bit/s)\b|\d{3}\.\d%",
    "empty words": r"\(\)|: \.|, \.|; \.|  |\(, |: ;",
}


@cache
def said() -> tuple[Finding, ...]:
    """Everything that rules say of drawn traces; each once."""
    found: dict[str, Finding] = {}
    for seed in range(SEEDS):
        trace: Any = DrawnTrace(seed)
        for rule in RULES:
            found.update((one.sentence, one) for one in rule(trace))
        found.update((one.sentence, one) for one in find(trace))
    return tuple(found.values())


def texts() -> Iterator[str]:
    for one in said():
        yield one.sentence
        yield one.advice
        yield one.evidence or ""


@pytest.mark.parametrize("what", WRONG)
def test_no_sentence_has(what: str) -> None:
    wrong = re.compile(WRONG[what])
    found = {text[max(place.start() - 60, 0) : place.end() + 30] for text in texts() for place in wrong.finditer(text)}
    assert not found, "\n".join(sorted(found)[:20])


def test_every_finding_is_said() -> None:
    assert set(pages()) - {one.code for one in said()} <= SELDOM


def test_words_agree_with_every_count() -> None:
    for kind in verdict_rules.KINDS:
        for count, verb in ((1, "was "), (2, "were "), (1_234_567, "were ")):
            if kind.rest.startswith("were "):
                assert verdict_rules.rest_words(kind, count).startswith(verb)


@pytest.mark.parametrize(
    "lost, runs, longest, words",
    [
        (1, 1, 1, "1 numbered packet of 100 did not come (1%)."),
        (20, 20, 1, "20 numbered packets of 100 did not come (20%), each alone."),
        (20, 1, 20, "20 numbered packets of 100 did not come (20%), side by side."),
        (20, 4, 9, "20 numbered packets of 100 did not come (20%), in 4 runs of at most 9."),
    ],
)
def test_losses_are_told_as_they_lie(lost: int, runs: int, longest: int, words: str) -> None:
    ends = {"source": "10.0.0.1", "source_port": 1, "destination": "10.0.0.2", "destination_port": 2}
    row = {"blocks": 100 - lost, "blocks_lost": lost, "block_loss_runs": runs, "block_loss_run_max": longest}
    assert verdict_rules.blocks_lost({**ends, **row, "_count": lost}) == f"10.0.0.1:1 → 10.0.0.2:2: {words}"


def test_headlines_are_well_said() -> None:
    lines = []
    for seed in range(SEEDS // 4):
        trace: Any = DrawnTrace(seed)
        lines += [f"{carried(one.transfer)}; {one.headline}." for one in explain(trace, 10**9)]
    assert len(lines) > 100
    for what, wrong in WRONG.items():
        assert not [line for line in lines if re.search(wrong, line)], what
