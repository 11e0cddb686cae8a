# SPDX-License-Identifier: Apache-2.0
"""A client and a server that take turns over two emulated links, captured at the client, between the links, and at the server.

Both ends log when they call sleep(), send and receive; namespaces share the clock, so the logs are the truth of captures.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import needs
from dropping_path import NamespacePath
from processes import output, wait_until
from wiretale.traffic.lab.process import real_time
from wiretale.traffic.program import find_program

NEEDED = needs.marked(needs.programs("ip", "ethtool", "tcpdump", "sysctl"), needs.network_namespaces())
CLIENT, SERVER, PORT = "10.214.1.1", "10.214.1.2", 8080
POINTS = {"client": "left", "middle": "between", "server": "right"}  # capture points: interfaces of the tracer
# A turn is [request parts, server time, response parts, client's pause]; a part is [bytes, seconds to sleep before it].
ENDS = """
import json, socket, sys, time

side, host, port, plan = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
log = []

def sleep(seconds):
    begin = time.time_ns()
    if seconds:
        time.sleep(seconds)
    return time.time_ns() - begin

def send(peer, parts):
    slept = 0
    for i, (size, before) in enumerate(parts):
        slept += sleep(before)
        peer.sendall(bytes(size - 1) + (b"." if i == len(parts) - 1 else b"-"))
    return slept

def receive(peer):
    got = b"-"
    while not got.endswith(b"."):
        got = peer.recv(1 << 20)
        assert got
    return time.time_ns()

if side == "server":
    listening = socket.create_server((host, port))
    print("ready", flush=True)
    peer, _ = listening.accept()
else:
    peer = socket.create_connection((host, port))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for request, think, response, pause in plan:
    if side == "server":
        got = receive(peer)
        sleep(think)
        sent = time.time_ns()
        log.append({"server": sent - got, "response_pause": send(peer, response)})
    else:
        begin = time.time_ns()
        if log:
            log[-1]["pause"] = begin - got
        paused = send(peer, request)
        got = receive(peer)
        log.append({"begin": begin, "request_pause": paused, "whole": got - begin, "pause": None})
        sleep(pause)
if side == "server":
    peer.recv(1)
peer.close()
print(json.dumps(log))
"""
Turn = tuple[Sequence[tuple[int, float]], float, Sequence[tuple[int, float]], float]


class TurnPath(NamespacePath):
    """Client, tracer with both links, and server."""

    def __init__(self) -> None:
        super().__init__("c", "t", "s")
        self.client, self.tracer, self.server = self.names

    def make(self) -> None:
        self.add_namespaces()
        self._join((self.client, "path"), (self.tracer, "left"))
        self._join((self.tracer, "behind"), (self.tracer, "between"))
        self._join((self.tracer, "right"), (self.server, "path"))
        for name, address in ((self.client, CLIENT), (self.server, SERVER)):
            output("ip", "-n", name, "address", "add", f"{address}/24", "dev", "path")

    def _join(self, left: tuple[str, str], right: tuple[str, str]) -> None:
        output(*f"ip -n {left[0]} link add {left[1]} type veth peer name {right[1]} netns {right[0]}".split())
        for name, link in (left, right):
            self.run(name, *f"ethtool -K {link} tso off gso off gro off tx off".split())
            output(*f"ip -n {name} link set {link} up".split())

    @contextlib.contextmanager
    def _running(self, folder: Path, name: str, word: str, command: list[str], priority: int) -> Iterator[None]:
        """A program on the tracer, from when it prints `word`."""
        log = folder / f"{name}.log"
        with log.open("w") as out:
            inside = self.inside(self.tracer, *real_time(priority), *command)
            process = subprocess.Popen(inside, stdout=out, stderr=out)
        try:
            wait_until(lambda: word in log.read_text(), f"{name} runs")
            yield
            time.sleep(0.4)  # for the last packets
        finally:
            process.terminate()
            process.wait(timeout=30)

    def talk(self, plan: Sequence[Turn], links: tuple[str, str], folder: Path, seed: int = 1) -> list[dict[str, Any]]:
        """Plays the turns, with settings of both links. Returns the logs of each turn; captures are in `folder`."""
        with contextlib.ExitStack() as stack:
            for name, ends, setting in (("near", "left behind", links[0]), ("far", "between right", links[1])):
                link = [find_program("wiretale-link"), *ends.split(), "--both", setting, "--seed", str(seed)]
                link += ["--truth", str(folder / f"{name}.truth")]
                stack.enter_context(self._running(folder, name, "linking", link, 10))
                seed += 1
            for point, interface in POINTS.items():
                options = (
                    f"-i {interface} -n -p -U --immediate-mode -B 16384 -s 128 -Z root --time-stamp-precision=nano -w"
                )
                command = ["tcpdump", *options.split(), str(folder / f"{point}.pcap"), "tcp"]
                stack.enter_context(self._running(folder, f"capture-{point}", "listening on", command, 6))
            return self._play(plan)

    def _play(self, plan: Sequence[Turn]) -> list[dict[str, Any]]:
        order = [SERVER, str(PORT), json.dumps(plan)]
        command = self.inside(self.server, *real_time(7), sys.executable, "-c", ENDS, "server", *order)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout and server.stdout.readline() == "ready\n"
                requests = json.loads(
                    self.run(self.client, *real_time(7), sys.executable, "-c", ENDS, "client", *order)
                )
                responses = json.loads(server.communicate(timeout=60)[0])
            finally:
                server.kill()
        return [{**request, **response} for request, response in zip(requests, responses, strict=True)]


@contextlib.contextmanager
def turn_path() -> Iterator[TurnPath]:
    path = TurnPath()
    try:
        path.make()
        yield path
    finally:
        path.remove()
