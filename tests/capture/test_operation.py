# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture in operation: interfaces that change, shared folders, clients that do not read, starts after a kill."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import needs
from capture_link import PROGRAM, UNWRITTEN, CaptureLink, Daemon, StatusClient, captures_of, packets_in
from processes import output, wait_until

pytestmark = pytest.mark.xdist_group("capture")

# --- interfaces that change


def test_an_interface_that_is_made_again_has_counts_of_its_own(link: CaptureLink) -> None:
    link.add_interface("in7")
    try:
        with link.daemon(watched=True, interface="in7") as daemon:
            link.send(300, interface="out7")
            link.wait_counted(received=300)
            link.disconnect("in7")
            daemon.wait_message("in7 disappeared")
            link.add_interface("in7")
            daemon.wait_message("in7 appeared")
            link.send(100, interface="out7")
            line = link.wait_counted(received=400, written=400)
            assert [(interface["name"], interface["received"]) for interface in line["interfaces"]] == [("in7", 400)]
            assert not daemon.stop()
    finally:
        link.disconnect("in7")
    assert daemon.counts()["written"] == 400
    interfaces = captures_of(*link.files())
    assert [(interface["name"], interface["packets"], interface["received"]) for interface in interfaces] == [
        ("in7", 300, 300),
        ("in7", 100, 100),
    ]
    assert all((interface["dropped_kernel"], interface["dropped_program"]) == (0, 0) for interface in interfaces)


def test_packets_before_a_removal_are_recorded_or_counted(link: CaptureLink) -> None:
    """The kernel still holds packets in an open block when the interface is gone."""
    with link.daemon("--wait", "--interval", "50ms", interface="in7", watched=True, ready="waiting for in7"):
        client = StatusClient(link.status)
        for removals in range(1, 4):
            link.add_interface("in7")
            client.wait(lambda line: line["interfaces"][0]["state"] == "reading", "it reads the interface")
            sender = link.sending(1_000_000, rate=20_000, interface="out7")
            client.wait(lambda line, least=4000 * removals: line["received"] >= least, "packets")
            link.disconnect("in7")
            sender.kill()
            sender.wait(timeout=60)
            line = client.wait(lambda line: line["interfaces"][0]["state"] == "waiting", "it waits for the interface")
            (interface,) = line["interfaces"]
            assert interface["kernel_received"] == interface["received"] + interface["dropped_kernel"], removals
        client.close()


def test_drops_of_a_driver_stay_when_its_interface_is_removed(link: CaptureLink, tmp_path: Path) -> None:
    """Their counter falls back to 0 then. No driver here counts any, so that the test writes the file of the counter."""
    needs.skip_without(needs.mounts())
    counters = tmp_path / "net/in7/statistics"
    counters.mkdir(parents=True)
    (counters / "rx_missed_errors").write_text("5")  # before the capture
    capture = f"exec {PROGRAM} -i in7 -w {link.folder} --status {link.status} -Z root"
    link.add_interface("in7")
    script = f"mount --bind {tmp_path}/net /sys/class/net && {capture}"
    daemon = Daemon(link.inside(link.tracer, "sh", "-c", script), link.home)
    try:
        daemon.wait_message("capturing\n")
        (counters / "rx_missed_errors").write_text("12")
        link.wait_counted(dropped_interface=7)
        shutil.rmtree(counters)
        link.disconnect("in7")
        daemon.wait_message("in7 disappeared")
        assert not daemon.stop()
    finally:
        daemon.process.kill()
    assert daemon.counts()["dropped_interface"] == 7


def test_an_interface_that_is_not_there_is_an_error_unless_it_is_waited_for(link: CaptureLink) -> None:
    messages = link.refused(5, interface="in9")
    assert "-i in9: no such interface; expected an interface" in messages and messages.count("\n") == 1
    link.add_interface("in9")
    try:
        output(*f"ip -n {link.tracer} link set in9 down".split())
        messages = link.refused(5, interface="in9")
        assert "in9" in messages and "--wait" in messages and not link.folder.exists()
    finally:
        link.disconnect("in9")
    assert "no interface has that number" in link.refused(5, interface="999")


def test_a_time_without_its_interface_is_an_error(link: CaptureLink) -> None:
    options = ("--wait", "-a", "duration:1")
    assert "in9 did not appear" in link.refused(5, *options, interface="in9") and not link.files()
    assert "in9 did not appear" in link.refused(0, "-i", "in9", *options)  # one of two is a capture
    assert len(link.files()) == 1


def test_any_is_said_not_to_be_promiscuous(link: CaptureLink) -> None:
    for more, count in (((), 1), (("-p",), 0)):
        messages = link.records(0, *more, interface="any").messages()
        assert messages.count("any is never promiscuous") == count


def test_a_stream_that_takes_nothing_is_an_error(link: CaptureLink) -> None:
    assert "cannot write to the stream: No space left on device" in link.refused(4, into="/dev/full")


# --- folders


def test_files_that_got_another_name_count_in_the_ring(link: CaptureLink) -> None:
    link.records(30, "-b", "packets:10")
    for file in link.files():
        shutil.copy(file, file.with_name(file.name.replace(".pcapng", "-1.pcapng")))
    strangers = [link.folder / name for name in ("in0.pcapng", "in0_notes-1.pcapng", "in1_x.pcapng")]
    for stranger in strangers:
        stranger.write_text("of somebody else")
    assert len(link.files()) > 6
    link.records(0, "-b", "packets:10", "-b", "files:3")
    ring_files = [file for file in link.files() if file not in strangers]
    assert len(ring_files) == 3 and all(stranger.exists() for stranger in strangers)


def test_a_second_capture_into_the_same_files_is_refused(link: CaptureLink) -> None:
    with link.daemon() as first:
        messages = link.refused(4)
        assert f"{link.folder}: another wiretale-capture writes the files in0*.pcapng there" in messages
        assert messages.count("\n") == 1
        link.records(0, into=link.folder / "other.pcapng")
        first.stop(signal.SIGKILL)
    link.records(10)  # whose lock ended with its process
    assert not list(link.folder.glob(".*")) and packets_in(*link.files()) == 10


def test_a_second_capture_into_a_file_of_roots_folder_is_refused(link: CaptureLink, tmp_path: Path) -> None:
    """Where the capture itself may neither make nor remove a lock."""
    file = tmp_path / "trace.pcapng"
    for how in (signal.SIGKILL, signal.SIGTERM):
        with link.daemon(into=file) as first:
            messages = link.refused(4, into=file)
            assert f"{tmp_path}: another wiretale-capture writes the files trace*.pcapng" in messages
            first.stop(how)
    wait_until(lambda: not (tmp_path / ".trace.pcapng.lock").exists(), "nothing is left")
    assert file.exists()


def test_a_file_that_is_removed_is_lost_and_counted(link: CaptureLink) -> None:
    """While it is written, and in the moment before it gets its name."""
    with link.daemon(watched=True) as daemon:
        for number, then in enumerate((None, signal.SIGUSR1), 1):
            link.send(50)
            link.wait_counted(received=50 * number, written=50)
            (part,) = link.folder.glob(".*.part")
            part.unlink()
            if then:
                daemon.process.send_signal(then)
            link.wait_counted(dropped_disk=50 * number)
        link.deliver(20)
        assert daemon.stop() == UNWRITTEN
    counts = daemon.counts()
    assert (counts["received"], counts["written"], counts["dropped_disk"]) == (120, 20, 100)
    assert daemon.messages().count("50 packets are lost") == 2 and "No such file" not in daemon.messages()
    interfaces = captures_of(*link.files())
    assert sum(interface["packets"] for interface in interfaces) == 20
    # the sums over all files are the totals
    assert sum(interface["dropped_program"] for interface in interfaces) == 100


# --- status clients


def test_clients_that_do_not_read_lock_no_other_out(link: CaptureLink) -> None:
    with link.daemon(watched=True) as daemon:
        reading = StatusClient(link.status)
        reading.line()
        silent = [StatusClient(link.status) for _ in range(80)]
        late = StatusClient(link.status)
        assert reading.line()["state"] == late.line()["state"] == "capturing"
        until = time.monotonic() + 7  # they are disconnected after 5 s, and who reads is not
        while time.monotonic() < until:
            reading.line()
            late.line()
        for client in silent:
            while client.socket.recv(65536):  # data sent before, and then the end
                pass
            client.close()
        link.send(10)
        late.wait(lambda status: status["written"] == 10, "the packets")
        reading.close()
        late.close()
        assert not daemon.stop()
    assert "has not read for 5 s" in daemon.messages()


# --- starts after a kill


def test_thousands_of_leftovers_are_recovered_at_one_start(link: CaptureLink) -> None:
    """With few files open at a time, while packets are captured."""
    count = 2000
    left = link.killed(20)
    owner = left.stat()
    for number in range(count):
        path = link.folder / f".in0_20200101T000000.{number:09d}Z_00001.pcapng.part"
        shutil.copy(left, path)
        os.chown(path, owner.st_uid, owner.st_gid)
    left.unlink()

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with link.daemon(watched=True, preexec_fn=few_files) as daemon:
        link.deliver(100)
        wait_until(lambda: len(link.files()) == count, "all are recovered")
        assert not daemon.stop()
    assert not list(link.folder.glob(".*")) and "cannot" not in daemon.messages()
    assert packets_in(*link.files()[:: count // 10]) == 10 * 20 + 100


def test_leftovers_do_not_hold_the_end_up(link: CaptureLink) -> None:
    count = 60_000
    left = link.killed(20)
    for number in range(count):  # all of one file, which takes long enough
        os.link(left, link.folder / f".in0_20200101T000000.{number:09d}Z_00001.pcapng.part")
    with link.daemon() as daemon:
        assert not daemon.stop(seconds=30)
    remaining = len(list(link.folder.glob(".*.part")))
    assert f"{remaining} files of earlier runs are left for the next start" in daemon.messages()
    assert remaining and remaining + len(link.files()) == count + 2


def test_recovered_files_are_the_oldest_of_the_ring(link: CaptureLink) -> None:
    with link.daemon("-b", "packets:10", watched=True) as daemon:
        link.deliver(15)
        wait_until(lambda: len(link.files()) == 1, "the first file")
        daemon.stop(signal.SIGKILL)
    (left,) = link.folder.glob(".*.part")
    link.records(35, "-b", "packets:10", "-b", "files:3")
    names = [file.name for file in link.files()]
    assert len(names) == 3 and left.name[1:].removesuffix(".part") not in names
    assert [interface["packets"] for interface in captures_of(*link.files())] == [10, 10, 5]


# --- clocks

FUTEX = {"x86_64": 202, "aarch64": 98}
REALTIME = 0x100  # FUTEX_CLOCK_REALTIME


def timed_waits(process: subprocess.Popen[bytes]) -> list[int]:
    """The operations of threads that wait in the kernel for a futex, with a limit."""
    waits = []
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        words = (task / "syscall").read_text().split()
        if words[0] == str(FUTEX[os.uname().machine]) and int(words[4], 16):
            waits.append(int(words[2], 16))
    return waits


def test_no_wait_depends_on_the_time_of_day(link: CaptureLink) -> None:
    """A clock that is set back would prolong it by as much."""
    if os.uname().machine not in FUTEX:
        pytest.skip(f"the number of futex(2) on {os.uname().machine} is not known here")
    with link.daemon("-b", "packets:50", watched=True) as daemon:
        link.wait_counted()
        link.folder.chmod(0o555)  # a finished file cannot get its name: it is tried again each second
        daemon.process.send_signal(signal.SIGUSR1)
        link.send(60)
        daemon.wait_message("trying again")
        seen: list[int] = []
        until = time.monotonic() + 3
        while time.monotonic() < until:
            seen += timed_waits(daemon.process)
            time.sleep(0.01)
        link.folder.chmod(0o755)
        assert not daemon.stop()
    assert len(seen) > 20 and not [operation for operation in seen if operation & REALTIME]
