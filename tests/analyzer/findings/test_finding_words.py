# SPDX-License-Identifier: Apache-2.0
"""Findings are said as a person would say them, whatever their figures: 0, 1, 2, very many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from drawn_trace import DrawnTrace
from wiretale.analyzer.findings.counts.count_rule import OTHERS, CountRule
from wiretale.analyzer.findings.counts.loss import lost_downstream
from wiretale.analyzer.findings.counts.numbered import blocks_lost
from wiretale.analyzer.findings.explain import carried, explain
from wiretale.analyzer.findings.model import Finding, fill, shorter_forms
from wiretale.analyzer.findings.registry import RULES, example_of, find
from wiretale.analyzer.rows import DirectionRow

pytestmark = pytest.mark.xdist_group("finding-words")  # one process makes the traces

SEEDS = 100
HEADLINE_WORDS = 34
ADDRESS = re.compile(r"\d+(?:\.\d+){3}(?::\d+)?")
NOUNS = (
    "packet|segment|block|frame|fragment|datagram|gap|pause|time|run|byte|flow|connection|connection attempt|direction|"
    "transfer|sender|timeout|retransmission timeout|keep-alive|loss|duplicate ACK|event|time bin|numbered packet|"
    "QUIC flow|RTO|suspected RTO|spurious retransmission|data segment|more frame"
)
WRONG = {
    "several of one": rf"(?<![\d.,:–-])1 (?:more )?(?:{NOUNS})e?s\b",
    "one of several": rf"(?<![\d.,])(?:[02-9]|\d[\d,]*\d) (?:more )?(?:{NOUNS})\b(?!-)(?= (?!of\b|attempt)|[.,;:)])",
    "one that are": r"(?<![\d.,])(?<!type )1 (?:more )?(?:(?!because)[a-z -])*? (?:were|are|have|carry|break)\b",
    "none of it": rf"(?<![\d.,])0 (?:more )?(?:{NOUNS})",
    "nothing counted": r"(?<![\d.,:–#a-z-])0 (?:by the|fast|as tail|B|bit|ns|s)\b",
    "no figure": r"\bnan\b|\binf\b|None|–%|– (?:were|longer)|\{|\}",
    "an absurd unit": r"(?<![\d,])\d{4,}(?:\.\d+)? (?:ns|µs|ms|[kMGT]?B|[kMG]?bit/s)\b|\d\.\d{3,}|\de[+-]?\d",
    "three digits badly rounded": r"\d{3}\.\d (?:ns|µs|ms|s|[kMG]?B|[kMG]?bit/s)\b|\d{3}\.\d%",
    "empty words": r"\(\)|: \.|, \.|; \.|  |\(, |: ;",
}


@cache
def every_finding_said() -> tuple[Finding, ...]:
    """Everything that rules say of drawn traces and of their examples; each once."""
    by_sentence: dict[str, Finding] = {}
    for seed in range(SEEDS):
        trace: Any = DrawnTrace(seed)
        transfers = trace.transfers
        for rule in RULES.values():
            by_sentence.update((item.sentence, item) for item in rule.findings(transfers))
        by_sentence.update((item.sentence, item) for item in find(trace.transfers))
    examples = [
        Finding(code, item["severity"], "flow", None, None, item["sentence"], "", "")
        for code in RULES
        if (item := example_of(code))
    ]
    by_sentence.update((item.sentence, item) for item in examples)
    return tuple(by_sentence.values())


def texts() -> Iterator[str]:
    for finding in every_finding_said():
        yield ADDRESS.sub("HOST", finding.sentence)
        yield finding.advice
        yield finding.headline
        yield finding.figures or ""


@pytest.mark.parametrize("name", WRONG)
def test_no_sentence_has(name: str) -> None:
    wrong = re.compile(WRONG[name])
    passages = {
        text[max(place.start() - 60, 0) : place.end() + 30] for text in texts() for place in wrong.finditer(text)
    }
    assert not passages, "\n".join(sorted(passages)[:20])


def test_every_finding_is_said() -> None:
    assert set(RULES) == {finding.code for finding in every_finding_said()}


def test_full_tables_are_reported() -> None:
    trace: Any = DrawnTrace(1)
    trace.totals |= {"events_dropped": 0, "blocks_dropped": 3, "exchanges_dropped": 2}
    sentences = {finding.code: finding.sentence for finding in find(trace.transfers)}
    assert "events-dropped" not in sentences
    assert sentences["exchanges-dropped"].startswith("The exchanges table has no rows for 2 ")
    assert (
        sentences["blocks-dropped"]
        == "The blocks table has no rows for 3 blocks, because it is full; counters are complete."
    )


def test_words_agree_with_every_count() -> None:
    transfers: Any = DrawnTrace(0).transfers
    for rule in RULES.values():
        if isinstance(rule, CountRule):
            for count, words in ((1, "1 more direction "), (2, "2 more directions ")):
                match = rule.match_of_others(transfers, [(number, 7) for number in range(count)])
                sentence = fill(OTHERS, match.words)
                assert sentence.startswith(words) and (" were " not in sentence or count == 2)


def sentence_of(rule: CountRule, row: dict[str, Any], count: int) -> str:
    full: Any = {**dict.fromkeys(DirectionRow.__annotations__), **row}
    return next(shorter_forms(rule.sentence, rule.words_of(full, count)))


@pytest.mark.parametrize(
    "lost, runs, longest, words",
    [
        (1, 1, 1, "lost 1 of 100 numbered packets (1%) before the capture point."),
        (20, 20, 1, "lost 20 of 100 numbered packets (20%) before the capture point, each alone."),
        (20, 1, 20, "lost 20 of 100 numbered packets (20%) before the capture point, in one run."),
        (20, 4, 9, "lost 20 of 100 numbered packets (20%) before the capture point, in 4 runs of at most 9."),
    ],
)
def test_losses_are_reported_by_place(lost: int, runs: int, longest: int, words: str) -> None:
    ends = {"source": "10.0.0.1", "source_port": 1, "destination": "10.0.0.2", "destination_port": 2}
    row = {
        "data_packets": 100,
        "blocks": 100 - lost,
        "blocks_lost": lost,
        "block_loss_runs": runs,
        "block_loss_run_max": longest,
    }
    assert sentence_of(blocks_lost, {**ends, **row}, lost) == f"10.0.0.1:1 → 10.0.0.2:2 {words}"


@pytest.mark.parametrize(
    ("unplaced", "words"),
    [
        (
            0,
            "20 of 1,000 data segments (2%), or their ACKs, between capture point and receiver (retransmitted: 20 fast).",
        ),
        (
            30,
            "20 to 50 of 1,000 data segments (2% to 5%), or their ACKs, between capture point and receiver "
            "(of all 50 retransmitted: 20 fast, 30 of unknown cause); the place of 30 of 50 retransmissions is unknown.",
        ),
        (
            9_980,
            "20 to 10,000 segments, or their ACKs, between capture point and receiver (of all 10,000 retransmitted: 20 fast, "
            "9,980 of unknown cause); the place of 9,980 of 10,000 retransmissions is unknown.",
        ),
    ],
)
def test_a_share_of_losses_is_a_range_if_retransmissions_have_no_place(unplaced: int, words: str) -> None:
    row = {"source": "10.0.0.1", "source_port": 1, "destination": "10.0.0.2", "destination_port": 2}
    causes = {"fast_retransmissions": 20, "timeout_retransmissions": 0, "probe_retransmissions": 0}
    counts = {"data_packets": 1000, "retransmissions": 20 + unplaced, "unplaced_retransmissions": unplaced}
    assert sentence_of(lost_downstream, {**row, **causes, **counts}, 20) == f"10.0.0.1:1 → 10.0.0.2:2 lost {words}"


def test_headlines_are_well_said() -> None:
    lines = []
    for seed in range(SEEDS // 2):
        trace: Any = DrawnTrace(seed)
        lines += [f"{carried(explained.transfer)}; {explained.headline}." for explained in explain(trace, 10**9)]
    assert len(lines) > 100
    for name, wrong in WRONG.items():
        assert not [line for line in lines if re.search(wrong, line)], name


def test_the_first_sentence_of_a_cause_is_short() -> None:
    examples = json.loads(files("wiretale.analyzer.causes").joinpath("examples.json").read_text("utf-8"))
    assert len(examples) > 150
    first = {code: re.split(r"(?<=[\w)%])\. (?=\w)", example["sentence"])[0] for code, example in examples.items()}
    assert {code: sentence for code, sentence in first.items() if len(sentence.split()) > HEADLINE_WORDS} == {}
