# SPDX-License-Identifier: Apache-2.0
"""Services beside web pages: each cause, and its nearest rival that is not taken for it; what is said of harmless captures."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import causes_services as drawn
import wiretale
from attempt_wire import Ends
from causes_broken import Make, of_timed, storm
from crafted import Timed
from finding_captures import of_wire
from neighbor_wire import GATEWAY, asks
from wiretale.analyzer.causes.registry import Explanation, is_at_own_pace


def trace_of(make: Make, folder: Path) -> wiretale.Trace:
    return wiretale.analyze(make(folder / "capture.pcap"))


def codes_of(make: Make, folder: Path) -> list[str]:
    return [row["code"] for row in trace_of(make, folder).causes]


def test_answers_that_come_after_the_client_asked_again_are_late(tmp_path: Path) -> None:
    answer = trace_of(of_wire(drawn.polled), tmp_path).answer
    assert (answer.cause, answer.place) == ("late-answers", "server")
    assert answer.sentence.startswith(
        "10.0.0.2:502 answers too late 3 times: it took 2.10 s, but the client asks again after 500 ms"
    )


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (of_wire(drawn.written), "late-answers"),
        (of_wire(lambda: drawn.polled(waiting=2)), "late-answers"),
        (of_wire(lambda: drawn.polled(0)), "client-pause"),  # polls by a timer
        (of_timed(lambda: drawn.tunnel(ike=False)), "esp-one-way"),
        (of_timed(lambda: drawn.tunnel(back=True)), "esp-one-way"),
        (of_timed(lambda: drawn.tunnel(count=4)), "esp-one-way"),
        (of_timed(lambda: drawn.quic(after=40.0)), "quic-dropped"),  # nothing followed
        (of_timed(lambda: drawn.quic(answered=True)), "quic-dropped"),  # UDP passes
        (of_timed(lambda: drawn.quic(error=True)), "quic-dropped"),
        (of_timed(lambda: drawn.natted_call(private=False)), "one-way-media"),
        (of_timed(lambda: drawn.late_lease(1.5, (0.0,))), "late-lease"),  # the server pings the address before
        (of_timed(lambda: drawn.late_lease()[:3]), "late-lease"),  # no Offer at all
    ],
)
def test_the_nearest_rival_is_not_taken_for_it(make: Make, code: str, tmp_path: Path) -> None:
    assert code not in codes_of(make, tmp_path)


@pytest.mark.parametrize(
    ("discovers", "certainty", "words"),
    [
        (
            (0.0, 4.0, 12.1),
            "likely",
            "the Offer of 10.1.0.1 came after 3 Discovers; the DHCP server or a relay probably answers late, or the",
        ),
        ((0.0,), "proven", "the DHCP server 10.1.0.1, or a relay before it, answered late"),
    ],
)
def test_an_offer_that_comes_late(discovers: tuple[float, ...], certainty: str, words: str, tmp_path: Path) -> None:
    answer = trace_of(of_timed(lambda: drawn.late_lease(20.3, discovers)), tmp_path).answer
    assert (answer.cause, answer.certainty) == ("late-lease", certainty)
    assert "waited 20.3 s for an address: the" in answer.sentence and words in answer.sentence


def test_esp_without_an_answer_is_likely_dropped(tmp_path: Path) -> None:
    answer = trace_of(of_timed(drawn.tunnel), tmp_path).answer
    assert answer.certainty == "likely" and answer.next_steps == ["Capture at 198.51.100.20: does ESP leave it?"]
    assert "20 packets of ESP left for 198.51.100.20 in 19 s and none came from it" in answer.sentence


def test_quic_to_one_server_is_possible_and_a_quick_fallback_a_note(tmp_path: Path) -> None:
    (row,) = trace_of(of_timed(lambda: drawn.quic(servers=1)), tmp_path).causes.rows()
    assert (row["code"], row["certainty"], row["severity"]) == ("quic-dropped", "possible", "error")
    (row,) = trace_of(of_timed(lambda: drawn.quic(after=0.35)), tmp_path).causes.rows()
    assert (row["certainty"], row["severity"]) == ("likely", "info")


def test_media_to_a_private_address_while_the_other_comes_is_one_call(tmp_path: Path) -> None:
    (row,) = trace_of(of_timed(drawn.natted_call), tmp_path).causes.rows()
    assert (row["code"], row["certainty"]) == ("one-way-media", "proven")
    assert "those of the other end come from 203.0.113.77" in row["sentence"]


def sentence_of(make: Any, folder: Path) -> str:
    return trace_of(of_timed(make), folder).answer.sentence


def test_a_traced_path_is_judged_by_its_end(tmp_path: Path) -> None:
    sentence = sentence_of(drawn.trace_route, tmp_path)
    assert "nothing was lost on it: 192.0.2.99 answered as many probes as any router before it (20)" in sentence
    assert "routers that answer less often (10.9.0.4: 7) or not at all only limit such answers" in sentence
    assert "which never answered" in sentence_of(lambda: drawn.trace_route(arrives=False), tmp_path)


def test_multicast_that_nobody_asked_for(tmp_path: Path) -> None:
    assert "2 multicast streams (239.192.10.1, 239.192.10.2)" in sentence_of(drawn.group_streams, tmp_path)
    assert "multicast stream" not in sentence_of(lambda: drawn.group_streams(member=True), tmp_path)


def beside_a_storm(datagrams: int = 0) -> Timed:
    """Broadcasts that circle, and a connection attempt meanwhile without an answer; other datagrams leave room for it."""
    room = [drawn.datagram(i * 0.0005, "10.0.4.9", "10.0.4.8", (5_000, 5_000), bytes(99)) for i in range(datagrams)]
    answered = Ends(45_000, 443, server="10.2.0.9").connects(0.001)
    return [*storm(), *Ends(46_000).syns(0.05, (0.0, 0.04, 0.1)), *answered, *chain.from_iterable(room)]


def test_what_a_storm_drowns_is_its_effect(tmp_path: Path) -> None:
    trace = trace_of(of_timed(beside_a_storm), tmp_path)
    assert trace.answer.cause == "bridge-loop" and trace.answer.cost["failed"] == 1
    assert not {row["code"] for row in trace.causes} & {"host-down", "filtered"}
    rows = trace_of(of_timed(lambda: beside_a_storm(3_000)), tmp_path).causes
    assert next(row["failed"] for row in rows if row["code"] == "bridge-loop") is None


def test_an_end_at_its_own_pace_is_no_answer_beside_a_step_of_the_clock() -> None:
    blank = Explanation._make([None] * len(Explanation._fields))._replace(severity="warning", flows=((0, None),))
    pause, clock = blank._replace(code="client-pause"), blank._replace(code="clock-step", place="capture", flows=())
    assert is_at_own_pace(pause, [pause, clock]) and not is_at_own_pace(pause, [pause])
    assert not is_at_own_pace(pause, [pause, clock._replace(severity="info")])


def lookups(hosts: int, each: int) -> Timed:
    """A router's broadcasts for its hosts."""
    return [asks(0.01 * i, f"10.0.4.{i % hosts + 100}", GATEWAY) for i in range(hosts * each)]


def test_a_router_that_looks_up_its_hosts_harms_nobody(tmp_path: Path) -> None:
    sentence = sentence_of(lambda: lookups(80, 2), tmp_path)
    assert "ARP requests of 02:00:00:00:00:01 (1 address) for 80 hosts, 101 a second" in sentence
    assert "looks up its hosts" not in sentence_of(lambda: lookups(8, 20), tmp_path)
