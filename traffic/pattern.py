# SPDX-License-Identifier: Apache-2.0
"""Files of `wiretale-traffic send`: of --pattern, a line has the bytes of a block and the ns until the next one; of --turns, the
bytes of a request, the ns from its response to the next one, the bytes of the response and the ns that the server takes."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wiretale.analyzer.errors import InputError
from wiretale.reports.export.destination import output_file

SIZE_LEAST, SIZE_MOST = 32, 65_507  # of a datagram over IPv4; the header of a block has 32 bytes
MESSAGE_MOST = 1 << 30  # bytes of a request or response
GAP_MOST = 86_400 * 10**9
LINES_MOST = 65_536
BYTES_MOST = 8 << 20
LINE_MOST = 98  # bytes without the line feed, also of a comment
TITLE_MOST = 90  # bytes


@dataclass(frozen=True)
class Pattern:
    """The bounds of a pattern."""

    lines: int
    largest: int  # bytes
    digest: str


def parse_line(text: str, turns: bool) -> list[int] | None:
    """Returns the numbers of a line; None if they are missing or out of bounds."""
    words = text.split()
    if len(words) != (4 if turns else 2):
        return None
    if not all(word.isascii() and word.isdecimal() and len(word) < 16 for word in words):
        return None
    numbers, most = [int(word) for word in words], MESSAGE_MOST if turns else SIZE_MOST
    right = all(SIZE_LEAST <= size <= most for size in numbers[::2]) and all(gap <= GAP_MOST for gap in numbers[1::2])
    return numbers if right else None


def read_pattern(path: Path, turns: bool = False) -> Pattern:
    """Returns the bounds of a pattern, or of turns. InputError if the file cannot be read; ValueError if it is no pattern."""
    try:
        is_regular = stat.S_ISREG(path.stat().st_mode)
        content = b""
        if is_regular:
            with path.open("rb") as file:
                content = file.read(BYTES_MOST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not is_regular:  # it is read once more, by the sender
        raise InputError(f"{path}: expected a regular file")
    if len(content) > BYTES_MOST:
        raise ValueError(f"{path}: expected a pattern of at most 8 MiB")
    lines, largest = 0, 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        if len(line) > LINE_MOST:
            raise ValueError(f"{path}: line {number}: expected at most {LINE_MOST} characters")
        text = line.decode("utf-8", "replace").strip(" \t\r")
        if not text or text.startswith("#"):
            continue
        numbers = parse_line(text, turns)
        if numbers is None or lines == LINES_MOST:
            sizes = f"a size ({SIZE_LEAST} to {SIZE_MOST} bytes) and a gap (ns)"
            words = "a request, a gap, a response and a server time (bytes and ns)" if turns else sizes
            raise ValueError(f"{path}: line {number}: expected at most {LINES_MOST} lines of {words}")
        lines, largest = lines + 1, max(largest, *numbers[::2])
    if not lines:
        raise ValueError(f"{path}: expected at least one line of numbers")
    return Pattern(lines, largest, hashlib.sha256(content).hexdigest()[:16])


def write_pattern(path: Path, title: str, lines: Iterable[tuple[int, ...]]) -> None:
    """Writes a pattern, or turns, that appears whole or not at all. A long title is cut."""
    begin = title.encode()[:TITLE_MOST].decode("utf-8", "ignore")
    with output_file(path) as out:
        out.write(f"# {begin}\n".encode())
        out.write("".join(" ".join(map(str, line)) + "\n" for line in lines).encode())
