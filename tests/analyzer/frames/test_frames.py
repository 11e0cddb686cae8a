# SPDX-License-Identifier: Apache-2.0
"""Frames read by number are those of the file, and their trees have the values that tshark finds in the whole capture."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Ether, Raw, RawPcapReader, wrpcap

import needs
import wiretale
from crafted import NEIGHBOR
from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.frames import dissect as dissection
from wiretale.analyzer.frames.dissect import DEPTH_MAX, LABEL_MAX, NODES_MAX, Tree, TreeBuilder, dissect
from wiretale.analyzer.frames.raw_frames import RawFrame, pcapng, raw_frames

# Fields of tshark, and the label that has their value.
LABELS = {
    "eth.src": "Source: {}",
    "ip.ttl": "Time to Live: {}",
    "ip.src": "Source Address: {}",
    "ipv6.hlim": "Hop Limit: {}",
    "tcp.seq_raw": "Sequence Number (raw): {}",
    "tcp.seq": "Sequence Number: {} (relative sequence number)",
    "tcp.window_size": "Calculated window size: {}",
    "tcp.len": "TCP Segment Len: {}",
    "tcp.options.timestamp.tsval": "Timestamp value: {}",
    "tcp.options.sack_le": "left edge = {} (relative)",
    "udp.length": "Length: {}",
}


def nodes_of(tree: Tree) -> list[list[Any]]:
    """Every node of a tree."""
    return [node for top in tree for node in (top, *nodes_of(top[3] if len(top) > 3 else []))]


def records(path: Path | str) -> list[tuple[bytes, Any]]:
    """Bytes and record header of each frame."""
    with RawPcapReader(str(path)) as reader:
        return list(reader)


def values(path: Path) -> list[list[str]]:
    """The values of LABELS in each frame of a file."""
    fields = [word for field in LABELS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=f", *fields]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_frames_are_the_bytes_of_the_file(samples: Path) -> None:
    path = samples / "tcp_losses.pcap"
    expected = records(path)
    frames = raw_frames(wiretale.analyze(path), [(0, 342), (0, 1), (0, 155), (0, 155), (0, 9_999)])
    assert [frame.number for frame in frames] == [1, 155, 342]
    for frame in frames:
        data, at = expected[frame.number - 1]
        assert (frame.data, frame.length) == (data, at.wirelen), frame.number
        assert frame.time_ns == at.sec * 10**9 + at.usec * 1000


def test_frames_of_two_files_have_their_own_numbers(samples: Path) -> None:
    names = ["tcp_losses.pcap", "vlan_ipv6.pcap"]
    trace = wiretale.analyze(*(samples / name for name in names))
    files = trace.interfaces.column("file")
    for capture, file in enumerate(files):
        (frame,) = raw_frames(trace, [(capture, 2)])
        assert (frame.capture, frame.data) == (capture, records(file)[1][0])


def test_frames_beyond_the_room_are_left_out(samples: Path) -> None:
    path = str(samples / "tcp_losses.pcap")
    sizes = [frame and frame[1] and len(frame[1][3]) for frame in _core.frames([path], [1, 2, 3], 74 + 66)]
    assert sizes == [74, None, 66]
    assert _core.frames([path], [1], -1) == [(("ok", 6, True, False), None)]
    texts: Any = ["1"]
    with pytest.raises(TypeError):
        _core.frames([path], texts, 100)


def test_a_file_that_changed_gives_no_frames(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((samples / "tcp_losses.pcap").read_bytes())
    trace = wiretale.analyze(path)
    path.write_bytes((samples / "vlan_ipv6.pcap").read_bytes())
    with pytest.raises(InputError, match="changed"):
        raw_frames(trace, [(0, 1)])


def test_standard_input_gives_no_frames(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    monkeypatch.setattr(trace, "_lasting", False)
    with pytest.raises(UsageError, match="second time"):
        raw_frames(trace, [(0, 1)])


@needs.TSHARK
@pytest.mark.parametrize("name", ["tcp_losses.pcap", "vlan_ipv6.pcap", "udp_blocks.pcap", "fast_retransmissions.pcap"])
def test_trees_have_the_values_that_tshark_finds_in_the_capture(samples: Path, name: str) -> None:
    path = samples / name
    trace, expected = wiretale.analyze(path), values(path)
    starts = [row["frame"] for flow in range(len(trace.flows)) for row in trace.packets([flow], 3).rows()]
    numbers = sorted({*starts, *range(1, len(expected) + 1, 7), len(expected)})
    frames = raw_frames(trace, [(0, number) for number in numbers])
    made_by, trees = dissect(frames)
    assert made_by.startswith("tshark ") and len(trees) == len(frames) == len(numbers)
    compared = 0
    for frame, tree in zip(frames, trees, strict=True):
        labels = [node[0] for node in nodes_of(tree)]
        for text, value in zip(LABELS.values(), expected[frame.number - 1], strict=True):
            if value:
                compared += 1
                assert text.format(value) in labels, (frame.number, text.format(value))
    assert compared >= 4 * len(frames)


@needs.TSHARK
def test_nodes_name_the_bytes_that_they_are_about(samples: Path) -> None:
    (frame,) = raw_frames(wiretale.analyze(samples / "tcp_losses.pcap"), [(0, 4)])
    _, (tree,) = dissect([frame])
    places = {node[0]: frame.data[node[1] : node[1] + node[2]] for node in nodes_of(tree)}
    assert places["Source Address: 192.0.2.10"] == bytes([192, 0, 2, 10])
    assert places["Time to Live: 64"] == b"\x40"
    assert places["Destination Port: 5201"] == (5201).to_bytes(2, "big")
    assert places["TCP Segment Len: 1448"] == b""  # computed


@needs.TSHARK
def test_trees_say_nothing_about_frames_that_tshark_did_not_get(samples: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    _, trees = dissect(raw_frames(trace, [(0, number) for number in (1, 2, 154, 155, 160, 337, 338)]))
    texts = " ".join(node[0] for tree in trees for node in nodes_of(tree))
    assert "Window size scaling factor: 128" in texts
    for word in ("SEQ/ACK analysis", "in frame", "Stream index", "previous", "first frame", "Frame Number"):
        assert word not in texts, word


@needs.TSHARK
def test_hostile_payload_stays_short_text(tmp_path: Path) -> None:
    path = tmp_path / "hostile.pcap"
    request = b"GET /<script>alert(1)</script>\x1b[2J" + b"a" * 900 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    wrpcap(
        str(path), [Ether(dst=NEIGHBOR) / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(dport=80, flags="PA") / Raw(request)]
    )
    _, (tree,) = dissect(raw_frames(wiretale.analyze(path), [(0, 1)]))
    labels = [node[0] for node in nodes_of(tree)]
    assert any("<script>" in label for label in labels)
    assert all(label.isprintable() and len(label) <= LABEL_MAX for label in labels)


def test_trees_are_limited_in_nodes_and_depth() -> None:
    frame = RawFrame(0, 1, 1, 0, 4, b"abcd")
    builder = TreeBuilder([frame])
    builder.parser.Parse(b"<pdml><packet>" + b'<field showname="a" pos="0" size="9999999999999999999999">' * 200)
    builder.parser.Parse(
        b"</field>" * 200 + b'<field name="b" showname="b" pos="-1" size="x"/>' * 2000 + b"</packet></pdml>"
    )
    (tree,) = builder.trees
    nodes = nodes_of(tree)
    assert len(nodes) == NODES_MAX and all(node[1:3] == [0, 0] for node in nodes)
    depth, level = 0, tree
    while level:
        depth, level = depth + 1, level[0][3] if len(level[0]) > 3 else []
    assert depth == DEPTH_MAX


@needs.TSHARK
def test_link_types_of_several_files_are_kept() -> None:
    ip = bytes(IP(src="10.0.0.1", dst="10.0.0.2") / TCP())
    frames = [RawFrame(0, 1, 1, 5, 60, bytes(Ether(dst=NEIGHBOR)) + ip), RawFrame(1, 1, 101, None, 40, ip)]
    assert pcapng(frames).count(ip) == 2
    _, trees = dissect(frames)
    assert [tree[0][0].split(",")[0] for tree in trees] == ["Ethernet II", "Raw packet data"]


def test_without_tshark_there_are_no_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingToolError):
        dissect([RawFrame(0, 1, 1, 5, 60, bytes(60))])


@needs.TSHARK
def test_a_tshark_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "tshark"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(dissection, "SECONDS_MAX", 0.2)
    assert dissect([RawFrame(0, 1, 1, 5, 60, bytes(60))]) == ("tshark", [])
