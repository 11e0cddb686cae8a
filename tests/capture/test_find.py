# SPDX-License-Identifier: Apache-2.0
"""`wiretale-capture find`: equal to a scan of every packet, while files are written, and whatever the indexes hold."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import needs
from capture_link import ORDINARY, PACKET_SOCKET, PROGRAM, CaptureLink, StatusClient
from drawn_ring import BEGIN, SECOND, Drawn, Ring, packets_of, seconds
from processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.xdist_group("capture"), needs.marked(needs.programs("zstd", "tshark", "tcpdump"))]
MORE = int(os.environ.get("WIRETALE_QUESTIONS", "0"))  # of `make trials`
QUESTIONS, QUESTIONS_WHILE_WRITTEN = MORE or 60, MORE or 15
FORMS = ("ns", "ns", "us", "pcap", "zst", "ns", "us", "pcap", "zst", "ns")
NOBODY_ELSE = 65533  # a user who is not the daemon's
#: Sends the frames of a file again and again, 500 a second.
REPEATER = f"""{PACKET_SOCKET}
import itertools, json, sys
to = PacketSocket(sys.argv[1])
for frame in itertools.cycle(json.load(open(sys.argv[2]))):
    to.send(bytes.fromhex(frame))
    time.sleep(0.002)
"""


def find(
    *words: str | Path, code: int = 0, program: str | Path = PROGRAM, **more: Any
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, "find", *words], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == code, done.stderr
    return done


def answer_of(folder: Path, *words: str) -> list[tuple[int, bytes]]:
    """The packets that are found; they are in the order of time."""
    out = folder.with_suffix(".found.pcapng")
    find(folder, *words, "-o", out, "--overwrite", "-q")
    packets = packets_of(out)
    assert [time_ns for time_ns, _ in packets] == sorted(time_ns for time_ns, _ in packets)
    return packets


def listed(folder: Path, *words: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(find(folder, *words, "--json", **more).stdout)
    return answer


def indexes(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.index"))


def pairs(packets: list[Drawn]) -> list[tuple[int, bytes]]:
    return sorted((packet.time_ns, packet.frame) for packet in packets)


@pytest.fixture
def another_user() -> Iterator[dict[str, Any]]:
    """How another user of the group runs the program: a copy of it, because this folder may be root's alone."""
    with tempfile.TemporaryDirectory(prefix="wiretale-test-") as folder:
        Path(folder).chmod(0o755)
        copy = shutil.copy(PROGRAM, folder)
        ids = {"user": NOBODY_ELSE, "group": ORDINARY, "extra_groups": []} if os.geteuid() == 0 else {}
        yield {"program": copy, **ids}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ring]:
    folder, ring = tmp_path_factory.mktemp("drawn") / "ring", Ring(40)
    folder.mkdir()
    for number, form in enumerate(FORMS):
        ring.write(folder / f"file{number}.{'pcap' if form == 'pcap' else 'pcapng'}", form, 300)
        ring.clock -= (number % 3) * SECOND // 10  # files overlap
    return folder, ring


def test_find_equals_a_scan_of_every_packet(drawn: tuple[Path, Ring]) -> None:
    folder, ring = drawn
    for number in range(QUESTIONS):
        words, expected = ring.question()
        if number % 20 == 7:
            for path in indexes(folder)[::2]:
                path.unlink()
        assert sorted(answer_of(folder, *words)) == pairs(expected), words
    assert len(indexes(folder)) == len(FORMS)


def status_of(link: CaptureLink) -> dict[str, Any]:
    client = StatusClient(link.status)
    line = client.line()
    client.close()
    time.sleep(0.1)  # the daemon forgets those who left once a second
    return line


class Question(NamedTuple):
    """What was asked while files were written."""

    words: list[str]
    has: Callable[[Drawn], bool]
    begin_ns: int
    end_ns: int
    written: int  # packets in the files before


def drawn_question(ring: Ring, link: CaptureLink, began_ns: int, of_all_times: bool) -> Question:
    (words, has), written = ring.conditions(), status_of(link)["written"]
    begin_ns, end_ns = sorted(ring.draw.randrange(began_ns, time.time_ns()) for _ in range(2))
    if of_all_times:
        return Question(words, has, 0, 2 * began_ns, written)
    return Question([*words, "--start", seconds(begin_ns), "--end", seconds(end_ns)], has, begin_ns, end_ns, written)


def check(
    question: Question, packets: list[tuple[int, bytes]], sent: list[Drawn], recorded: list[tuple[int, bytes]]
) -> None:
    """An answer has the packets that were in the files when it was asked for, and those that came until it looked."""
    frames, asked_for = {each.frame for each in sent}, {each.frame for each in sent if question.has(each)}
    of_sender = [packet for packet in packets if packet[1] in frames]  # the kernel's own packets are not
    meets = [question.begin_ns <= time_ns < question.end_ns and frame in asked_for for time_ns, frame in recorded]
    expected = list(itertools.compress(recorded, meets))
    assert of_sender == expected[: len(of_sender)], question.words
    assert len(of_sender) >= sum(meets[: question.written]), question.words


def test_find_equals_a_scan_of_what_was_written_so_far(link: CaptureLink, tmp_path: Path) -> None:
    ring, answers = Ring(41), []
    sent = [ring.packet() for _ in range(1000)]
    (tmp_path / "frames").write_text(json.dumps([packet.frame.hex() for packet in sent]))
    link.make_folder()
    with link.daemon("-b", "packets:300", watched=True) as daemon:
        began_ns = time.time_ns()
        command = link.inside(link.sender, sys.executable, "-S", "-c", REPEATER, "out0", str(tmp_path / "frames"))
        with subprocess.Popen(command) as sender:
            try:
                wait_until(lambda: status_of(link)["written"] > 300, "a file is full")
                for number in range(QUESTIONS_WHILE_WRITTEN):
                    question = drawn_question(ring, link, began_ns, number % 3 == 0)
                    answers.append((question, answer_of(link.folder, *question.words)))
            finally:
                sender.kill()
        assert not daemon.stop()
    recorded = [packet for file in link.files() for packet in packets_of(file)]
    for question, packets in answers:
        check(question, packets, sent, recorded)
    assert len({len(packets) for _, packets in answers}) > 5


def test_interfaces_comments_and_other_programs(drawn: tuple[Path, Ring], tmp_path: Path) -> None:
    folder, ring = drawn
    out = tmp_path / "out.pcapng"
    find(folder, "-o", out)
    done = subprocess.run(
        ["tshark", "-r", out, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(ring.packets)
    assert {name for name, _ in rows} == {"eth0", "if0", "if1", "if2", "unknown"}
    assert {comment for name, comment in rows if name != "unknown"} == {"said"}
    assert "exists" in find(folder, "-o", out, code=2).stderr


def damage(path: Path, how: str) -> None:
    index = path.read_bytes()
    path.write_bytes({"empty": b"", "cut": index[: len(index) // 2], "zeros": bytes(len(index))}[how])


@pytest.mark.parametrize("how", ["empty", "cut", "zeros"])
def test_a_damaged_index_is_made_again(drawn: tuple[Path, Ring], how: str) -> None:
    folder, ring = drawn
    words, expected = ring.question()
    answer_of(folder, *words)
    damage(indexes(folder)[2], how)
    assert listed(folder, *words)["indexes_made"] == 1
    assert sorted(answer_of(folder, *words)) == pairs(expected)


def test_a_file_that_was_replaced_has_another_index(tmp_path: Path) -> None:
    for number in range(2):
        Ring(number).write(tmp_path / "file.pcapng", "ns", 200 + number)
        assert [listed(tmp_path)["indexes_made"] for _ in range(2)] == [1, 0]
        assert listed(tmp_path)["packets"] == 200 + number


def test_a_file_of_the_same_size_has_another_index(tmp_path: Path) -> None:
    """As after mv or cp over it; its packets would be missed without a word."""
    path, ring, newer = tmp_path / "file.pcapng", Ring(1), ip_address("203.0.113.9")
    ring.write(path, "ns", 200)
    host = next(host for host in ring.pools[0] if len(host) == 4)
    expected = listed(tmp_path, "--host", str(ip_address(host)))["packets"]
    path.write_bytes(path.read_bytes().replace(host, newer.packed))
    os.utime(path, ns=(1, 1))
    answer = listed(tmp_path, "--host", str(newer))
    assert answer["packets"] == expected > 0 and answer["indexes_made"] == 1


def test_files_that_are_no_captures_are_passed_over(tmp_path: Path) -> None:
    ring = Ring(3)
    ring.write(tmp_path / "file.pcapng", "ns", 20)
    (tmp_path / "text").write_text("no capture")
    (tmp_path / "link.pcapng").symlink_to("file.pcapng")
    os.mkfifo(tmp_path / "fifo.pcapng")
    assert listed(tmp_path)["packets"] == 20
    assert listed(tmp_path / "file.pcapng")["packets"] == listed(tmp_path / "link.pcapng")["packets"] == 20
    for name in ("text", "fifo.pcapng"):  # but not those that are named
        assert f"{name} is no pcap" in find(tmp_path / name, code=3).stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = find(empty, "-o", tmp_path / "out.pcapng", "--json", code=4)
    assert (refused.stdout, refused.stderr) == ("", f"wiretale-capture find: {empty}: no pcap or pcapng files there\n")
    assert not list(tmp_path.glob("*out*")) and find(empty, "--spans", "--json").stdout == "[]\n"


def test_filters_are_those_of_libpcap(drawn: tuple[Path, Ring], tmp_path: Path) -> None:
    folder, _ = drawn
    out = tmp_path / "all.pcapng"
    find(folder, "-o", out)
    command = ["tcpdump", "-r", str(out), "-w", str(tmp_path / "some.pcap"), "--nano", "vlan and udp"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    expected = subprocess.run(
        ["tcpdump", "-r", tmp_path / "some.pcap", "-n"], capture_output=True, text=True, timeout=60
    )
    assert listed(folder, "-f", "vlan and udp")["packets"] == len(expected.stdout.splitlines()) > 20
    assert "syntax error" in find(folder, "-f", "udp and", code=2).stderr


@pytest.mark.parametrize(
    ("text", "later_ns"),
    [
        ("2023-11-14T22:13:20", 0),
        ("2023-11-14 22:13:20.000000005Z", 5),
        ("2023-11-14T23:13:20+01:00", 0),
        ("1700000000", 0),
        ("1700000000.5", SECOND // 2),
    ],
)
def test_times_are_iso_or_epoch(tmp_path: Path, text: str, later_ns: int) -> None:
    ring = Ring(4)
    ring.write(tmp_path / "file.pcapng", "ns", 200)
    later = sum(packet.time_ns >= BEGIN + later_ns for packet in ring.packets)
    assert listed(tmp_path, "--start", text)["packets"] == later
    assert seconds(BEGIN) == "1700000000.000000000"


def test_wrong_usage_is_one_line(tmp_path: Path) -> None:
    for code, words in (
        (2, ()),
        (2, (tmp_path, "--host", "server")),
        (2, (tmp_path, "--host", "192.0.2.1/33")),
        (2, (tmp_path, "--port", "0")),
        (2, (tmp_path, "--start", "yesterday")),
        (2, (tmp_path, "--start", "2026-02-30")),
        (2, (tmp_path, "--end", "9999-01-01")),
        (2, (tmp_path, "--end", "99999999999999999999")),
        (2, (tmp_path, "--start", "2", "--end", "1")),
        (5, (tmp_path / "missing",)),
    ):
        assert find(*words, code=code).stderr.count("\n") == 1


def test_an_output_replaces_no_capture_and_no_device(tmp_path: Path) -> None:
    """Not even with --overwrite; what was begun is removed after an error."""
    folder = tmp_path / "ring"
    folder.mkdir()
    Ring(3).write(folder / "file.pcapng", "zst", 20)
    (tmp_path / "link.pcapng").symlink_to("ring/file.pcapng.zst")
    os.mkfifo(tmp_path / "fifo")
    before = (folder / "file.pcapng.zst").read_bytes()
    for out, message in (
        (folder / "file.pcapng.zst", "is one of the captures"),
        (tmp_path / "link.pcapng", "is one of the captures"),
        (tmp_path / "fifo", "is no file"),
        (folder, "is no file"),
    ):
        line = find(folder, "-o", out, "--overwrite", code=2).stderr
        assert message in line and line.count("\n") == 1
    assert "$TMPDIR" in find(folder, "-o", tmp_path / "new.pcapng", code=4, env={"TMPDIR": "/missing"}).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link.pcapng", "ring"]
    assert (folder / "file.pcapng.zst").read_bytes() == before and (tmp_path / "fifo").is_fifo()


def test_a_ring_is_searched_while_it_is_written(link: CaptureLink, another_user: dict[str, Any]) -> None:
    """Finished files have the daemon's index, the open file is read; another user of the group may do so."""
    link.make_folder()
    link.folder.chmod(0o2750)
    with link.daemon("-b", "packets:100", watched=True) as daemon:
        link.send(250, size=1400)
        link.wait_counted(written=250)
        answer = listed(Path(), "-f", "ether proto 0x88b5", cwd=link.folder, **another_user)
        assert answer["packets"] == 250 and answer["indexes_made"] == 0
        assert not daemon.stop()
    answer = listed(link.folder)
    assert (answer["packets"], answer["indexes_made"], len(answer["files"])) == (250, 0, 3)


def test_an_index_goes_with_its_file(link: CaptureLink) -> None:
    link.make_folder()
    with link.daemon("-b", "packets:100", "-b", "files:2", "-z") as daemon:
        link.send(550, size=1400)
        assert not daemon.stop()
    assert len(link.files(".zst")) == 2
    assert [path.name for path in indexes(link.folder)] == [f".{path.name}.index" for path in link.files(".zst")]
    answer = listed(link.folder)
    assert (answer["packets"], answer["indexes_made"]) == (150, 0)


def test_no_more_than_100_spans_are_kept(link: CaptureLink) -> None:
    """Spans of earlier runs count; with room for one, one is kept."""
    link.make_folder()
    for number in range(99):
        (link.folder / f".20250101-0000{number:02}.kept").touch()
    ring = ("-b", "packets:100", "-b", "files:2")
    with link.daemon(*ring, "--keep-before", "1s", "--keep-after", "1ms", watched=True) as daemon:
        daemon.process.send_signal(signal.SIGUSR2)
        daemon.wait_message("kept ")
        assert len(list(link.folder.glob(".*.kept"))) == 100
        daemon.process.send_signal(signal.SIGUSR2)
        daemon.wait_message("is not kept: 100 spans are kept already; `wiretale find --release NAME` lets one go")
        assert not daemon.stop()
    assert len(list(link.folder.glob(".*.kept"))) == 100


def test_a_span_around_a_signal_is_kept_until_it_is_released(link: CaptureLink, another_user: dict[str, Any]) -> None:
    """The ring holds two files of 100 packets; the span has those before the signal and just after it."""
    link.make_folder()
    options = ("-b", "packets:100", "-b", "files:2", "--keep-before", "1h", "--keep-after", "200ms")
    with link.daemon(*options, watched=True) as daemon:
        link.send(150, size=1400)
        link.wait_counted(written=150)
        daemon.process.send_signal(signal.SIGUSR2)
        daemon.wait_message("kept ")
        link.send(700, size=1400)
        link.wait_counted(written=850)
        assert not daemon.stop()
    (span,) = json.loads(find(link.folder, "--spans", "--json").stdout)
    assert span["reason"] == "signal" and span["end_ns"] - span["start_ns"] == 3_600_200_000_000
    mark = link.folder / f".{span['name']}.kept"
    link.folder.chmod(0o2750)
    mark.chmod(0)
    for option in (("--spans",), ("--spans", "--json"), ("--release", span["name"])):
        refused = find(Path(), *option, code=5, cwd=link.folder, **another_user)
        assert (refused.stdout, refused.stderr) == ("", f"wiretale-capture find: {mark.name}: Permission denied\n")
    mark.chmod(0o640)
    assert find(link.folder, "--spans").stdout == f"{span['name']}\t1 h 00 min\n"
    assert listed(link.folder, "--kept", span["name"])["packets"] == 150
    assert 100 <= listed(link.folder)["packets"] - 150 < 300 and len(list(link.folder.glob(".*.keep"))) == 2
    find(link.folder, "--release", span["name"])
    assert not list(link.folder.glob(".*.keep")) and not find(link.folder, "--spans").stdout
    assert "no span is called" in find(link.folder, "--kept", span["name"], code=5).stderr
