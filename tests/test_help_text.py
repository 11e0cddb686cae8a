# SPDX-License-Identifier: Apache-2.0
"""Help fits the terminal, whatever its width; examples stay commands that a shell takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from wiretale.cli import COMMANDS
from wiretale.cli.help_text import fill_paragraph, fit_command

ACTIONS = (
    "experiment run",
    "experiment report",
    "experiment list",
    *(f"lab {name}" for name in ("up", "run", "shell")),
)


@pytest.mark.parametrize("words", [*COMMANDS, *ACTIONS])
def test_help_has_80_columns_and_begins_with_an_example(wiretale_run: Any, words: str) -> None:
    done = wiretale_run(*words.split(), "--help", env={"COLUMNS": "80"})
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert any(re.match(r"  wiretale", line) for line in lines[:6]), lines[:6]


def test_a_command_is_the_same_over_several_lines() -> None:
    command = "wiretale verify transfer.pcapng --json | jq '.differences[] | select(.rule == null)' --with more words"
    for width in range(20, 120, 7):
        assert shlex.split("\n".join(fit_command(command, width)).replace("\\\n", "")) == shlex.split(command)


def test_sentences_are_filled_and_examples_are_not() -> None:
    text = "examples:\n  one here     what it is\n  two\nA sentence that goes\non in the next line."
    assert fill_paragraph(text, 40) == (
        "examples:\n  one here     what it is\n  two\nA sentence that goes on in the next\nline."
    )


@pytest.mark.parametrize(
    "words, said",
    [
        ("analyse x", "there is no command 'analyse' (did you mean analyze?); see `wiretale --help`"),
        ("lab upp", "there is no command 'upp' (did you mean up?); see `wiretale lab --help`"),
        ("analyze --jsn x", "unrecognized arguments: --jsn; see `wiretale analyze --help`"),
        ("explain --code timeout", "(did you mean suspected-timeout or timeout-stalls?)"),
    ],
)
def test_what_was_probably_meant_is_said(wiretale_run: Any, words: str, said: str) -> None:
    done = wiretale_run(*words.split())
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
