# SPDX-License-Identifier: Apache-2.0
"""Captures with wrong headers, times and records: each command ends with a result or one line, never with a traceback."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from changed_packets import Packet, read_pcap, write_packets
from checkout import CAPTURES
from wiretale.cli import main

HEADERS = 80  # bytes from the beginning of a packet, which hold the headers
DATA_OFFSET_AT = 46  # of TCP over IPv4 over Ethernet
MUTATIONS_MOST = 3
COPIES = 4  # of each sample
SAMPLES = [path for path in CAPTURES if path.suffix == ".pcap"]
Mutation = Callable[[list[Packet], random.Random], None]


def edit(packets: list[Packet], number: int, at: int, value: int) -> None:
    """Sets one byte of a packet."""
    data = bytearray(packets[number].data)
    if at < len(data):
        data[at] = value
        packets[number] = replace(packets[number], data=bytes(data))


def any_byte(packets: list[Packet], rng: random.Random) -> None:
    edit(
        packets,
        rng.randrange(len(packets)),
        rng.randrange(HEADERS),
        rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256))),
    )


def data_offset(packets: list[Packet], rng: random.Random) -> None:
    edit(packets, rng.randrange(len(packets)), DATA_OFFSET_AT, rng.randrange(256))


def cut_packet(packets: list[Packet], rng: random.Random) -> None:
    number = rng.randrange(len(packets))
    packets[number] = replace(packets[number], data=packets[number].data[: rng.randrange(HEADERS)])


def other_time(packets: list[Packet], rng: random.Random) -> None:
    number = rng.randrange(len(packets))
    packets[number] = replace(
        packets[number], ns=rng.choice((0, packets[0].ns, packets[-1].ns + 10**9, rng.randrange(2**32 * 10**9)))
    )


def moved(packets: list[Packet], rng: random.Random) -> None:
    packets.insert(rng.randrange(len(packets)), packets.pop(rng.randrange(len(packets))))


def repeated(packets: list[Packet], rng: random.Random) -> None:
    packets.insert(rng.randrange(len(packets)), rng.choice(packets))


def left_out(packets: list[Packet], rng: random.Random) -> None:
    if len(packets) > 1:
        packets.pop(rng.randrange(len(packets)))


MUTATIONS: tuple[Mutation, ...] = (any_byte, data_offset, cut_packet, other_time, moved, repeated, left_out)


def mutated(sample: Path, number: int, path: Path) -> Path:
    """Writes a copy of a sample with up to three mutations, which depend on name and number alone."""
    rng = random.Random(f"{sample.name} {number}")
    packets = read_pcap(sample)
    for mutate in rng.choices(MUTATIONS, k=rng.randint(1, MUTATIONS_MOST)):
        mutate(packets, rng)
    write_packets(path, packets)
    if rng.random() < 0.1:
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])
    return path


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_mutated_captures_give_a_result_or_one_line(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for number in range(COPIES):
        capture = str(mutated(sample, number, tmp_path / f"{number}.pcap"))
        report = ["--report", str(tmp_path / f"{number}.html"), *["--no-frames"][: number > 0]]  # tshark takes a while
        for command in (["analyze", capture, "--all"], ["analyze", capture, *report]):
            status = main(command)
            output = capsys.readouterr()
            assert status in (0, 3, 4), (command, output.err)
            assert output.out if status != 4 else output.err.count("\n") == 1, (command, output)
