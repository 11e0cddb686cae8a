# SPDX-License-Identifier: Apache-2.0
"""Faults of real kernels, each captured at sender, middle and receiver at once: lab.tsv has what the answer says at each point.

A cell of lab.tsv is the cause that the answer names, with its certainty; `-` is an answer that names none, because that point
cannot know it. Two cells in one stand where chance decides which facts a capture has. The words are in the sentence wherever the
cause itself is named. The sender is the host that connects.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import wiretale
from lab_situations import SITUATIONS
from three_points import NEEDED, POINTS, captured
from wiretale.analyzer.causes.cause import CERTAINTIES
from wiretale.analyzer.causes.registry import CAUSES

pytestmark = [pytest.mark.xdist_group("counted"), NEEDED]

TABLE = Path(__file__).with_name("lab.tsv")
ROWS = {row["situation"]: row for row in csv.DictReader(TABLE.read_text("utf-8").splitlines(), delimiter="\t")}
SIDE_BY_SIDE = 12  # they sleep most of the time
LEAST = 25  # situations


class Answered(NamedTuple):
    cause: str | None
    certainty: str
    sentence: str

    @property
    def cells(self) -> set[str]:
        """What a cell may have that expects this."""
        return {self.cause, f"{self.cause} {self.certainty}"} if self.cause else {"-"}


def play(situation: str, folder: Path) -> dict[str, Answered]:
    """What the answer of each point says."""
    answers = {point: wiretale.analyze(file).answer for point, file in captured(SITUATIONS[situation], folder).items()}
    return {point: Answered(answer.cause, answer.certainty, answer.sentence) for point, answer in answers.items()}


class Plays:
    """Plays all situations of these tests side by side; one that is asked for again is played again."""

    def __init__(self, situations: list[str], folder: Path) -> None:
        self.folder = folder
        with ThreadPoolExecutor(
            SIDE_BY_SIDE
        ) as pool:  # waits for all, because tests that must be alone wait for this one
            self.futures = {name: pool.submit(play, name, self.place(name)) for name in situations}

    def place(self, situation: str) -> Path:
        return self.folder / situation.replace(" ", "-")

    def answers(self, situation: str) -> dict[str, Answered]:
        future = self.futures.pop(situation, None)
        return future.result() if future else play(situation, self.place(situation))


@pytest.fixture(scope="module")
def plays(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    selected = {item.callspec.params.get("situation") for item in request.session.items if hasattr(item, "callspec")}
    yield Plays([name for name in SITUATIONS if name in selected], tmp_path_factory.mktemp("lab"))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_point_says_what_it_can_know(plays: Plays, situation: str) -> None:
    row, answers = ROWS[situation], plays.answers(situation)
    wrong = [
        f"{point}: {answers[point]}" for point in POINTS if not answers[point].cells & set(row[point].split(" / "))
    ]
    assert not wrong, "\n".join(wrong)
    assert not [answer.sentence for answer in answers.values() if "{" in answer.sentence]
    named = [answer.sentence for answer in answers.values() if answer.cause == row["cause"]]
    missing = [
        (words, sentence)
        for sentence in named
        for words in row["words"].split(" | ")
        if not any(choice in sentence for choice in words.split(" / "))
    ]
    assert not missing


def test_the_table_has_each_situation_with_a_cause_that_a_point_may_name() -> None:
    assert list(ROWS) == list(SITUATIONS)
    assert len([row for row in ROWS.values() if row["cause"] != "-"]) >= LEAST
    for row in ROWS.values():
        cells = [cell for point in POINTS for cell in row[point].split(" / ")]
        assert row["cause"] in {cell.split()[0] for cell in cells}, row
        codes = [cell.split() for cell in cells if cell != "-"]
        assert all(code in CAUSES and set(certainty) <= set(CERTAINTIES) for code, *certainty in codes), row
