# SPDX-License-Identifier: Apache-2.0
"""Peers of wiretale-traffic that flood, refuse late, are older or slow: both ends keep their limits and say why they end."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from traffic_ends import free_port, receiving, send, send_raw, sending_early

pytestmark = pytest.mark.xdist_group("traffic-ends")

NONCE = "ab" * 32
TEST = "test run=7 protocol=udp direction=forward streams=1 sizes_text=1000 count=10 idle_ns=1000000000"


def ask(port: int, test: str = TEST) -> socket.socket:
    """The control connection of a sender by hand for which the receiver is ready."""
    control = socket.create_connection(("127.0.0.1", port), timeout=60)
    control.sendall(f"wiretale/1 nonce={NONCE}\n{test}\n".encode())
    replies = b""
    while b"ready" not in replies:
        replies += control.recv(4096)
    return control


def flood(peer: socket.socket, line: bytes, is_over: Callable[[], bool]) -> bool:
    """Whether it was over, or the peer closed the connection, before a minute of lines without a pause."""
    until = time.monotonic() + 60
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < until and not is_over():
            peer.sendall(line * 7000)
        return time.monotonic() < until
    return True


@pytest.mark.parametrize(("begin", "line"), [("", b"offset\n"), ("start\n", b"progress\n")])
def test_lines_without_a_pause_do_not_hold_a_receiver(tmp_path: Path, begin: str, line: bytes) -> None:
    """Neither its time limit for a start nor a signal waits for their end."""
    with receiving(tmp_path) as receiver, ask(receiver.port) as peer:
        peer.sendall(begin.encode())
        if begin:
            receiver.process.send_signal(signal.SIGINT)
        assert flood(peer, line, lambda: receiver.process.poll() is not None)
        if not begin:
            assert send(receiver.port, "--count", "1", "--wait", "20")["blocks_received"] == 1


def test_lines_without_a_pause_do_not_hold_a_sender(tmp_path: Path) -> None:
    """After a signal it waits for the receiver's report until its limit, although lines arrive."""
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        with sending_early(tmp_path, port, "--udp", "--count", "1") as sender, server.accept()[0] as peer:
            lines = peer.makefile()
            assert lines.readline().startswith("wiretale/1")
            peer.sendall(f"wiretale/1 nonce={NONCE}\n".encode())
            assert lines.readline().startswith("test")
            peer.sendall(b"port port=9\nready\n")
            sender.process.send_signal(signal.SIGINT)
            assert flood(peer, b"progress\n", lambda: sender.process.poll() is not None)
            assert sender.wait() == 130


@pytest.mark.parametrize("options", [("--udp", "--count", "1"), ("--count", "1")])
def test_a_refusal_after_ready_is_the_error(options: tuple[str, ...]) -> None:
    """An older receiver refuses a line of a later version, after it was ready."""
    with socket.create_server(("127.0.0.1", free_port())) as server, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_raw, server.getsockname()[1], *options)
        with server.accept()[0] as peer:
            lines = peer.makefile()
            lines.readline()
            peer.sendall(f"wiretale/1 nonce={NONCE}\n".encode())
            lines.readline()
            peer.sendall(b"port port=9\nready\n" if "--udp" in options else b"ready\n")
            lines.readline()
            peer.sendall(b"refused text=expected%20a%20start\n")
        done = sent.result()
    assert done.returncode == (4 if "--udp" in options else 3)
    assert done.stderr.endswith(b"refused: expected a start\n") and done.stderr.count(b"\n") == 1


def test_a_sender_without_an_offset_gets_no_newer_fields(tmp_path: Path) -> None:
    """An older sender would refuse them."""
    with receiving(tmp_path) as receiver:
        for offset, expected in (("", False), ("offset\n", True)):
            with ask(receiver.port) as control:
                control.sendall(f"{offset}start\nend\n".encode())
                done = next(line for line in control.makefile() if line.startswith("done"))
            assert ("interface_drops_plus_1=" in done) == expected, done


def pass_slowly(source: socket.socket, to: socket.socket, bytes_per_s: float) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(4096):
            time.sleep(len(piece) / bytes_per_s)
            to.sendall(piece)
        to.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def slow_path(port: int) -> Iterator[int]:
    """A port whose first connection, of control, passes 1 Mbit/s towards `port`; other connections are not slow."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            for rate in (125_000.0, 1e9, 1e9):
                here = stack.enter_context(server.accept()[0])
                there = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                threading.Thread(target=pass_slowly, args=(here, there, rate), daemon=True).start()
                threading.Thread(target=pass_slowly, args=(there, here, 1e9), daemon=True).start()

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("options", "line"),
    [(("--turns",), "1000 1000000 1000 1000000\n"), (("--udp", "--reverse", "--pattern"), "1000 1000000000\n")],
)
def test_many_lines_over_a_slow_path_arrive_before_the_start(
    tmp_path: Path, options: tuple[str, ...], line: str
) -> None:
    """65,536 lines, which take more than the 5 s that a receiver waits for a start without lines."""
    path = tmp_path / "lines"
    path.write_text(line * 65_536)
    with receiving(tmp_path) as receiver, slow_path(receiver.port) as port:
        assert send(port, *options, str(path), "--count", "2")["blocks_received"] == 2
