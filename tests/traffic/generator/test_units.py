# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command lines of the generator and the link: every spelling that wiretale accepts, and its value."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from checkout import UNIT_SPELLINGS
from wiretale.traffic.program import find_program

KINDS = ("rate", "size", "time", "count")
NONCE = "cd" * 32
# Option of `send` for each kind, and the field of the protocol's line that has its value.
OPTIONS = {
    "rate": ("--rate", "rate_bps"),
    "size": ("--bytes", "bytes"),
    "time": ("--time", "time_ns"),
    "count": ("--count", "count"),
}
NO_PORT = ("127.0.0.1", "--port", "1", "--connect-timeout", "1s")
QUEUE_MOST = 100_000_000  # packets


class Listener:
    """Answers as a receiver would, and refuses each test after its line was read."""

    def __init__(self) -> None:
        self.plans: list[str] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer, peer.makefile() as lines:
                next(lines)
                peer.sendall(f"wiretale/1 nonce={NONCE}\n".encode())
                self.plans.append(next(lines))
                peer.sendall(b"refused text=seen\n")


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    server = Listener()
    yield server
    server.socket.close()


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [find_program(program), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C.UTF-8"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_generator_takes_every_spelling_for_its_value(listener: Listener, kind: str) -> None:
    option, field = OPTIONS[kind]
    wrong = []
    for text, value in UNIT_SPELLINGS[kind].items():
        done = run("wiretale-traffic", "send", "127.0.0.1", "--port", str(listener.port), option, text)
        if done.returncode != 4:
            wrong.append((text, done.stderr))
            continue
        fields = dict(word.partition("=")[::2] for word in listener.plans.pop().split())
        if float(fields[field]) != value:
            wrong.append((text, fields[field]))
    assert wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_generator_refuses_wrong_spellings(kind: str) -> None:
    for text in UNIT_SPELLINGS["refused"][kind]:
        done = run("wiretale-traffic", "send", *NO_PORT, OPTIONS[kind][0], text)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (text, done.stderr)
        assert f"{OPTIONS[kind][0]} '{text}': expected " in done.stderr


def link(kind: str, text: str) -> subprocess.CompletedProcess[str]:
    """The link with such a number; there are no such interfaces, which it looks for when it has read its options."""
    settings = {"rate": f"rate={text}", "size": f"queue={text}", "count": f"periodic={text}", "time": f"delay={text}"}
    if kind == "time" and set(text) & set(" \t"):  # which parts settings
        return run("wiretale-link", "no-such-1", "no-such-2", "--spin", text)
    return run("wiretale-link", "no-such-1", "no-such-2", "--both", settings[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_link_takes_every_spelling(kind: str) -> None:
    for text, value in UNIT_SPELLINGS[kind].items():
        if kind != "time":
            text = "".join(text.split())  # a blank ends a setting
        if kind == "size" and value > QUEUE_MOST and text[-1] not in "bBsS":
            continue  # packets, without a unit of bytes
        done = link(kind, text)
        assert done.returncode == 4 and "no such interface" in done.stderr, (text, done.stderr)


@pytest.mark.parametrize("kind", KINDS)
def test_the_link_refuses_wrong_spellings(kind: str) -> None:
    for text in UNIT_SPELLINGS["refused"][kind]:
        if set(text.strip()) & set(" \t"):
            continue
        assert link(kind, text.strip()).returncode == 2, text


@pytest.mark.parametrize(
    "setting", ["mtu=1500", "mtu=1.5k", "mtu=1.5kB", "mtu=1KiB", "overhead=38", "overhead=38B", "overhead=-20"]
)
def test_settings_in_bytes_take_a_unit(setting: str) -> None:
    done = run("wiretale-link", "no-such-1", "no-such-2", "--both", setting)
    assert done.returncode == 4 and "no such interface" in done.stderr, done.stderr


@pytest.mark.parametrize(("text", "sizes"), [("1k", "1k"), ("64,512-0.6k:44", "64,512-0.6k:44"), ("1 KiB", "1 KiB")])
def test_sizes_of_blocks_are_spelled_so_too(listener: Listener, text: str, sizes: str) -> None:
    done = run("wiretale-traffic", "send", "127.0.0.1", "--port", str(listener.port), "--size", text)
    assert done.returncode == 4, done.stderr
    assert f"sizes_text={sizes.replace(' ', '%20')}" in listener.plans.pop()
