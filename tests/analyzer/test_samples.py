# SPDX-License-Identifier: Apache-2.0
"""The sample captures and their truth equal the script's output, stay small, are described, and agree."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from scapy.error import Scapy_Exception
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

import wiretale
from checkout import CAPTURES, ROOT, SAMPLES

pytestmark = pytest.mark.xdist_group("samples")

NAMES = [path.name for path in CAPTURES]
TRUTHS = sorted(path.name for path in SAMPLES.glob("*.truth.json"))

RETRANSMISSIONS = {"fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission"}
# The column that counts the packets with that verdict, if one does.
COUNTED_IN = {
    "fast_retransmission": "fast_retransmissions",
    "timeout_retransmission": "timeout_retransmissions",
    "probe_retransmission": "probe_retransmissions",
    "retransmission": None,
    "out_of_order": "out_of_order",
    "network_duplicate": "network_duplicates",
    "mirror_duplicate": "mirror_duplicates",
    "keep_alive": "keep_alives",
    "keep_alive_ack": None,
    "window_probe": "window_probes",
    "zero_window": "zero_windows",
    "window_full": "window_full",
    "acked_unseen_segment": None,
    "duplicate_ack": "duplicate_acks",
    "datagram_incomplete": "incomplete_datagrams",
    "block_lost": None,
    "block_out_of_order": "blocks_out_of_order",
    "block_duplicate": "blocks_duplicate",
}
# Counted for all packets, also those without a frame in the truth.
OF_ALL_PACKETS = {"unique_bytes", "blocks", "fragments", "fragmented_datagrams"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, SAMPLES / "generator" / "make_samples.py", folder], check=True, timeout=600)
    return folder


@pytest.fixture
def truth(sample: Path) -> Any:
    return json.loads(sample.with_suffix(".truth.json").read_text(encoding="utf-8"))


def packets_of(capture: Path) -> list[bytes]:
    packets = []
    try:
        with RawPcapReader(str(capture)) as reader:
            packets = [data for data, _ in reader]
    except Scapy_Exception:
        assert capture.name == "damaged.pcap"
    return packets


def test_script_makes_all_samples_and_no_others(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == sorted(NAMES + TRUTHS)


@pytest.mark.parametrize("name", NAMES + TRUTHS)
def test_sample_is_made_byte_for_byte(made: Path, name: str) -> None:
    assert (made / name).read_bytes() == (SAMPLES / name).read_bytes()


def test_sample_is_small_and_described(sample: Path) -> None:
    assert sample.stat().st_size <= 200_000
    assert f"`{sample.name}`" in (SAMPLES / "README.md").read_text()


def test_samples_are_small_in_all() -> None:
    assert sum((SAMPLES / name).stat().st_size for name in NAMES + TRUTHS) <= 2_000_000


def test_every_sample_has_its_truth_and_every_truth_its_sample() -> None:
    assert sorted(Path(name).stem + ".truth.json" for name in NAMES) == TRUTHS


def test_truth_is_well_formed(sample: Path, truth: Any) -> None:
    assert truth.keys() >= {"about", "frames", "counts"} and truth["about"]
    directions = {(row["flow"], row["direction"]) for row in truth["counts"]}
    assert len(directions) == len(truth["counts"])
    count = len(packets_of(sample))
    for number, frame in truth["frames"].items():
        assert 1 <= int(number) <= count and number == str(int(number))
        assert frame["verdict"] in COUNTED_IN and (frame["flow"], frame["direction"]) in directions
        again = frame["verdict"] in RETRANSMISSIONS
        assert again == ("place" in frame) == ("spurious" in frame)
        assert frame.get("place", "upstream") in ("upstream", "downstream")


def test_truth_counts_columns_that_there_are(truth: Any) -> None:
    columns = (ROOT / "docs" / "tables.md").read_text()
    assert all(f"| `{name}` |" in columns for row in truth["counts"] for name in row)


def columns_of(frame: dict[str, Any]) -> list[tuple[str, int]]:
    verdict, column = frame["verdict"], COUNTED_IN[frame["verdict"]]
    counted = [(column, 1)] if column else []
    if verdict == "block_lost":
        counted.append(("blocks_lost", frame["blocks"]))
    if verdict in RETRANSMISSIONS:
        lost = "spurious_retransmissions" if frame["spurious"] else f"lost_{frame['place']}"
        seen_before = frame["bytes"] if frame["place"] == "downstream" else 0
        counted += [("retransmissions", 1), (lost, 1), ("retransmitted_bytes", seen_before)]
    return counted


def test_truth_counts_are_the_sums_of_its_frames(truth: Any) -> None:
    sums: defaultdict[tuple[int, int, str], int] = defaultdict(int)
    for frame in truth["frames"].values():
        for column, value in columns_of(frame):
            sums[frame["flow"], frame["direction"], column] += value
        if frame["verdict"] == "acked_unseen_segment":  # an ACK shows it for the other direction
            sums[frame["flow"], 1 - frame["direction"], "unseen_bytes"] += frame["bytes"]
    counts = {
        (row["flow"], row["direction"], column): value
        for row in truth["counts"]
        for column, value in row.items()
        if column not in {"flow", "direction"} | OF_ALL_PACKETS
    }
    assert {key: value for key, value in counts.items() if value} == {
        key: value for key, value in sums.items() if value
    }


def payload_of(packet: bytes) -> tuple[tuple[str, int], range]:
    """Who sends it, and the sequence numbers of its payload, by the lengths in its headers."""
    ip = Ether(packet)[IP]
    tcp = ip[TCP]
    length = ip.len - 4 * ip.ihl - 4 * tcp.dataofs
    return (ip.src, tcp.sport), range(tcp.seq, tcp.seq + length)


@pytest.mark.parametrize("name", ["fast_retransmissions.pcap", "timeouts.pcap", "go_back_n.pcap", "mirror_port.pcap"])
def test_bytes_lost_upstream_were_not_stored_before_and_others_were(name: str) -> None:
    frames = json.loads((SAMPLES / name).with_suffix(".truth.json").read_text())["frames"]
    stored: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    again = 0
    for number, packet in enumerate(packets_of(SAMPLES / name), 1):
        sender, sequence = payload_of(packet)
        frame = frames.get(str(number), {"verdict": "plain"})
        if frame["verdict"] in RETRANSMISSIONS:
            again += 1
            assert stored[sender].issuperset(sequence) == (frame["place"] == "downstream")
        elif frame["verdict"] == "plain":
            assert stored[sender].isdisjoint(sequence)
        stored[sender].update(sequence)
    assert again


# --- verdicts against the truth

# Verdicts that one capture cannot show: docs/verdicts.md, "What cannot be determined".
OTHER_VERDICTS = {("lost_tail", "timeout_retransmission"): "suspected_timeout"}
FRAME_VERDICTS = {
    *("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission", "out_of_order"),
    *("network_duplicate", "mirror_duplicate", "keep_alive", "window_probe", "zero_window", "window_full"),
    *("acked_unseen_segment", "duplicate_ack", "keep_alive_ack"),
}


@pytest.fixture
def sample_truth(sample: Path) -> tuple[str, wiretale.Trace, dict[str, Any]]:
    return sample.stem, wiretale.analyze(sample), json.loads(sample.with_suffix(".truth.json").read_text())


def test_counts(sample_truth: tuple[str, wiretale.Trace, dict[str, Any]]) -> None:
    name, trace, truth = sample_truth
    other_verdict = {kind for sample, kind in OTHER_VERDICTS if sample == name}
    for counts in truth["counts"]:
        row = trace.directions.rows()[2 * counts["flow"] + counts["direction"]]
        expected = {key: value for key, value in counts.items() if key in row}
        assert expected and (other_verdict or {key: row[key] for key in expected} == expected)


def test_frames(sample_truth: tuple[str, wiretale.Trace, dict[str, Any]]) -> None:
    name, trace, truth = sample_truth
    expected = {
        (int(frame), OTHER_VERDICTS.get((name, entry["verdict"]), entry["verdict"]))
        for frame, entry in truth["frames"].items()
        if entry["verdict"] in FRAME_VERDICTS
    }
    kinds = FRAME_VERDICTS | {"suspected_timeout"}
    rows_by_frame = {(row["frame"], row["kind"]): row for row in trace.events.rows() if row["kind"] in kinds}
    assert set(rows_by_frame) == expected
    for (frame, kind), row in rows_by_frame.items():
        entry = truth["frames"][str(frame)]
        if kind.endswith("retransmission"):
            assert row["spurious"] == entry["spurious"]
            assert row["place"] == (None if row["spurious"] else entry["place"])
        if kind == "acked_unseen_segment":
            assert row["bytes"] == entry["bytes"]
