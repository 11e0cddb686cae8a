# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture in trouble: killed, no disk, no folder, no reader. It continues and its counters stay right."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
import wiretale
from capture_link import (
    ORDINARY,
    PROGRAM,
    UNWRITTEN,
    CaptureLink,
    Daemon,
    StatusClient,
    captures_of,
    check_sum,
    finished,
    packets_in,
)
from damaged_disk import HEAD_BYTES, SECTOR_BYTES, damaged_disk
from processes import full_pipe, output, small_disk, wait_until

pytestmark = pytest.mark.xdist_group("capture")

# 50 and 1 for the whole of it, which takes minutes.
KILLS = int(os.environ.get("WIRETALE_CAPTURE_KILLS", "6"))
CUT_STEP = int(os.environ.get("WIRETALE_CAPTURE_CUT_STEP", "7"))
CUT_BYTES = 4096
LOST = ("dropped_kernel", "dropped_program")
LATE = "ether proto 0x88b5 and ether[40] = 0"  # looks at a byte behind the headers


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB, of the user's who captures."""
    with small_disk(tmp_path / "disk", f"size=2M,mode=755,uid={ORDINARY},gid={ORDINARY}") as folder:
        yield folder


# --- killed


def test_the_next_start_recovers_files_after_a_kill(link: CaptureLink) -> None:
    left = link.killed(500)
    with left.open("ab") as file:
        file.write(bytes.fromhex("06000000 60000000 00000000"))  # a block that was begun
    with link.daemon() as daemon:
        wait_until(lambda: len(link.files()) == 1, "the mended file")
        assert not daemon.stop()
    mended, _ = link.files()
    assert mended.name == left.name[1:].removesuffix(".part")
    (interface,) = captures_of(mended)
    assert (interface["packets"], interface["damage"]) == (500, None)
    assert (interface["received"], interface["dropped_kernel"]) == (None, None)  # unknown
    assert "500 packets" in daemon.messages() and not list(link.folder.glob(".*"))


def test_kills_at_any_time_leave_readable_files_and_no_wrong_count(link: CaptureLink) -> None:
    chance = random.Random(5)
    for _ in range(KILLS):
        with link.daemon("-b", "packets:10000") as daemon:
            sender = link.sending(60_000)
            time.sleep(chance.uniform(0.05, 0.5))
            daemon.stop(signal.SIGKILL)
            sender.kill()
            sender.wait(timeout=60)
        for left in link.folder.glob(".*.part"):  # before it is recovered
            assert wiretale.analyze(left).totals["packets"] >= 0
    with link.daemon() as daemon:
        assert not daemon.stop()  # the rest is recovered all the same
    files = link.files()
    assert not list(link.folder.glob(".*.part")) and len(files) > KILLS
    mended = []
    for interface in captures_of(*files):
        assert interface["damage"] is None
        assert interface["received"] in (None, interface["packets"] + sum(interface[name] or 0 for name in LOST))
        mended += [interface] if interface["received"] is None else []
    assert 1 <= len(mended) <= KILLS


def test_a_file_cut_at_any_byte_reads_up_to_there(link: CaptureLink, tmp_path: Path) -> None:
    link.records(200)
    (file,) = link.files()
    size, before = file.stat().st_size, 200
    data = file.read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(data)
    for end in range(size - 1, size - CUT_BYTES, -CUT_STEP):
        os.truncate(cut, end)
        packets = wiretale.analyze(cut).totals["packets"]
        assert before - 1 <= packets <= before, end
        before = packets
    assert before < 170
    for end in range(size - CUT_BYTES, size, 1997):
        cut.write_bytes(data[:end])
        assert packets_in(cut) == wiretale.analyze(cut).totals["packets"]


def test_damaged_leavings_never_stop_a_start(link: CaptureLink) -> None:
    left = link.killed(200)
    capture_bytes, chance = left.read_bytes(), random.Random(3)
    owner = left.stat()
    left.unlink()
    for number in range(60):
        damaged = bytearray(capture_bytes[: chance.randrange(len(capture_bytes))])
        for _ in range(chance.randrange(4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path = link.folder / f".in0_20200101T000000.000000000Z_{number:05d}.pcapng.part"
        path.write_bytes(damaged)
        os.chown(path, owner.st_uid, owner.st_gid)
    (link.folder / ".evil.pcapng.part").symlink_to("/etc/passwd")
    os.mkfifo(link.folder / ".fifo.pcapng.part")
    daemon = link.records(100)
    files = link.files()
    assert daemon.counts()["written"] == 100 == captures_of(files[-1])[0]["packets"]
    assert len(files) > 40
    assert all(interface["packets"] <= 200 and interface["damage"] is None for interface in captures_of(*files))
    assert Path("/etc/passwd").stat().st_size and (link.folder / ".evil.pcapng.part").is_symlink()


def wait_settled(daemon: Daemon, leftovers: list[Path]) -> None:
    def left() -> list[str]:
        return [path.name for path in leftovers if path.exists()]

    wait_until(
        lambda: daemon.process.poll() is not None or not left(), lambda: f"no leftover: {left()}; {daemon.messages()}"
    )


def test_unreadable_leftovers_are_set_aside(link: CaptureLink) -> None:
    """On a disk with bad sectors, as after a crash: the capture starts all the same, and each later start, too."""
    needs.skip_without(needs.disk_images())
    with link.killed(2000, "-s", "60").open("rb") as file:
        left = file.read()
    assert len(left) > HEAD_BYTES + SECTOR_BYTES
    names = [f"in0_20200101T000000.000000000Z_{number:05d}.pcapng" for number in range(20)]
    names[-1] += ".zst"  # the kill interrupted compression
    files = {f".{name}.part": left for name in names} | {".in0_whole.pcapng.part": left[: HEAD_BYTES // 2]}
    link.folder.rename(link.folder.with_name("killed"))
    with damaged_disk(link.folder, files) as disk:
        for path in (disk, *disk.glob(".in0*")):
            os.chown(path, ORDINARY, ORDINARY)
        for start in range(2):
            with link.daemon("-U", watched=True) as daemon:
                wait_settled(daemon, [disk / name for name in files])
                assert daemon.process.poll() is None, daemon.messages()
                line = link.wait_counted()
                link.deliver(100)
                assert not daemon.stop()
            messages = daemon.messages()
            assert line["unreadable_leftovers"] == messages.count(".unreadable\n") == (0 if start else len(names))
            for name in () if start else names:
                assert (
                    f"cannot read .{name}.part at byte {HEAD_BYTES}: Input/output error; renamed to {name}.unreadable\n"
                    in messages
                )
        aside = {path.name: path.stat().st_size for path in disk.glob("*.unreadable")}
        assert aside == {f"{name}.unreadable": len(left) for name in names}
        recovered = packets_in(disk / "in0_whole.pcapng")
        assert recovered > 300 and packets_in(*finished(disk)) == recovered + 2 * 100


def test_a_file_that_is_being_written_is_left_alone(link: CaptureLink) -> None:
    with link.daemon() as first:
        link.records(100, into=link.folder / "second.pcapng")
        assert not first.stop()
    assert [interface["packets"] for interface in captures_of(*link.files())] == [100, 100]


# --- the disk


def test_packets_wait_for_room_on_a_full_disk(link: CaptureLink, tmp_path: Path, disk: Path) -> None:
    with link.daemon("--interval", "50ms", into=disk, watched=True) as daemon:
        link.send(40_000)
        client = StatusClient(link.status)
        line = client.wait(lambda status: status["received"] == 40_000 and status["state"] == "holding", "they wait")
        check_sum(line)
        assert line["queued"] > 10_000 and not line["dropped_disk"]
        daemon.process.send_signal(signal.SIGUSR1)  # the full file is finished
        wait_until(lambda: len(finished(disk)) == 1, "the full file")
        (full,) = finished(disk)
        shutil.move(full, tmp_path / "moved.pcapng")
        client.wait(lambda status: status["state"] == "capturing" and not status["queued"], "there is room again")
        link.send(1000)
        line = client.wait(lambda status: status["received"] == 41_000 and not status["queued"], "more is counted")
        assert not daemon.stop()
        line = client.wait(lambda status: status["state"] == "ended", "the last line")
        client.close()
    files = (tmp_path / "moved.pcapng", *finished(disk))
    assert packets_in(*files) == daemon.counts()["written"] == 41_000
    assert line["bytes"] == sum(file.stat().st_size for file in files)
    assert daemon.messages().count("packets wait in memory") == 1 and "writes succeed again" in daemon.messages()


def test_a_disk_that_is_full_from_the_start_is_waited_for(link: CaptureLink, disk: Path) -> None:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    with link.daemon(into=disk, watched=True, ready="No space left") as daemon:
        link.send(100)
        link.wait_counted(queued=100)
        filler.unlink()
        daemon.wait_message("capturing\n")
        link.send(100)
        assert not daemon.stop()
    assert packets_in(*finished(disk)) == daemon.counts()["written"] == 200


def test_a_span_that_a_full_disk_cannot_keep_leaves_no_mark(link: CaptureLink, disk: Path) -> None:
    options = ("-b", "packets:100", "-b", "files:2", "--keep-before", "60s", "--keep-after", "200ms")
    with link.daemon(*options, into=disk, watched=True) as daemon:
        link.deliver(150)
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        daemon.process.send_signal(signal.SIGUSR2)
        daemon.wait_message("is not kept: No space left on device")
        (disk / "filler").unlink()
        assert not daemon.stop()
    assert not [path.name for path in disk.glob(".*") if path.suffix in (".kept", ".keep")]


def test_the_oldest_file_of_a_ring_makes_room(link: CaptureLink, disk: Path) -> None:
    daemon = link.records(60_000, "-C", "400kB", "-b", "files:100", into=disk)
    counts = daemon.counts()
    assert counts["written"] == 60_000, daemon.messages()
    assert captures_of(finished(disk)[-1])[0]["packets"] > 0


def test_a_folder_that_disappears_ends_a_confined_capture(link: CaptureLink) -> None:
    with link.daemon(watched=True) as daemon:
        link.deliver(100)
        shutil.rmtree(link.folder)
        assert daemon.process.wait(timeout=60) == 4
    assert f"the directory {link.folder} was removed" in daemon.messages() and "start it again" in daemon.messages()
    assert (
        daemon.counts() | {"received": 100, "dropped_disk": 100} == daemon.counts()
    )  # those of the file that was removed
    link.records(100, watched=True)  # as a service manager does
    assert packets_in(*link.files()) == 100


def test_a_folder_that_disappears_is_used_again_without_the_sandbox(link: CaptureLink) -> None:
    link.folder.mkdir()
    with link.daemon("--no-sandbox", "-Z", "root", watched=True) as daemon:
        link.deliver(100)
        shutil.rmtree(link.folder)
        daemon.wait_message("packets wait in memory")
        link.send(100)
        link.wait_counted(received=200, queued=100)
        link.folder.mkdir()
        wait_until(lambda: bool(list(link.folder.glob(".*.part"))), "a new file")
        link.send(100)
        assert daemon.stop() == UNWRITTEN
    assert (
        daemon.counts() | {"received": 300, "dropped_disk": 100} == daemon.counts()
    )  # those that were removed are lost
    assert packets_in(*link.files()) == 200


def test_a_folder_that_is_read_only_for_two_seconds_costs_no_packet(link: CaptureLink) -> None:
    link.make_folder()
    with link.daemon("-b", "packets:1000", watched=True) as daemon:
        sender = link.sending(25_000, rate=10_000)
        wait_until(lambda: len(link.files()) >= 2, "two files")
        link.folder.chmod(0o555)
        daemon.wait_message("Permission denied")
        assert not sender.wait(timeout=60)
        client = StatusClient(link.status)
        line = client.wait(lambda status: status["received"] == 25_000, "all has come")
        client.close()
        assert line["state"] == "holding" and line["queued"] > 20_000
        link.folder.chmod(0o755)
        daemon.wait_message("writes succeed again")
        link.deliver(100)
        assert not daemon.stop()
    assert daemon.messages().count("packets wait in memory") == 1
    assert packets_in(*link.files()) == daemon.counts()["written"] == 25_100


# --- the reader of a stream


def statistics_of(file: Path) -> dict[str, int]:
    """The counts of the interface statistics as Wireshark's dissector of the format itself reads them."""
    text = output("tshark", "-r", str(file), "-X", "read_format:MIME Files Format", "-V")
    return {name: int(value) for name, value in re.findall(r"Option: Number of (.*) = (\d+)", text)}


@pytest.mark.parametrize("buffer, loses", [("256M", False), ("4M", True)])
def test_a_reader_that_sleeps_costs_packets_only_beyond_the_buffer(
    link: CaptureLink, tmp_path: Path, buffer: str, loses: bool
) -> None:
    file = tmp_path / "stream.pcapng"
    with link.daemon(
        "--buffer", buffer, "--interval", "50ms", into="-", watched=True, stdout=subprocess.PIPE
    ) as daemon:
        link.send(150_000)
        client = StatusClient(link.status)
        client.wait(lambda status: status["interfaces"][0]["kernel_received"] == 150_000, "all has come")
        client.close()
        assert daemon.process.stdout
        with file.open("wb") as to:
            copy = subprocess.Popen(["cat"], stdin=daemon.process.stdout, stdout=to)
            assert daemon.stop() == (UNWRITTEN if loses else 0)
            daemon.process.stdout.close()
            assert not copy.wait(timeout=60)
    counts = daemon.counts()
    assert counts["received"] + counts["dropped_kernel"] == 150_000
    assert (counts["dropped_queue"] > 0) == loses
    (interface,) = captures_of(file)
    assert interface["packets"] == counts["written"]
    assert (interface["dropped_kernel"], interface["dropped_program"]) == (
        counts["dropped_kernel"],
        counts["dropped_queue"],
    )
    lost = [row for row in wiretale.analyze(file).findings.rows() if row["code"] == "capture-dropped"]
    assert [row["cost"] for row in lost] == [counts["dropped_kernel"] + counts["dropped_queue"]] * bool(lost)
    assert bool(lost) == loses and (not loses or "by the capturing program" in lost[0]["sentence"])
    if loses:  # else the file is more than that dissector takes
        assert statistics_of(file) == {
            "Received Packets": interface["received"],
            "Dropped Packets": 0,
            "Accepted Packets": counts["received"] + counts["dropped_kernel"],
            "Packets Dropped by OS": counts["dropped_kernel"],
            "Packets Delivered to the User": counts["written"],
        }
    assert f"Number of packets = {counts['written']}" in output("capinfos", "-M", str(file))


def test_a_reader_that_leaves_ends_the_capture_quietly(link: CaptureLink) -> None:
    with link.daemon(into="-", stdout=subprocess.PIPE) as daemon:
        assert daemon.process.stdout
        daemon.process.stdout.close()
        link.send(2000)
        assert daemon.process.wait(timeout=60) == 0
    assert daemon.counts()
    assert "Broken pipe" not in daemon.messages()


@pytest.mark.parametrize("snaplen", ["1", "14", "20"])
def test_a_filter_that_looks_beyond_the_snap_length_leaves_nothing_out(link: CaptureLink, snaplen: str) -> None:
    link.records(2000, "-s", snaplen, LATE)
    (file,) = link.files()
    counted = statistics_of(file)
    assert counted["Accepted Packets"] == 2000 and "Received Packets" not in counted  # before the filter: unknown
    (interface,) = captures_of(file)
    assert interface["packets"] == interface["received"] == 2000
    lengths = output("tshark", "-r", str(file), "-T", "fields", "-e", "frame.cap_len")
    assert set(lengths.split()) == {snaplen}


def test_one_wish_to_stop_that_comes_as_two_signals_loses_nothing(link: CaptureLink, tmp_path: Path) -> None:
    """As timeout(1) sends them: to the process, and to its group."""
    for turn in range(5):
        folder = tmp_path / f"out{turn}"
        with link.daemon(into=folder) as daemon:
            link.send(500)
            for _ in range(4):
                daemon.process.send_signal(signal.SIGTERM)
                time.sleep(0.002)
            assert daemon.process.wait(timeout=60) == 0
        assert packets_in(*finished(folder)) == 500


def test_closed_standard_streams_do_not_become_devices_or_files(link: CaptureLink) -> None:
    """Messages would be sent as packets, or written into captures."""
    closed = f'exec "{PROGRAM}" -i in0 -w "{link.folder}" <&- >&- 2>&-'
    process = subprocess.Popen(link.inside(link.tracer, "sh", "-c", closed))
    try:
        wait_until(lambda: any(link.folder.glob(".*.part")), "it captures")
        streams = {os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in (0, 1, 2)}
        link.send(100)
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait(timeout=60)
    assert streams == {"/dev/null"}
    assert packets_in(*link.files()) == 100


def test_messages_that_are_not_read_block_nothing(link: CaptureLink) -> None:
    options = ("-i", "in0", "-w", str(link.folder), "--interval", "1ms", "--status", str(link.status))
    reading, writing = full_pipe()
    process = subprocess.Popen(link.inside(link.tracer, str(PROGRAM), *options), stderr=writing)
    try:
        wait_until(lambda: any(link.folder.glob(".*.part")), "it captures")
        silent = StatusClient(link.status)
        link.send(20_000)
        link.wait_counted(received=20_000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        silent.close()
    finally:
        process.kill()
        process.wait(timeout=60)
        os.close(reading)
        os.close(writing)
    assert packets_in(*link.files()) == 20_000
