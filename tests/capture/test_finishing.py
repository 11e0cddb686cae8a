# SPDX-License-Identifier: Apache-2.0
"""A file whose compression or index fails, or that a kill interrupts, is finished later, once, and its command waits for that."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import needs
from capture_link import UNWRITTEN, CaptureLink, StatusClient, packets_in
from drawn_ring import packet_block
from processes import small_disk, wait_until

pytestmark = [pytest.mark.xdist_group("capture"), needs.marked(needs.programs("zstd"))]

# What came in the end: each name, and whether its file is whole.
COMMAND = """#!/bin/sh
zstd -tq "$1" && echo "${1##*/}" >>"${0%/*}/arrived"
"""


def command(folder: Path) -> str:
    path = folder / "command"
    path.write_text(COMMAND)
    path.chmod(0o755)
    return str(path)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*") if not path.name.endswith((".index", ".lock")))


def mark(folder: Path, name: str, *markers: str) -> None:
    for marker in markers:
        (folder / f".{name}.{marker}").touch()


def test_a_full_disk_puts_compression_off_and_the_command_with_it(link: CaptureLink, tmp_path: Path) -> None:
    options = ("-z", "-C", "10MB", "--on-close", command(tmp_path), "-Z", "root")
    with small_disk(tmp_path / "disk", "size=4M") as disk:
        with link.daemon(*options, into=disk, watched=True) as daemon:
            link.send(2000, size=1000)
            link.wait_counted(written=2000)
            with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
                while True:
                    filler.write(bytes(4096))
            assert daemon.stop() in (0, UNWRITTEN)
        (plain,) = disk.glob("in0*")
        written = packets_in(plain)
        assert plain.suffix == ".pcapng" and written > 1900
        assert left(disk) == [f".{plain.name}.on-close", f".{plain.name}.unfinished"]
        with link.daemon(*options, into=disk, ready="trying again", watched=True) as daemon:
            daemon.stop(signal.SIGKILL)
        assert [path.name for path in disk.glob("in0*")] == [plain.name] and f".{plain.name}.on-close" in left(disk)
        with link.daemon(*options, into=disk, ready="trying again", watched=True) as daemon:
            client = StatusClient(link.status)
            line = client.line()
            assert line["finishing"]["waiting"] and line["finishing"]["failed"] and not line["commands"]["done"]
            (disk / "filler").unlink()
            line = client.wait(lambda status: status["commands"]["done"], "the command has succeeded")
            client.close()
            assert line["finishing"]["done"] == 1 and not line["finishing"]["waiting"]
            assert not daemon.stop()
        files = sorted(disk.glob("in0*"))
        assert files[0].name == f"{plain.name}.zst" and packets_in(files[0]) == written
        assert (disk / f".{plain.name}.zst.index").exists() and not left(disk)
    assert (tmp_path / "arrived").read_text().split()[0] == f"{plain.name}.zst"


def test_kills_between_the_steps_lose_and_double_nothing(link: CaptureLink, tmp_path: Path) -> None:
    """Files that wait to be compressed, and a capture that is killed at drawn times until none does."""
    link.records(1800, "-b", "packets:300", "-Z", "root", size=1400)
    names = [file.name for file in link.files() if packets_in(file)]
    for name in names:
        mark(link.folder, name, "unfinished", "on-close")
    first = link.folder / names[0]  # killed after the compressed file had its name
    subprocess.run(["zstd", "-q", first, "-o", f"{first}.zst"], check=True)
    mark(link.folder, f"{first.name}.zst", "on-close")
    second = link.folder / names[1]  # killed while it was written
    half = link.folder / f".{second.name}.zst.part"
    subprocess.run(["zstd", "-q", second, "-o", half], check=True)
    os.truncate(half, half.stat().st_size // 2)
    orphan = link.folder / ".gone.pcapng.index"
    shutil.copy(link.folder / f".{names[2]}.index", orphan)
    draw = random.Random(40)
    options = ("-z", "--on-close", command(tmp_path), "-b", "packets:50", "-Z", "root")
    for _ in range(8):
        link.status.unlink(missing_ok=True)
        with link.daemon(*options) as daemon:
            time.sleep(draw.random() / 20)
            daemon.stop(signal.SIGKILL)
    link.status.unlink(missing_ok=True)
    with link.daemon(*options) as daemon:
        wait_until(lambda: not list(link.folder.glob(".*.unfinished")), "all are finished")
        wait_until(lambda: not list(link.folder.glob(".*.on-close")), "all commands have succeeded")
        assert not daemon.stop()
    assert not link.files() and not left(link.folder)
    assert not orphan.exists()
    finished = {file.name for file in link.files(".zst")}
    assert {f"{name}.zst" for name in names} <= finished
    assert packets_in(*link.files(".zst")) == 1800
    assert set((tmp_path / "arrived").read_text().split()) >= {f"{name}.zst" for name in names}


def test_a_file_that_cannot_be_finished_stays_as_it_is_after_an_hour(link: CaptureLink, tmp_path: Path) -> None:
    link.records(20, "-b", "packets:10", "-Z", "root")
    old, young = (file.name for file in link.files()[:2])
    mark(link.folder, old, "unfinished", "on-close", "keep")
    mark(link.folder, young, "unfinished", "keep")
    hours_ago = time.time() - 2 * 3600
    os.utime(link.folder / f".{old}.unfinished", (hours_ago, hours_ago))
    with link.daemon("-z", "--on-close", "true", "-Z", "root", watched=True) as daemon:
        client = StatusClient(link.status)
        line = client.wait(
            lambda status: status["commands"]["done"] and status["finishing"]["done"], "both are settled"
        )
        client.close()
        assert line["finishing"]["given_up"] == 1
        assert f"{old} could not be compressed or indexed for an hour: it stays as it is" in daemon.messages()
        assert not daemon.stop()
    assert (link.folder / old).exists() and (link.folder / f"{young}.zst").exists()
    assert not (link.folder / young).exists()
    assert left(link.folder) == sorted([f".{old}.keep", f".{young}.zst.keep"])  # the user's markers go with the packets


def test_a_file_that_another_capture_finishes_is_left_to_it_and_its_command_to_a_run_with_one(
    link: CaptureLink,
) -> None:
    link.records(10, "-b", "packets:10", "-Z", "root")
    plain = link.files()[0]
    mark(link.folder, plain.name, "unfinished", "on-close")
    with plain.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        with link.daemon(
            "-z", "-Z", "root", ready="is not compressed or indexed yet: Device or resource busy"
        ) as daemon:
            assert link.files() == [plain]
            reader.close()
            wait_until(lambda: not plain.exists(), "it is finished")
            assert not daemon.stop()
    assert left(link.folder) == [f".{plain.name}.zst.on-close"]


def test_the_index_of_a_file_that_its_command_removes_goes_with_it(link: CaptureLink) -> None:
    with link.daemon("-b", "packets:300", "--on-close", "rm", "-Z", "root") as daemon:
        link.send(301, size=1400)
        wait_until(lambda: not link.files() and not list(link.folder.glob(".*.on-close")), "the command has run")
        assert not daemon.stop()
    assert not list(link.folder.glob(".*.index"))


def test_files_that_come_faster_than_they_can_be_finished_are_finished_later(link: CaptureLink) -> None:
    with link.daemon("-b", "packets:1", "-z", "-Z", "root", watched=True) as daemon:
        link.send(81)
        daemon.wait_message("files come faster than they can be finished: compression and index of some are put off")
        client = StatusClient(link.status)
        line = client.wait(lambda status: status["finishing"]["done"] >= 80, "all are finished")
        client.close()
        assert line["finishing"] == {"done": 80, "waiting": 0, "failed": 0, "given_up": 0}
        assert not daemon.stop()
    assert packets_in(*link.files(".zst")) == 81 and not link.files()


def test_a_file_that_is_removed_while_it_is_compressed_leaves_nothing(link: CaptureLink) -> None:
    link.records(10, "-b", "packets:10", "-Z", "root")
    plain = link.files()[0]
    with plain.open("ab") as more:  # 64 MB take a while
        more.writelines(packet_block(0, number, os.urandom(64_000)) for number in range(1000))
    mark(link.folder, plain.name, "unfinished", "on-close")
    half = link.folder / f".{plain.name}.zst.part"
    with link.daemon("-z", "--on-close", "false", "-Z", "root", ready=None, watched=True) as daemon:
        wait_until(lambda: half.exists() and half.stat().st_size > 0, "it is being compressed")
        plain.unlink()
        client = StatusClient(link.status)
        client.wait(lambda status: status["finishing"]["waiting"] == 0, "it is settled")
        client.close()
        assert not daemon.stop()
    assert not [path for path in link.folder.glob("*") if path.name.startswith(plain.name)]
    assert not [name for name in left(link.folder) if plain.name in name]
    assert not (link.folder / f".{plain.name}.zst.index").exists()


def test_a_marker_that_cannot_be_made_is_told(link: CaptureLink) -> None:
    name = link.killed(10, "-Z", "root").name.removeprefix(".").removesuffix(".part")
    (link.folder / f".{name}.on-close").mkdir()
    with link.daemon("--on-close", "true", "-Z", "root", ready=f"cannot make a marker of {name}: Is a directory"):
        wait_until((link.folder / name).exists, "it is published all the same")


def test_a_file_whose_name_is_taken_leaves_the_other_what_is_beside_it(link: CaptureLink) -> None:
    link.records(300, "-b", "packets:300", "-Z", "root", size=1400)
    file = max(link.files(), key=lambda path: path.stat().st_size)
    index = link.folder / f".{file.name}.index"
    before = index.read_bytes(), index.stat().st_ino
    mark(link.folder, file.name, "on-close")
    shutil.copy(file, link.folder / f".{file.name}.part")  # of a killed capture
    other = link.folder / f"{file.stem}-1.pcapng"
    with link.daemon("--on-close", "false", "-Z", "root") as daemon:
        wait_until(other.exists, "the recovered file")
        assert not daemon.stop()
    assert (index.read_bytes(), index.stat().st_ino) == before
    assert {f".{file.name}.on-close", f".{other.name}.on-close"} <= set(left(link.folder))
    assert (link.folder / f".{other.name}.index").exists()
