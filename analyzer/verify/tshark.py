# SPDX-License-Identifier: Apache-2.0
"""Runs tshark over a file and returns the frames that it flags, with their verdicts.

tshark runs with an empty profile: results are the same on every machine, and no script of the user's profile processes
an untrusted file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from tempfile import TemporaryDirectory
from threading import Thread
from typing import IO, NamedTuple

from wiretale.analyzer.errors import InputError, MissingToolError
from wiretale.system_packages import install_command

INSTALL = install_command("tshark")
LINE_MAX = 4096  # bytes; numbers and two addresses need 200
STDERR_KEPT = 4096  # bytes, because a hostile file can cause a message per packet
MESSAGE_MAX = 300  # characters
CACHED_LINES = 65_536  # different texts after the frame number

# Wireshark's verdicts in wiretale's words. window_probe_ack and ports_reused only explain differences.
SAME_NAME = (
    *("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack"),
    *("keep_alive", "keep_alive_ack", "zero_window", "window_full"),
)
VERDICTS = (
    *((word, f"tcp.analysis.{word}") for word in SAME_NAME),
    ("gap", "tcp.analysis.lost_segment"),
    ("acked_unseen_segment", "tcp.analysis.ack_lost_segment"),
    ("window_probe", "tcp.analysis.zero_window_probe"),
    ("window_probe_ack", "tcp.analysis.zero_window_probe_ack"),
    ("ports_reused", "tcp.analysis.reused_ports"),
    ("reset", "tcp.flags.reset"),
)
FLAGS = (("syn", "tcp.flags.syn"), ("ack", "tcp.flags.ack"))  # no verdicts; as sack and dsack they explain differences
ICMP_ERRORS = {"icmp.type": (3, 4, 5, 11, 12), "icmpv6.type": (1, 2, 3, 4)}  # RFC 792, RFC 4443
ADDRESSES = ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport")
LENGTHS = ("frame.len", "ip.len", "ipv6.plen")
FIELDS = (
    "frame.number",
    "tcp.ack",
    "tcp.options.sack_le",
    *LENGTHS,
    "tcp.stream",
    *(field for _, field in (*VERDICTS, *FLAGS)),
    *ICMP_ERRORS,
    *ADDRESSES,
)
FALSE = ("", "0", "False")

End = tuple[str, str]  # address and port


class Flagged(NamedTuple):
    """Wireshark's verdicts on a frame."""

    words: frozenset[str]
    stream: int | None = None
    ends: frozenset[End] | None = None  # of the conversation
    shortened: bool = False  # the record's length is less than the IP length


def display_filter() -> str:
    """Returns the display filter of frames with a verdict, and of those with a record that is shorter than its packet."""
    flags = (f"{field} == 1" if field == "tcp.flags.reset" else field for _, field in VERDICTS)
    errors = (f"{field} == {number}" for field, numbers in ICMP_ERRORS.items() for number in numbers)
    shortened = (f"{field} > {LENGTHS[0]}" for field in LENGTHS[1:])  # these frames only explain differences
    return " || ".join((*flags, *errors, *shortened))


def command_line(program: str, path: str) -> list[str]:
    """Returns the arguments. The path is absolute, so it cannot begin with a dash; of nested headers the inner counts."""
    fields = [argument for field in FIELDS for argument in ("-e", field)]
    output = ("-T", "fields", "-E", "separator=/t", "-E", "occurrence=l")
    return [program, "-n", "-r", os.path.abspath(path), *output, "-Y", display_filter(), *fields]


def strongest(words: set[str]) -> set[str]:
    """Removes the weaker verdicts: Wireshark marks fast and spurious retransmissions as retransmissions too."""
    if "spurious_retransmission" in words:
        return words - {"retransmission", "fast_retransmission"}
    return words - {"retransmission"} if "fast_retransmission" in words else words


def ends_of(addresses: Sequence[str]) -> frozenset[End] | None:
    """Returns both ends of a TCP conversation; None for other frames."""
    source, destination, source6, destination6, *ports = addresses
    if not all(ports):
        return None
    return frozenset(zip((source or source6, destination or destination6), ports, strict=True))


def sack_word(ack: bytes, left_edge: bytes) -> str:
    """Returns `sack` if the last SACK block is above the ACK, `dsack` if it is below (RFC 2883), nothing without one."""
    if not ack or not left_edge:
        return ""
    return "dsack" if 0 < (int(ack) - int(left_edge)) % 2**32 < 2**31 else "sack"


@lru_cache(CACHED_LINES)
def read_verdicts(text: bytes, sack: str) -> Flagged:
    """Parses a line after its numbers; `sack` is the result of sack_word()."""
    stream, *cells = text.decode("utf-8", "replace").split("\t")
    words_of_flags = (*VERDICTS, *FLAGS)
    flags, further = cells[: len(words_of_flags)], cells[len(words_of_flags) :]
    types, addresses = further[: len(ICMP_ERRORS)], further[len(ICMP_ERRORS) :]
    if len(addresses) != len(ADDRESSES):
        raise ValueError(f"{len(cells)} fields")
    if any(types):  # verdicts on the quoted packet do not count
        return Flagged(frozenset({"icmp_error"}))
    words = {word for (word, _), flag in zip(words_of_flags, flags, strict=True) if flag not in FALSE} | {sack}
    if words.isdisjoint(word for word, _ in VERDICTS):
        words.clear()  # a frame that is listed for its length has no verdict that they explain
    return Flagged(frozenset(strongest(words - {""})), int(stream) if stream else None, ends_of(addresses))


def is_shortened(wire: bytes, *lengths: bytes) -> bool:
    """Returns whether a frame's record has a length on the wire that is less than its IP length."""
    return bool(wire) and any(int(length) > int(wire) for length in lengths if length)


def read_line(line: bytes) -> tuple[int, Flagged]:
    """Parses a line, which must have every field of FIELDS. Raises InputError otherwise."""
    try:
        number, ack, left_edge, wire, ip, ipv6, cells = line.rstrip(b"\r\n").split(b"\t", 3 + len(LENGTHS))
        flagged = read_verdicts(cells, sack_word(ack, left_edge))
        return int(number), flagged._replace(shortened=True) if is_shortened(wire, ip, ipv6) else flagged
    except ValueError:
        raise InputError(f"tshark: expected a verdict, found {line[:40]!r}") from None


class Messages(Thread):
    """Reads the stderr of a program, which must happen while it runs, because a full pipe blocks it; keeps the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._text = b""
        self.start()

    def run(self) -> None:
        """Reads until end of file."""
        while piece := os.read(self._stream.fileno(), STDERR_KEPT):
            self._text = (self._text + piece)[-STDERR_KEPT:]

    def line(self) -> str:
        """Returns the last message of tshark itself in one line."""
        self.join()
        lines = [line.strip() for line in self._text.decode("utf-8", "replace").splitlines() if line.strip()]
        begins = [number for number, line in enumerate(lines) if line.startswith("tshark: ")]
        message = lines[begins[-1] :] if begins else [line for line in lines if not line.startswith("Running as user ")]
        return " ".join(message).removeprefix("tshark: ")[:MESSAGE_MAX]


class Run(NamedTuple):
    """A running program."""

    lines: IO[bytes]
    messages: Messages
    process: subprocess.Popen[bytes]


@contextmanager
def running(*command: str) -> Iterator[Run]:
    """Starts a program and kills it at the end of the block."""
    with TemporaryDirectory(prefix="wiretale-") as empty:
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": empty}
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment)
        except OSError as error:
            raise MissingToolError(f"tshark cannot be run ({error.strerror}): run `{INSTALL}`") from None
        assert process.stdout and process.stderr
        with process:
            messages = Messages(process.stderr)
            try:
                yield Run(process.stdout, messages, process)
            finally:
                process.kill()
                messages.join()


class Dissector:
    """The installed tshark. Raises MissingToolError without it."""

    def __init__(self) -> None:
        program = shutil.which("tshark")
        if not program:
            raise MissingToolError(f"tshark is missing: run `{INSTALL}`")
        #: its path
        self.program = program
        #: why the last file was not read to its end; None if it was
        self.problem: str | None = None

    def version(self) -> str:
        """Returns the version: `4.0.17`. Raises MissingToolError if tshark does not print one."""
        with running(self.program, "--version") as run:
            matched = re.search(r"\d+(\.\d+)+", run.lines.read(LINE_MAX).decode("utf-8", "replace"))
            if not matched:
                message = run.messages.line() or "no version number"
                raise MissingToolError(f"tshark cannot be used ({message}): run `{INSTALL}`")
        return matched[0]

    def frames(self, path: str) -> Iterator[tuple[int, Flagged]]:
        """Returns number and verdicts of each flagged frame in order; sets `problem` if tshark fails."""
        self.problem = None
        with running(*command_line(self.program, path)) as run:
            while line := run.lines.readline(LINE_MAX):
                yield read_line(line)
            code = run.process.wait()
            if code:
                ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
                self.problem = run.messages.line() or ended
