# SPDX-License-Identifier: Apache-2.0
"""Authenticated blocks: codes beside Python's own, and blocks that a stranger adds."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from numbered_payloads import TILED, block
from traffic_ends import SECONDS, free_port, program, receiving, send, send_raw, sending, sending_early

pytestmark = pytest.mark.xdist_group("traffic-ends")

AUTHENTIC = 16
CODE_BYTES = 16
NONCE = "cd" * 32


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(os.urandom(48))
    path.chmod(0o600)
    return path


def hashed(key: Path, label: str, nonces: str) -> bytes:
    secret = hashlib.blake2b(key.read_bytes(), digest_size=32).digest()
    return hashlib.blake2b((label + nonces).encode(), key=secret, digest_size=32).digest()


class ReceiverByHand(threading.Thread):
    """Proves its key, takes all blocks of a test, and reports their number."""

    def __init__(self, port: int, key: Path, count: int) -> None:
        super().__init__(daemon=True)
        self.listener, self.key, self.count = socket.create_server(("127.0.0.1", port)), key, count
        self.data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.data.bind(("127.0.0.1", 0))
        self.nonces = ""
        self.blocks: list[bytes] = []
        for listening in (self.listener, self.data):
            listening.settimeout(SECONDS)

    def run(self) -> None:
        with self.listener, self.data, self.listener.accept()[0] as control:
            control.settimeout(SECONDS)
            for line in control.makefile():
                word, *fields = line.split()
                values = dict(field.split("=", 1) for field in fields)
                if word == "wiretale/1":
                    self.nonces = values["nonce"] + NONCE
                    reply = f"wiretale/1 nonce={NONCE} key=1"
                elif word == "proof":
                    reply = f"proof proof={hashed(self.key, 'wiretale receiver', self.nonces).hex()}"
                elif word == "test":
                    assert values["authentic"] == "1"
                    reply = f"port way=forward stream=0 port={self.data.getsockname()[1]}\nready"
                elif word == "start":
                    self.blocks = [self.data.recv(65536) for _ in range(self.count)]
                    reply = f"received way=forward stream=0 blocks_received={self.count}\ndone way=forward"
                else:
                    continue
                control.sendall(f"{reply}\n".encode())


def test_the_codes_are_those_of_the_document(key: Path) -> None:
    port, count = free_port(), 20
    receiver = ReceiverByHand(port, key, count)
    receiver.start()
    options = ("--udp", "--key", str(key), "--authenticate", "--size", "48,100,1000", "--count", str(count))
    done = subprocess.run(sending(port, *options), capture_output=True, text=True, timeout=SECONDS)
    receiver.join(SECONDS)
    assert len(receiver.blocks) == count, done.stderr
    secret = hashed(key, "wiretale forward ", receiver.nonces)
    for number, content in enumerate(receiver.blocks):
        assert len(content) == (48, 100, 1000)[number % 3] and content[11] & AUTHENTIC
        code = hashlib.blake2b(content[:-CODE_BYTES], key=secret, digest_size=CODE_BYTES).digest()
        assert content[-CODE_BYTES:] == code


@pytest.mark.parametrize("more", [(), ("--offload",), ("--size", "48-1400:7"), ("--streams", "3")])
def test_authenticated_blocks_arrive_in_both_directions(tmp_path: Path, key: Path, more: tuple[str, ...]) -> None:
    with receiving(tmp_path, "--key", str(key)) as receiver:
        options = ("--udp", "--key", str(key), "--authenticate", "--both", "--count", "300", "--rate", "20M", *more)
        report = send(receiver.port, *options)
    assert report["test"]["authenticate"] is True
    assert report["blocks_received"] + report["blocks_lost"] == report["blocks_sent"]
    assert report["blocks_received"] > 500 and report["blocks_corrupt"] == 0
    assert report["receiver"]["foreign_datagrams"] == report["reverse_receiver"]["foreign_datagrams"] == 0


@pytest.mark.parametrize("authentic", [True, False])
def test_blocks_of_a_stranger_do_not_count(tmp_path: Path, key: Path, authentic: bool) -> None:
    """He has seen the run, the port and the numbers, but not the key."""
    more = ("--authenticate",) if authentic else ()
    plan = ("--udp", "--run", "9", "--size", "100", "--rate", "200pps", "--count", "400")
    data_port = free_port()
    options = ("--key", str(key), "--data-ports", f"{data_port}-{data_port}")
    with receiving(tmp_path, *options) as receiver:
        with sending_early(tmp_path, receiver.port, *plan, "--key", str(key), *more) as sender:
            sender.wait_blocks(100)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for number in range(50):
                    forged = block(number, 100, run=9, stream=0, flags=TILED | AUTHENTIC * authentic)
                    stranger.sendto(forged, ("127.0.0.1", data_port))
            assert sender.wait() == 0
        (report,) = receiver.wait_reports(1)
    counts = report["receiver"]["foreign_datagrams"], report["blocks_duplicate"]
    assert counts == ((50, 0) if authentic else (0, 50))
    assert report["blocks_received"] == 400


def test_an_authenticated_file_arrives(tmp_path: Path, key: Path) -> None:
    source, folder = tmp_path / "source.bin", tmp_path / "in"
    source.write_bytes(os.urandom(100_003))
    folder.mkdir()
    with receiving(tmp_path, "--key", str(key), "--output-dir", str(folder)) as receiver:
        options = (
            "--udp",
            "--authenticate",
            "--key",
            str(key),
            "--file",
            str(source),
            "--size",
            "1000",
            "--rate",
            "5M",
        )
        report = send(receiver.port, *options)
    assert (folder / "source.bin").read_bytes() == source.read_bytes()
    assert report["blocks_sent"] == -(-100_003 // (1000 - 48))


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--udp",), 2, "--key"),
        (("--tcp", "--key", "KEY"), 2, "--udp"),
        (("--udp", "--key", "KEY", "--size", "47"), 2, "48 bytes"),
    ],
)
def test_authentication_needs_a_key_udp_and_room(key: Path, options: tuple[str, ...], code: int, says: str) -> None:
    arguments = [str(key) if option == "KEY" else option for option in options]
    command = [program(), "send", "127.0.0.1", "--port", "1", "--authenticate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and done.stderr.count("\n") == 1 and says in done.stderr


def test_a_receiver_without_a_key_refuses_authenticated_blocks(tmp_path: Path, key: Path) -> None:
    """Also if the plan asks for them without a proof."""
    with receiving(tmp_path) as receiver:
        done = send_raw(receiver.port, "--udp", "--authenticate", "--key", str(key), "--count", "1")
        assert done.returncode == 4 and b"has no key" in done.stderr
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=SECONDS) as stranger:
            plan = "test run=7 protocol=udp direction=forward streams=1 sizes_text=100 count=1 authentic=1"
            stranger.sendall(f"wiretale/1 nonce={NONCE}\n{plan}\n".encode())
            assert "--key%20at%20both%20ends" in next(line for line in stranger.makefile() if "refused" in line)
