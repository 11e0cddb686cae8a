# SPDX-License-Identifier: Apache-2.0
"""A client, a router and a server with kernels of their own, captured at all three at once; emulated links may lie between them.

    client eth0 ── [near link] ── left, router, right ── [far link] ── eth0 server

A capture in the middle is on the router's side of the client, where packets are before it forwards or drops them.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import needs
from dropping_path import has_caught_up
from processes import output, wait_until
from wiretale.traffic.lab.process import real_time
from wiretale.traffic.program import program_path

NEEDED = needs.marked(
    needs.programs("ip", "nft", "tc", "ethtool", "tcpdump", "openssl", "ping"),
    needs.network_namespaces(),
    None if program_path("wiretale-link") else "wiretale-traffic is not installed",
)
#: capture points and the hosts on which they are: client, device between, server
POINTS = {"sender": ("c", "eth0"), "middle": ("d", "left"), "receiver": ("s", "eth0")}
CLIENT, SERVER = "10.77.1.2", "10.77.2.2"
PYTHON = (sys.executable, "-S")
#: links are first, so that they are on time, then programs, then captures
LINK_PRIORITY, PROGRAM_PRIORITY, CAPTURE_PRIORITY = 10, 7, 6
ROUTED = """
ip -n {d} addr add 10.77.1.1/24 dev left; ip -n {d} addr add 10.77.2.1/24 dev right
ip netns exec {d} sysctl -qw net.ipv4.ip_forward=1
ip -n {c} addr add 10.77.1.2/24 dev eth0; ip -n {c} route add default via 10.77.1.1
ip -n {s} addr add 10.77.2.2/24 dev eth0; ip -n {s} route add default via 10.77.2.1
"""
BRIDGED = """
ip -n {d} link add bridge type bridge; ip -n {d} link set bridge up
ip -n {d} link set left master bridge; ip -n {d} link set right master bridge
ip -n {c} addr add 10.77.1.2/24 dev eth0; ip -n {s} addr add 10.77.1.3/24 dev eth0
"""
FILTER = "nft add table ip f; nft add chain ip f c '{ type filter hook forward priority 0; }'\n"


class Situation(NamedTuple):
    """What is wrong, who talks, and what is between them."""

    clients: tuple[tuple[object, ...], ...]  # scripts with arguments, one after the other
    servers: tuple[tuple[object, ...], ...] = ()  # which run all the time, at the server
    router: str = ""  # commands in the router
    hosts: str = ""  # commands outside: {c}, {d} and {s} are the names of the namespaces
    near: str = ""  # options of wiretale-link
    far: str = ""
    network: str = ROUTED
    after: float = 0.2  # seconds for which the capture goes on; after more than one, a ping shows that it did
    alive: str = SERVER  # the host that answers the ping
    snaplen: int = 2000
    middle: str = "left"
    later: tuple[float, str] | None = None  # commands in the router when the clients have run for so many seconds
    behind: tuple[object, ...] | None = None  # a server beside the client


def rule(*rules: str) -> str:
    """Commands of a router that adds rules to what it forwards."""
    return FILTER + "".join(f"nft add rule ip f c {shlex.quote(each)}\n" for each in rules)


def run(commands: str) -> None:
    result = subprocess.run(["sh", "-ec", commands], capture_output=True, text=True, timeout=60)
    assert not result.returncode, f"{commands}: {result.stderr}"


@cache
def priority(number: int) -> tuple[str, ...]:
    return tuple(real_time(number))


class Hosts:
    """Namespaces of one situation."""

    numbers = count()

    def __init__(self, folder: Path, situation: Situation) -> None:
        self.folder, self.situation = folder, situation
        number = next(self.numbers)
        self.names = {host: f"wt{os.getpid()}-{number}{host}" for host in "cdst"}

    def inside(self, host: str, number: int, *command: object) -> list[str]:
        return ["ip", "netns", "exec", self.names[host], *priority(number), *map(str, command)]

    def make(self) -> None:
        links = {"c": ("left", "near", self.situation.near), "s": ("right", "far", self.situation.far)}
        words = [f"ip netns add {{{host}}}; ip -n {{{host}}} link set lo up" for host in "cdst"]
        pairs = []
        for end, (side, far_side, link) in links.items():
            if link:
                pairs += [(end, "eth0", "t", f"{far_side}0"), ("t", f"{far_side}1", "d", side)]
            else:
                pairs += [(end, "eth0", "d", side)]
        for host, interface, peer, other in pairs:
            words.append(f"ip -n {{{host}}} link add {interface} type veth peer name {other} netns {{{peer}}}")
        for host in "cdst":
            interfaces = [each[1] for each in pairs if each[0] == host] + [each[3] for each in pairs if each[2] == host]
            commands = ["for w in all default; do echo 1 > /proc/sys/net/ipv6/conf/$w/disable_ipv6; done"]
            for interface in interfaces:
                commands += [f"ethtool -K {interface} tso off gso off gro off tx off", f"ip link set {interface} up"]
            words.append(f"ip netns exec {{{host}}} sh -ec '{'; '.join(commands)}'")
        run(("\n".join(words) + self.situation.network).format(**self.names))
        if self.situation.router:
            self.change_router(self.situation.router)
        run(self.situation.hosts.format(**self.names))

    def change_router(self, commands: str) -> None:
        run(f"ip netns exec {self.names['d']} sh -ec {shlex.quote(commands)}")

    def remove(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=30)

    @contextmanager
    def running(self, host: str, number: int, word: str, name: str, *command: object) -> Iterator[None]:
        """A program, from when it says `word` on."""
        log = self.folder / f"{name}.log"
        with log.open("w") as output_file:
            process = subprocess.Popen(self.inside(host, number, *command), stdout=output_file, stderr=output_file)
        try:
            wait_until(lambda: word in log.read_text(), f"{name} says {word}: {log.read_text()}")
            yield
            if "tcpdump" in command:
                wait_until(lambda: has_caught_up(process, log), "tcpdump has written what it took")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)

    def links(self, stack: ExitStack) -> None:
        for name, options in (("near", self.situation.near), ("far", self.situation.far)):
            if options:
                ends = (f"{name}0", f"{name}1")[:: 1 if name == "near" else -1]
                command = [program_path("wiretale-link"), *ends, *shlex.split(options)]
                command += ["--truth", self.folder / f"{name}.truth"]
                stack.enter_context(self.running("t", LINK_PRIORITY, "linking", name, *command))

    def captures(self, stack: ExitStack) -> dict[str, Path]:
        files = {point: self.folder / f"{point}.pcap" for point in POINTS}
        for point, (host, interface) in POINTS.items():
            where = self.situation.middle if point == "middle" else interface
            options = "-n -p -U --immediate-mode -B 8192 -Z root --time-stamp-precision=nano -w"
            command = ("tcpdump", *options.split(), files[point], "-i", where, "-s", self.situation.snaplen)
            stack.enter_context(self.running(host, CAPTURE_PRIORITY, "listening on", f"capture-{point}", *command))
        return files

    def talk(self) -> dict[str, Path]:
        """Runs the clients; returns the captures."""
        with ExitStack() as stack:
            self.links(stack)
            servers = [("s", words) for words in self.situation.servers]
            servers += [("c", self.situation.behind)] if self.situation.behind else []
            for place, (host, words) in enumerate(servers):
                stack.enter_context(self.running(host, PROGRAM_PRIORITY, "ready", f"server-{place}", *PYTHON, *words))
            files = self.captures(stack)
            for words in self.situation.clients:
                self.run_client(words)
            time.sleep(self.situation.after)
            if self.situation.after > 1:
                output(*self.inside("c", PROGRAM_PRIORITY, "ping", "-c", "1", self.situation.alive))
        return files

    def run_client(self, words: tuple[object, ...]) -> None:
        client = subprocess.Popen(self.inside("c", PROGRAM_PRIORITY, *PYTHON, *words))
        try:
            if self.situation.later:
                time.sleep(self.situation.later[0])
                self.change_router(self.situation.later[1])
            assert not client.wait(timeout=90), words
        finally:
            client.kill()
            client.wait(timeout=30)


def captured(situation: Situation, folder: Path) -> dict[str, Path]:
    """Plays a situation; returns the capture of each point."""
    folder.mkdir(parents=True, exist_ok=True)
    hosts = Hosts(folder, situation)
    try:
        hosts.make()
        return hosts.talk()
    finally:
        hosts.remove()
