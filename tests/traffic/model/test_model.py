# SPDX-License-Identifier: Apache-2.0
"""wiretale model: drawn captures of known sizes and gaps become plans; a lab sends them; the test agrees or finds the error."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, UDP, Ether, Packet, Raw, rdpcap, wrpcap

from forked_commands import run_command
from lab_bench import NEEDED
from traffic_ends import undisturbed
from wiretale.traffic.model.agreement import probability
from wiretale.traffic.model.datagrams import Datagrams

Lines = list[tuple[int, int]]  # bytes, ns until the next datagram
START = 1_790_000_000
CLIENT, SERVER = ("192.0.2.1", 5000), ("192.0.2.2", 6000)


def wiretale(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command, as a user runs it."""
    return run_command(*arguments)


def datagram(size: int, at_ns: int, reverse: bool = False) -> Packet:
    source, destination = (SERVER, CLIENT) if reverse else (CLIENT, SERVER)
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source[0], dst=destination[0])
    packet = packet / UDP(sport=source[1], dport=destination[1]) / Raw(bytes(size))
    packet.time = START + at_ns / 1e9
    return packet


def drawn(count: int, mean_gap_ns: float, seed: int, sizes: tuple[int, ...] = (172, 1200)) -> Lines:
    """Exponential gaps in whole µs, as in the file, and sizes of two kinds."""
    source = random.Random(seed)
    return [(source.choice(sizes), round(source.expovariate(1 / mean_gap_ns) / 1000) * 1000) for _ in range(count)]


def packets_of(lines: Lines, reverse: bool = False, at_ns: int = 0) -> list[Packet]:
    packets = []
    for size, gap in lines:
        packets.append(datagram(size, at_ns, reverse))
        at_ns += gap
    return packets


def capture(path: Path, *directions: list[Packet]) -> Path:
    wrpcap(str(path), sorted((packet for each in directions for packet in each), key=lambda packet: packet.time))
    return path


def pattern(path: Path) -> Lines:
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return [(int(size), int(gap)) for size, gap in lines]


def near(planned: Lines, original: Lines) -> bool:
    """Whether sizes are the same, and gaps but for the rounding of the file's times; the last one has no end."""
    gaps = zip(planned[:-1], original[:-1], strict=True)
    return [size for size, _ in planned] == [size for size, _ in original] and all(
        abs(a[1] - b[1]) <= 1000 for a, b in gaps
    )


def test_a_plan_has_sizes_and_gaps_of_both_directions(tmp_path: Path) -> None:
    """The answers begin 40 ms after the requests."""
    forward, reverse = drawn(50, 5e6, 1), drawn(80, 3e6, 2)
    file = capture(tmp_path / "call.pcap", packets_of(forward), packets_of(reverse, True, 40_000_000))
    done = wiretale("model", file, "-o", tmp_path / "call.toml")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    plan = tomllib.loads((tmp_path / "call.toml").read_text())
    first, second = plan["test"][0]["session"]
    assert (first["label"], first["count"], first["start"]) == ("flow 0 forward", 50, "0us")
    assert (second["label"], second["count"], second["start"]) == ("flow 0 reverse", 80, "40000us")
    assert "reverse" not in first and second["reverse"] is True
    assert near(pattern(tmp_path / first["pattern"]), forward)
    assert near(pattern(tmp_path / second["pattern"]), reverse)
    dry_run = wiretale("experiment", "run", tmp_path / "call.toml", "--dry-run")
    assert dry_run.returncode == 0 and dry_run.stdout.count("--pattern") == 2, dry_run.stderr


def test_a_large_flow_is_drawn_from(tmp_path: Path) -> None:
    """The size of each datagram is its own: a line is of one of them, and none twice."""
    original = [(100 + n % 1301, 1000 * (1 + n // 1301)) for n in range(12_000)]
    file = capture(tmp_path / "large.pcap", packets_of(original))
    assert wiretale("model", file, "-o", tmp_path / "large.toml").returncode == 0
    (session,) = tomllib.loads((tmp_path / "large.toml").read_text())["test"][0]["session"]
    assert (session["count"], session["draw"]) == (12_000, True)
    lines = pattern(tmp_path / session["pattern"])
    assert len(lines) == 10_000
    assert abs(sum(size for size, _ in lines) / 10_000 - sum(size for size, _ in original) / 12_000) < 10
    again = wiretale("model", file, "-o", tmp_path / "again.toml")
    assert again.returncode == 0 and pattern(tmp_path / "again.d" / "flow-0-forward.txt") == lines


def test_a_datagram_in_fragments_is_one(tmp_path: Path) -> None:
    large = datagram(4000, 0)
    fragments = large[IP].fragment(1480)
    for number, piece in enumerate(fragments):
        piece.time = START + number / 1e6
    packets = [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / piece for piece in fragments]
    for packet, piece in zip(packets, fragments, strict=True):
        packet.time = piece.time
    file = capture(tmp_path / "large.pcap", packets, packets_of([(50, 0)], at_ns=5_000_000))
    assert wiretale("model", file, "-o", tmp_path / "plan.toml").returncode == 0
    assert pattern(tmp_path / "plan.d" / "flow-0-forward.txt") == [(4000, 5_000_000), (50, 0)]


def test_a_tcp_stream_is_its_bytes(tmp_path: Path) -> None:
    done = wiretale("model", "sample_pcaps/tcp_losses.pcap", "-o", tmp_path / "plan.toml")
    assert done.returncode == 0, done.stderr
    (session,) = tomllib.loads((tmp_path / "plan.toml").read_text())["test"][0]["session"]
    flows = json.loads(wiretale("analyze", "sample_pcaps/tcp_losses.pcap", "--json").stdout)
    sent = max(row["unique_bytes"] for row in flows["directions"])
    assert session["protocol"] == "tcp" and 0 <= session["count"] * session["size"] - sent < session["count"]
    assert session["size"] <= 8192


def test_a_plan_has_any_name(tmp_path: Path) -> None:
    """Names of captures may be long, and beyond the BMP: the title of a pattern is cut, and the plan is TOML."""
    popper = "\N{PARTY POPPER}"
    folder = tmp_path / popper
    folder.mkdir()
    file = capture(folder / f"{popper * 50}.pcap", packets_of(drawn(5, 1e6, 1)))
    plan = folder / f'a"{popper}.toml'
    assert wiretale("model", file, "-o", plan).returncode == 0
    read = tomllib.loads(plan.read_text())
    assert read["title"] == f"Model of {file.name}"
    title = (folder / read["test"][0]["session"][0]["pattern"]).read_bytes().splitlines()[0]
    assert 80 < len(title) <= 98 and title.decode()  # the sender's limit
    dry_run = wiretale("experiment", "run", plan, "--dry-run")
    assert dry_run.returncode == 0, dry_run.stderr
    done = wiretale("model", file, "-o", os.fsdecode(os.fsencode(folder / "x") + b"\xff.toml"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "UTF-8" in done.stderr
    assert not [path for path in folder.iterdir() if path.name.startswith("x")]


def test_flows_of_another_day_are_left_out(tmp_path: Path) -> None:
    """A plan cannot start them; a chosen one is an error."""
    other = UDP(sport=7, dport=8) / Raw(bytes(100))
    late = Ether() / IP(src="192.0.2.7", dst="192.0.2.8") / other
    late.time = START + 86_400 + 2
    file = capture(tmp_path / "days.pcap", packets_of(drawn(5, 1e6, 1), at_ns=10**9), [late])
    done = wiretale("model", file, "-o", tmp_path / "plan.toml")
    assert done.returncode == 0, done.stderr
    assert "Not modeled: flow 1 forward, 192.0.2.7 port 7 to 192.0.2.8 port 8: it begins more than a day" in done.stderr
    (session,) = tomllib.loads((tmp_path / "plan.toml").read_text())["test"][0]["session"]
    assert session["label"] == "flow 0 forward"
    assert wiretale("experiment", "run", tmp_path / "plan.toml", "--dry-run").returncode == 0
    done = wiretale("model", file, "--flow", 0, "--flow", 1, "-o", tmp_path / "x.toml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "--flow 1" in done.stderr
    assert not (tmp_path / "x.toml").exists()
    assert wiretale("model", file, "--flow", 1, "-o", tmp_path / "x.toml").returncode == 0


def test_flows_that_cannot_be_modeled_are_named(tmp_path: Path) -> None:
    syn = Ether() / IP(src="192.0.2.7", dst="192.0.2.8") / TCP(sport=7, dport=8, flags="S")
    syn.time = START
    file = capture(tmp_path / "two.pcap", packets_of(drawn(5, 1e6, 1)), [syn])
    done = wiretale("model", file, "-o", tmp_path / "plan.toml")
    assert done.returncode == 0 and "192.0.2.7 port 7 to 192.0.2.8 port 8: it has no payload" in done.stderr
    assert "it has no payload" in (tmp_path / "plan.toml").read_text()
    number = next(n for n in (0, 1) if wiretale("model", file, "--flow", n, "-o", tmp_path / "x.toml").returncode)
    done = wiretale("model", file, "--flow", number, "-o", tmp_path / "y.toml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "it has no payload" in done.stderr
    assert not (tmp_path / "y.toml").exists()


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("-o", "plan.txt"), 2, "ending in .toml"),
        ((), 2, "expected -o PLAN"),
        (("-o", "plan.toml", "--flow", "1"), 2, "1 flow"),
        (("-o", "plan.toml", "--flow", "x"), 2, "number of a flow"),
        (("-o", "plan.toml", "--json"), 2, "need --check"),
        (("--check",), 2, "the original capture and DIR"),
        (("--check", "nowhere"), 4, "expected the output of"),
        (("--check", "nowhere", "--resolution", "x"), 2, "expected a time"),
        (("--check", "nowhere", "--flow", "0"), 2, "no -o or --flow"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, options: tuple[str, ...], code: int, says: str) -> None:
    file = capture(tmp_path / "a.pcap", packets_of([(100, 1000)]))
    arguments = (*options[:1], str(file), *options[1:]) if "--check" in options else (str(file), *options)
    done = run_command("model", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert says in done.stderr and not (tmp_path / "plan.toml").exists()


def test_standard_input_is_refused(tmp_path: Path) -> None:
    """It cannot be read twice."""
    file = capture(tmp_path / "a.pcap", packets_of(drawn(5, 1e6, 1)))
    command = [sys.executable, "-m", "wiretale", "model", "-", "-o", str(tmp_path / "plan.toml")]
    done = subprocess.run(command, input=file.read_bytes(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
    assert b"read a second time" in done.stderr and not (tmp_path / "plan.toml").exists()


def run_model(folder: Path, original: Path, plan: Path) -> tuple[int, dict[str, Any]]:
    """Runs a plan in a lab of its own; returns code and object of --check."""
    done = wiretale("lab", "run", plan, "--profile", "same-lan", "-o", folder)
    assert done.returncode == 0, done.stderr
    checked = wiretale("model", "--check", original, folder, "--json")
    assert checked.returncode in (0, 1), checked.stderr
    return checked.returncode, json.loads(checked.stdout)


def verdicts(comparison: dict[str, Any]) -> dict[tuple[str, str], bool | None]:
    return {(row["session"].split(", ")[1], row["measure"]): row["agrees"] for row in comparison["measures"]}


@pytest.mark.xdist_group("experiment")
@NEEDED
def test_a_lab_sends_what_the_capture_has(tmp_path: Path) -> None:
    """Exponential gaps and sizes of two kinds, in both directions: the two-sample test finds no difference."""
    forward, reverse = drawn(500, 4e6, 3), drawn(300, 6e6, 4, (60, 900))
    file = capture(tmp_path / "call.pcap", packets_of(forward), packets_of(reverse, True, 10_000_000))
    plan = tmp_path / "call.toml"
    assert wiretale("model", file, "-o", plan).returncode == 0
    tries = iter(range(100))

    def check() -> None:
        code, comparison = run_model(tmp_path / f"run{next(tries)}", file, plan)
        ways, measures = ("flow 0 forward", "flow 0 reverse"), ("sizes", "gaps")
        assert verdicts(comparison) == {(way, measure): True for way in ways for measure in measures}, comparison
        assert (code, comparison["agrees"]) == (0, True)

    undisturbed(check)


@pytest.mark.xdist_group("experiment")
@NEEDED
def test_a_stream_has_its_bytes_and_a_datagram_no_gaps(tmp_path: Path) -> None:
    """Each stream gets all of its bytes; a block fewer in one of them differs. A single datagram has a size alone."""
    streams, single = rdpcap("sample_pcaps/timeouts.pcap"), datagram(200, 0)
    single.time = streams[0].time + 1
    original, plan = capture(tmp_path / "both.pcap", streams, [single]), tmp_path / "plan.toml"
    assert wiretale("model", original, "-o", plan).returncode == 0
    tables = tomllib.loads(plan.read_text())["test"][0]["session"]
    code, comparison = run_model(tmp_path / "run", original, plan)
    assert (code, comparison["agrees"]) == (0, True), comparison
    assert sorted(row["measure"] for row in comparison["measures"]) == ["bytes"] * 3 + ["sizes"]
    for row in comparison["measures"]:
        if row["measure"] == "bytes":
            (table,) = [session for session in tables if row["session"].endswith(session["label"])]
            assert (
                row["rerun"] == table["count"] * table["size"] and 0 <= row["rerun"] - row["original"] < table["count"]
            )
    count = next(session["count"] for session in tables if session["protocol"] == "tcp")
    plan.write_text(plan.read_text().replace(f"count = {count}\n", f"count = {count - 1}\n"))
    code, comparison = run_model(tmp_path / "fewer", original, plan)
    assert code == 1 and sorted(verdicts(comparison).values()) == [False, True, True, True]


@pytest.mark.xdist_group("experiment")
@NEEDED
@pytest.mark.parametrize("wrong", ["sizes", "gaps"])
def test_a_wrong_model_differs(tmp_path: Path, wrong: str) -> None:
    """Sizes of one kind in place of the other, or gaps of the same mean that are all equal."""
    original = drawn(400, 4e6, 5)
    file, plan = capture(tmp_path / "call.pcap", packets_of(original)), tmp_path / "call.toml"
    assert wiretale("model", file, "-o", plan).returncode == 0
    pattern_file = tmp_path / "call.d" / "flow-0-forward.txt"
    mean = sum(gap for _, gap in original) // len(original)
    changed = [
        (1200 if wrong == "sizes" else size, mean if wrong == "gaps" else gap) for size, gap in pattern(pattern_file)
    ]
    pattern_file.write_text("".join(f"{size} {gap}\n" for size, gap in changed))
    tries = iter(range(100))

    def check() -> None:
        code, comparison = run_model(tmp_path / f"run{next(tries)}", file, plan)
        right = "gaps" if wrong == "sizes" else "sizes"
        expected = {("flow 0 forward", wrong): False, ("flow 0 forward", right): True}
        assert verdicts(comparison) == expected, comparison
        assert (code, comparison["agrees"]) == (1, False)
        assert next(row["p"] for row in comparison["measures"] if row["measure"] == wrong) < 1e-6

    undisturbed(check)


def brute(first: list[int], second: list[int], slack: int) -> float:
    """The definition, value by value."""

    def share(values: list[int], most: int) -> float:
        return sum(value <= most for value in values) / len(values)

    differences = [share(first, x) - share(second, x + slack) for x in first]
    differences += [share(second, x) - share(first, x + slack) for x in second]
    return max(*differences, 0.0)


@pytest.mark.parametrize("slack", [0, 3, 1000])
def test_distance_is_that_of_its_definition(slack: int) -> None:
    source = random.Random(slack)
    for _ in range(10):
        first = [source.randint(0, 40) for _ in range(source.randint(1, 60))]
        second = [source.randint(5, 60) for _ in range(source.randint(1, 60))]
        samples = Datagrams()
        for run, values in enumerate((first, second)):
            rows = [[run, 0, 0, number, 0, value, value] for number, value in enumerate(values)]
            samples.connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        distance = samples.distance("gap", (0, 0, 0), (1, 0, 0), slack)
        assert math.isclose(distance, brute(first, second, slack), abs_tol=1e-12)


def test_probability_is_that_of_tables() -> None:
    """Kolmogorov's distribution: 1.3581 is exceeded with 0.05, 1.6276 with 0.01, 1.9495 with 0.001."""
    for value, p in ((1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001)):
        assert math.isclose(probability(value / math.sqrt(5e7), 10**8, 10**8), p, rel_tol=0.01)
    assert probability(0.0, 10, 10) == 1.0 and probability(1.0, 1000, 1000) < 1e-100
    assert 0.5 < probability(0.1, 100, 100) < 0.75  # 0.70 by the exact distribution
