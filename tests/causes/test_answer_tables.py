# SPDX-License-Identifier: Apache-2.0
"""The answers of all captures at hand are those that were read beside the packets: .ci/answers.py writes them."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

import needs
from checkout import ROOT

FOLDER = ROOT / "tests" / "causes"
WORDS_MOST = 52  # of a fault of the capture, and what it carried nevertheless


@pytest.fixture(scope="module")
def maker() -> Any:
    """.ci/answers.py."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        return importlib.import_module("answers")
    finally:
        sys.path.remove(str(ROOT / ".ci"))


def changed(table: str, name: str) -> list[str]:
    """The rows of a table that are not in the file of that name, and those that are there alone."""
    before = (FOLDER / name).read_text("utf-8").splitlines()
    rows = table.splitlines()
    return [f"+ {row}" for row in rows if row not in before] + [f"- {row}" for row in before if row not in rows]


def test_the_answers_of_samples_were_read(maker: Any) -> None:
    folder = ROOT / "sample_pcaps"
    assert changed(maker.table(folder, maker.captures(folder)), "answers.tsv") == []


@pytest.mark.parametrize("name", ["labelled/questions", "labelled/field", "labelled/truth", "labelled/cases"])
def test_the_answers_of_other_peoples_captures_were_read(maker: Any, name: str) -> None:
    shared = needs.shared(name)
    folder = shared.parents[1]
    before = (ROOT / "tests" / "causes" / "answers_shared.tsv").read_text("utf-8")
    rows = maker.table(folder, maker.captures(shared)).splitlines()[1:]
    assert [row for row in rows if not row.startswith("(") and row not in before.splitlines()] == []


def test_answers_are_short() -> None:
    lines = (
        line
        for name in ("answers.tsv", "answers_shared.tsv")
        for line in (FOLDER / name).read_text("utf-8").splitlines()
    )
    long = [line for line in lines if len(line.rpartition("\t")[2].split()) > WORDS_MOST]
    assert not long
