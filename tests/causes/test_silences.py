# SPDX-License-Identifier: Apache-2.0
"""Packets that something does not answer, or only late: each cause, and its nearest rivals that are not taken for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import causes_silences as drawn
import wiretale
from crafted import Timed, write_timed
from plain_wire import Wire


class Said(NamedTuple):
    """A capture, and what the answer says: the cause, or a group of causes that it must not be, and texts of the sentence."""

    make: Callable[[], Wire | Timed]
    cause: str | None
    texts: tuple[str, ...] = ()


SAID = {
    # FIN
    "a FIN that is answered without an ACK of it": Said(
        drawn.unheard_fins,
        "fin-ignored",
        ("10.0.0.1 ignores that 10.0.0.2:80 closes", "3 connections was repeated 18 times in 18.1 s"),
    ),
    "a FIN that nothing answers": Said(
        lambda: drawn.unheard_fins(answers=False),
        "fin-ignored",
        ("10.0.0.1 fell silent when", "probably left the network"),
    ),
    "FINs that are acknowledged at last": Said(
        lambda: drawn.unheard_fins(answers=False, repeats=4, heard=True),
        "fin-ignored",
        (
            "10.0.0.1 acknowledged late that 10.0.0.2:80 closes",
            "so nobody waited: a device on the way probably drops FINs",
        ),
    ),
    "one FIN that is acknowledged at last": Said(
        lambda: drawn.unheard_fins(answers=False, repeats=4, heard=True, count=1),
        "fin-ignored",
        ("in 4.30 s", "the path was down just then, or a device dropped the FINs"),
    ),
    "FINs that are lost once": Said(lambda: drawn.unheard_fins(answers=False, repeats=1, heard=True), None),
    "a FIN that is lost with data": Said(
        lambda: drawn.unheard_fins(answers=False, repeats=4, heard=True, count=1, size=100), "outage", ("4.3",)
    ),
    "large requests of one flow": Said(
        drawn.sized_turns,
        "large-datagrams",
        (
            "within one flow, those of 1.45 kB or more got no answer (10 times), while all 30 of up to 1.40 kB did",
            "or the program wants no answer to them",
        ),
    ),
    "large requests of one flow, some of which come through": Said(lambda: drawn.sized_turns(passing=7), None),
    "requests of any size that get no answer": Said(lambda: drawn.sized_turns(lost=3), None),
    "one large request that is repeated": Said(lambda: drawn.sized_turns(sizes=(200, *[1_450] * 30)), None),
    "messages in pieces": Said(lambda: drawn.sized_turns(sizes=(1_450, 1_450, 300), every=0.05), None),
    "a FIN at the end of the capture": Said(lambda: drawn.unheard_fins(repeats=1), None),
    # first SYNs
    "first SYNs of some connections": Said(
        drawn.learned, "setup-lost", ("4 of 8 connections", "after 3 s", "the other 4 at once", "first has to learn")
    ),
    "SYNs of connections that follow one another": Said(
        lambda: drawn.learned(apart=0.4, count=12), "accept-queue", ("a device limits new connections",)
    ),
    "SYN-ACKs that come too late": Said(
        drawn.late_answers, "connect-given-up", ("10.0.0.1 probably gives up", "4 of 4 connections came after 600 ms")
    ),
    "SYN-ACKs of a near host that a scanner resets": Said(lambda: drawn.late_answers(0.02), None),
    "a client that waits as long elsewhere": Said(lambda: drawn.late_answers(patient=True), None),
    "late SYNs of a port that accepts nobody at once": Said(lambda: drawn.learned(count=2), None),
    # ClientHello
    "long hellos without an answer": Said(
        drawn.split_hellos,
        "split-hello",
        ("www.example.org:443", "3 of 1.70 kB were acknowledged, and nothing came back in 30 s", "3 of one segment"),
    ),
    "long hellos that are reset": Said(lambda: drawn.split_hellos("reset"), "split-hello", ("were reset",)),
    "long hellos that are closed": Said(lambda: drawn.split_hellos("closed"), "split-hello", ("met the close",)),
    "long hellos that are dropped whole": Said(
        lambda: drawn.split_hellos("dropped"), "split-hello", ("not even their short last segment", "A firewall")
    ),
    "long hellos whose full segment is lost": Said(lambda: drawn.split_hellos("hole"), "mtu-black-hole"),
    "long hellos alone": Said(
        lambda: drawn.split_hellos(small=0),
        "hung-server",
        (
            "the program behind the port probably hangs, or it or a device before it takes no ClientHello in two segments",
        ),
    ),
    "short hellos alone": Said(
        lambda: drawn.split_hellos(sizes=(320, 340, 360), small=0),
        "hung-server",
        ("the program behind the port hangs.",),
    ),
    "long hellos alone that are dropped": Said(
        lambda: drawn.split_hellos("dropped", small=0),
        "split-hello",
        ("may not accept a ClientHello in two segments", "no short one was sent", "or it drops them for their name"),
    ),
    "long hellos alone whose last segment is dropped": Said(
        lambda: drawn.split_hellos("cut", small=0),
        "split-hello",
        ("were acknowledged but for their short last segment", "A firewall or content filter before it probably"),
    ),
    "long hellos alone whose full segment is lost": Said(lambda: drawn.split_hellos("hole", small=0), "mtu-black-hole"),
    "hellos of any size": Said(lambda: drawn.split_hellos(sizes=(1_600, 1_700, 320)), "hung-server"),
    "hellos that a server closes alone": Said(lambda: drawn.split_hellos("closed", small=0), "closed-unanswered"),
    # ACKs
    "ACKs after 100 ms": Said(
        drawn.delayed,
        "late-acks",
        ("its ACKs come 99.5 ms after the data", "8.76 kB", "though the round trip is 500 µs"),
    ),
    "ACKs after 40 ms": Said(lambda: drawn.delayed(40.0, window=64_000), "late-acks", ("39.5 ms",)),
    "ACKs of single segments": Said(
        lambda: drawn.delayed(200.0, 1, window=1_460), "late-acks", ("one segment (1.46 kB)",)
    ),
    "ACKs out of a queue": Said(lambda: drawn.delayed(spread=True), None),
    "ACKs over a long path": Said(lambda: drawn.delayed(rtt=100.0), "small-window", ("at a round trip of 100 ms",)),
    "ACKs of a slow link": Said(
        lambda: drawn.delayed(segments=2, rtt=8.0, window=2_920), None, ("its median was 2.92 kB",)
    ),
    # queries
    "queries that are lost, of names that do not exist": Said(
        drawn.asked_again, "dns-repeated", ("4 of 8 DNS questions to 10.0.0.53", "waited 5.01 s each", "10 ms later")
    ),
    "queries that are lost": Said(lambda: drawn.asked_again(code=0), "dns-repeated"),
    "names that do not exist": Said(lambda: drawn.asked_again(wait=0.001), "error-answers"),
    "a slow resolver": Said(lambda: drawn.asked_again(code=0, late=True), "slow-dns"),
    # calls
    "a change of a call that is refused": Said(
        drawn.changed_calls,
        "sip-change-refused",
        ("refuses the second INVITE of 10.0.0.1 in 2 running calls with 488", "62 s after the call began"),
    ),
    "a session timer that is refused": Said(
        lambda: drawn.changed_calls(481, "UPDATE"), "sip-change-refused", ("the UPDATE of", "with 481 (no such call)")
    ),
    "a refused change after which the call goes on": Said(lambda: drawn.changed_calls(hangs_up=40.0), None),
    "a call that is refused": Said(lambda: drawn.changed_calls(first=False), "sip-refused"),
    # datagrams
    "large datagrams without an answer": Said(
        drawn.sized,
        "large-datagrams",
        ("10.0.0.2:5000 probably gets no large datagrams", "3 flows", "1.30 kB", "all 3"),
    ),
    "small datagrams without an answer as well": Said(lambda: drawn.sized((1_300, 1_400, 1_400, 200)), None),
    "large datagrams of which one is answered": Said(lambda: drawn.sized(answered=(60, 300, 900, 1_400)), None),
    # silence, then a RST
    "a RST after silence": Said(
        drawn.cut_while_waiting,
        "idle-timeout",
        (
            "or the server itself, probably cut idle connections after 350 s",
            "3 requests still waited",
            "answers no packet",
        ),
    ),
    "a RST after silence of any length": Said(
        lambda: drawn.cut_while_waiting((70_000.0, 130_000.0, 260_000.0)), "reset-by-peer", ("its process closed them",)
    ),
    "RSTs in one moment": Said(
        lambda: drawn.cut_while_waiting((90_000.0,) * 3, apart=0.001), "reset-by-peer", ("its process died",)
    ),
    "a RST that acknowledges the request after a pause": Said(
        drawn.acknowledged_by_a_device, "idle-timeout", ("probably cut idle connections after 900 s", "within 20.5 ms")
    ),
    "a program that refuses the request after a pause": Said(
        lambda: drawn.acknowledged_by_a_device(window=512), "reset-by-peer"
    ),
}


def answer_of(packets: Wire | Timed, path: Path) -> wiretale.Answer:
    if isinstance(packets, Wire):
        packets.write(path)
    else:
        write_timed(path, sorted(packets, key=lambda packet: packet[0]))
    return wiretale.analyze(path).answer


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    expected = SAID[name]
    answer = answer_of(expected.make(), tmp_path / "capture.pcap")
    assert answer.cause == expected.cause, answer.sentence
    assert [text for text in expected.texts if text not in answer.sentence] == [], answer.sentence
