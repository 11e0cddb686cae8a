# SPDX-License-Identifier: Apache-2.0
"""Resets by segments that came under another address, and resets that harm nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

import causes_strays as drawn
import wiretale
from causes_broken import of_timed
from crafted import Timed


def trace_of(timed: Timed, folder: Path) -> wiretale.Trace:
    return wiretale.analyze(of_timed(lambda: timed)(folder / "capture.pcap"))


def test_segments_without_translation_break_connections(tmp_path: Path) -> None:
    answer = wiretale.analyze(drawn.EXAMPLES["untranslated"](tmp_path / "capture.pcap")).answer
    assert (answer.cause, answer.certainty, answer.cost["failed"]) == ("untranslated", "proven", 2)
    assert answer.sentence.startswith(
        "2 connections to 10.96.0.10:8080 broke because server segments came from 10.244.5.17 instead"
    )


@pytest.mark.parametrize(
    "timed",
    [
        drawn.transfer(40_000, 1.0, strays=False),
        drawn.transfer(40_000, 1.0, stray_port=40_009),  # of no open connection
        drawn.transfer(40_000, 1.0, rejected=False),  # a client that takes it: another route, or a mirror
    ],
)
def test_other_segments_are_translated_or_belong_to_nobody(timed: Timed, tmp_path: Path) -> None:
    assert "untranslated" not in trace_of(timed, tmp_path).causes.column("code")


@pytest.mark.parametrize(
    ("timed", "words"),
    [
        (drawn.checks(), "10.0.0.1 checks every 2 s whether 10.2.0.2:9000 is open: it connects and resets at once"),
        (
            [*drawn.checks(), *drawn.checks(6, 5.0, client="10.0.0.8"), *drawn.checks(6, client="10.0.0.9")],
            "3 hosts (10.0.0.1, 10.0.0.8 and 1 more) check every 2 to 5 s whether 10.2.0.2:9000 is open: they connect and reset "
            "at once without a word (20 times)",
        ),
        (drawn.last_words(), "10.2.0.2:443 reset 4 connections that it had closed before, after all its data was"),
    ],
)
def test_resets_that_harm_nobody_are_told_as_harmless(timed: Timed, words: str, tmp_path: Path) -> None:
    assert trace_of(timed, tmp_path).answer.sentence.startswith(words)


@pytest.mark.parametrize(
    "timed",
    [
        drawn.checks(count=3),
        drawn.checks(jitter=1.1),  # no timer
        drawn.checks(words=b"GET /"),  # a client that gives up
        drawn.checks(wait=1.5),  # it waits for a greeting
        drawn.last_words(count=2),
        drawn.last_words(size=300),  # a request that was lost
        drawn.last_words(size=12, greeting=bytes(12)),  # a short one
        drawn.last_words(answered=False),  # the client may not have the answer
    ],
)
def test_other_resets_are_not_told_as_harmless(timed: Timed, tmp_path: Path) -> None:
    assert "harmless" not in trace_of(timed, tmp_path).answer.sentence


@pytest.mark.parametrize(
    ("timed", "words"),
    [
        (drawn.idle(), "10.2.0.2:5432 reset 3 idle connections, 60 s after their last packet: "),
        (drawn.idle(1, back=False), "10.0.0.1 reset an idle connection to 10.2.0.2:5432, 60 s after its last packet: "),
        (drawn.idle(ttl=60), "A device in the name of 10.2.0.2:5432 (by its TTL) reset 3 idle connections, 60 s after"),
    ],
)
def test_idle_connections_that_nobody_misses(timed: Timed, words: str, tmp_path: Path) -> None:
    answer = trace_of(timed, tmp_path).answer
    assert answer.cause is None and answer.sentence.startswith(words), answer.sentence


@pytest.mark.parametrize(
    "timed",
    [drawn.idle(answered=False), drawn.idle(used=False), drawn.idle(pause=0.5)],
    ids=["asked", "unused", "soon"],
)
def test_connections_that_somebody_may_miss(timed: Timed, tmp_path: Path) -> None:
    assert "nobody misses" not in trace_of(timed, tmp_path).answer.sentence


@pytest.mark.parametrize(
    ("timed", "certainty", "words"),
    [
        (drawn.half(), "proven", "30 kB of an answer of 60 kB, then nothing for 60 s, and it reset the connection"),
        (drawn.half(pause=0.0), "proven", "30 kB of an answer of 60 kB, then it reset the connection"),
        (drawn.half(flags="FA"), "proven", "then nothing for 60 s, and it closed the connection"),
        (drawn.half(back=False), "likely", "then nothing for 60 s, and the client reset the connection"),
        (drawn.half(back=False, flags="FA"), "likely", "and the client closed the connection"),
        (drawn.half(lost=True), "likely", "42 B of it without an ACK, then"),
        (drawn.half(count=3), "proven", "30 kB of an answer of 60 kB (and so 2 others), then nothing for 60 s"),
    ],
    ids=["reset", "at once", "closed", "given up", "closed by the client", "lost", "several"],
)
def test_answers_that_stop_before_their_length(timed: Timed, certainty: str, words: str, tmp_path: Path) -> None:
    answer = trace_of(timed, tmp_path).answer
    assert (answer.cause, answer.certainty) == ("answer-cut", certainty) and words in answer.sentence, answer.sentence


@pytest.mark.parametrize(
    "timed",
    [
        drawn.half(60_000),
        drawn.half(method=b"HEAD", came=0),
        drawn.half(back=False, pause=0.5),  # a client that wants no more
        drawn.half(shut=True),
        drawn.half(unseen=True),
        drawn.half(length=b"Transfer-Encoding: chunked\r\nContent-Length: 60000"),
        drawn.half(length=b"Connection: close"),
    ],
    ids=["whole", "head", "enough", "shut", "unseen", "chunks", "unknown"],
)
def test_answers_that_may_be_whole(timed: Timed, tmp_path: Path) -> None:
    assert "answer-cut" not in trace_of(timed, tmp_path).causes.column("code")


@pytest.mark.parametrize(
    ("timed", "words"),
    [
        (drawn.half(60_000), "every request answered, but a client that wants it later must connect again"),
        (drawn.half(0, method=b"HEAD"), "every request answered, but a client that wants it later must connect again"),
        (drawn.idle(3), "every request answered, but a client that wants one later must connect again"),
        (drawn.idle(1, back=False), "so probably nobody misses it"),
        (
            drawn.half(length=b"Connection: close"),
            "every request answered; whether the last one was whole doesn't",
        ),
        (drawn.half(length=b"A: b", count=3, port=81), "whether the last ones were whole doesn't show"),
    ],
)
def test_idle_connections_whose_last_answer_may_be_half(timed: Timed, words: str, tmp_path: Path) -> None:
    answer = trace_of(timed, tmp_path).answer
    assert answer.cause is None and words in answer.sentence, answer.sentence
