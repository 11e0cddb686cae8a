# SPDX-License-Identifier: Apache-2.0
"""A frame that is cut out of a capture by its index is the frame that a reading of the whole file gives."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import struct
import subprocess
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from capture_files import block, enhanced, interface, section, wireshark_process
from plain_wire import Wire
from sample_sets import FEW_SAMPLES
from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.index.capture_index import write_index
from wiretale.analyzer.index.frame_index import BLOCK, EVERY, POINTS_MOST, SPACING, FrameIndex

ROOM = 2**26
STRETCH = 4 * SPACING  # bytes


def by_reading(path: Path, frames: list[int]) -> list[Any]:
    """Link type, time, length and bytes of frames, by a reading of the file from its beginning."""
    return [frame and frame[1] for frame in _core.frames([str(path)], frames, ROOM)]


def by_index(path: Path, frames: list[int], folder: Path) -> list[Any]:
    """The same from captures of one frame each, by the index."""
    FrameIndex.make(str(path), folder / "capture-0")
    index = FrameIndex(str(path), folder / "capture-0")
    raw_frames = []
    for frame in frames:
        cut = folder / "cut.pcap"
        cut.write_bytes(index.cut(frame))
        assert _core.frame_index(str(cut), EVERY)[1] == 1
        raw_frames += by_reading(cut, [1])
    return raw_frames


def large(path: Path, packets: int = 3000) -> Path:
    """A capture of several blocks, whose packets differ and do not compress."""
    wire, numbers = Wire(), random.Random(7)
    for n in range(packets):
        wire.udp(n, numbers.randbytes(numbers.randrange(20, 1400)), port=4000 + n % 7)
    return wire.write(path)


@FEW_SAMPLES
def test_each_frame_of_each_sample(sample: Path, tmp_path: Path) -> None:
    count = _core.frame_index(str(sample), EVERY)[1]
    frames = sorted(
        {1, 2, *range(5, count, 1 + count // 40), *(n for n in (255, 256, 257, 258, 512, 513) if n < count), count}
    )
    assert by_index(sample, frames, tmp_path) == by_reading(sample, frames)


def varied(path: Path, frames: int = 600) -> Path:
    """A capture of 64 kB a frame, which compresses to half and has matches across frames, as deflate windows need."""
    numbers, before = random.Random(3), bytes(1000)
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 17, 1)]
    for n in range(frames):
        data = before[-9000:] + numbers.randbytes(27_000 + n).hex().encode()
        parts.append(struct.pack("<IIII", n, 0, len(data), len(data)) + data)
        before = data
    path.write_bytes(b"".join(parts))
    return path


def packed_by(program: str, data: bytes, *options: str) -> bytes:
    """The data, compressed by the program of this format."""
    needs.skip_without(needs.programs(program))
    return subprocess.run([program, "-q", "-c", *options], input=data, stdout=subprocess.PIPE, check=True).stdout


def compressed(path: Path, program: str, *options: str) -> Path:
    """A compressed copy of a file, which is made once."""
    packed = path.with_name("".join([path.stem, *options, ".", program]))
    if not packed.exists():
        packed.write_bytes(packed_by(program, path.read_bytes(), *options))
    return packed


def in_parts(path: Path, program: str, part: int) -> Path:
    """A copy of members or frames of `part` bytes each."""
    data, packed = path.read_bytes(), path.with_name(f"{path.stem}-{part}.{program}")
    if not packed.exists():
        parts = [packed_by(program, data[begin : begin + part], "-1") for begin in range(0, len(data), part)]
        packed.write_bytes(b"".join(parts))
    return packed


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = varied(tmp_path_factory.mktemp("long") / "long.pcap")
    assert path.stat().st_size > 2 * STRETCH
    return path


def kinds(points: bytes) -> list[tuple[int, int]]:
    """Offset and kind of each point: 0 a boundary, 1 a deflate block, 2 a copy."""
    numbers = struct.unpack(f"{len(points) // 8}Q", points)
    return list(zip(numbers[::6], numbers[2::6], strict=True))


FRAMES_OF_LONG = [1, 2, 60, 250, 256, 257, 270, 271, 400, 599, 600]


@pytest.mark.parametrize("level", ["-1", "-6"])
def test_gzip_is_read_from_deflate_blocks(level: str, long: Path, tmp_path: Path) -> None:
    packed = compressed(long, "gzip", level)
    assert by_index(packed, FRAMES_OF_LONG, tmp_path) == by_reading(long, FRAMES_OF_LONG)
    points = kinds((tmp_path / "capture-0.points").read_bytes())
    assert {kind for _, kind in points[1:]} == {1}
    assert all(SPACING <= after - before < 2 * SPACING for (before, _), (after, _) in pairwise(points))
    assert (tmp_path / "capture-0.store").stat().st_size < len(points) * 33_000


@pytest.mark.parametrize("program", ["gzip", "zstd", "lz4"])
def test_members_and_frames_are_read_from_their_begin(program: str, long: Path, tmp_path: Path) -> None:
    packed = in_parts(long, program, 5_000_000)
    assert by_index(packed, FRAMES_OF_LONG, tmp_path) == by_reading(long, FRAMES_OF_LONG)
    if program != "gzip":  # which has nearer points
        begins = [(offset, 0) for offset in range(0, long.stat().st_size, 5_000_000)]
        assert kinds((tmp_path / "capture-0.points").read_bytes()) == begins
        assert (tmp_path / "capture-0.store").stat().st_size == 0


@pytest.mark.parametrize("program", ["zstd", "lz4"])
def test_one_long_frame_is_copied_behind_its_first_stretch(program: str, long: Path, tmp_path: Path) -> None:
    packed = compressed(long, program)
    assert by_index(packed, FRAMES_OF_LONG, tmp_path) == by_reading(long, FRAMES_OF_LONG)
    points = kinds((tmp_path / "capture-0.points").read_bytes())
    assert points[0] == (0, 0)
    assert points[1:] == [(offset, 2) for offset in range(STRETCH, long.stat().st_size, BLOCK)]
    assert (tmp_path / "capture-0.store").stat().st_size < packed.stat().st_size


@pytest.mark.parametrize("program", ["gzip", "zstd", "lz4"])
def test_any_range_of_a_compressed_file(program: str, long: Path, tmp_path: Path) -> None:
    content, numbers = long.read_bytes(), random.Random(5)
    for packed in (compressed(long, program), in_parts(long, program, 9_000_001)):
        with (tmp_path / "store").open("w+b") as store:
            points = _core.seek_points(str(packed), store.fileno(), SPACING, POINTS_MOST)
            for _ in range(20):
                offset, size = numbers.randrange(len(content) + 9), numbers.choice([0, 1, 70_000, 1_200_000])
                assert (
                    _core.seek_read(str(packed), points, store.fileno(), offset, size)
                    == content[offset : offset + size]
                )
            with pytest.raises(ValueError, match="expected a size up to"):
                _core.seek_read(str(packed), points, store.fileno(), 0, 2**30)


@pytest.mark.parametrize("part", [100_000, 3_000_000, 12_000_000])
@pytest.mark.parametrize("program", ["gzip", "zstd"])
def test_the_number_of_points_is_bounded(program: str, part: int, long: Path, tmp_path: Path) -> None:
    packed, content, spacing = in_parts(long, program, part), long.read_bytes(), 50_000
    with (tmp_path / "store").open("w+b") as store:
        points = _core.seek_points(str(packed), store.fileno(), spacing, 16)
        restarts = [offset for offset, kind in kinds(points) if kind != 2]
        assert len(restarts) < 16
        while spacing * 16 < len(content):  # as often as it must have doubled, if points were everywhere
            spacing *= 2
        assert all(after - before < 4 * spacing + BLOCK for (before, _), (after, _) in pairwise(kinds(points)))
        for offset in range(0, len(content), 1_000_003):
            assert _core.seek_read(str(packed), points, store.fileno(), offset, 9000) == content[offset : offset + 9000]


@pytest.mark.parametrize("program", ["gzip", "zstd"])
def test_damaged_points_and_stores_are_no_harm(program: str, long: Path, tmp_path: Path) -> None:
    """Any answer is allowed, but not a crash, and not more bytes than asked for."""
    packed, numbers = compressed(long, program), random.Random(11)
    with (tmp_path / "store").open("w+b") as store:
        points = bytearray(_core.seek_points(str(packed), store.fileno(), SPACING, POINTS_MOST))
        for _ in range(50):
            damaged, place = bytearray(points), 8 * numbers.randrange(len(points) // 8)
            damaged[place : place + 8] = struct.pack("Q", numbers.choice([0, 1, 2, 3, 2**32, 2**63, 2**64 - 1, 70_000]))
            data = _core.seek_read(
                str(packed), bytes(damaged[: numbers.choice([len(damaged), 47, 48])]), store.fileno(), 2**24, 5000
            )
            assert len(data) <= 5000
        os.pwrite(store.fileno(), numbers.randbytes(200_000), 0)
        for offset in range(0, long.stat().st_size, 2_000_003):
            assert len(_core.seek_read(str(packed), bytes(points), store.fileno(), offset, 5000)) <= 5000


@pytest.mark.parametrize("program", ["gzip", "zstd"])
def test_a_compressed_file_that_is_cut_short(program: str, long: Path, tmp_path: Path) -> None:
    packed = compressed(long, program)
    packed = Path(shutil.copy(packed, tmp_path / "cut"))
    os.truncate(packed, packed.stat().st_size * 2 // 3)
    count = _core.frame_index(str(packed), EVERY)[1]
    assert 360 < count < 440
    frames = [1, 300, count - 1, count]
    assert by_index(packed, frames, tmp_path) == by_reading(long, frames)


@pytest.mark.parametrize("program", ["plain", "gzip", "zstd", "lz4"])
def test_compressed_captures(program: str, tmp_path: Path) -> None:
    path = large(tmp_path / "large.pcap")
    assert path.stat().st_size > 2 * BLOCK
    packed = path if program == "plain" else compressed(path, program)
    frames = [1, 2, 256, 257, 1499, 1500, 2999, 3000]
    assert by_index(packed, frames, tmp_path) == by_reading(path, frames)
    assert (tmp_path / "capture-0.points").exists() == (program != "plain")


def test_bytes_of_a_frame_may_cross_blocks(tmp_path: Path) -> None:
    path = large(tmp_path / "large.pcap")
    packed = Path(shutil.copy(path, tmp_path / "x"))
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    offset, crossing = 24, 0
    data = path.read_bytes()
    while offset < BLOCK:
        crossing += 1
        offset += 16 + struct.unpack("<I", data[offset + 8 : offset + 12])[0]
    assert by_index(packed, [crossing], tmp_path) == by_reading(path, [crossing])


def sections(order: str, other: str) -> bytes:
    """Two sections in two byte orders; the second has two interfaces, one of them described between packets."""
    parts = [section(order), interface(order=order)]
    parts += [enhanced(n, bytes(60) + bytes([n % 256]), order=order) for n in range(300)]
    parts += [
        section(other),
        block(0x0BAD, bytes(40), other),
        wireshark_process(7, order=other),
        interface(order=other),
    ]
    parts += [enhanced(n, bytes(40) + bytes([n % 256]), order=other) for n in range(300)]
    parts += [interface(order=other, link_type=101)]
    parts += [enhanced(n, bytes(20) + bytes([n % 256]), number=n % 2, order=other) for n in range(300)]
    return b"".join(parts)


@pytest.mark.parametrize(("order", "other"), [("<", ">"), (">", "<")])
def test_sections_and_late_interfaces(order: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "sections.pcapng"
    path.write_bytes(sections(order, other))
    frames = [1, 256, 257, 299, 300, 302, 303, 557, 600, 601, 602, 603, 899, 900, 901]  # 301 is the custom block
    raw_frames = by_reading(path, frames)
    assert by_index(path, frames, tmp_path) == raw_frames and None not in raw_frames
    assert by_reading(path, [301]) == [None]
    assert {raw[0] for raw in raw_frames} == {1, 101}


@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("minor", [2, 3, 4])
def test_variants_of_pcap(magic: int, order: str, minor: int, tmp_path: Path) -> None:
    path, more = tmp_path / "variant.pcap", bytes(8) if magic == 0xA1B2CD34 else b""
    parts = [struct.pack(order + "IHHiIII", magic, 2, minor, 0, 0, 1000, 1)]
    for n in range(600):
        lengths = (60, 80) if minor == 4 else (80, 60)
        parts.append(struct.pack(order + "IIII", 10 + n, n, *lengths) + more + bytes(59) + bytes([n % 256]))
    path.write_bytes(b"".join(parts))
    frames = [1, 255, 256, 257, 600]
    raw_frames = by_reading(path, frames)
    assert [raw[2] for raw in raw_frames] == [80] * 5
    assert by_index(path, frames, tmp_path) == raw_frames


def test_a_file_that_is_another_now_is_an_error(tmp_path: Path) -> None:
    path = large(tmp_path / "large.pcap", 600)
    FrameIndex.make(str(path), tmp_path / "capture-0")
    index = FrameIndex(str(path), tmp_path / "capture-0")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"large\.pcap: at byte \d+: expected a record"):
        index.cut(600)
    with pytest.raises(InputError, match=r"has no frame 0"):
        index.cut(0)


def test_damage_ends_the_index(tmp_path: Path, samples: Path) -> None:
    path = samples / "damaged.pcap"
    compression, frames, checkpoints, headers = _core.frame_index(str(path), 1)
    assert compression is None
    assert not headers
    assert frames == sum(1 for raw in by_reading(path, list(range(1, 1000))) if raw)
    assert len(checkpoints) // 16 >= frames


def test_a_full_disk_and_a_capture_that_is_gone_are_errors(tmp_path: Path) -> None:
    packed = tmp_path / "large.pcap.gz"
    packed.write_bytes(gzip.compress(large(tmp_path / "large.pcap").read_bytes(), 1))
    with Path("/dev/full").open("wb") as full, pytest.raises(OSError, match="No space left on device"):
        _core.seek_points(str(packed), full.fileno(), 2**16, POINTS_MOST)
    trace = wiretale.analyze(packed)
    packed.unlink()
    with pytest.raises(InputError, match=r"large\.pcap\.gz: No such file or directory"):
        write_index(trace, tmp_path, 0)


def test_points_behind_copied_bytes_stay_if_there_are_too_many(tmp_path: Path) -> None:
    content, packed, store = random.Random(3).randbytes(6000), tmp_path / "a.gz", tmp_path / "a.store"
    deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
    blocks = [deflate.compress(content[at : at + 64]) + deflate.flush(zlib.Z_BLOCK) for at in range(0, 6000, 64)]
    packed.write_bytes(b"".join(blocks) + deflate.flush())
    with store.open("w+b") as points_file:
        points = _core.seek_points(str(packed), points_file.fileno(), 1, 20)
        for at in range(6000):
            size = min(300, 6000 - at)
            assert _core.seek_read(str(packed), points, points_file.fileno(), at, size) == content[at : at + size]
