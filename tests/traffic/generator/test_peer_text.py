# SPDX-License-Identifier: Apache-2.0
"""Texts of strangers on a terminal: neither end, nor any message of the C programs, lets them steer it or forge a line."""

from __future__ import annotations

import os
import signal
import socket
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import needs
from processes import on_terminal, output, wait_until
from traffic_ends import SECONDS, free_port
from wiretale.analyzer.printable import printable
from wiretale.traffic.program import find_program, program_path

pytestmark = [pytest.mark.xdist_group("traffic-ends"), needs.marked(needs.terminal())]

WIRETALE = program_path("wiretale") or "wiretale"
NONCE = "ab" * 32
FORGED = "wiretale receive: fake log line"
# A forged line, a title, an erased screen; a C1 control, also alone, a bidirectional override, bytes that are not UTF-8.
HOSTILE = b"x\n" + FORGED.encode() + b"\r\n\x1b]0;pwned\x07\x1b[2J\xc2\x9b2J\x9b2J\xe2\x80\xaecba\xe2\x81\xa6\xff\xc3"
SHOWN = printable(os.fsdecode(HOSTILE))


def escaped(data: bytes) -> str:
    """Returns the value of a line's field."""
    return "".join(f"%{byte:02X}" for byte in data)


def lines_on(terminal: bytes) -> list[str]:
    """Returns the lines that a terminal got: UTF-8, in which nothing but their ends is a control."""
    lines = terminal.decode().split("\r\n")
    assert all(line.isprintable() for line in lines), lines
    return lines


class Lines:
    """The control connection of a stranger."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.answers = connection.makefile()

    def say(self, *lines: str) -> None:
        self.connection.sendall("".join(f"{line}\n" for line in lines).encode())

    def wait(self, word: str) -> None:
        """Reads until a line begins with the word."""
        while not (line := self.answers.readline()).startswith(word):
            assert line, f"closed before {word!r}"


@contextmanager
def hostile_receiver(*answers: tuple[str, str]) -> Iterator[int]:
    """Greets at a port; then answers each line that begins with a word."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            lines = Lines(connection)
            lines.wait("wiretale/1")
            lines.say(f"wiretale/1 nonce={NONCE}")
            for word, answer in answers:
                lines.wait(word)
                lines.say(answer)
            lines.answers.read()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        thread.join(SECONDS)


def test_a_sender_cannot_steer_the_terminal_of_the_receiver() -> None:
    port = free_port()
    plan = "test run=7 protocol=tcp sizes_text=1000 count=10 streams=1 idle_ns=100000000"
    with on_terminal(WIRETALE, "receive", "--once", "--port", str(port)) as receiver:
        wait_until(lambda: b"listening" in receiver.written(), receiver.written)
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
            sender = Lines(connection)
            sender.say(f"wiretale/1 nonce={NONCE}", plan)
            sender.wait("ready")
            sender.say(
                "start",
                f"stop reason=error text={escaped(HOSTILE)}",
                f"sent way=forward stream=0 errors={escaped(HOSTILE)}",
            )
            sender.say("end way=forward")
            sender.wait("done")
        lines = lines_on(receiver.end())
    assert f"  STOPPED EARLY at the sender: error: the other end: {SHOWN}" in lines
    assert not any(line.startswith(FORGED) for line in lines)


@pytest.mark.parametrize("name", [b"caf\xe9.txt", "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe".encode(), b"-rf", b"a\xc2\x9bb"])
def test_the_name_of_a_file_is_printable(tmp_path: Path, name: bytes) -> None:
    port = free_port()
    path = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(path)).write_text("x")
    with on_terminal(WIRETALE, "receive", "--once", "--port", str(port)) as receiver:
        wait_until(lambda: b"listening" in receiver.written(), receiver.written)
        with on_terminal(WIRETALE, "send", "127.0.0.1", "--port", str(port), "--file", path) as sender:
            ends = [lines_on(sender.end()), lines_on(receiver.end())]
    label = ("./" if name == b"-rf" else "") + printable(os.fsdecode(name))
    for lines in ends:
        assert any(line.startswith(f"  file {label}, 1 bytes, checksum same at both ends") for line in lines), lines


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((("test", f"refused text={escaped(HOSTILE)}"),), f"refused: {SHOWN}"),
        ((("test", "ready"), ("start", f"stop reason=error text={escaped(HOSTILE)}")), f"the other end: {SHOWN}"),
        ((("test", f"ready\nrefused text={escaped(HOSTILE)}"),), f"refused: {SHOWN}"),
    ],
    ids=("refused", "stopped", "refused after ready"),
)
def test_a_receiver_cannot_steer_the_terminal_of_the_sender(
    answers: tuple[tuple[str, str], ...], expected: str
) -> None:
    with hostile_receiver(*answers) as port:
        options = ("--port", str(port), "--size", "100", "--count", "5", "--idle", "100ms")
        with on_terminal(WIRETALE, "send", "127.0.0.1", *options) as sender:
            lines = lines_on(sender.end())
    assert any(expected in line for line in lines), lines
    assert not any(line.startswith(FORGED) for line in lines)


@pytest.mark.parametrize("program", ["wiretale-traffic", "wiretale-capture", "wiretale-link"])
def test_messages_show_text_as_python_does(program: str) -> None:
    """Each character at which the table of printable ones changes, in a wrong option. Unicode may assign further ones."""
    codes = range(1, 0x110000)
    changes = {c for pair in pairwise(codes) if chr(pair[0]).isprintable() != chr(pair[1]).isprintable() for c in pair}
    assigned = [chr(c) for c in sorted(changes) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    assert len(assigned) > 500
    for first in range(0, len(assigned), 300):
        text = "".join([*assigned[first : first + 300], "\udcff\udc80"])
        with on_terminal(
            find_program(program), *(["send"] if "traffic" in program else []), os.fsencode(f"--{text}")
        ) as ended:
            line, *empty = lines_on(ended.end())
        assert f"--{printable(text)}" in line and empty == [""]


@needs.marked(needs.network_namespaces())
def test_names_of_interfaces_are_printable() -> None:
    """The kernel accepts all but spaces, colons and slashes in them."""
    space, names = f"wt-names{os.getpid()}", ("a\x1b[2J", "b\u202ec")
    output("ip", "netns", "add", space)
    try:
        output("ip", "-n", space, "link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for name in names:
            output("ip", "-n", space, "link", "set", name, "up")
        inside = ("ip", "netns", "exec", space)
        with on_terminal(*inside, find_program("wiretale-capture"), "--list") as listing:
            lines = lines_on(listing.end())
        assert all(any(f" {printable(name)} " in line for line in lines) for name in names), lines
        with on_terminal(*inside, find_program("wiretale-link"), *names) as link:
            wait_until(lambda: b"linking" in link.written(), link.written)
            link.process.send_signal(signal.SIGTERM)
            lines = lines_on(link.end())
        first, second = map(printable, names)
        assert f"linking {first} and {second}" in lines and f"{first} to {second}" in lines
    finally:
        output("ip", "netns", "delete", space)
