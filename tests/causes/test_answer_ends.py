# SPDX-License-Identifier: Apache-2.0
"""Responses that end before their length, and those whose end the client cannot know, beside whole ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from attempt_wire import RTT
from causes_answer_ends import BEFORE, HEAD, RESET, STREAM, Message, responses, waits
from causes_requests import GIVES_UP, Word
from crafted import Timed, analyze_timed

SHORT, ENDLESS = "answer-cut", "endless-response"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
CASES: dict[str, tuple[Timed, str | None, str, tuple[str, ...]]] = {
    "a FIN in the middle": (responses(), SHORT, "server", ()),
    "in the second response": (responses(before=BEFORE), SHORT, "server", ()),
    "as long as announced": (responses(Message(3000)), None, "", ()),
    "one byte less": (responses(Message(3001)), SHORT, "server", ()),
    "longer than announced": (responses(Message(20)), None, "", ()),
    "a RST of another TTL": (responses(ending=[RESET._replace(ttl=120)]), "reset-by-device", "device", ()),
    "in chunks": (responses(Message(extra=b"Transfer-Encoding: chunked\r\n")), None, "", ()),
    "no length, and a close at once": (responses(Message(None)), None, "", ()),
    "the client closes in the middle": (responses(ending=GIVES_UP), None, "", ()),
    "the client resets in the middle": (responses(ending=[RESET._replace(back=False)]), None, "", ()),
    "a part that the capture lacks": (responses(lost=True), None, "", ()),
    "the length of what HEAD would get": (responses(Message(body=0), ask=HEAD), None, "", ()),
    "the same in the second": (responses(Message(body=0), ask=HEAD, before=BEFORE), None, "", ()),
    "status 304 with a length": (responses(Message(body=0, status=b"304 Not Modified")), None, "", ()),
    "no length, and the client closes after 30 s": (
        responses(Message(None, 300), waits(30.0)),
        ENDLESS,
        "server",
        ("3 responses of app.example:80 have neither", "probably waited 30 s for the end, until it gave up"),
    ),
    "no length, and the server closes after 15 s": (
        responses(Message(None, 300), waits(15.0, True)),
        ENDLESS,
        "server",
        ("waited 15 s for the end, until the server closed",),
    ),
    "no length in the second": (responses(Message(None, 300), waits(60.0), before=BEFORE), ENDLESS, "server", ()),
    "a length, and the client closes after 30 s": (responses(Message(300, 300), waits(30.0)), None, "", ()),
    "no length, and the client closes after 7.3 s": (responses(Message(None, 300), waits(7.3)), None, "", ()),
    "chunks, and the server closes after 15 s": (
        responses(Message(None, 300, extra=b"Transfer-Encoding: chunked\r\n"), waits(15.0, True)),
        None,
        "",
        (),
    ),
    "a stream of events": (responses(Message(None, 300, extra=STREAM), waits(30.0)), None, "", ()),
    "status 204": (responses(Message(None, 0, b"204 No Content"), waits(30.0)), None, "", ()),
    "the answer to HEAD": (responses(Message(None, 0), waits(30.0), HEAD), None, "", ()),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_says_how_responses_end(case: str, tmp_path: Path) -> None:
    timed, cause, place, texts = CASES[case]
    trace = analyze_timed(tmp_path, sorted(timed, key=lambda packet: packet[0]))
    answer = trace.answer
    codes = {row["code"] for row in trace.causes}
    assert answer.cause == cause if cause else not codes & {SHORT, ENDLESS}, (answer.sentence, codes)
    assert not place or trace.causes.rows()[0]["place"] == place
    assert all(text in answer.sentence for text in texts), answer.sentence


def test_lengths_of_each_request_are_columns(tmp_path: Path) -> None:
    response = Message(3000)._replace(extra=b"Server: a\r\n")
    put = b"PUT /a HTTP/1.1\r\nHost: app.example\r\ncontent-length:\t4\r\n\r\nabcd"
    later = (*BEFORE, Word(0.1, False, put), Word(RTT, True, INTERIM), Word(0.1, True, response.octets()))
    timed = responses(response, before=later)
    rows = [
        row
        for row in analyze_timed(tmp_path, sorted(timed, key=lambda packet: packet[0])).exchanges.rows()
        if row["turn"] is not None
    ]
    head = len(response.octets()) - response.body
    assert [row["announced_bytes"] for row in rows[:3]] == [None, len(put), None]
    assert [row["response_announced_bytes"] for row in rows[:3]] == [
        len(BEFORE[1].data),
        len(INTERIM) + head + 3000,
        head + 3000,
    ]
    assert [row["response_until_close"] for row in rows[:3]] == [False] * 3
    assert [row["closed_by"] for row in rows[:3]] == [None, None, 1]
