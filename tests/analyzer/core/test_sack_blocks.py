# SPDX-License-Identifier: Apache-2.0
"""The SACK blocks of a packet: every block of the option, in its order, in the packets table and in the report's streams."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from plain_wire import Connection, Wire, sack

Blocks = list[tuple[int, int]]
STARTS = ("sack_start", "sack2_start", "sack3_start", "sack4_start")
THREE: Blocks = [(6000, 7000), (4000, 5000), (2000, 3000)]
FOUR: Blocks = [(8000, 9000), *THREE]


@pytest.mark.parametrize("blocks", [[], THREE[:1], THREE[1:], THREE, FOUR], ids=len)
def test_every_block_is_in_the_packets_table(tmp_path: Path, blocks: Blocks) -> None:
    talk = Connection(Wire()).open()
    for number in (0, 2, 4, 6, 8):
        talk.data(10 + number, 1000 * number, 1000)
    talk.ack(30, 1000, options=sack(*blocks) if blocks else b"")
    rows = wiretale.analyze(talk.wire.write(tmp_path / "sack.pcap")).packets([0]).rows()
    blocks_of_row = [(rows[-1][start], rows[-1][start.replace("start", "end")]) for start in STARTS]
    assert blocks_of_row == blocks + [(None, None)] * (4 - len(blocks))
    assert all(row[start] is None for row in rows[:-1] for start in STARTS)


def test_an_empty_block_ends_the_list(tmp_path: Path) -> None:
    talk = Connection(Wire()).open()
    for number in (0, 2, 4, 6):
        talk.data(10 + number, 1000 * number, 1000)
    talk.ack(30, 1000, options=sack((6000, 7000), (4000, 4000), (2000, 3000)))
    row = wiretale.analyze(talk.wire.write(tmp_path / "sack.pcap")).packets([0]).rows()[-1]
    assert (row["sack_start"], row["sack_end"], row["sack2_start"]) == (6000, 7000, None)
