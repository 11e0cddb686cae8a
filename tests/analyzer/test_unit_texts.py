# SPDX-License-Identifier: Apache-2.0
"""Python and the page show a quantity in one way: units.tsv. common/test/test_units.c does the same with the C programs."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import unit_cases
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate, show_share
from wiretale.reports.html.modules import script

CASES = [tuple(line.split("\t")) for line in unit_cases.FILE.read_text("utf-8").splitlines()[1:]]
SHOW = {"duration": show_duration, "bytes": show_bytes, "rate": show_rate, "count": show_count}
#: a function of the page for each quantity
IN_PAGE = (
    "{ duration, bytes: (value) => prefixed(value, 'B'), rate: (value) => prefixed(value, 'bit/s'), count: whole }"
)
VALUE = "({ null: null, nan: NaN, inf: Infinity, '-inf': -Infinity })[text] ?? (text === 'null' ? null : Number(text))"
SHOWN = f"cases.map(([quantity, text]) => ({IN_PAGE})[quantity]({VALUE}))"


def number(text: str) -> float | None:
    """A value; whole numbers are integers, as in the tables."""
    if text == "null":
        return None
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def differences(texts: dict[tuple[str, str], str]) -> dict[tuple[str, str], tuple[str, str]]:
    """The cases whose text is another one, with that of the table."""
    return {case: (texts[case], text) for *case_, text in CASES if texts.get(case := tuple(case_), text) != text}


def test_the_table_has_every_step_of_the_rounding() -> None:
    """In exact arithmetic: `python tests/support/unit_cases.py` writes it."""
    assert unit_cases.FILE.read_text("utf-8") == unit_cases.table()
    assert len(CASES) == len(set(CASES)) > 500


def test_python_shows_the_texts() -> None:
    texts = {(quantity, value): SHOW[quantity](number(value)) for quantity, value, _ in CASES if quantity != "share"}
    texts |= {
        (quantity, value): show_share(*map(int, value.split("/"))) for quantity, value, _ in CASES if "/" in value
    }
    assert len(texts) == len(CASES) and not differences(texts)


def page_cases() -> list[list[str]]:
    return [[quantity, value] for quantity, value, _ in CASES if quantity != "share"]


def check_page(page_texts: list[str]) -> None:
    texts = {(quantity, value): text for (quantity, value), text in zip(page_cases(), page_texts, strict=True)}
    assert not differences(texts)


def test_the_page_shows_the_texts(request: pytest.FixtureRequest) -> None:
    """In node, or without it in Chromium."""
    code, cases = script("units.js"), page_cases()
    if node := shutil.which("node"):
        test = f"{code}\nconst cases = {json.dumps(cases)};\nconsole.log(JSON.stringify({SHOWN}));"
        done = subprocess.run([node, "-"], input=test, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        check_page(json.loads(done.stdout))
    else:
        page = request.getfixturevalue("page").page
        check_page(page.evaluate(f"(cases) => {{ {code}; return {SHOWN}; }}", cases))
