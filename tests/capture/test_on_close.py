# SPDX-License-Identifier: Apache-2.0
"""--on-close promises that its command succeeds for each file, over failures, kills and restarts, and outlives no capture."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from capture_link import CaptureLink, StatusClient, packets_in
from processes import command_lines, small_disk, wait_until

pytestmark = pytest.mark.xdist_group("capture")
INTERRUPTED = 130  # exit code

# An upload to a server that is down until `up` exists.
UPLOAD = """#!/bin/sh
place=${0%/*}
[ -e "$place/up" ] && [ -e "$1" ] && echo "${1##*/}" >>"$place/arrived"
"""
# A command that hangs, with a process that leaves its group and its parent.
HANGING = """#!/bin/sh
setsid sh -c 'echo $$ >>"${0%/*}/pids"; exec sleep 200' "$0" &
(trap '' TERM; sleep 200) &
echo $$ $! >>"${0%/*}/pids"
wait
"""


def script(folder: Path, text: str) -> str:
    path = folder / "command"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_commands_are_repeated_over_kills_until_they_succeed(link: CaptureLink, tmp_path: Path) -> None:
    options = ("-b", "packets:10", "-b", "files:2", "--on-close", script(tmp_path, UPLOAD), "-Z", "root")
    with link.daemon(*options, watched=True) as daemon:
        link.send(101)
        client = StatusClient(link.status)
        line = client.wait(lambda status: status["commands"]["failed"] >= 10, "ten failures")
        client.close()
        assert line["commands"]["waiting"] == 10 and not line["commands"]["done"]
        assert daemon.messages().count("it is repeated until it succeeds") == 1
        daemon.stop(signal.SIGKILL)
    assert len(link.files()) == 10  # a ring of two waits for them
    assert len(list(link.folder.glob(".*.on-close"))) == 10
    with link.daemon(*options, watched=True) as daemon:
        (tmp_path / "up").touch()
        client = StatusClient(link.status)
        client.wait(lambda status: status["commands"]["done"] >= 11, "all have arrived")
        client.close()
        link.deliver(1)
        assert not daemon.stop()
    arrived = (tmp_path / "arrived").read_text().split()
    assert len(arrived) == len(set(arrived)) == 12 and not list(link.folder.glob(".*.on-close"))
    files = link.files()
    assert [file.name for file in files] == sorted(arrived)[-2:] and packets_in(*files) == 2


def test_a_folder_without_permission_for_a_while_costs_no_command(link: CaptureLink, tmp_path: Path) -> None:
    options = ("-b", "packets:10", "--on-close", script(tmp_path, UPLOAD), "-Z", "root")
    with link.daemon(*options, watched=True) as daemon:
        link.send(11)
        client = StatusClient(link.status)
        client.wait(lambda status: status["commands"]["failed"] == 1, "the first run")
        link.folder.chmod(0o000)
        client.wait(lambda status: status["commands"]["failed"] == 2, "it is repeated")
        link.folder.chmod(0o755)
        (tmp_path / "up").touch()
        client.wait(lambda status: status["commands"]["done"] == 1, "it succeeds")
        client.close()
        assert not daemon.stop()
    assert not list(link.folder.glob(".*.on-close"))


def test_a_command_that_hangs_is_ended_with_all_that_it_started(link: CaptureLink, tmp_path: Path) -> None:
    options = ("-b", "packets:10", "--on-close", script(tmp_path, HANGING), "-Z", "root", "--on-close-tries", "1")
    pids = tmp_path / "pids"
    with link.daemon(*options, "--on-close-timeout", "200ms", watched=True) as daemon:
        link.send(11)
        client = StatusClient(link.status)
        line = client.wait(lambda status: status["commands"]["given_up"], "it is given up")
        client.close()
        assert line["commands"] == {
            "done": 0,
            "waiting": 0,
            "failed": 1,
            "given_up": 1,
            "removed_early": 0,
            "failing": 0,
        }
        assert "exceeded --on-close-timeout" in daemon.messages()
        assert not daemon.stop(seconds=8)
    first = pids.read_text().split()
    assert len(first) >= 3 and not [pid for pid in first if is_running(pid)]
    with link.daemon(*options) as daemon:  # given up until now
        wait_until(lambda: len(pids.read_text().split()) >= len(first) + 3, "it runs again")
        daemon.stop(signal.SIGKILL)
        wait_until(
            lambda: not [pid for pid in pids.read_text().split() if is_running(pid)], "nothing outlives a kill", 10
        )


def test_a_second_stop_does_not_wait_for_a_command(link: CaptureLink, tmp_path: Path) -> None:
    command = script(tmp_path, "#!/bin/sh\nexec sleep 70\n")
    with link.daemon("--on-close", command, "-Z", "root", watched=True) as daemon:
        link.deliver(10)
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(2.1)
        assert daemon.stop() == INTERRUPTED
        assert "interrupted again" in daemon.messages()
    wait_until(lambda: not [words for _, words in command_lines() if words == ["sleep", "70"]], "its command is gone")


def test_only_space_removes_a_file_before_its_command(link: CaptureLink, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=2M") as disk:
        options = ("-C", "400kB", "-b", "files:2", "--on-close", "false", "-Z", "root")
        with link.daemon(*options, into=disk, watched=True) as daemon:
            link.send(40_000)
            line = link.wait_counted(written=40_000)
            assert not daemon.stop()
        removed = line["commands"]["removed_early"]
        assert removed > 3 and line["removed_files"] == removed
        assert daemon.messages().count("before its --on-close command succeeded: the disk is full") >= removed
        assert packets_in(*sorted(disk.glob("in0*"))) > 10_000
