# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture on a real link: files, names, rotation, counters, status, and dropped privileges."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs
from capture_link import (
    COUNTS,
    ORDINARY,
    PROGRAM,
    CaptureLink,
    StatusClient,
    captures_of,
    check_sum,
    packets_in,
    refused,
    total,
)
from processes import output, wait_until

pytestmark = pytest.mark.xdist_group("capture")

NAME = re.compile(r"in0_\d{8}T\d{6}\.\d{9}Z_\d{5}\.pcapng")


def counted_by_others(file: Path) -> set[int]:
    """Packets in the file as capinfos, tshark and tcpdump count them."""
    capinfos = re.search(r"Number of packets:\s+(\d+)", output("capinfos", "-Mc", str(file)))
    assert capinfos
    tshark = output("tshark", "-r", str(file), "-T", "fields", "-e", "frame.number").split()
    tcpdump = output("tcpdump", "--count", "-r", str(file)).split()
    return {int(capinfos[1]), len(tshark), int(tcpdump[0])}


# --- files


def test_a_capture_is_published_whole_and_all_read_the_same(link: CaptureLink) -> None:
    with link.daemon(watched=True) as daemon:
        link.deliver(1000)
        assert not link.files()  # visible files are finished
        assert not daemon.stop(signal.SIGINT)
        messages = daemon.messages()
    (file,) = link.files()
    assert NAME.fullmatch(file.name)
    assert counted_by_others(file) == {1000}
    counts = total(messages)
    check_sum(counts)
    assert (counts["received"], counts["written"]) == (1000, 1000)
    (interface,) = captures_of(file)
    assert (interface["received"], interface["dropped_kernel"], interface["dropped_interface"]) == (1000, 0, 0)
    assert (interface["name"], interface["time_resolution_ns"], interface["damage"]) == ("in0", 1, None)
    assert " gro=o" in interface["comment"] and "wiretale-capture" in interface["capture_application"]
    assert not (file.stat().st_mode | link.folder.stat().st_mode) & 0o022


@pytest.mark.parametrize(
    "options, suffix",
    [
        pytest.param(["--pcap"], ".pcap", id="classic"),
        pytest.param(["-s", "40"], ".pcapng", id="cut"),
        pytest.param(["--immediate"], ".pcapng", id="immediate"),
        pytest.param(["-Q", "in"], ".pcapng", id="inbound"),
    ],
)
def test_files_of_all_kinds_have_the_right_counts(link: CaptureLink, options: list[str], suffix: str) -> None:
    link.records(300, *options)
    (file,) = link.files(suffix)
    assert counted_by_others(file) == {300}
    (interface,) = captures_of(file)
    assert interface["time_resolution_ns"] == 1
    assert interface["captured_bytes"] == 300 * (40 if "-s" in options else 64)


def test_any_stores_the_direction_of_each_packet(link: CaptureLink) -> None:
    link.records(20, "ether proto 0x88b5", interface="any")
    (file,) = link.files()
    flags = output("tshark", "-r", str(file), "-T", "fields", "-e", "frame.packet_flags_direction").split()
    assert len(flags) == 20 and {int(flag, 16) for flag in flags} == {1}
    (interface,) = captures_of(file)
    assert interface["capture_filter"] == "ether proto 0x88b5"


def test_rotation_by_size_loses_nothing(link: CaptureLink) -> None:
    counts = link.records(60_000, "-C", "1MB").counts()
    files = link.files()
    assert len(files) == 6 and all(file.stat().st_size < 1_010_000 for file in files)
    interfaces = captures_of(*files)
    assert sum(interface["packets"] for interface in interfaces) == counts["written"] == 60_000
    assert all(interface["received"] == interface["packets"] + interface["dropped_kernel"] for interface in interfaces)


def test_thousands_of_rotations_lose_nothing(link: CaptureLink) -> None:
    link.records(3000, "-b", "packets:1")
    files = link.files()
    assert len(files) == 3000
    assert packets_in(*files[::100]) == 30
    assert len({file.name[-12:-7] for file in files}) == 3000 and not list(link.folder.glob(".*"))


def test_files_begin_at_multiples_of_the_time(link: CaptureLink) -> None:
    with link.daemon("-G", "1s", "--align") as daemon:
        link.send(300, rate=200)
        time.sleep(2.2)  # a silent time has its file, too
        assert not daemon.stop()
    files = link.files()
    interfaces = captures_of(*files)
    assert len(files) >= 4 and sum(interface["packets"] for interface in interfaces) == 300
    assert all(
        interface["first_ns"] // 10**9 == interface["last_ns"] // 10**9
        for interface in interfaces
        if interface["packets"]
    )
    assert not all(interface["packets"] for interface in interfaces)


def test_a_ring_counts_the_files_of_earlier_runs(link: CaptureLink) -> None:
    for _ in range(2):
        with link.daemon("-b", "packets:100", "-b", "files:3") as daemon:
            other = link.folder / "in0_notes.pcapng"
            other.write_text("mine")
            link.send(1000)
            assert not daemon.stop()
        files = [file for file in link.files() if file != other]
        assert len(files) == 3 and packets_in(*files) == 300
        assert other.read_text() == "mine"


def test_a_total_size_is_kept(link: CaptureLink) -> None:
    link.records(20_000, "-C", "100kB", "--total-size", "500kB")
    sizes = [file.stat().st_size for file in link.files()]
    assert len(sizes) >= 3 and sum(sizes) <= 500_000


def test_finished_files_are_compressed_and_given_to_the_command(link: CaptureLink, tmp_path: Path) -> None:
    needs.skip_without(needs.programs("zstd"))
    copies = tmp_path / "copies"
    copies.mkdir(mode=0o777)
    copies.chmod(0o777)
    tmp_path.chmod(0o755)
    command = f"cp {{}} {copies}/"
    link.records(500, "-b", "packets:100", "-z", "--on-close", command, "-Z", "root")
    files = link.files(".pcapng.zst")
    assert len(files) in (5, 6) and not list(link.folder.glob(".*")) and not link.files()
    assert packets_in(*files) == 500
    assert sorted(path.name for path in copies.iterdir()) == [file.name for file in files]


FILE_IN_FOLDER_OF = pytest.mark.parametrize(
    "name, owner",
    [
        ("my trace.pcapng", ORDINARY),
        ("trace.pcapng.zst", ORDINARY),
        ("trace", ORDINARY),
        ("my trace.pcapng", 0),  # who captures may not write to root's
        ("trace", 0),
    ],
)


@FILE_IN_FOLDER_OF
def test_one_file_has_the_name_that_was_asked_for(link: CaptureLink, name: str, owner: int) -> None:
    link.folder.mkdir()
    file = link.folder / name
    os.chown(link.folder, owner, owner)
    file.write_text("")  # as mktemp makes them
    with link.daemon(into=file, watched=True) as daemon:
        link.deliver(10)
        assert not file.stat().st_size
        assert not daemon.stop()
    assert packets_in(file) == 10
    assert list(link.folder.iterdir()) == [file]


@FILE_IN_FOLDER_OF
def test_an_older_file_is_replaced_only_when_asked_for(
    link: CaptureLink, tmp_path: Path, name: str, owner: int
) -> None:
    file = tmp_path / name
    os.chown(tmp_path, owner, owner)
    file.write_text("an older capture")
    messages = link.refused(4, into=file)
    assert f"{name} exists" in messages and "--overwrite" in messages and messages.count("\n") == 1
    assert file.read_text() == "an older capture"
    with link.daemon("--overwrite", into=file, watched=True) as daemon:
        link.deliver(10)
        assert file.read_text() == "an older capture"  # until the new one is whole
        assert not daemon.stop()
    assert packets_in(file) == 10


def test_a_file_that_came_meanwhile_is_never_replaced(link: CaptureLink, tmp_path: Path) -> None:
    file = tmp_path / "trace.pcapng"
    with link.daemon("--overwrite", into=file) as daemon:
        link.send(10)
        file.write_text("of another program")
        assert not daemon.stop()
    assert file.read_text() == "of another program"
    assert "trace-1.pcapng" in daemon.messages()
    assert packets_in(tmp_path / "trace-1.pcapng") == 10


def test_a_stream_is_a_capture(link: CaptureLink, tmp_path: Path) -> None:
    with link.daemon("-c", "50", into="-", stdout=subprocess.PIPE) as daemon:
        link.send(60)
        data, _ = daemon.process.communicate(timeout=60)
        assert not daemon.process.returncode
    file = tmp_path / "stream.pcapng"
    file.write_bytes(data)
    assert counted_by_others(file) == {50}
    assert daemon.counts()["received"] == 50


def test_signals_begin_new_files(link: CaptureLink) -> None:
    def has_files(count: int) -> Callable[[], bool]:
        return lambda: len(link.files()) == count

    with link.daemon(watched=True) as daemon:
        for number, sent in enumerate((signal.SIGUSR1, signal.SIGHUP), 1):
            link.deliver(10)
            daemon.process.send_signal(sent)
            wait_until(has_files(number), "a file")
        assert not daemon.stop()
    assert [interface["packets"] for interface in captures_of(*link.files())] == [10, 10, 0]


@pytest.mark.parametrize("stop, limit", [("-a duration:1s", 0), ("-c 100", 100), ("-a files:2", 0)])
def test_it_ends_by_itself(link: CaptureLink, stop: str, limit: int) -> None:
    with link.daemon("-b", "packets:60", *stop.split()) as daemon:
        link.send(150)
        assert daemon.process.wait(timeout=60) == 0
    assert packets_in(*link.files()) == daemon.counts()["written"] == (limit or 150)


# --- interfaces


def test_two_interfaces_are_one_file_in_the_order_of_time(link: CaptureLink) -> None:
    link.add_interface("in1")
    try:
        with link.daemon("-i", "in1") as daemon:
            senders = [link.sending(20_000, rate=20_000, interface=name) for name in ("out0", "out1")]
            assert not any(sender.wait(timeout=60) for sender in senders)
            assert not daemon.stop()
    finally:
        link.disconnect("in1")
    (file,) = link.files()
    interfaces = captures_of(file)
    assert [(interface["name"], interface["packets"], interface["received"]) for interface in interfaces] == [
        ("in0", 20_000, 20_000),
        ("in1", 20_000, 20_000),
    ]
    assert sum(interface["backward_steps"] for interface in interfaces) == 0
    assert "Strict time order:   True" in output("capinfos", "-o", str(file))


def test_an_interface_is_waited_for_and_may_go_and_come(link: CaptureLink) -> None:
    with link.daemon("--wait", interface="in7", watched=True, ready="waiting for in7") as daemon:
        try:
            link.add_interface("in7")
            daemon.wait_message("capturing\n")
            link.send(100, interface="out7")
            link.wait_counted(received=100)
            output(*f"ip -n {link.tracer} link set in7 down".split())
            time.sleep(0.2)  # for the daemon to meet it like that
            output(*f"ip -n {link.tracer} link set in7 up".split())
            link.wait_up("in7", "out7")
            link.send(100, interface="out7")
            link.wait_counted(received=200)
            link.disconnect("in7")
            daemon.wait_message("in7 disappeared")
            link.add_interface("in7")
            wait_until(lambda: daemon.messages().count("in7 appeared") == 2, "the interface again")
            link.send(100, interface="out7")
            assert not daemon.stop()
        finally:
            link.disconnect("in7")
    assert packets_in(*link.files()) == 300 == daemon.counts()["written"]


def test_the_list_has_numbers_that_can_be_captured_on(link: CaptureLink) -> None:
    listed = json.loads(link.run(link.tracer, str(PROGRAM), "--list", "--json"))
    assert listed["schema"] == "wiretale.interfaces/1"
    by_name = {interface["name"]: interface for interface in listed["interfaces"]}
    assert by_name["in0"]["link_types"] == ["EN10MB", "DOCSIS"] and by_name["lo"]["addresses"][0] == "127.0.0.1"
    assert "host" in by_name["in0"]["time_stamp_sources"] or not by_name["in0"]["time_stamp_sources"]
    assert f"{by_name['in0']['number']}. in0" in link.run(link.tracer, str(PROGRAM), "-D")
    with link.daemon("-c", "5", interface=str(by_name["in0"]["number"])):
        link.send(5)
        wait_until(lambda: link.folder.is_dir() and len(link.files()) == 1, "the file")
    assert link.files()[0].name.startswith("in0_")


# --- status


def test_the_status_adds_up_at_every_moment(link: CaptureLink) -> None:
    with link.daemon("--interval", "50ms", "-Z", "root", watched=True) as daemon:
        client, silent = StatusClient(link.status), StatusClient(link.status)
        sender = link.sending(50_000, rate=40_000)
        line = client.line()
        while line["received"] < 50_000:
            assert line["schema"] == "wiretale.capture/1" and line["state"] == "capturing"
            assert {*COUNTS, "file", "bytes", "time_ns", "files", "interfaces"} <= line.keys()
            check_sum(line)
            line = client.wait(lambda status: True, "a line")
        assert not sender.wait(timeout=60)
        assert NAME.fullmatch(line["file"])
        (interface,) = line["interfaces"]
        assert interface["name"] == "in0" and interface["received"] == 50_000
        line = client.wait(lambda status: status["interfaces"][0]["kernel_received"] == 50_000, "the kernel's count")
        assert not daemon.stop()
        client.wait(lambda status: status["state"] == "ended", "the last line")
        silent.close()
        client.close()
    assert "50,000 packets received, all written" in daemon.messages() and not link.status.exists()


def test_the_service_manager_is_notified(link: CaptureLink, tmp_path: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(60)
    manager.bind(str(tmp_path / "notify"))
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"}
    messages = ""
    with link.daemon("-a", "duration:1500ms", ready=None, env=environment), manager:
        while "STOPPING=1" not in messages:
            messages += manager.recv(4096).decode() + "\n"
    assert messages.startswith("READY=1\n") and "STATUS=0 packets received" in messages
    assert 2 <= messages.count("WATCHDOG=1") <= 20  # within each 600 ms


# --- privileges


def test_root_is_given_up(link: CaptureLink) -> None:
    with link.daemon() as daemon:
        fields = daemon.fields()
        assert fields["Uid"].split()[:3] == [fields["Uid"].split()[0]] * 3 and fields["Uid"].split()[0] != "0"
        assert fields["Gid"].split()[0] != "0" and "0" not in fields["Groups"].split()
        net_raw = f"{1 << 13:016x}"
        assert (fields["CapPrm"], fields["CapEff"]) == (net_raw, net_raw)
        assert int(fields["CapBnd"], 16) | int(fields["CapInh"], 16) | int(fields["CapAmb"], 16) == 0
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_an_ordinary_user_learns_the_one_command(link: CaptureLink, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        if parent.name.startswith("pytest-"):
            parent.chmod(0o755)
    program = Path("/tmp") / f"wiretale-capture-{tmp_path.name}"
    shutil.copy(PROGRAM, program)
    try:
        ordinary: dict[str, Any] = {"user": ORDINARY, "group": ORDINARY}
        command = [program, "-i", "lo", "-w", "/tmp/nowhere"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, **ordinary)
    finally:
        program.unlink()
    assert done.returncode == 5 and done.stderr.count("\n") == 1
    assert f"sudo setcap cap_net_raw,cap_net_admin+ep {program}" in done.stderr


@pytest.mark.parametrize(
    "options, messages",
    [
        ("-w /tmp/x", "expected -i INTERFACE"),
        ("-i lo", "-w DIR"),
        ("-i lo --write=", "-w DIR"),
        ("-i lo -w /tmp/x -b files:3", "a ring of files: expected -C, -G"),
        ("-i lo -w /tmp/x -C none", "-C 'none': expected a size"),
        ("-i lo -w /tmp/x -b nothing", "filesize:, duration:"),
        ("-i lo -w - -G 10", "one stream"),
        ("-i lo -w /tmp/x --wrong", "there is no option --wrong; see `wiretale-capture --help`"),
        ("-i lo -w /tmp/x -f tcp udp", "a filter after -f and another"),
        ("-i lo -w /tmp/x nonsense here", "the filter"),
        ("-i lo -w /tmp/x -Q sideways", "expected in|out|inout"),
        ("-i lo -w /tmp/x -j never", "no such time source"),
        ("-i lo -w /tmp/x -j adapter", "-j adapter: not on lo; --list shows what it has"),
    ],
)
def test_contradictory_options_are_refused_in_one_line(link: CaptureLink, options: str, messages: str) -> None:
    assert messages in refused(2, *options.split())
