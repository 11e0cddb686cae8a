# SPDX-License-Identifier: Apache-2.0
"""Copies chosen packets of captures into one pcapng or pcap file (analyzer/core/cut/cut.h), anonymized if asked."""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.cut.choice import Frames, chosen_frames, files_of_interfaces
from wiretale.analyzer.cut.comments import NO_COMMENTS, comments_of, name_block, server_names
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.trace import analyze_whole, can_reread, core_errors, is_lasting

if TYPE_CHECKING:
    from pathlib import Path

    from wiretale.analyzer.trace import Progress, Trace

TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1
SECTION_BLOCK, APPLICATION = 0x0A0D0D0A, 4
CLASSIC_SUFFIXES = {".pcap", ".cap", ".dmp"}
KEY_SIZE, KEY_LEAST, KEY_MOST = 32, 16, 1 << 20  # bytes of the key, and of its file


class Order(NamedTuple):
    """The packets to copy; with no flow, finding or frames, all of the range."""

    paths: Sequence[str]
    flows: Sequence[int] = ()
    findings: Sequence[int | str] = ()
    frames: Sequence[tuple[int, int]] = ()
    start_ns: int | None = None
    end_ns: int | None = None
    around_ns: int = 0
    annotate: bool = False
    headers: bool = False
    classic: bool = False  # pcap instead of pcapng
    key: bytes | None = None

    @property
    def analyzed(self) -> bool:
        """Whether the captures must be analyzed first."""
        return bool(self.flows or self.findings or self.annotate)


class Outcome(NamedTuple):
    """The result of a cut."""

    read: int
    written: int
    damage: list[str]
    secrets: int  # blocks of decryption secrets in the captures, and of processes
    processes: int
    with_secrets: bool  # whether the file has them
    with_processes: bool


def key_of(path: Path | None) -> bytes:
    """Returns the key in a file, as it is if it has the size of Crypto-PAn's, or a random one.

    InputError if the file cannot be read or has too few bytes.
    """
    if path is None:
        return os.urandom(KEY_SIZE)
    try:
        with path.open("rb") as file:
            secret = file.read(KEY_MOST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read the key: {error.strerror}") from None
    if not KEY_LEAST <= len(secret) <= KEY_MOST:
        raise InputError(f"{path}: expected {KEY_LEAST} bytes to 1 MiB as the key, found {len(secret):,}")
    return secret if len(secret) == KEY_SIZE else hashlib.blake2b(secret, digest_size=KEY_SIZE).digest()


def is_classic(path: Path) -> bool:
    """Whether a file of this name is to be pcap, which older programs read, and not pcapng."""
    return path.suffix.lower() in CLASSIC_SUFFIXES


def section_header(version: str) -> bytes:
    """Returns the block with which the file begins."""
    name = f"wiretale {version}".encode()
    option = struct.pack("<HH", APPLICATION, len(name)) + name + bytes(-len(name) % 4) + bytes(4)
    length = 28 + len(option)
    return struct.pack("<IIIHHq", SECTION_BLOCK, length, 0x1A2B3C4D, 1, 0, -1) + option + struct.pack("<I", length)


def check_order(order: Order) -> None:
    """Raises UsageError if the input cannot be read as often as needed, or if frames do not name a file."""
    if (order.analyzed or order.around_ns) and not can_reread(order.paths):
        name = next(path for path in order.paths if not is_lasting(path))
        raise UsageError(
            f"{name}: expected a file, because it is read twice (--frames, --start and --end need one pass)"
        )
    if order.classic and order.annotate:
        raise UsageError("--annotate: a pcap file has no comments: name the output .pcapng")
    if order.frames and len(order.paths) > 1:
        raise UsageError("--frames: expected one capture, because each numbers its frames from 1")


def analysis_of(order: Order, progress: Progress | None) -> Trace | None:
    """Analyzes the captures if flows, findings or verdicts are asked for."""
    return analyze_whole(*order.paths, progress=progress) if order.analyzed else None


def cut(order: Order, fd: int, version: str, progress: Progress | None = None) -> Outcome:
    """Writes the chosen packets to a descriptor. InputError, UsageError; OSError if they cannot be written."""
    check_order(order)
    trace = analysis_of(order, progress)
    frames = chosen_frames(trace, order.flows, order.findings, order.frames)
    outcome = copy_packets(order, trace, frames, fd, version)
    if trace is not None:
        trace.check_readable()  # else flows and frames would be those of other packets
    return outcome


def copy_packets(order: Order, trace: Trace | None, frames: Frames, fd: int, version: str) -> Outcome:
    """Runs the core over the packets."""
    head, comments = section_header(version), NO_COMMENTS
    if order.annotate and trace is not None:
        comments = comments_of(trace, details=order.key is None)
        head += name_block(server_names(trace).items()) if order.key is None else b""
    files = files_of_interfaces(trace) if trace is not None else []
    with core_errors():
        return Outcome(
            *_core.cut(
                list(order.paths),
                fd=fd,
                head=head,
                files=array("I", files).tobytes(),
                groups=frames.groups,
                ranges=frames.ranges,
                all=not (order.flows or order.findings or order.frames),
                start_ns=TIME_MIN if order.start_ns is None else order.start_ns,
                end_ns=TIME_MAX if order.end_ns is None else order.end_ns,
                around_ns=order.around_ns,
                headers=order.headers,
                classic=order.classic,
                key=order.key,
                comments=comments,
            )
        )
