# SPDX-License-Identifier: Apache-2.0
"""`wiretale link --truth FILE`: files that it may replace, and files that it must keep."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from lab_bench import NEEDED
from wiretale.traffic.program import find_program

PCAP = ("a1b2c3d4", "a1b23c4d", "a1b2cd34", "a1b234cd")
CAPTURES = {
    **{
        f"{order}-{magic}": ("run.bin", magic if order == "big" else bytes.fromhex(magic)[::-1].hex())
        for magic in PCAP
        for order in ("big", "little")
    },
    "pcapng": ("run.bin", "0a0d0d0a"),
    "gzip": ("run.pcap.gz", "1f8b0808"),
    "zstd": ("run.pcapng.zst", "28b52ffd"),
    "lz4": ("RUN.PCAP.lz4", "04224d18"),
}
NO_LINK = ("no-such-1", "no-such-2")


def link(*options: str) -> subprocess.CompletedProcess[str]:
    """The link between interfaces that are not there, which it looks for when it has checked its options."""
    return subprocess.run(
        [find_program("wiretale-link"), *NO_LINK, *options], capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_capture_is_replaced_only_with_overwrite(tmp_path: Path, kind: str) -> None:
    name, magic = CAPTURES[kind]
    content = bytes.fromhex(magic) + bytes(20)
    file, alias = tmp_path / name, tmp_path / "alias"
    file.write_bytes(content)
    alias.symlink_to(file)
    for path in (file, alias):
        done = link("--truth", str(path))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"--truth {path}: this is a capture file: expected another file, or --overwrite" in done.stderr
        assert link("--truth", str(path), "--overwrite").returncode == 4  # no such interface
    assert file.read_bytes() == content


@pytest.mark.parametrize("option", ["--forward", "--reverse", "--both"])
def test_an_input_is_never_replaced(tmp_path: Path, option: str) -> None:
    trace, alias, other = tmp_path / "trace.txt", tmp_path / "alias", tmp_path / "other"
    trace.write_text("1\n2\n")
    alias.symlink_to(trace)
    os.link(trace, other)
    for path in (trace, alias, other):
        done = link(option, f"trace={trace}", "--truth", str(path), "--overwrite")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"--truth {path}: expected another file than the input of trace=" in done.stderr
    assert trace.read_text() == "1\n2\n"


@NEEDED
def test_an_older_truth_is_replaced_whole_and_a_pipe_is_written(tmp_path: Path) -> None:
    space = f"wt-truth-{os.getpid()}"
    pipe, file, alias = tmp_path / "pipe", tmp_path / "run.truth", tmp_path / "alias"
    os.mkfifo(pipe)
    file.write_bytes(b"older" * 1000)
    file.chmod(0o640)
    alias.symlink_to(file)
    subprocess.run(["ip", "netns", "add", space], check=True)
    try:
        add = ["ip", "-n", space, "link", "add", "left", "type", "veth", "peer", "name", "right"]
        subprocess.run(add, check=True)
        with file.open("rb") as reader:
            assert run_link(space, alias).startswith(b"linking ")
            assert reader.read() == b"older" * 1000
        assert alias.is_symlink() and file.stat().st_mode & 0o777 == 0o640
        magic = file.read_bytes()[:8]
        assert magic == b"WTTRUTH1"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["alias", "pipe", "run.truth"]
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as cat:
            run_link(space, pipe)
            assert cat.communicate(timeout=30)[0][:8] == magic and pipe.is_fifo()
        check_lost_summary(space, tmp_path / "other.truth")
    finally:
        subprocess.run(["ip", "netns", "delete", space], check=True)


def check_lost_summary(space: str, truth: Path) -> None:
    """A summary that cannot be written costs no truth: not on a full device, nor if its reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full", "w") as full:
        for output, code, message in ((full.fileno(), 4, b": No space left on device\n"), (writing, 0, b"")):
            messages = run_link(space, truth, output, code)
            assert messages.startswith(b"linking ") and messages.partition(b"\n")[2].endswith(message)
            assert messages.count(b"\n") == 1 + bool(message) and truth.read_bytes()[:8] == b"WTTRUTH1"
            truth.unlink()
    os.close(writing)


def run_link(space: str, truth: Path, output: int = subprocess.DEVNULL, code: int = 0) -> bytes:
    """The messages of a link that is ended after its first one."""
    command = ["ip", "netns", "exec", space, find_program("wiretale-link"), "left", "right", "--truth", str(truth)]
    with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE) as process:
        assert process.stderr
        messages = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        messages += process.communicate(timeout=30)[1]
    assert process.returncode == code
    return messages
