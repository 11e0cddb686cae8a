# SPDX-License-Identifier: Apache-2.0
"""wiretale-traffic ttcp against a peer that speaks as the classic program does: plain bytes, and short marks over UDP."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import needs
import traffic_ends
from processes import on_terminal, wait_until
from wiretale.traffic.program import find_program

pytestmark = pytest.mark.xdist_group("traffic-ends")

HOST = "127.0.0.1"
MARK = bytes(4)
Process = subprocess.Popen[bytes]


def ttcp(*arguments: str) -> list[str]:
    return [find_program("wiretale-traffic"), "ttcp", *arguments]


def free_port() -> str:
    return str(traffic_ends.free_port())


def sockets(port: str, udp: bool) -> list[tuple[str, int]]:
    """State and unread bytes of the sockets at the port, as the kernel lists them."""
    name = "udp" if udp else "tcp"
    lines = [line for file in (name, name + "6") for line in Path("/proc/net", file).read_text().splitlines()[1:]]
    fields = [line.split() for line in lines]
    return [(of[3], int(of[4].split(":")[1], 16)) for of in fields if of[1].endswith(f":{int(port):04X}")]


def listens(port: str, udp: bool) -> bool:
    return any(state == ("07" if udp else "0A") for state, _ in sockets(port, udp))


def has_read(port: str, udp: bool) -> bool:
    """Whether neither data nor a connection waits for the receiver."""
    return not any(waiting for _, waiting in sockets(port, udp))


def output_of(process: Process) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def catches(process: Process, which: int) -> bool:
    """Whether it would not die of the signal."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = re.search(r"SigCgt:\s+([0-9a-f]+)", status)
    return bool(caught and int(caught[1], 16) >> (which - 1) & 1)


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[tuple[Process, str]]:
    """A receiver, when it listens, and its port."""
    port, udp = free_port(), "-u" in arguments
    process = subprocess.Popen(ttcp("-r", "-p", port, *arguments), stdout=-1, stderr=-1, **options)
    watch = threading.Timer(90, process.kill)  # so that no reading of its lines lasts for ever
    watch.start()
    try:
        wait_until(lambda: listens(port, udp) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process, port
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def sent(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(ttcp("-t", *arguments), capture_output=True, timeout=90, **options)


def report(process: Process, code: int = 0) -> dict[str, Any]:
    out, err = process.communicate(timeout=90)
    assert process.returncode == code, (process.returncode, err)
    record: dict[str, Any] = json.loads(out or err.splitlines()[-1])
    assert record["schema"] == "wiretale.ttcp/1"
    return record


class ClassicReceiver(threading.Thread):
    """ttcp -r as documented: over TCP until the stream ends; over UDP from the first short datagram to the second."""

    def __init__(self, udp: bool, loses: Callable[[int, bytes], bool] = lambda number, data: False) -> None:
        super().__init__(daemon=True)
        self.udp, self.loses = udp, loses
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((HOST, 0))
        self.socket.settimeout(60)
        self.port = str(self.socket.getsockname()[1])
        self.data, self.sizes, self.started, self.ended = bytearray(), list[int](), 0.0, 0.0
        if not udp:
            self.socket.listen(1)
        self.start()

    def run(self) -> None:
        with self.socket:
            self.take_datagrams() if self.udp else self.take_stream()

    def take_stream(self) -> None:
        connection, _ = self.socket.accept()
        with connection:
            while data := connection.recv(8192):
                self.data += data

    def take_datagrams(self) -> None:
        number = 0
        while not self.ended:
            data = self.socket.recv(65536)
            number += 1
            if self.loses(number, data):
                continue
            if len(data) > 4:
                self.data += data
                self.sizes.append(len(data))
            elif self.started:
                self.ended = time.monotonic()
            else:
                self.started = time.monotonic()

    def finish(self) -> ClassicReceiver:
        self.join(60)
        assert not self.is_alive(), "the classic receiver hangs"
        return self


def send_as_classic(port: str, datagrams: list[bytes], start: int = 1, marks: int = 4) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for data in [MARK] * start + datagrams + [MARK] * marks:
            sender.sendto(data, (HOST, int(port)))  # unconnected: gets no error if the port is closed
            time.sleep(0.002)  # the receiver has one socket buffer


# --- TCP


def test_a_transfer_over_tcp_gives_the_classic_lines() -> None:
    with running("-s") as (receiver, port):
        printed = sent("-s", "-p", port, HOST).stdout.decode()
        heard = receiver.communicate(timeout=90)[0].decode()
    for role, lines in (("-t", printed), ("-r", heard)):
        matched = re.search(
            rf"^ttcp{role}: 16777216 bytes in (\d+\.\d\d) real seconds = ([\d.]+) KB/sec \+\+\+$", lines, re.M
        )
        assert matched, lines
        assert re.search(rf"^ttcp{role}: \d+ I/O calls, msec/call = \d+\.\d\d, calls/sec = \d+\.\d\d$", lines, re.M)
        assert re.search(rf"^ttcp{role}: buflen=8192, .*align=16384/0, port={port}  tcp", lines, re.M)


def test_a_classic_receiver_gets_every_byte_over_tcp() -> None:
    peer = ClassicReceiver(udp=False)
    done = sent("-s", "-n", "100", "-l", "1000", "-D", "-b", "65536", "--json", "-p", peer.port, HOST)
    assert json.loads(done.stdout)["bytes"] == len(peer.finish().data) == 100_000
    assert set(peer.data) == set(range(32, 127))  # printable, as the classic pattern


@pytest.mark.parametrize(
    "length, size",
    [
        *(("100bytes", 100), ("100 byte", 100), ("1e2", 100), ("1000B", 1000), ("1.5k", 1536), ("1Mbytes", 2**20)),
        *((text, 1024) for text in ("1k", "1K", "1 kB", "1kB", "1KiB")),
    ],
)
def test_a_length_may_have_a_unit_and_its_prefix_is_binary(length: str, size: int) -> None:
    """Spelled as everywhere, but k is 1024, as in ttcp."""
    peer = ClassicReceiver(udp=False)
    done = sent("-s", "-n", "2", "-l", length, "--json", "-p", peer.port, HOST)
    assert json.loads(done.stdout)["length"] == size and len(peer.finish().data) == 2 * size


def test_a_classic_transmitter_is_received_over_tcp() -> None:
    with running("-s", "-T", "--json") as (receiver, port):
        with socket.create_connection((HOST, int(port))) as sender:
            sender.sendall(b"x" * 123_456)
        record = report(receiver)
    assert (record["bytes"], record["ended_by"], record["complete"], record["peer"]) == (123_456, "close", True, HOST)
    assert record["last_ns"] >= record["first_ns"] > 10**18


def test_standard_input_arrives_at_standard_output_over_tcp(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000 + b"end"
    with running("--json") as (receiver, port):
        assert sent("-p", port, HOST, input=data).returncode == 0
        out, err = receiver.communicate(timeout=90)
    assert out == data
    assert json.loads(err)["bytes"] == len(data)  # the report does not mix with the data


@pytest.mark.parametrize("stdin", ["terminal", "/dev/null", "closed"])
def test_a_transmitter_without_input_sends_its_pattern(stdin: str) -> None:
    """As PCATTCP does with the same command: 2048 buffers."""
    needs.skip_without(needs.terminal())
    receiver = ClassicReceiver(udp=False)
    redirection = {"terminal": "", "/dev/null": "</dev/null", "closed": "<&-"}[stdin]
    command = ttcp("-t", "--json", "-l", "100", "-p", receiver.port, HOST)
    with on_terminal("sh", "-c", f'exec "$@" {redirection}', "sh", *command) as sender:
        ended = json.loads(sender.end())
    assert (ended["complete"], ended["sink_mode"], ended["bytes"]) == (True, True, 2048 * 100)
    assert bytes(receiver.finish().data) == (bytes(range(32, 127)) + b' !"#$') * 2048


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_an_empty_input_is_an_input(tmp_path: Path, kind: str) -> None:
    """Of a command that had nothing to say, and of a file without bytes."""
    receiver = ClassicReceiver(udp=False)
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open() as file:
        options: dict[str, Any] = {"input": b""} if kind == "pipe" else {"stdin": file}
        done = sent("--json", "-p", receiver.port, HOST, **options)
    record = json.loads(done.stdout)
    assert (done.returncode, record["bytes"], record["sink_mode"]) == (0, 0, False)
    assert not receiver.finish().data


def test_a_receiver_on_a_terminal_writes_no_data_there() -> None:
    """It drops them: the bytes of a stranger could steer the terminal."""
    needs.skip_without(needs.terminal())
    port = free_port()
    with on_terminal(*ttcp("-r", "-p", port)) as receiver:
        wait_until(lambda: listens(port, False))
        with socket.create_connection((HOST, int(port))) as sender:
            sender.sendall(b"\x1b]0;pwned\x07" * 100)
        lines = receiver.end().decode().splitlines()
    assert lines[1].startswith("ttcp-r: 1000 bytes in ") and "\x1b" not in "".join(lines)


def test_full_blocks_are_written_to_standard_output() -> None:
    """Pieces come as the network likes; tar wants blocks."""
    with running("-B", "-l", "4096", bufsize=0) as (receiver, port):
        with socket.create_connection((HOST, int(port))) as sender:
            for _ in range(30):
                sender.sendall(b"p" * 300)
                time.sleep(0.002)
        sizes = [len(piece) for piece in iter(lambda: output_of(receiver).read(65536), b"")]
        assert receiver.wait(60) == 0
    assert sum(sizes) == 9000 and all(size % 4096 == 0 for size in sizes[:-1])


def test_a_peer_that_resets_the_connection_leaves_a_report_of_the_part() -> None:
    with running("-s", "--json") as (receiver, port):
        sender = socket.create_connection((HOST, int(port)))
        sender.sendall(b"x" * 5000)
        wait_until(lambda: has_read(port, udp=False))
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sender.close()
        record = report(receiver, 3)
    assert (record["bytes"], record["complete"], record["ended_by"]) == (5000, False, "peer gone")


def test_a_receiver_that_goes_away_ends_the_transmitter_with_a_report() -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(1)
        process = subprocess.Popen(
            ttcp("-t", "-s", "-c", "--json", "-p", str(listener.getsockname()[1]), HOST), stdout=-1, stderr=-1
        )
        connection, _ = listener.accept()
        connection.recv(100_000)
        connection.close()
        record = report(process, 3)
    assert record["ended_by"] == "peer gone" and record["bytes"] > 0


def test_a_closed_port_is_one_clear_line() -> None:
    done = sent("-s", "-p", free_port(), HOST)
    assert done.returncode == 4 and done.stdout == b""
    assert re.fullmatch(rb"ttcp-t: 127.0.0.1 port \d+: cannot connect: Connection refused\n", done.stderr)


def test_ipv6_is_spoken_to_the_same_receiver() -> None:
    with running("-s", "-c", "--json") as (receiver, port):
        assert sent("-s", "-n", "3", "-p", port, "::1").returncode == 0
        assert sent("-s", "-n", "4", "-p", port, HOST).returncode == 0
        lines = [json.loads(output_of(receiver).readline()) for _ in range(2)]
        receiver.send_signal(signal.SIGTERM)
        assert receiver.wait(60) == 0  # it was to run until stopped
    assert [(line["peer"], line["bytes"]) for line in lines] == [("::1", 3 * 8192), (HOST, 4 * 8192)]


def test_a_concurrent_receiver_serves_several_at_the_same_time() -> None:
    with running("-s", "-R", "--json") as (receiver, port):
        senders = [socket.create_connection((HOST, int(port))) for _ in range(5)]
        for number, sender in enumerate(senders):  # all are open before the first ends
            sender.sendall(b"x" * 1000 * (number + 1))
        for sender in reversed(senders):
            sender.close()
        lines = [json.loads(output_of(receiver).readline()) for _ in senders]
    assert sorted(line["bytes"] for line in lines) == [1000, 2000, 3000, 4000, 5000]


def test_one_transfer_at_a_time_without_the_concurrent_switch() -> None:
    with running("-s", "-c", "--json") as (receiver, port):
        first, second = (socket.create_connection((HOST, int(port))) for _ in range(2))
        second.sendall(b"s" * 10)
        second.close()
        first.sendall(b"f" * 20)
        first.close()
        lines = [json.loads(output_of(receiver).readline()) for _ in range(2)]
    assert [line["bytes"] for line in lines] == [20, 10]


@pytest.mark.parametrize("idle", ["1", "1s", "500ms"])
def test_silence_ends_a_tcp_transfer_only_when_asked_for(idle: str) -> None:
    with (
        running("-s", "--json", "--idle", idle) as (receiver, port),
        socket.create_connection((HOST, int(port))) as sender,
    ):
        sender.sendall(b"x" * 100)
        record = report(receiver, 3)
    assert (record["bytes"], record["ended_by"]) == (100, "idle")


# --- UDP


def test_a_classic_receiver_is_started_fed_and_ended_over_udp() -> None:
    peer = ClassicReceiver(udp=True)
    done = sent("-s", "-u", "-n", "100", "-l", "1400", "--json", "-p", peer.port, HOST)  # its buffer holds them all
    peer.finish()
    assert peer.sizes == [1400] * 100 and json.loads(done.stdout)["bytes"] == 100 * 1400


def test_the_marks_come_after_a_pause_that_lets_the_receiver_drain() -> None:
    peer = ClassicReceiver(udp=True)
    sent("-s", "-u", "-n", "2", "--pause", "1000ms", "-p", peer.port, HOST)
    peer.finish()
    assert peer.ended - peer.started >= 0.5  # the thread may be late to see the start


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_classic_receiver_ends_although_end_marks_are_lost(lost: int) -> None:
    marks = 0

    def loses(number: int, data: bytes) -> bool:
        nonlocal marks
        marks += len(data) <= 4 and number > 1
        return len(data) <= 4 and number > 1 and marks <= lost

    peer = ClassicReceiver(True, loses)
    sent("-s", "-u", "-n", "20", "-p", peer.port, HOST)
    assert len(peer.finish().sizes) == 20


def test_a_classic_transmitter_is_received_over_udp() -> None:
    with running("-s", "-u", "--json") as (receiver, port):
        send_as_classic(port, [b"d" * 1000] * 50)
        record = report(receiver)
    assert (record["bytes"], record["io_calls"], record["ended_by"], record["complete"]) == (
        50_000,
        50,
        "end mark",
        True,
    )


def test_losing_every_end_mark_does_not_hang_the_receiver() -> None:
    with running("-s", "-u", "--json", "--idle", "1.2") as (receiver, port):
        send_as_classic(port, [b"d" * 1000] * 5, marks=0)
        record = report(receiver, 3)
    assert (record["bytes"], record["ended_by"], record["complete"]) == (5000, "idle", False)
    assert record["elapsed_s"] < 1  # the silence is not part of the transfer


def test_a_lost_start_mark_costs_nothing() -> None:
    with running("-s", "-u", "--json") as (receiver, port):
        send_as_classic(port, [b"d" * 1000] * 5, start=0)
        assert report(receiver)["bytes"] == 5000


def test_marks_left_of_one_transfer_do_not_begin_the_next() -> None:
    with running("-s", "-u", "-c", "--json") as (receiver, port):
        for count in (3, 7):
            send_as_classic(port, [b"d" * 100] * count, marks=6)
            assert json.loads(output_of(receiver).readline())["bytes"] == 100 * count
            time.sleep(0.05)


def test_concurrent_senders_over_udp_are_kept_apart() -> None:
    with running("-s", "-u", "-R", "--json") as (receiver, port):
        senders = [
            threading.Thread(target=send_as_classic, args=(port, [b"d" * 100] * count)) for count in (11, 22, 33)
        ]
        for sender in senders:
            sender.start()
        lines = [json.loads(output_of(receiver).readline()) for _ in senders]
    assert sorted(line["bytes"] for line in lines) == [1100, 2200, 3300]


def test_a_stranger_does_not_count_in_another_ones_transfer() -> None:
    with running("-s", "-u", "--json") as (receiver, port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first:
        first.connect((HOST, int(port)))
        first.send(MARK)
        first.send(b"d" * 500)
        time.sleep(0.1)
        send_as_classic(port, [b"s" * 900] * 3)
        first.send(MARK)
        assert report(receiver)["bytes"] == 500


@pytest.mark.parametrize("tail_bytes", [0, 1, 4, 5, 999])
def test_the_end_of_standard_input_is_never_taken_for_a_mark(tail_bytes: int) -> None:
    data = bytes(i * 7 % 251 for i in range(3000 + tail_bytes))
    with running("-u") as (receiver, port):
        assert sent("-u", "-l", "1000", "-p", port, HOST, input=data).returncode == 0
        out, err = receiver.communicate(timeout=90)
    assert out == data, err


def test_datagrams_longer_than_the_buffer_are_said_to_be_cut() -> None:
    with running("-s", "-u", "-l", "512", "--json") as (receiver, port):
        send_as_classic(port, [b"d" * 600] * 3)
        out, err = receiver.communicate(timeout=90)
    assert json.loads(out)["cut_datagrams"] == 3 and json.loads(out)["bytes"] == 3 * 512
    assert b"3 datagrams were longer than 512 bytes" in err


def test_a_closed_udp_port_is_reported() -> None:
    done = sent("-s", "-u", "-n", "50", "--json", "-p", free_port(), HOST)
    assert json.loads(done.stdout)["sends_refused"] > 0
    assert b"no program receives at 127.0.0.1" in done.stderr


# --- both


@pytest.mark.parametrize("switches", [[], ["-u"]], ids=["tcp", "udp"])
def test_a_stopped_receiver_reports_its_part(switches: list[str]) -> None:
    kind = socket.SOCK_DGRAM if switches else socket.SOCK_STREAM
    with running("-s", "--json", *switches) as (receiver, port), socket.socket(socket.AF_INET, kind) as sender:
        sender.connect((HOST, int(port)))
        sender.send(b"x" * 1000)
        wait_until(lambda: has_read(port, udp=bool(switches)))
        receiver.send_signal(signal.SIGINT)
        record = report(receiver, 130)
    assert (record["bytes"], record["complete"], record["ended_by"]) == (1000, False, "signal")


def test_a_stopped_transmitter_reports_its_part_and_ends_the_receiver() -> None:
    with running("-s", "-u", "--json") as (receiver, port):
        command = ttcp("-t", "-s", "-u", "-c", "--pause", "1", "-p", port, "--json", HOST)  # the receiver reads it all
        process = subprocess.Popen(command, stdout=-1, stderr=-1)
        wait_until(lambda: catches(process, signal.SIGINT))
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert report(process)["ended_by"] == "signal"  # -c: until stopped
        assert report(receiver)["ended_by"] == "end mark"


@pytest.mark.parametrize(
    "unit, name, ratio", [("k", "Kbit", 128), ("m", "Mbit", 131072), ("M", "MB", 1048576), ("G", "GB", 2**30)]
)
def test_rates_are_in_the_unit_asked_for(unit: str, name: str, ratio: float) -> None:
    peer = ClassicReceiver(udp=False)
    lines = sent("-s", "-v", "-f", unit, "-p", peer.port, HOST).stdout.decode()
    peer.finish()
    matched = re.search(rf"in ([\d.]+) real seconds = ([\d.]+) {name}/sec", lines)
    calls = re.search(r"(\d+) I/O calls, .*calls/sec = ([\d.]+)", lines)
    assert matched and calls, lines
    bytes_per_second = 16777216 / int(calls[1]) * float(calls[2])
    assert float(matched[2]) == pytest.approx(bytes_per_second / ratio, rel=0.01, abs=0.01)
    assert re.search(rf"CPU seconds = [\d.]+ {name}/cpu sec", lines)


def test_buffers_begin_where_alignment_and_offset_say() -> None:
    peer = ClassicReceiver(udp=False)
    lines = sent("-s", "-v", "-n", "1", "-A", "4096", "-O", "17", "-p", peer.port, HOST).stdout.decode()
    matched = re.search(r"buffer address (0x[0-9a-f]+)", lines)
    assert matched and int(matched[1], 16) % 4096 == 17
    assert len(peer.finish().data) == 8192


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen(1)
        done = subprocess.run(ttcp("-r", "-s", "-p", str(listener.getsockname()[1])), capture_output=True, timeout=60)
    assert done.returncode == 4 and b"Address already in use" in done.stderr


def test_a_report_that_cannot_be_written_is_an_error() -> None:
    with socket.create_server((HOST, 0)) as server, open("/dev/full", "w") as full:
        port = str(server.getsockname()[1])
        command = ttcp("-t", "-s", "-n", "1", "-l", "10", "-p", port, "--json", HOST)
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    problem = "wiretale-traffic ttcp: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (4, problem)
