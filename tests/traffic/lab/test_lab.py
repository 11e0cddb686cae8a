# SPDX-License-Identifier: Apache-2.0
"""Labs in network namespaces: the link's settings, its truth and both captures agree."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from ideal_link import departures
from json_schema import check_schema
from lab_bench import (
    COMMAND,
    NEEDED,
    NEEDS_TRAFFIC,
    Sent,
    block_numbers,
    frames,
    hosts_of,
    lab_of,
    last_json,
    truth_rows,
    wiretale_lab,
)
from traffic_ends import receiving
from traffic_ends import send as send_test
from wiretale.analyzer.errors import UsageError, WiretaleError
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary
from wiretale.traffic.lab.profile import load_profile, make_profile, profile_names
from wiretale.traffic.program import find_program

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]
HEADERS = 28
SENDER_HARDWARE = bytes.fromhex("020000009901")
Send = Callable[..., Sent]


def test_exactly_the_listed_packets_are_lost(send: Send) -> None:
    sent = send("drop=17,90-95 delay=2ms")
    lost = {17, *range(90, 96)}
    assert {row["index"] for row in sent.truth if row["fate"] == "listed"} == lost
    assert {row["index"] for row in sent.truth if row["fate"] == "delivered"} == set(range(1, 101)) - lost
    assert sent.numbers_before == list(range(100))
    assert sent.numbers_after == [k for k in range(100) if k + 1 not in lost]
    assert all(row["block_sequence"] == row["index"] - 1 for row in sent.truth)


def test_random_losses_are_those_of_the_truth_and_of_the_seed(send: Send) -> None:
    first = send("loss=20%", count=300)
    lost = {row["index"] for row in first.truth if row["fate"] == "random"}
    assert 25 < len(lost) < 100
    assert set(first.numbers_before) - set(first.numbers_after) == {index - 1 for index in lost}
    again = send("loss=20%", count=300, gap=0)
    assert {row["index"] for row in again.truth if row["fate"] == "random"} == lost


def test_duplicates_leave_twice(send: Send) -> None:
    sent = send("duplicate=100%")
    assert sorted(sent.numbers_after) == sorted([*range(100), *range(100)])
    assert all(row["copies"] == 2 and row["copied"] for row in sent.truth)


def test_held_packets_are_overtaken_in_the_capture_as_in_the_truth(send: Send) -> None:
    sent = send("reorder=10% distance=2 delay=5ms reorder-wait=1s", count=200, gap=0.001)
    late = [row["block_sequence"] for row in sent.truth if row["reordered"]]
    assert 5 < len(late) < 50
    assert sorted(sent.numbers_after) == list(range(200))
    places = {number: place for place, number in enumerate(sent.numbers_after)}
    assert [row for row in late if row < 190 and places[row] < row + 1] == []
    on_time = [number for number in sent.numbers_after if number not in late]
    assert on_time == sorted(on_time)


def test_corrupted_packets_differ_in_as_many_bits_as_the_truth_says(send: Send) -> None:
    sent = send("corrupt=50% bits=2")
    before = [frame for frame in sent.before if frame[6:12] == SENDER_HARDWARE and len(frame) > 200]
    after = [frame for frame in sent.after if frame[6:12] == SENDER_HARDWARE and len(frame) > 200]
    assert len(before) == len(after) == 100
    assert 20 < sum(row["corrupted_bits"] == 2 for row in sent.truth) < 80
    for row, old, new in zip(sent.truth, before, after, strict=True):
        flipped = sum((a ^ b).bit_count() for a, b in zip(old, new, strict=True))
        assert flipped == row["corrupted_bits"]


def test_a_rate_and_a_delay_are_kept(send: Send) -> None:
    sent = send("rate=1Mbit delay=50ms queue=1000", size=1000 - HEADERS, count=60, gap=0)
    ideal = departures([row["in_ns"] for row in sent.truth], 8_000_000, 50_000_000, 1000)
    for row, (due_ns, _) in zip(sent.truth, ideal, strict=True):
        assert row["due_ns"] == pytest.approx(due_ns, abs=20_000)  # two clocks are read one after the other
        assert row["out_ns"] > row["due_ns"] - 20_000
    late = [(row["out_ns"] - row["due_ns"]) / 1e6 for row in sent.truth]
    assert median(late) < 5  # ms, on a machine that may be busy


def test_a_full_queue_drops_its_tail(send: Send) -> None:
    sent = send("rate=400kbit queue=20", size=1000 - HEADERS, count=60, gap=0)
    ideal = departures([row["in_ns"] for row in sent.truth], 20_000_000, 0, 20)
    assert [row["fate"] for row in sent.truth] == ["queue" if due is None else "delivered" for due, _ in ideal]
    assert [row["queue_packets"] for row in sent.truth] == [waiting for _, waiting in ideal]
    assert sum(due is None for due, _ in ideal) > 10
    assert len(sent.numbers_after) == sum(due is not None for due, _ in ideal)


PROBE_MTU = """
import errno, socket, sys, time
family, address = ((socket.AF_INET, "10.99.0.2"), (socket.AF_INET6, "fd00:99::2"))[int(sys.argv[2])]
sock = socket.socket(family, socket.SOCK_DGRAM)
level, option, value = ((socket.IPPROTO_IP, 10, 14), (41, 23, 24))[int(sys.argv[2])]
sock.setsockopt(level, option, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
sock.connect((address, 5005))
for _ in range(100):
    try:
        sock.send(bytes(1400))
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            sys.exit(sock.getsockopt(level, value) != 1300)
    time.sleep(0.02)
sys.exit(2)
"""


@pytest.mark.parametrize("version", ["4", "6"])
def test_a_packet_beyond_the_mtu_is_answered_by_icmp(send: Send, version: str) -> None:
    if version == "6" and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    sent = send("mtu=1300", count="46".index(version), script=PROBE_MTU)
    assert sent.truth[0]["fate"] == "mtu"
    made = truth_rows(sent.folder / "truth.parquet", "fate = 'made'")
    assert made and made[0]["direction"] == 1 and made[0]["protocol"] == (1 if version == "4" else 58)


def test_a_black_hole_says_nothing(send: Send) -> None:
    sent = send("mtu=1000 black-hole=yes", size=1200, count=5)
    assert [row["fate"] for row in sent.truth] == ["mtu"] * 5
    assert not truth_rows(sent.folder / "truth.parquet", "fate = 'made'")
    assert sent.numbers_before == list(range(5)) and not sent.numbers_after


def test_the_truth_has_the_packets_of_the_captures(send: Send) -> None:
    sent = send("delay=1ms", count=20)
    ids = [int.from_bytes(frame[18:20], "big") for frame in sent.before if frame[42:46] == b"WTB1"]
    assert [row["ip_id"] for row in sent.truth] == ids
    row = sent.truth[0]
    assert (row["source"], row["destination"], row["destination_port"]) == ("10.99.0.1", "10.99.0.2", 5005)
    assert (row["protocol"], row["ip_bytes"], row["payload_bytes"]) == (17, 200 + HEADERS, 200)
    assert (row["block_run"], row["block_stream"], row["tcp_sequence"]) == (77, 0, None)


def test_every_profile_is_understood_by_the_link() -> None:
    program = find_program("wiretale-link")
    for name in profile_names():
        profile = load_profile(name)
        command = [program, "no-such-one", "nor-this", "--forward", profile.forward, "--reverse", profile.reverse]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 4, (name, done.stderr)  # 2 would be a setting that it refuses
        assert "no such interface" in done.stderr


def test_a_setting_that_the_link_refuses_is_a_usage_error_and_leaves_nothing(tmp_path: Path) -> None:
    profile = make_profile("bad", '[both]\nrate = "fast"', "bad.toml")
    with pytest.raises(UsageError, match="rate=fast: expected bits a second"), lab_for_run(profile, tmp_path):
        pass
    assert hosts_of(f"run-{os.getpid()}") == []


def test_a_lab_comes_up_has_a_shell_and_goes_down(tmp_path: Path) -> None:
    name = f"t{os.getpid()}"
    (tmp_path / "slow.toml").write_text('description = "slow"\n[both]\ndelay = "20ms"\n')
    up = wiretale_lab("up", str(tmp_path / "slow.toml"), "--name", name, "-o", str(tmp_path / "out"))
    ready = time.monotonic()
    try:
        assert up.returncode == 0, up.stderr
        assert len(hosts_of(name)) == 3
        assert name in wiretale_lab("list").stdout
        behind = wiretale_lab("shell", "receiver", "--name", name, "ip", "-4", "address")  # as `lab up` prints it
        assert "10.99.0.2/24" in behind.stdout, behind.stderr
        wrong = wiretale_lab("shell", "receiver", "--nam", name)
        assert wrong.returncode == 2 and "--name NAME" in wrong.stderr
        again = wiretale_lab("up", "wan", "--name", name)
        assert again.returncode == 2 and "is up already" in again.stderr
        time.sleep(max(ready + 1.2 - time.monotonic(), 0))  # reports would be said again within a second
    finally:
        down = wiretale_lab("down", name)
    assert down.returncode == 0, down.stderr
    # Reports of groups come by the dozen; one lone packet may be a neighbor's.
    assert max(way["passed"] for way in link_summary(tmp_path / "out")["directions"]) <= 1
    assert hosts_of(name) == []
    assert wiretale_lab("down", name).returncode == 2


def test_a_lab_of_another_place_keeps_its_name_and_its_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"o{os.getpid()}"
    assert wiretale_lab("up", "same-host", "--name", name).returncode == 0
    state = os.environ["WIRETALE_STATE"]
    try:
        monkeypatch.setenv("WIRETALE_STATE", str(tmp_path))
        again = wiretale_lab("up", "wan", "--name", name)
        assert again.returncode == 2 and "is up already" in again.stderr
        assert len(hosts_of(name)) == 3 and list(tmp_path.iterdir()) == []
    finally:
        monkeypatch.setenv("WIRETALE_STATE", state)
        assert wiretale_lab("down", name).returncode == 0


def test_of_two_that_want_one_name_at_once_one_has_it() -> None:
    name = f"b{os.getpid()}"
    command = [*COMMAND, "up", "same-host", "--name", name]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in "ab"]
    try:
        errors = [process.communicate(timeout=60)[1] for process in both]
        assert sorted(process.returncode for process in both) == [0, 2], errors
        assert len(hosts_of(name)) == 3
        assert f"{name} " in wiretale_lab("list").stdout
    finally:
        assert wiretale_lab("down", name).returncode == 0
    assert hosts_of(name) == []


def test_a_setting_that_the_kernel_lacks_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    name = f"s{os.getpid()}"
    (tmp_path / "odd.toml").write_text('[sysctl]\n"net.ipv4.no_such_setting" = 1\n')
    up = wiretale_lab("up", str(tmp_path / "odd.toml"), "--name", name)
    assert (up.returncode, up.stderr.count("\n")) == (2, 1), up.stderr
    assert "sysctl net.ipv4.no_such_setting = 1" in up.stderr and hosts_of(name) == []


@NEEDS_TRAFFIC
@pytest.mark.xdist_group("narrow-link")
def test_the_narrow_link_of_the_study_is_as_published(tmp_path: Path) -> None:
    done = wiretale_lab("run", "s6-narrow-link", "-o", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    row = last_json(done.stdout)
    assert check_schema(row) == "wiretale.lab/1"
    assert row["packets_sent"] == 2352
    assert abs(row["packets_received"] - 1257) <= 3
    assert abs(row["latency_ms"] - 162) <= 8
    assert abs(row["queue_packets"] - 19) <= 1
    assert row["throughput_bps"] == pytest.approx(1e6, rel=0.01)
    assert row["published"]["packets_received"] == 1257
    assert row["capture_drops"] == {"before": 0, "after": 0}
    truth = truth_rows(tmp_path / "truth.parquet", "direction = 0 AND block_sequence IS NOT NULL")
    assert sum(fate["fate"] == "delivered" for fate in truth) == row["packets_received"]
    assert "https://" not in (tmp_path / "report.html").read_text().split('id="plotly"')[0]


@NEEDS_TRAFFIC
def test_the_check_measures_the_link_s_own_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    from wiretale.traffic.lab import check

    monkeypatch.setattr(check, "TRIALS", (check.Trial(5e6, True),))
    monkeypatch.setattr(check, "SECONDS", 1)
    result = check.check_lab()
    assert check_schema(result) == "wiretale.lab-check/1"
    (trial,) = result["trials"]
    assert trial["carried_bps"] == pytest.approx(5e6, rel=0.1)
    assert trial["overruns"] == trial["not_delivered"] == 0
    assert 0 <= trial["error_us_median"] <= trial["error_us_p99"] <= trial["error_us_max"]
    assert "at 100 Mbit/s" in result["verdict"]


@NEEDS_TRAFFIC
@pytest.mark.parametrize(("card", "is_joined"), [("", True), ('card = "100Mbit"\n', False)])
def test_datagrams_of_the_generator_are_single_in_the_captures(tmp_path: Path, card: str, is_joined: bool) -> None:
    """Also at the far end, if the sender's kernel segments them; a card that shapes gets single ones."""
    port, count = 41237, 400
    with (
        lab_of(card + '[both]\ndelay = "1ms"\n', f"o{os.getpid()}", tmp_path) as lab,
        captures(lab, tmp_path),
        receiving(tmp_path, "--once", inside=tuple(lab.inside("receiver")), port=port),
    ):
        options = ("--udp", "--size", "1000", "--count", str(count))
        report = send_test(port, *options, host="10.99.0.2", inside=tuple(lab.inside("sender")))
    assert report["sender"]["blocks_offloaded"] == (count if is_joined else 0)
    assert report["blocks_received"] == count and report["blocks_corrupt"] == 0
    for point in ("before", "after"):
        blocks = [frame for frame in frames(tmp_path / point) if frame[42:46] == b"WTB1"]
        assert block_numbers(blocks) == list(range(count))
        assert {int.from_bytes(frame[16:18], "big") for frame in blocks} == {1000 + HEADERS}


def test_a_lab_whose_program_is_missing_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wiretale.traffic import program

    monkeypatch.setattr(program.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(program.shutil, "which", lambda name, path=None: None)
    with pytest.raises(WiretaleError, match="ip is missing: apt-get install iproute2") as caught:
        program.find_program("ip")
    assert caught.value.exit_code == 5
