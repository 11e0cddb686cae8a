# SPDX-License-Identifier: Apache-2.0
"""A name with several addresses: each is tried in its turn, for a bounded time, and data goes where a receiver answers."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import needs
from traffic_ends import SECONDS, free_port, program, receiving, send, send_raw

pytestmark = [pytest.mark.xdist_group("traffic-ends"), needs.marked(needs.mounts())]

ORDINARY = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
Inside = Callable[[str], tuple[str, ...]]


@pytest.fixture
def with_hosts(tmp_path: Path) -> Inside:
    """Returns the words before a command that has a file /etc/hosts of its own."""

    def inside(text: str) -> tuple[str, ...]:
        hosts = tmp_path / "hosts"
        hosts.write_text(text)
        return ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts))

    return inside


@contextlib.contextmanager
def silent(address: str, port: int) -> Iterator[None]:
    """A host that answers no SYN, as behind a firewall: its queue of connections is full."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket(family))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(0)
        for _ in range(3):
            caller = stack.enter_context(socket.socket(family))
            caller.setblocking(False)
            caller.connect_ex((address, port))
        yield


@pytest.mark.parametrize("hosts", [ORDINARY, "127.0.0.1 localhost\n", "::1 localhost\n127.0.0.1 localhost localhost\n"])
@pytest.mark.parametrize("options", [("--tcp",), ("--udp",), ("--udp", "--reverse"), ("--both", "--streams", "2")])
def test_a_name_is_tried_at_each_of_its_addresses(
    tmp_path: Path, with_hosts: Inside, hosts: str, options: tuple[str, ...]
) -> None:
    for address in sorted({line.split()[0] for line in hosts.splitlines()}):
        with receiving(tmp_path, "--bind", address) as receiver:
            report = send(receiver.port, *options, "--count", "3", host="localhost", inside=with_hosts(hosts))
        assert report["test"]["address"] == address
        if "--udp" in options:
            assert report["test"]["sizes"] == [1452 if ":" in address else 1472]


@pytest.mark.parametrize("options", [("--count", "3"), ("--udp", "--count", "3", "--reverse")])
def test_a_silent_address_costs_no_more_than_an_attempt(
    tmp_path: Path, with_hosts: Inside, options: tuple[str, ...]
) -> None:
    with receiving(tmp_path, "--bind", "127.0.0.1") as receiver, silent("::1", receiver.port):
        begun = time.monotonic()
        report = send(
            receiver.port, *options, "--connect-timeout", "700ms", host="localhost", inside=with_hosts(ORDINARY)
        )
        assert 0.7 <= time.monotonic() - begun < 20
    assert report["test"]["address"] == "127.0.0.1"


def test_the_error_names_each_address(tmp_path: Path, with_hosts: Inside) -> None:
    port = free_port()
    with silent("127.0.0.2", port):
        options = ("--connect-timeout", "300ms", "--wait", "500ms")
        done = send_raw(port, *options, host="far", inside=with_hosts("::1 far\n127.0.0.1 far\n127.0.0.2 far\n"))
    assert done.returncode == 4 and done.stderr.count(b"\n") == 1
    for reason in (
        "::1: connect: Connection refused",
        "127.0.0.1: connect: Connection refused",
        "127.0.0.2: connect: Connection timed out",
    ):
        assert reason in done.stderr.decode()


def test_another_program_at_an_address_does_not_hide_the_receiver(tmp_path: Path, with_hosts: Inside) -> None:
    """One that closes the connection, as an ssh server would after a line."""
    with receiving(tmp_path, "--bind", "127.0.0.1") as receiver:
        with socket.create_server(("::1", receiver.port), family=socket.AF_INET6) as other:
            other.settimeout(SECONDS)
            sender = subprocess.Popen(
                [
                    *with_hosts(ORDINARY),
                    program(),
                    "send",
                    "localhost",
                    "--port",
                    str(receiver.port),
                    "--json",
                    "--count",
                    "3",
                ],
                stdout=-1,
            )
            connection, _ = other.accept()
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            connection.close()
            out, _ = sender.communicate(timeout=SECONDS)
        assert json.loads(out)["test"]["address"] == "127.0.0.1" and not sender.returncode


def test_a_receiver_that_refuses_is_the_one_that_was_meant(tmp_path: Path, with_hosts: Inside) -> None:
    """Its address is not left for another, which might be another host's."""
    with receiving(tmp_path, "--bind", "::1", "--max-streams", "1") as receiver:
        done = send_raw(receiver.port, "--streams", "2", host="localhost", inside=with_hosts(ORDINARY))
    assert done.returncode == 4 and b"refused: at most 1 streams" in done.stderr and b"127.0.0.1" not in done.stderr


def test_sizes_are_those_of_the_address(tmp_path: Path, with_hosts: Inside) -> None:
    """A datagram that only IPv6 carries: the address of IPv4 is no choice, and alone it is wrong usage."""
    with receiving(tmp_path, "--bind", "::1") as receiver:
        options = ("--udp", "--size", "65520", "--count", "2")
        report = send(receiver.port, *options, host="localhost", inside=with_hosts(ORDINARY))
        assert (report["test"]["address"], report["blocks_received"]) == ("::1", 2)
        done = send_raw(receiver.port, *options, "-4", host="localhost", inside=with_hosts(ORDINARY))
        assert done.returncode == 2 and b"65507" in done.stderr
    done = send_raw(receiver.port, *options, host="localhost", inside=with_hosts(ORDINARY))
    assert done.returncode == 4 and b"127.0.0.1: a UDP datagram over IPv4 carries at most 65507" in done.stderr


def test_a_receiver_listens_at_each_address_of_a_name(tmp_path: Path, with_hosts: Inside) -> None:
    hosts = "192.0.2.99 here\n::1 here\n127.0.0.1 here\n127.0.0.2 here\n"  # the first is another host's
    with receiving(tmp_path, "--bind", "here", inside=with_hosts(hosts)) as receiver:
        for address in ("::1", "127.0.0.1", "127.0.0.2"):
            assert send(receiver.port, "--count", "2", host=address)["test"]["address"] == address
        assert send_raw(receiver.port, "--count", "2", host="127.0.0.3").returncode == 4
    command = (*with_hosts("192.0.2.99 here\n"), program(), "receive", "--bind", "here")
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 5 and "Cannot assign requested address" in done.stderr


def test_a_sender_binds_to_an_address_of_a_name_that_it_has(tmp_path: Path, with_hosts: Inside) -> None:
    inside = with_hosts(f"{ORDINARY}192.0.2.99 mine\n127.0.0.9 mine\n")
    with receiving(tmp_path, "--allow", "127.0.0.9") as receiver:
        assert send(receiver.port, "--count", "2", "--bind", "mine", host="localhost", inside=inside)["complete"]


def test_ttcp_tries_each_address(with_hosts: Inside) -> None:
    port = free_port()
    command = [
        *with_hosts(ORDINARY),
        program(),
        "ttcp",
        "-t",
        "-s",
        "-n",
        "3",
        "-l",
        "100",
        "-p",
        str(port),
        "--json",
        "localhost",
    ]
    with silent("::1", port), socket.create_server(("127.0.0.1", port)) as server:
        sender = subprocess.Popen(command, stdout=-1)
        server.settimeout(SECONDS)
        connection, _ = server.accept()
        with connection:
            data = connection.makefile("rb").read()
        report = json.loads(sender.communicate(timeout=SECONDS)[0])
    assert len(data) == 300 and report["peer"] == "127.0.0.1"
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 4 and "::1: Connection refused; 127.0.0.1: Connection refused" in done.stderr
