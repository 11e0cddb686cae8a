# SPDX-License-Identifier: Apache-2.0
"""Answers that a client must discard, and logins in many fragments: what is said of each, and its nearest rivals."""

from __future__ import annotations

from pathlib import Path

import pytest

import causes_discarded as drawn
from crafted import Timed, analyze_timed


@pytest.mark.parametrize(
    ("timed", "code", "words"),
    [
        (
            drawn.cookies(),
            "wrong-cookie",
            "10.0.0.1 discards the DNS answers of 10.0.0.53: they have another cookie than its queries, so it asked 6 "
            "questions again "
            "(host0.example and 2 more; 18 s in all).",
        ),
        (drawn.cookies(server=bytes(16)), "wrong-cookie", "they have another cookie than its queries"),
        (drawn.cookies(anew=True), "wrong-cookie", "10.0.0.1 probably discards the DNS answers of 10.0.0.53"),
        (
            drawn.strayed(),
            "answer-elsewhere",
            "10.0.0.53:161 answers from another address: 3 answers came from 10.7.0.7",
        ),
        (
            drawn.fragmented_login(),
            "udp-silent",
            "10.0.0.53:4500 answers none of 4 IKE_AUTH messages (19 fragments each) of 10.0.0.1 in 7.02 s, although it answered "
            "IKE_SA_INIT before: a fragment never arrives, or it takes no message in so many.",
        ),
    ],
)
def test_what_is_said(timed: Timed, code: str, words: str, tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, timed).answer
    assert answer.cause == code and words in answer.sentence, answer.sentence


@pytest.mark.parametrize(
    ("timed", "code"),
    [
        (drawn.cookies(drawn.OWN), "wrong-cookie"),  # asks again for another reason
        (drawn.cookies(drawn.OWN, server=bytes(16)), "wrong-cookie"),
        (drawn.cookies(None), "wrong-cookie"),  # the server knows no cookies
        (drawn.cookies(sent=None), "wrong-cookie"),  # the client sent none
        (drawn.cookies(tries=1), "wrong-cookie"),  # the client takes the answer all the same
        (drawn.cookies(questions=1, tries=2), "wrong-cookie"),  # once
        (drawn.strayed(rejected=False), "answer-elsewhere"),  # as TFTP goes on from another port
        (drawn.strayed(source=drawn.SERVER), "answer-elsewhere"),  # the port alone
        (drawn.fragmented_login(answered=True), "udp-silent"),
    ],
)
def test_rivals(timed: Timed, code: str, tmp_path: Path) -> None:
    assert code not in analyze_timed(tmp_path, timed).causes.column("code")


def test_the_code_of_an_answer_with_another_cookie(tmp_path: Path) -> None:
    timed = [*drawn.cookies(questions=1, tries=1), *drawn.named(30.0, 5, drawn.OWN, drawn.OWN, code=3)]
    rows = [row for row in analyze_timed(tmp_path, timed).exchanges if row["kind"] == "dns"]
    assert [(row["code"], row["outcome"]) for row in rows] == [("WRONGCOOKIE", "answered"), ("NXDOMAIN", "answered")]
