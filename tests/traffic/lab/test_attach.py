# SPDX-License-Identifier: Apache-2.0
"""`wiretale lab attach`: packets of an existing namespace cross the link, and the namespace stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import needs
from lab_bench import NEEDED, truth_rows, wiretale_lab

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot attach a namespace")
pytestmark = [pytest.mark.xdist_group("counted"), NEEDED, needs.marked(needs.programs("nsenter")), NEEDS_ROOT]
ECHO = """
import socket, sys
sock = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "serve":
    sock.bind((sys.argv[2], 5007))
    print("ready", flush=True)
    while True:
        sock.sendto(*sock.recvfrom(2000))
else:
    sock.settimeout(2)
    for _ in range(15):
        sock.sendto(b"a" * 100, (sys.argv[2], 5007))
        try:
            sys.exit(len(sock.recv(2000)) != 100)
        except TimeoutError:
            pass
    sys.exit(2)
"""


@contextmanager
def space(name: str) -> Iterator[str]:
    """A network namespace that exists without the lab."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@contextmanager
def lab_up(name: str, folder: Path) -> Iterator[None]:
    (folder / "slow.toml").write_text('[both]\ndelay = "20ms"\n')
    up = wiretale_lab("up", str(folder / "slow.toml"), name, "-o", str(folder / "out"))
    assert up.returncode == 0, up.stderr
    try:
        yield
    finally:
        down = wiretale_lab("down", name, "--force")
    assert down.returncode == 0, down.stderr


def echo(server_space: str, client_space: str, address: str) -> None:
    """A datagram there and back."""
    serving = ["ip", "netns", "exec", server_space, sys.executable, "-c", ECHO, "serve", address]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout and server.stdout.readline() == "ready\n"
            sent = in_space(client_space, sys.executable, "-c", ECHO, "send", address)
        finally:
            server.kill()
    assert sent.returncode == 0, (address, sent.stderr)


def in_space(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", "netns", "exec", name, *command], capture_output=True, text=True, timeout=60)


def test_packets_of_an_attached_namespace_cross_the_link(tmp_path: Path) -> None:
    name, outside = f"a{os.getpid()}", f"wtx{os.getpid()}"
    addresses = ["10.99.0.2", *(["fd00:99::2"] if Path("/proc/sys/net/ipv6").exists() else [])]
    with space(outside):
        with lab_up(name, tmp_path):
            done = wiretale_lab("attach", "sender", f"netns:{outside}", "--name", name)
            assert done.returncode == 0 and "10.98.1.2; over the link: receiver, 10.99.0.2" in done.stderr, done.stderr
            again = wiretale_lab("attach", "receiver", f"netns:{outside}", "--name", name)
            assert (again.returncode, again.stderr.count("\n")) == (
                2,
                1,
            ) and "attached to a lab already" in again.stderr
            for address in addresses:
                echo(f"wt-{name}-receiver", outside, address)
        assert "wtlab" not in in_space(outside, "ip", "-o", "link").stdout
    rows = truth_rows(tmp_path / "out" / "truth.parquet", "destination_port = 5007 OR source_port = 5007")
    forward = {row["source"] for row in rows if row["direction"] == 0}
    back = {row["destination"] for row in rows if row["direction"] == 1}
    assert forward == back == {"10.98.1.2", *(["fd00:98:1::2"] if len(addresses) > 1 else [])}


def test_attached_namespaces_of_both_sides_reach_each_other_over_the_link(tmp_path: Path) -> None:
    name, spaces = f"p{os.getpid()}", (f"wty{os.getpid()}", f"wtz{os.getpid()}")
    with space(spaces[0]), space(spaces[1]), lab_up(name, tmp_path):
        for number, (host, namespace) in enumerate(zip(("sender", "receiver"), spaces, strict=True)):
            done = wiretale_lab("attach", host, f"netns:{namespace}", "--name", name)
            assert f"attached as 10.98.{number + 1}.2" in done.stderr, done.stderr
        for address in ("10.98.2.2", *(["fd00:98:2::2"] if Path("/proc/sys/net/ipv6").exists() else [])):
            echo(spaces[1], spaces[0], address)
    rows = truth_rows(tmp_path / "out" / "truth.parquet", "destination_port = 5007 AND direction = 0")
    assert ("10.98.1.2", "10.98.2.2") in {(row["source"], row["destination"]) for row in rows}


def test_the_number_of_a_deleted_namespace_is_not_used_again(tmp_path: Path) -> None:
    """The other hosts still have a route to it."""
    name = f"q{os.getpid()}"
    with lab_up(name, tmp_path):
        with space(f"wtu{os.getpid()}") as first:
            assert wiretale_lab("attach", "sender", f"netns:{first}", "--name", name).returncode == 0
        with space(f"wtv{os.getpid()}") as second:
            done = wiretale_lab("attach", "receiver", f"netns:{second}", "--name", name)
            assert "attached as 10.98.2.2" in done.stderr, done.stderr
            echo(second, f"wt-{name}-sender", "10.98.2.2")


@pytest.mark.parametrize(
    ("host", "target", "reason"),
    [
        ("sender", "netns:wt-no-such-space", "No such file"),
        ("sender", "pid:0", "No such file"),
        ("sender", "netns:../x", "expected netns:NAME, or pid:NUMBER"),
        ("sender", "wan", "expected netns:NAME, or pid:NUMBER"),
        ("sender", "pid:self", "expected netns:NAME, or pid:NUMBER"),
        ("tracer", "netns:x", "expected sender or receiver"),
    ],
)
def test_a_wrong_target_is_one_line(tmp_path: Path, host: str, target: str, reason: str) -> None:
    name = f"e{os.getpid()}"
    with lab_up(name, tmp_path):
        done = wiretale_lab("attach", host, target, "--name", name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert reason in done.stderr
        itself = wiretale_lab("attach", "sender", f"pid:{os.getpid()}", "--name", name)
        assert itself.returncode == 2 and "another network namespace" in itself.stderr
        host_of_it = wiretale_lab("attach", "sender", f"netns:wt-{name}-receiver", "--name", name)
        assert host_of_it.returncode == 2 and "a host of the lab" in host_of_it.stderr
