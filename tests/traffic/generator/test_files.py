# SPDX-License-Identifier: Apache-2.0
"""Files between wiretale send and receive: a sender hears that one arrived only if it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from traffic_ends import receiving, send, send_raw, sending_early

pytestmark = pytest.mark.xdist_group("traffic-ends")

PRIVATE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
SLOW = ("--size", "1000", "--rate", "1M")


def mounted(folder: Path, options: str) -> tuple[str, ...]:
    """Words before a command that run it in a mount namespace of its own, with a tmpfs at the folder."""
    script = f'mount -t tmpfs -o {options} tmpfs "$0" && echo old > "$0/old.bin" && exec "$@"'
    words = (*PRIVATE, "sh", "-c", script, str(folder))
    done = subprocess.run([*words, "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs a mount namespace and tmpfs: {done.stderr.strip()}")
    return words


def big_file(folder: Path, name: str = "big.bin", size: int = 3_000_000) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(size))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the receiver's files."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("protocol", [("--tcp",), ("--udp", "--rate", "200M")])
def test_a_full_disk_is_the_senders_error_too(tmp_path: Path, folder: Path, protocol: tuple[str, ...]) -> None:
    source = big_file(tmp_path)
    inside = mounted(folder, "size=1m")
    with receiving(tmp_path, "--output-dir", str(folder), inside=inside) as receiver:
        done = send_raw(receiver.port, *protocol, "--file", str(source))
        there = receiver.wait_reports(1)[0]
        seen = Path(f"/proc/{receiver.process.pid}/root{folder}")
        assert [path.name for path in seen.iterdir()] == ["old.bin"]
        assert send(receiver.port, "--count", "3", "--wait", "20")["complete"]  # the receiver goes on
    report = json.loads(done.stdout)
    assert done.returncode == 3
    assert done.stderr.decode().endswith("the other end: big.bin: No space left on device\n")
    assert (report["complete"], report["stopped_by"], report["stopped_at"]) == (False, "error", "receiver")
    assert (there["file"]["written"], there["file"]["error"]) == (False, "No space left on device")


def test_a_receiver_with_a_full_disk_ends_with_3(tmp_path: Path, folder: Path) -> None:
    with receiving(tmp_path, "--once", "--output-dir", str(folder), inside=mounted(folder, "size=1m")) as receiver:
        assert send_raw(receiver.port, "--file", str(big_file(tmp_path))).returncode == 3
        assert receiver.process.wait(timeout=30) == 3


def test_an_existing_file_is_refused_before_data_is_sent(tmp_path: Path, folder: Path) -> None:
    source = big_file(tmp_path)
    (folder / "big.bin").write_text("old")
    with receiving(tmp_path, "--output-dir", str(folder)) as receiver:
        done = send_raw(receiver.port, "--file", str(source))
        assert (done.returncode, done.stdout) == (4, b"")
        assert b"refused: big.bin exists at the receiver, which runs without --overwrite" in done.stderr
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("big.bin", "old")]


def test_overwrite_replaces_a_regular_file_and_nothing_else(tmp_path: Path, folder: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    source, linked = big_file(tmp_path), big_file(tmp_path, "linked.bin")
    (folder / "big.bin").write_text("old")
    elsewhere.write_text("mine")
    (folder / "linked.bin").symlink_to(elsewhere)
    with receiving(tmp_path, "--output-dir", str(folder), "--overwrite") as receiver:
        send(receiver.port, "--file", str(source))
        assert (folder / "big.bin").read_bytes() == source.read_bytes()
        done = send_raw(receiver.port, "--file", str(linked), "--wait", "20")
    assert done.returncode == 4 and b"linked.bin exists at the receiver and is not a regular file" in done.stderr
    assert (elsewhere.read_text(), (folder / "linked.bin").is_symlink()) == ("mine", True)


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path: Path, folder: Path) -> None:
    """The name is taken when the test begins, and again when the file is whole."""
    source = big_file(tmp_path, size=100_000)
    with receiving(tmp_path, "--output-dir", str(folder)) as receiver:
        with sending_early(tmp_path, receiver.port, "--file", str(source), *SLOW) as sender:
            sender.wait_blocks(5)
            (folder / "big.bin").write_text("mine")
            assert sender.wait() == 3
            assert sender.report()["error"] == "the other end: big.bin: File exists"
        assert receiver.wait_reports(1)[0]["file"]["written"] is False
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("big.bin", "mine")]


def test_an_interrupted_sender_leaves_no_part_of_a_file(tmp_path: Path, folder: Path) -> None:
    """Its part arrives whole, with the checksum of the part: it is no file for all that."""
    source = big_file(tmp_path)
    with receiving(tmp_path, "--output-dir", str(folder)) as receiver:
        with sending_early(tmp_path, receiver.port, "--file", str(source), *SLOW) as sender:
            sender.wait_blocks(20)
            assert sender.end(signal.SIGINT) == 130
        assert receiver.wait_reports(1)[0]["file"]["written"] is False
    assert not list(folder.iterdir())


def test_files_of_a_killed_receiver_are_removed_at_the_next_start(tmp_path: Path, folder: Path) -> None:
    """But for files that are being written, and those that are not of a receiver."""
    other = (folder / ".wiretale-notes.part", folder / ".wiretale-0123456789.part", folder / ".wiretale-00000001.part")
    for path in other[:2]:
        path.write_text("mine")
    other[2].symlink_to(other[0])
    source = big_file(tmp_path)
    slowly = ("--file", str(source), *SLOW)
    with (
        receiving(tmp_path, "--output-dir", str(folder)) as receiver,
        sending_early(tmp_path, receiver.port, "--run", "77", *slowly) as sender,
    ):
        sender.wait_blocks(20)
        receiver.process.kill()
        assert sender.wait()
    (left,) = set(folder.iterdir()) - set(other)
    with (
        receiving(tmp_path, "--output-dir", str(folder)) as receiver,
        sending_early(tmp_path, receiver.port, "--run", "78", *slowly) as sender,
    ):
        sender.wait_blocks(20)
        assert not left.exists()
        (written,) = set(folder.iterdir()) - set(other)
        with receiving(tmp_path, "--output-dir", str(folder)):
            assert set(folder.iterdir()) == {written, *other}
        sender.end(signal.SIGINT)


@pytest.mark.parametrize(
    "name", [b"caf\xe9.bin", "left\u202eright.bin".encode(), b"over\xe0\x82\xa9long\xed\xa0\x80", "caf\u00e9".encode()]
)
def test_any_name_of_a_file_survives_json(tmp_path: Path, name: bytes) -> None:
    """As in the analyzer's JSON: bytes that are not UTF-8 as Python reads them, controls of bidirectional text escaped."""
    source = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    source.write_text("a few words")
    with receiving(tmp_path) as receiver:
        done = send_raw(receiver.port, "--file", str(source))
        there = receiver.wait_reports(1)[0]
    assert done.returncode == 0 and b"\xe2\x80\xae" not in done.stdout
    assert os.fsencode(json.loads(done.stdout)["file"]["name"]) == name == os.fsencode(there["file"]["name"])


def test_two_senders_with_one_number_do_not_remove_each_others_file(tmp_path: Path, folder: Path) -> None:
    """A part of a file is named after the test's number, which a sender chooses."""
    source, other = big_file(tmp_path, size=100_000), big_file(tmp_path, "other.bin", 1000)
    number = ("--run", "77", "--bind")
    slowly = ("--file", str(source), *SLOW, *number, "127.0.0.1")
    with (
        receiving(tmp_path, "--output-dir", str(folder), "--parallel", "2", "--per-address", "2") as receiver,
        sending_early(tmp_path, receiver.port, *slowly) as sender,
    ):
        sender.wait_blocks(5)
        done = send_raw(receiver.port, "--file", str(other), *number, "127.0.0.2")
        assert done.returncode == 4 and b"refused: the receiver's output folder: File exists" in done.stderr
        assert sender.wait() == 0
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("big.bin", source.read_bytes())]
