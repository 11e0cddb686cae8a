# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture in operation: interfaces that change, shared folders, clients that do not read, starts after a kill."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from capture_link import (
    CaptureLink,
    StatusClient,
    captures_of,
    check_sum,
    finished,
    output,
    packets_in,
    total,
    wait_counted,
    wait_until,
)

# --- interfaces that change


def test_an_interface_that_is_made_again_has_counts_of_its_own(link: CaptureLink, tmp_path: Path) -> None:
    folder, status = tmp_path / "captures", tmp_path / "status"
    link.connect("in7")
    try:
        with link.daemon(tmp_path, "-i", "in7", "-w", str(folder), "--status", str(status)) as daemon:
            link.send(300, interface="out7")
            wait_counted(status, received=300)
            link.disconnect("in7")
            daemon.wait_said("in7 disappeared")
            link.connect("in7")
            daemon.wait_said("in7 appeared")
            link.send(100, interface="out7")
            line = wait_counted(status, received=400, written=400)
            assert [(one["name"], one["received"]) for one in line["interfaces"]] == [("in7", 400)]
            assert not daemon.stop()
    finally:
        link.disconnect("in7")
    assert total(daemon.said())["written"] == 400
    told = captures_of(*finished(folder))
    assert [(one["name"], one["packets"], one["received"]) for one in told] == [("in7", 300, 300), ("in7", 100, 100)]
    assert all((one["dropped_kernel"], one["dropped_program"]) == (0, 0) for one in told)


def test_an_interface_that_is_not_there_is_an_error_unless_it_is_waited_for(link: CaptureLink, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    with link.daemon(tmp_path, "-i", "in9", "-w", str(folder), ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 5
    assert "-i in9: no such interface; expected an interface" in daemon.said() and daemon.said().count("\n") == 1
    link.connect("in9")
    try:
        output(*f"ip -n {link.tracer} link set in9 down".split())
        with link.daemon(tmp_path, "-i", "in9", "-w", str(folder), ready=None) as daemon:
            assert daemon.process.wait(timeout=60) == 5
        assert "in9" in daemon.said() and "--wait" in daemon.said() and not folder.exists()
    finally:
        link.disconnect("in9")
    with link.daemon(tmp_path, "-i", "999", "-w", str(folder), ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 5
    assert "no interface has that number" in daemon.said()


def test_a_time_without_its_interface_is_an_error(link: CaptureLink, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    options = ("--wait", "-i", "in9", "-w", str(folder), "-a", "duration:1")
    with link.daemon(tmp_path, *options, ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 5
    assert "in9 did not appear" in daemon.said() and not finished(folder)
    with link.daemon(tmp_path, "-i", "in0", *options, ready=None) as daemon:  # one of two is a capture
        assert daemon.process.wait(timeout=60) == 0
    assert "in9 did not appear" in daemon.said() and len(finished(folder)) == 1


def test_any_is_said_not_to_be_promiscuous(link: CaptureLink, tmp_path: Path) -> None:
    for more, count in (((), 1), (("-p",), 0)):
        with link.daemon(tmp_path, "-i", "any", "-w", str(tmp_path / "captures"), *more) as daemon:
            assert not daemon.stop()
        assert daemon.said().count("any is never promiscuous") == count


def test_a_stream_that_takes_nothing_is_an_error(link: CaptureLink, tmp_path: Path) -> None:
    with link.daemon(tmp_path, "-i", "in0", "-w", "/dev/full", ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 4
    assert "cannot write to the stream: No space left on device" in daemon.said()


# --- folders


def test_files_that_got_another_name_count_in_the_ring(link: CaptureLink, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), "-b", "packets:10") as daemon:
        link.send(30)
        assert not daemon.stop()
    for file in finished(folder):
        shutil.copy(file, file.with_name(file.name.replace(".pcapng", "-1.pcapng")))
    strangers = [folder / name for name in ("in0.pcapng", "in0_notes-1.pcapng", "in1_x.pcapng")]
    for stranger in strangers:
        stranger.write_text("of somebody else")
    assert len(finished(folder)) > 6
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), "-b", "packets:10", "-b", "files:3") as daemon:
        assert not daemon.stop()
    own = [file for file in finished(folder) if file not in strangers]
    assert len(own) == 3 and all(stranger.exists() for stranger in strangers)


def test_a_second_capture_into_the_same_files_is_refused(link: CaptureLink, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    options = ("-i", "in0", "-w", str(folder))
    with link.daemon(tmp_path, *options) as first:
        with link.daemon(tmp_path, *options, ready=None) as second:
            assert second.process.wait(timeout=60) == 4
        assert f"{folder}: another wiretale-capture writes the files in0*.pcapng there" in second.said()
        assert second.said().count("\n") == 1
        with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "other.pcapng")) as other:
            assert not other.stop()
        first.stop(signal.SIGKILL)
    with link.daemon(tmp_path, *options) as third:  # whose lock ended with its process
        link.send(10)
        assert not third.stop()
    assert not list(folder.glob(".*")) and packets_in(*finished(folder)) == 10


def test_a_second_capture_into_a_file_of_roots_folder_is_refused(link: CaptureLink, tmp_path: Path) -> None:
    """Where the capture itself may neither make nor remove a lock."""
    file = tmp_path / "trace.pcapng"
    for how in (signal.SIGKILL, signal.SIGTERM):
        with link.daemon(tmp_path, "-i", "in0", "-w", str(file)) as first:
            with link.daemon(tmp_path, "-i", "in0", "-w", str(file), ready=None) as second:
                assert second.process.wait(timeout=60) == 4
            assert f"{tmp_path}: another wiretale-capture writes the files trace*.pcapng" in second.said()
            first.stop(how)
    wait_until(lambda: not (tmp_path / ".trace.pcapng.lock").exists(), "nothing is left")
    assert file.exists()


def test_a_file_that_is_removed_is_lost_and_counted(link: CaptureLink, tmp_path: Path) -> None:
    """While it is written, and in the moment before it gets its name."""
    folder, status = tmp_path / "captures", tmp_path / "status"
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), "--status", str(status)) as daemon:
        for number, then in enumerate((None, signal.SIGUSR1), 1):
            link.send(50)
            wait_counted(status, received=50 * number, written=50)
            (part,) = folder.glob(".*.part")
            part.unlink()
            if then:
                daemon.process.send_signal(then)
            wait_counted(status, dropped_disk=50 * number)
        link.send(20)
        wait_counted(status, written=20)
        assert not daemon.stop()
    counts = total(daemon.said())
    check_sum(counts)
    assert (counts["received"], counts["written"], counts["dropped_disk"]) == (120, 20, 100)
    assert daemon.said().count("50 packets are lost") == 2 and "No such file" not in daemon.said()
    told = captures_of(*finished(folder))
    assert sum(one["packets"] for one in told) == 20
    assert sum(one["dropped_program"] for one in told) == 100  # the sums over all files are the totals


# --- status clients


def connected(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(path))
    client.settimeout(60)
    return client


def test_clients_that_do_not_read_lock_no_other_out(link: CaptureLink, tmp_path: Path) -> None:
    status = tmp_path / "status"
    options = ("-i", "in0", "-w", str(tmp_path / "captures"), "--status", str(status))
    with link.daemon(tmp_path, *options) as daemon:
        reading = StatusClient(status)
        reading.line()
        silent = [connected(status) for _ in range(80)]
        late = StatusClient(status)
        assert reading.line()["state"] == late.line()["state"] == "capturing"
        until = time.monotonic() + 7  # they are disconnected after 5 s, and who reads is not
        while time.monotonic() < until:
            reading.line()
            late.line()
        for client in silent:
            while client.recv(65536):  # data sent before, and then the end
                pass
            client.close()
        link.send(10)
        late.wait(lambda told: told["written"] == 10, "the packets")
        reading.close()
        late.close()
        assert not daemon.stop()
    assert "has not read for 5 s" in daemon.said()


# --- starts after a kill


def test_thousands_of_leftovers_are_recovered_at_one_start(link: CaptureLink, tmp_path: Path) -> None:
    """With few files open at a time, while packets are captured."""
    count, folder, status = 2000, tmp_path / "captures", tmp_path / "status"
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), "--status", str(status)) as daemon:
        link.send(20)
        wait_counted(status, written=20)
        daemon.stop(signal.SIGKILL)
    (left,) = folder.glob(".*.part")
    owner = left.stat()
    for number in range(count):
        path = folder / f".in0_20200101T000000.{number:09d}Z_00001.pcapng.part"
        shutil.copy(left, path)
        os.chown(path, owner.st_uid, owner.st_gid)
    left.unlink()

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    status.unlink()
    options = ("--status", str(status))
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), *options, preexec_fn=few_files) as daemon:
        link.send(100)
        wait_counted(status, written=100)
        wait_until(lambda: len(finished(folder)) == count, "all are recovered")
        assert not daemon.stop()
    assert not list(folder.glob(".*")) and "cannot" not in daemon.said()
    assert packets_in(*finished(folder)[:: count // 10]) == 10 * 20 + 100


def test_leftovers_do_not_hold_the_end_up(link: CaptureLink, tmp_path: Path) -> None:
    count, folder, status = 60_000, tmp_path / "captures", tmp_path / "status"
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), "--status", str(status)) as daemon:
        link.send(20)
        wait_counted(status, written=20)
        daemon.stop(signal.SIGKILL)
    (left,) = folder.glob(".*.part")
    for number in range(count):  # all of one file, which takes long enough
        os.link(left, folder / f".in0_20200101T000000.{number:09d}Z_00001.pcapng.part")
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder)) as daemon:
        assert not daemon.stop(seconds=30)
    remaining = len(list(folder.glob(".*.part")))
    assert f"{remaining} files of earlier runs are left for the next start" in daemon.said()
    assert remaining and remaining + len(finished(folder)) == count + 2


def test_recovered_files_are_the_oldest_of_the_ring(link: CaptureLink, tmp_path: Path) -> None:
    folder, status = tmp_path / "captures", tmp_path / "status"
    options = ("-i", "in0", "-w", str(folder), "-b", "packets:10", "--status", str(status))
    with link.daemon(tmp_path, *options) as daemon:
        link.send(15)
        wait_counted(status, written=15)
        wait_until(lambda: len(finished(folder)) == 1, "the first file")
        daemon.stop(signal.SIGKILL)
    (left,) = folder.glob(".*.part")
    with link.daemon(tmp_path, *options, "-b", "files:3") as daemon:
        link.send(35)
        wait_counted(status, written=35)
        assert not daemon.stop()
    names = [file.name for file in finished(folder)]
    assert len(names) == 3 and left.name[1:].removesuffix(".part") not in names
    assert [one["packets"] for one in captures_of(*finished(folder))] == [10, 10, 5]


# --- clocks

FUTEX = {"x86_64": 202, "aarch64": 98}
REALTIME = 0x100  # FUTEX_CLOCK_REALTIME


def timed_waits(process: subprocess.Popen[bytes]) -> list[int]:
    """The operations of threads that wait in the kernel for a futex, with a limit."""
    found = []
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        words = (task / "syscall").read_text().split()
        if words[0] == str(FUTEX[os.uname().machine]) and int(words[4], 16):
            found.append(int(words[2], 16))
    return found


def test_no_wait_depends_on_the_time_of_day(link: CaptureLink, tmp_path: Path) -> None:
    """A clock that is set back would prolong it by as much."""
    if os.uname().machine not in FUTEX:
        pytest.skip(f"the number of futex(2) on {os.uname().machine} is not known here")
    folder, status = tmp_path / "captures", tmp_path / "status"
    options = ("-b", "packets:50", "--status", str(status))
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder), *options) as daemon:
        wait_counted(status)
        folder.chmod(0o555)  # a finished file cannot get its name: it is tried again each second
        link.send(60)
        daemon.wait_said("trying again")
        seen: list[int] = []
        until = time.monotonic() + 3
        while time.monotonic() < until:
            seen += timed_waits(daemon.process)
            time.sleep(0.01)
        folder.chmod(0o755)
        assert not daemon.stop()
    assert len(seen) > 20 and not [operation for operation in seen if operation & REALTIME]
