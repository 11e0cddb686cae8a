# SPDX-License-Identifier: Apache-2.0
"""Connections that end too early: each cause, and its nearest rival that is not taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import causes_broken
import causes_ended as drawn
import wiretale
from application_wire import hello
from causes_ended import of_talks
from finding_captures import of_wire


def causes_of(make: drawn.Make, folder: Path) -> dict[str, Any]:
    trace = wiretale.analyze(make(folder / "capture.pcap"))
    return {row["code"]: row for row in trace.causes.rows()}


def test_a_device_is_told_by_ttl_and_time(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["reset-by-device"], tmp_path)["reset-by-device"]
    assert (row["certainty"], row["place"], row["failed"], row["attempts"]) == ("proven", "device", 3, 4)
    assert row["sentence"] == (
        "A device 3 hops from here, not the server, reset 3 connections to 10.0.0.2:443: TTL 61 against 52, 400 µs after the "
        "packet that it answers, on a path of 20 ms."
    )


def test_a_device_that_seems_behind_the_server_has_no_distance(tmp_path: Path) -> None:
    make = of_talks(lambda: drawn.aborted(ttl=46, reply=0.4, socket=False, hops=12))
    sentence = causes_of(make, tmp_path)["reset-by-device"]["sentence"]
    assert sentence.startswith("A device, not the server, reset 3 connections") and "TTL 46 against 52" in sentence


def test_a_host_that_goes_on_did_not_reset(tmp_path: Path) -> None:
    make = of_talks(lambda: drawn.aborted(reply=0.4, socket=False, goes_on=True))
    row = causes_of(make, tmp_path)["reset-by-device"]
    assert row["certainty"] == "proven" and "the host went on with 1 packet" in row["sentence"]


@pytest.mark.parametrize(("ttl", "is_forged"), [(61, True), (64, False)])
def test_an_answer_after_a_reset_that_acknowledged_its_request(ttl: int, is_forged: bool, tmp_path: Path) -> None:
    """The RST left nothing open, and the response comes in spite of it: only with another TTL it is a device's."""
    rows = causes_of(
        of_talks(lambda: drawn.aborted(ttl=ttl, reply=19.0, goes_on=True, hops=12 if is_forged else 0)), tmp_path
    )
    assert ("reset-by-device" in rows) == is_forged
    assert not is_forged or rows["reset-by-device"]["failed"] == 3


def test_one_hop_is_one_sign_only(tmp_path: Path) -> None:
    row = causes_of(of_talks(lambda: drawn.aborted(ttl=63)), tmp_path)["reset-by-device"]
    assert row["certainty"] == "likely" and "probably reset" in row["sentence"]


def test_a_server_that_aborts_is_told_with_what_was_open(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["reset-by-peer"], tmp_path)
    assert "reset-by-device" not in rows
    assert rows["reset-by-peer"]["sentence"] == (
        "The server 10.0.0.2:443 itself reset 3 connections of 4 with a request open, 500 µs after the last packet: each at "
        "its client's first message, which the process refuses or dies of."
    )


def test_an_abort_that_crosses_data_answers_nothing(tmp_path: Path) -> None:
    """Seen at the client: the server's program closed a live socket before the request reached it."""

    def crossing() -> list[drawn.Talk]:
        talk = drawn.Talk(ends=(("10.0.0.1", 40_001), ("10.0.0.2", 443)), isn=(1000, 500_000))
        return [talk.open().data(25, 0, 300).send(25.4, 1, 0, ack=0, flags="RA")]

    rows = causes_of(of_talks(crossing), tmp_path)
    assert "reset-by-device" not in rows and "reset-by-peer" in rows


def test_a_host_without_the_socket_restarted(tmp_path: Path) -> None:
    row = causes_of(of_talks(lambda: drawn.aborted(socket=False)), tmp_path)["reset-by-peer"]
    assert "the host no longer knew them, as after a restart" in row["sentence"]


def test_an_idle_timeout_of_a_device(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["idle-timeout"], tmp_path)["idle-timeout"]
    assert (row["certainty"], row["failed"]) == ("proven", 3)
    assert row["sentence"] == (
        "A device before 10.0.0.2:443 (TTL 61 against 64) cut idle connections after 412 s: the first packets after 3 pauses "
        "were reset within 20.2 ms. Pauses of up to 300 s did no harm."
    )


def test_an_idle_timeout_without_a_sign_is_likely(tmp_path: Path) -> None:
    row = causes_of(of_talks(lambda: drawn.cut(count=1)), tmp_path)["idle-timeout"]
    assert row["certainty"] == "likely"
    assert "or the server itself, probably cut the idle connection after 412 s" in row["sentence"]


def test_a_server_that_restarted_under_idle_connections(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["server-restarted"], tmp_path)
    assert set(rows) == {"server-restarted"}
    row = rows["server-restarted"]
    assert (row["certainty"], row["failed"], row["place"]) == ("likely", 3, "server")
    assert row["sentence"] == (
        "The server 10.0.0.2:6379 probably restarted while its clients were idle: it no longer knew 3 connections, last "
        "used 10 to 12.5 s before, and reset them within 20.2 ms of the next request. It accepts new ones."
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"pauses": (10_000, 10_100, 10_200)},
        {"survives": True},
        {"near": False},
        {"pauses": (60_000, 72_000, 90_000)},
        {"pauses": (10_000,)},
    ],
    ids=["pauses of one length", "one survives", "at no common moment", "long pauses", "one connection"],
)
def test_an_idle_timeout_is_no_restart(changed: dict[str, Any], tmp_path: Path) -> None:
    rows = causes_of(of_talks(lambda: drawn.restarted(**changed)), tmp_path)
    assert "server-restarted" not in rows and "idle-timeout" in rows


def test_a_request_that_crossed_the_close(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["close-race"], tmp_path)
    assert set(rows) == {"close-race"}
    assert rows["close-race"]["sentence"] == (
        "The server 10.0.0.2:80 closed idle connections after 5 s, and 3 of 16 requests were already on the way: they were reset."
    )


@pytest.mark.parametrize("after_ms", [300, 1_500])
def test_a_request_after_the_close_met_the_idle_timeout_of_the_server(after_ms: float, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: drawn.closing(after_ms)), tmp_path)
    assert "close-race" not in rows
    assert rows["idle-timeout"]["sentence"].startswith(
        "The server 10.0.0.2:80 closes idle connections after 5 s: 3 requests went out"
    )


def test_a_client_that_gave_up_is_named_with_its_timeout(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["client-gave-up"], tmp_path)["client-gave-up"]
    assert (row["certainty"], row["place"], row["failed"], row["waited_ns"]) == ("proven", "client", 3, 6_000_000_000)
    assert row["sentence"] == (
        "The client 10.0.0.1 gave up after its timeout of 2 s: it closed 3 of 3 connections to 10.0.0.2:8443 before the answers "
        "came, after 3.40 s, and reset them."
    )


def test_unequal_waits_are_no_timeout(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.impatient((1_300, 2_700, 730))), tmp_path)["client-gave-up"]
    assert row["certainty"] == "likely" and "timeout" not in row["sentence"]


def test_a_close_notify_is_no_answer(tmp_path: Path) -> None:
    """A browser closes a connection that it opened in advance, and resets the server's close_notify."""
    rows = causes_of(of_wire(drawn.unused), tmp_path)
    assert all(row["severity"] == "info" for row in rows.values())
    late = causes_of(of_wire(lambda: drawn.unused(late=300)), tmp_path)["client-gave-up"]
    assert (late["failed"], late["place"]) == (3, "client")


@pytest.mark.parametrize("alert", [True, False])
def test_a_port_that_speaks_no_tls_is_told_from_a_refusal(alert: bool, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: drawn.plain_answer(alert=alert)), tmp_path)
    row = rows["not-tls"]
    assert "tls-refused" not in rows and (row["certainty"], row["failed"], row["attempts"]) == ("proven", 3, 3)
    ending = ", and the client ended the handshake with alert protocol_version." if alert else "."
    assert row["sentence"] == (
        "www.example.org:8080 does not speak TLS: it answered all 3 ClientHellos of 10.0.0.1 with 47 B of another protocol, such "
        f"as plain HTTP{ending}"
    )


@pytest.mark.parametrize(
    ("port", "answer", "leave_ms", "protocol"),
    [
        (587, b"500 5.5.2 Error: bad syntax\r\n", 0.5, 'plain mail ("500 5.5.2 Error: bad syntax")'),
        (21, b"500 OOPS: bad syntax\r\n", 0.5, 'plain FTP ("500 OOPS: bad syntax")'),
        (9_000, b"?\r\n", 0.5, "another protocol"),
        (9_000, b"?\r\n", 8_000, None),
        (9_000, hello(2, b""), 0.5, None),
    ],
)
def test_a_client_that_leaves_an_answer_without_tls(
    port: int, answer: bytes, leave_ms: float, protocol: str | None, tmp_path: Path
) -> None:
    """The server waits for more: what the client wanted of it is TLS from the first byte."""
    wire = of_wire(lambda: drawn.plain_answer(answer, port=port, closer=0, leave_ms=leave_ms))
    rows = causes_of(wire, tmp_path)
    assert "service-refused" not in rows and ("not-tls" in rows) == (protocol is not None)
    assert protocol is None or f"of {protocol}" in rows["not-tls"]["sentence"]


def test_a_version_that_the_client_refuses_is_no_other_protocol(tmp_path: Path) -> None:
    """The server answers with a ServerHello, and the client does not want its version."""
    rows = causes_of(of_wire(lambda: drawn.plain_answer(answer=drawn.hello(2, b""))), tmp_path)
    assert "not-tls" not in rows and "tls-refused" in rows


def test_sockets_that_a_server_leaks_are_counted(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["close-wait"], tmp_path)["close-wait"]
    assert (row["severity"], row["members"]) == ("warning", 6)
    assert (
        "acknowledged the FIN of 6 client connections and kept its own side open for 62.5 to 67.5 s" in row["sentence"]
    )
    assert "while 2 others were closed by both ends" in row["sentence"]


def test_an_alert_is_told_by_its_meaning(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["tls-refused"], tmp_path)["tls-refused"]
    assert row["certainty"] == "proven" and "ended the TLS handshake" in row["sentence"]


@pytest.mark.parametrize(("hello_first", "certainty"), [(True, "likely"), (False, "proven")])
def test_a_refusal_after_the_servers_hello_is_not_about_ciphers(
    hello_first: bool, certainty: str, tmp_path: Path
) -> None:
    row = causes_of(of_wire(lambda: drawn.demanding(hello_first)), tmp_path)["tls-refused"]
    meanings = ("probably demands a client certificate", "found no common cipher")
    assert [text in row["sentence"] for text in meanings] == [hello_first, not hello_first]
    assert (row["certainty"], row["failed"]) == (certainty, 3)


@pytest.mark.parametrize(
    ("changed", "is_told"), [({}, True), ({"named": 0}, False), ({"name_refused": True}, False)], ids=str
)
def test_a_server_that_refuses_clients_without_its_name(changed: dict[str, Any], is_told: bool, tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.nameless(**changed)), tmp_path)["tls-refused"]
    assert ("does not name it (SNI), which these 3 did not: it ended 3 of 4" in row["sentence"]) == is_told
    assert row["certainty"] == ("likely" if is_told else "proven")


def test_a_server_that_closes_after_so_many_requests(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["request-limit"], tmp_path)
    assert (rows["request-limit"]["certainty"], rows["request-limit"]["failed"]) == ("proven", 3)
    assert "closes each connection after 20 requests, and does not say so" in rows["request-limit"]["sentence"]
    assert not {"close-race", "reset-by-peer"} & rows.keys()


@pytest.mark.parametrize(
    "changed",
    [{"counts": (20, 31, 25)}, {"counts": (20,)}, {"counts": (4, 4, 4)}, {"idle_ms": 5_000.0}, {"met": False}],
    ids=["other counts", "once", "few requests", "idle", "in time"],
)
def test_other_closes_beside_requests(changed: dict[str, Any], tmp_path: Path) -> None:
    assert "request-limit" not in causes_of(of_wire(lambda: drawn.limited(**changed)), tmp_path)


def test_a_server_that_closes_connections_at_an_age(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["age-limit"], tmp_path)
    assert set(rows) == {"age-limit"} and rows["age-limit"]["certainty"] == "proven"
    assert rows["age-limit"]["sentence"] == (
        "The server 10.0.0.2:80 closed 4 connections 60 s after each was opened, though they were in use (idle for 301 ms to "
        "2.50 s), and 2 requests met the close: they were reset."
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"ages": (60_000.0, 71_000.0, 64_000.0, 90_000.0), "idles": (2_500.0,) * 4},
        {"apart_ms": 10.0},
        {"longer": True},
        {"ages": (60_000.0,) * 2},
        {"idles": (2_500.0,) * 4},
    ],
    ids=["one idle time", "closed together", "one lives longer", "two", "one idle time and one age"],
)
def test_closes_at_no_age(changed: dict[str, Any], tmp_path: Path) -> None:
    assert "age-limit" not in causes_of(of_wire(lambda: drawn.aged(**changed)), tmp_path)


def test_an_age_and_an_idle_time_that_are_both_alike_are_both_told(tmp_path: Path) -> None:
    make = of_wire(lambda: drawn.aged(idles=(2_500.0,) * 4, met=4))
    row = causes_of(make, tmp_path)["close-race"]
    assert "closed idle connections after 2.50 s (or 60 s after each was opened), and 4 of" in row["sentence"]


def test_an_age_and_a_number_of_requests_that_are_both_alike_are_both_told(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.aged(paces=(2_000.0,))), tmp_path)["request-limit"]
    assert (
        row["certainty"] == "likely" and "probably closes each connection after 30 requests (or 60 s" in row["sentence"]
    )


@pytest.mark.parametrize("count", [1, 2])
def test_a_server_that_ends_a_session_with_its_stream(count: int, tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.sessions(count)), tmp_path)["session-timeout"]
    assert (row["failed"], row["certainty"], row["place"]) == (count, "likely", "client")
    assert "60 s after the client's last message: it probably got no keep-alive" in row["sentence"]


@pytest.mark.parametrize(
    "changed",
    [{"stream": False}, {"longer_ms": 5_000.0}, {"count": 1, "silent_ms": 71_000.0}],
    ids=["no stream", "the stream goes on", "once, after an odd time"],
)
def test_sessions_that_end_otherwise(changed: dict[str, Any], tmp_path: Path) -> None:
    assert "session-timeout" not in causes_of(of_wire(lambda: drawn.sessions(**changed)), tmp_path)


def test_answers_that_come_when_the_client_has_given_up(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["late-udp-answers"], tmp_path)["late-udp-answers"]
    assert (row["certainty"], row["failed"], row["place"]) == ("likely", 3, "server")
    assert row["sentence"].startswith(
        "10.0.0.9:161 probably answers 10.0.0.1 too late: the first answer to 3 requests took 1.60 s, when 10.0.0.1 had asked "
        "again after 1 s, and the last ones came when it had closed its port."
    )


@pytest.mark.parametrize("changed", [{"late": 0.4, "again": 1.4}, {"stays": True}], ids=["in time", "the client waits"])
def test_answers_for_which_a_client_waits(changed: dict[str, Any], tmp_path: Path) -> None:
    assert "late-udp-answers" not in causes_of(drawn.of_timed(lambda: drawn.impatient_polls(**changed)), tmp_path)


@pytest.mark.parametrize(
    ("changed", "severity", "told"),
    [
        (
            {},
            "error",
            "reset 2 of 4 connections 30 ms after its answer instead of closing them: these answers may be cut short",
        ),
        ({"resets": 4, "reads": False, "after_ms": 0.3}, "error", "the client loses what it had not read of it"),
        ({"resets": 4}, "info", "the client has acknowledged all of it"),
    ],
    ids=["some", "unread", "all"],
)
def test_a_server_that_resets_behind_its_answers(
    changed: dict[str, Any], severity: str, told: str, tmp_path: Path
) -> None:
    row = causes_of(of_wire(lambda: drawn.reset_behind(**changed)), tmp_path)["reset-behind-answer"]
    assert told in row["sentence"] and row["severity"] == severity and row["place"] == "server"


@pytest.mark.parametrize("changed", [{"resets": 1}, {"after_ms": 900.0}], ids=["once", "later"])
def test_resets_after_answers_that_nobody_misses(changed: dict[str, Any], tmp_path: Path) -> None:
    wire = of_wire(lambda: drawn.reset_behind(**changed))
    assert "reset-behind-answer" not in causes_of(wire, tmp_path)


@pytest.mark.parametrize(
    ("changed", "certainty"),
    [
        ({}, "possible"),
        ({"step": 0}, "possible"),
        ({"rest_ms": 500.0}, None),
        ({"closes": False}, None),
        ({"count": 2}, None),
    ],
    ids=["unlike sizes", "one size", "other times", "the client closes", "two"],
)
def test_answers_that_end_after_one_time(changed: dict[str, Any], certainty: str | None, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: drawn.cut_answers(**changed)), tmp_path)
    row = rows.get("answer-time-limit")
    assert (row and row["certainty"]) == certainty
    assert row is None or row["sentence"].startswith(
        "The server 10.0.0.2:80 ended each of 3 answers 15 s after the request, while "
    )


def test_a_server_of_one_connection(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["one-at-a-time"], tmp_path)["one-at-a-time"]
    assert (row["certainty"], row["failed"], row["place"]) == ("likely", 6, "server")
    assert "it reset 6 of 7 connections within 3 ms after the next one began" in row["sentence"]


@pytest.mark.parametrize("changed", [{"by_server": False}, {"after_ms": -900.0}, {"count": 4}, {"closes": True}])
def test_connections_that_follow_each_other(changed: dict[str, Any], tmp_path: Path) -> None:
    """The client resets, the server did so before the next one, few connections, or the server had closed."""
    assert "one-at-a-time" not in causes_of(of_wire(lambda: drawn.by_turns(**changed)), tmp_path)


def test_a_server_that_resets_what_it_accepted(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["reset-at-once"], tmp_path)["reset-at-once"]
    assert (row["failed"], row["certainty"], row["place"]) == (9, "likely", "server")
    assert "while it served 2 other connections. It probably has reached a limit" in row["sentence"]


def test_a_server_that_resets_before_it_is_ready_serves_others_later(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.dropped_at_once(serves_ms=60_000.0)), tmp_path)["reset-at-once"]
    assert (
        "served 2 other connections before or after. It probably had reached a limit, or was not ready"
        in row["sentence"]
    )


@pytest.mark.parametrize("changed", [{"side": 0}, {"later": 900.0}, {"count": 2}], ids=["check", "later", "twice"])
def test_other_resets_without_a_byte(changed: dict[str, Any], tmp_path: Path) -> None:
    """Of health checks, of an idle timer, and too few."""
    assert "reset-at-once" not in causes_of(of_wire(lambda: drawn.dropped_at_once(**changed)), tmp_path)


def test_a_server_that_closes_in_the_middle_of_an_upload(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["upload-cut"], tmp_path)["upload-cut"]
    assert (row["failed"], row["certainty"], row["place"]) == (2, "likely", "server")
    assert "closed 2 connections of 10.0.0.1 during an upload, after 175 kB" in row["sentence"]


@pytest.mark.parametrize("changed", [{"client_ends": True}, {"resets": False}, {"rounds": 0}])
def test_other_ends_of_uploads(changed: dict[str, Any], tmp_path: Path) -> None:
    """The client had closed its half, nothing was reset, or the request had just begun."""
    assert "upload-cut" not in causes_of(of_wire(lambda: drawn.cut_short(**changed)), tmp_path)


def test_a_server_that_closes_in_place_of_an_answer(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["closed-unanswered"], tmp_path)["closed-unanswered"]
    assert (row["failed"], row["place"], row["certainty"]) == (3, "server", "likely")
    assert "closed 3 connections without an answer to the HTTP request, 900 ms after it" in row["sentence"]


@pytest.mark.parametrize(
    ("same", "greeted", "text"),
    [
        (False, 2, "greeted 2 connections of other clients: it probably does not admit this client"),
        (True, 2, "greeted 2 other connections: it probably has reached a limit"),
        (False, 0, "5 s after it accepted them: it probably refuses"),
    ],
)
def test_a_server_that_closes_without_a_greeting(same: bool, greeted: int, text: str, tmp_path: Path) -> None:
    wire = drawn.ungreeted(greeted=greeted, same=same)
    row = causes_of(drawn.of_wire(lambda: wire), tmp_path)["not-greeted"]
    assert (row["failed"], row["certainty"], row["place"]) == (3, "likely", "server")
    assert "closed 3 connections of 10.0.0.1 without a greeting" in row["sentence"] and text in row["sentence"]


def test_first_words_of_the_client_that_cross_the_close_are_no_request(tmp_path: Path) -> None:
    row = causes_of(of_wire(drawn.crossed), tmp_path)["not-greeted"]
    assert (row["failed"], row["certainty"]) == (3, "likely")
    assert "while it greeted 2 other connections: it probably has reached a limit" in row["sentence"]


def test_a_server_that_closes_by_a_timer(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["closed-by-timer"], tmp_path)["closed-by-timer"]
    assert (row["members"], row["severity"], row["failed"]) == (4, "warning", None)
    assert "closed each of 4 connections of 10.0.0.1 60 s after the client's last message" in row["sentence"]


def test_a_timer_of_the_last_message_either_way(tmp_path: Path) -> None:
    """The server's own last message comes at other times after the client's."""
    row = causes_of(of_wire(lambda: drawn.timed_out(pushes=True)), tmp_path)["closed-by-timer"]
    assert "closed each of 4 connections of 10.0.0.1 60 s after the last message" in row["sentence"]
    assert "that are idle for so long" in row["sentence"]
    row = causes_of(of_wire(lambda: drawn.timed_out(pushes=True, port=1883)), tmp_path)["closed-by-timer"]
    assert "that are idle for so long" in row["sentence"]  # a keep-alive counts what the client sends


def test_a_client_of_mqtt_that_sends_no_ping(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.timed_out(15_000.0, 3_000.0, port=1883)), tmp_path)["closed-by-timer"]
    assert "15 s after the client's last message" in row["sentence"] and "without a PINGREQ" in row["sentence"]
    assert "closed-by-timer" not in causes_of(of_wire(lambda: drawn.timed_out(15_000.0, 3_000.0)), tmp_path)


@pytest.mark.parametrize(("later_ms", "certainty"), [(0.0, "proven"), (500.0, "likely"), (1_500.0, None)])
def test_a_broker_that_looks_for_silent_clients_now_and_then(
    later_ms: float, certainty: str | None, tmp_path: Path
) -> None:
    """A keep-alive of 5 s: below the 10 s of other servers."""
    wire = drawn.timed_out(7_500.0, 1_000.0, port=1883, later_ms=later_ms)
    row = causes_of(of_wire(lambda: wire), tmp_path).get("closed-by-timer")
    assert (row and row["certainty"]) == certainty
    assert not row or ("7.50" in row["sentence"] and "without a PINGREQ" in row["sentence"])
    assert "closed-by-timer" not in causes_of(of_wire(lambda: drawn.timed_out(7_500.0, 1_000.0)), tmp_path)


def test_a_client_that_waits_for_the_close(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["late-close"], tmp_path)["late-close"]
    assert (row["members"], row["certainty"], row["failed"]) == (4, "likely", None)
    assert "answers 10.0.0.1 at once and closes 5 s later" in row["sentence"] and "4 times" in row["sentence"]


@pytest.mark.parametrize(
    "changed",
    [{"answer": True}, {"again_ms": 30_000.0}, {"count": 2}, {"silent_ms": 5_000.0}, {"first": 0}],
    ids=["closes with an answer", "opened much later", "twice", "keep-alive of HTTP", "client closes"],
)
def test_ends_of_connections_that_nobody_misses(changed: dict[str, Any], tmp_path: Path) -> None:
    wire = drawn.timed_out(**changed)
    assert "closed-by-timer" not in causes_of(drawn.of_wire(lambda: wire), tmp_path)


@pytest.mark.parametrize(("port", "first"), [(80, 1), (22, 0)], ids=["client speaks first", "client closes first"])
def test_connections_without_a_byte_are_not_refused(port: int, first: int, tmp_path: Path) -> None:
    """Browsers connect in advance, and monitors close once they are connected."""
    wire = drawn.ungreeted(port, first=first)
    assert "not-greeted" not in causes_of(drawn.of_wire(lambda: wire), tmp_path)


@pytest.mark.parametrize(
    ("changed", "code", "text"),
    [
        (
            {},
            "not-greeted",
            "reset 3 connections of 10.0.0.1 without a greeting, 20.4 ms after it accepted them, while it greeted",
        ),
        (
            {"served": 0},
            "not-greeted",
            "20.4 ms after it accepted them: it probably refuses, or cannot start its work.",
        ),
        (
            {"message": 22},
            "turned-away",
            "turned 3 of 5 connections of 10.0.0.1 away: it sent 22 B and reset at the client's first",
        ),
        ({"message": 30, "port": 25}, "reset-behind-answer", ""),  # the end of a short session
        ({"port": 80}, "reset-by-peer", ""),
        ({"later": 0.9}, "reset-by-peer", ""),
        ({"ttl": 200}, "reset-by-device", ""),
    ],
    ids=["at its words", "all of them", "with a message", "mail", "a client that speaks first", "late", "a device"],
)
def test_a_server_that_resets_logins(changed: dict[str, Any], code: str, text: str, tmp_path: Path) -> None:
    rows = causes_of(drawn.of_timed(lambda: drawn.dropped_logins(**changed)), tmp_path)
    assert code in rows and text in rows[code]["sentence"], [row["sentence"] for row in rows.values()]


@pytest.mark.parametrize(("later_ms", "severity"), [(20.0, "info"), (30_000.0, "error")])
def test_what_a_client_tries_after_a_reset_is_a_note(later_ms: float, severity: str, tmp_path: Path) -> None:
    rows = causes_of(of_talks(lambda: drawn.refuses_version(later_ms)), tmp_path)
    assert (rows["reset-by-peer"]["severity"], rows["refused"]["severity"]) == ("error", severity)


def test_a_server_that_is_full_turns_away(tmp_path: Path) -> None:
    row = causes_of(of_wire(drawn.full_server), tmp_path)["turned-away"]
    assert (row["certainty"], row["failed"], row["attempts"]) == ("likely", 3, 5)
    assert row["sentence"] == (
        "The server 10.0.0.2:3306 turned 3 of 5 connections of 10.0.0.1 away: it sent 33 B and closed before the client said "
        "anything, while it greeted 2 other connections; it probably has reached a limit."
    )


@pytest.mark.parametrize(
    "wire",
    [lambda: drawn.full_server(first=0), lambda: drawn.full_server(message=900), lambda: drawn.full_server(port=9000)],
    ids=["the client closes", "a long message", "another protocol"],
)
def test_a_server_that_only_speaks_turns_nobody_away(wire: Any, tmp_path: Path) -> None:
    assert "turned-away" not in causes_of(of_wire(wire), tmp_path)


def test_a_server_that_answers_and_closes_is_well(tmp_path: Path) -> None:
    timed = [entry for talk in drawn.closed_at(answer=True) for entry in talk.timed]
    assert "closed-unanswered" not in causes_of(drawn.of_timed(lambda: timed), tmp_path)


def test_datagrams_for_a_closed_port_are_a_note(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["late-datagrams"], tmp_path)["late-datagrams"]
    assert (row["severity"], row["certainty"], row["place"], row["packets"]) == ("info", "proven", "client", 2)
    assert row["sentence"].startswith("2 late datagrams found 2 ports of 10.0.0.1 closed")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (drawn.of_timed(lambda: drawn.answers_too_late(refuses=1)), "late-datagrams"),
        (drawn.of_timed(lambda: drawn.answers_too_late(goes_on=True)), "late-datagrams"),
        (of_talks(lambda: drawn.cut(idle_ms=300_000, spared_ms=400_000)), "idle-timeout"),
        (of_talks(drawn.aborted), "idle-timeout"),
        (of_talks(drawn.cut), "reset-by-peer"),
        (of_wire(causes_broken.forgotten), "idle-timeout"),
        (of_wire(lambda: drawn.impatient(shut=True)), "client-gave-up"),
        (of_wire(lambda: drawn.impatient(late_ms=1_900)), "client-gave-up"),
        (of_wire(drawn.farewells), "client-gave-up"),
        (of_wire(lambda: drawn.closing_late(quiet_ms=100.0)), "late-close"),
        (of_wire(lambda: drawn.closing_late(next_ms=2_500.0)), "late-close"),
        (of_wire(lambda: drawn.closing_late(count=2)), "late-close"),
        (of_wire(lambda: drawn.closing_late(900.0, timer_ms=1_100.0)), "late-close"),
        (of_wire(lambda: drawn.ungreeted(first=0, last=False)), "not-greeted"),
        (of_wire(causes_broken.hung), "client-gave-up"),
        (of_wire(causes_broken.hung), "close-wait"),
        (of_wire(lambda: drawn.leaking(count=2)), "close-wait"),
        (of_wire(lambda: drawn.leaking(wait_ms=1_000)), "close-wait"),
        (of_wire(lambda: drawn.leaking(pushes=True)), "close-wait"),
        (of_wire(lambda: drawn.closing(-5, count=0)), "close-race"),
        (of_wire(lambda: drawn.closing(-5, keep_ms=200)), "close-race"),
        (of_wire(drawn.closed_after_answers), "close-race"),
        (of_wire(drawn.closed_after_answers), "idle-timeout"),
    ],
)
def test_the_nearest_rival_is_not_taken_for_it(make: Any, code: str, tmp_path: Path) -> None:
    assert code not in causes_of(make, tmp_path)


def test_a_refusal_that_the_server_contradicts_is_forged(tmp_path: Path) -> None:
    rows = causes_of(of_wire(drawn.refused_by_a_device), tmp_path)
    assert "refused" not in rows and "filtered" not in rows
    assert rows["reset-by-device"]["sentence"] == (
        "A device, not the server, reset 1 connection to 10.0.0.2:6649: the server accepted the same SYN 1.03 s later."
    )


def test_a_second_attempt_contradicts_no_refusal(tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: drawn.refused_by_a_device(accepts=False)), tmp_path)
    assert "reset-by-device" not in rows and "refused" in rows


def test_a_server_that_closed_and_fell_silent(tmp_path: Path) -> None:
    row = causes_of(of_wire(drawn.shut_and_silent), tmp_path)["silent-after-close"]
    assert (row["certainty"], row["failed"]) == ("likely", 1)
    assert row["sentence"].startswith(
        "10.0.0.2:8089 closed 1 connection before a request came and went silent: 383 B sent 447 ms after its FIN "
        "were repeated 5 times in 9.30 s"
    )


def test_a_server_that_resets_what_comes_after_its_fin_is_not_silent(tmp_path: Path) -> None:
    assert "silent-after-close" not in causes_of(of_wire(lambda: drawn.shut_and_silent(reset=True)), tmp_path)


def test_two_clients_end_each_others_session(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["session-takeover"], tmp_path)["session-takeover"]
    assert row["sentence"].startswith(
        "10.0.0.1 and another client end each other's session at 10.0.0.9:1883: 7 connections in 21 s were closed when the other"
    )


@pytest.mark.parametrize(
    "timed",
    [
        drawn.taken_over(after=-0.5),  # each closes before the next one connects
        drawn.taken_over(after=1.0),
        drawn.taken_over(clients=8),  # no two of them take turns
        drawn.taken_over(clients=1),
        drawn.taken_over(times=4),
        drawn.taken_over(open_for=0.4),
    ],
)
def test_sessions_that_nobody_takes_over(timed: drawn.Timed, tmp_path: Path) -> None:
    assert "session-takeover" not in causes_of(drawn.of_timed(lambda: timed), tmp_path)


@pytest.mark.parametrize(("more", "is_end"), [({}, True), ({"controlled": False}, False), ({"closes": False}, False)])
def test_a_reset_that_ends_a_test_fails_nobody(more: dict[str, bool], is_end: bool, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: drawn.end_of_a_test(**more)), tmp_path)
    assert ("reset-by-peer" not in rows) == is_end
