# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi stations that an access point refuses or removes, beside those that join and leave."""

from __future__ import annotations

from pathlib import Path

import pytest

import causes_wlan as drawn
from crafted import Timed, analyze_timed


@pytest.mark.parametrize(
    ("timed", "cause", "words"),
    [
        (
            drawn.joins(17, 17),
            "wlan-refused",
            "The access point 02:aa:aa:aa:aa:01 refuses 02:bb:bb:bb:bb:02 2 times with status 17: it cannot take more stations",
        ),
        (
            drawn.removals(15),
            "wlan-removed",
            "The access point 02:aa:aa:aa:aa:01 removed 02:bb:bb:bb:bb:02 3 times by deauthentication or disassociation with "
            "reason 15: the 4-way handshake got no valid answer in time, so the password (PSK) is probably wrong",
        ),
        (
            drawn.removals(7, 40, drawn.ALL, 0.2),
            "wlan-removed",
            "The access point 02:aa:aa:aa:aa:01 removed all its stations 40 times",
        ),
    ],
)
def test_what_is_said(timed: Timed, cause: str, words: str, tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, timed).answer
    assert (answer.cause, answer.sentence[: len(words)]) == (cause, words)


@pytest.mark.parametrize(
    "timed",
    [
        drawn.joins(0),
        drawn.joins(30, 0),  # the second attempt succeeds
        drawn.joins_elsewhere(17),  # the first one is full
        drawn.commits(126),  # steps of WPA3
        drawn.removals(4, 1),  # it was silent
        drawn.removed_once(15),  # and joins again
        drawn.removals(2, 1),  # and is forgotten then
        drawn.removals(8, 3, drawn.ALL),  # the access point is turned off
        drawn.departure(),
    ],
)
def test_stations_that_join_roam_and_rest(timed: Timed, tmp_path: Path) -> None:
    causes = analyze_timed(tmp_path, timed).causes
    assert not [row["code"] for row in causes if row["code"] in drawn.EXAMPLES and row["severity"] != "info"]
