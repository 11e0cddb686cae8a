# SPDX-License-Identifier: Apache-2.0
"""`send --kernel-pacing`: refused without the queueing discipline fq, and under a kernel that has it, the kernel sends each block
when it is due. A stream that the kernel paces (--fq-rate) has its rate without bursts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

import needs
import user_mode_linux
from lab_bench import NEEDED, lab_of, truth_rows
from traffic_ends import program, receiving, send, send_raw, undisturbed
from wiretale.traffic.lab.link import write_truth

pytestmark = pytest.mark.xdist_group("live")

PORT = 5013
BLOCKS, GAP_NS = 400, 2_000_000
SCRIPT = """
tc qdisc add dev lo root fq
{program} receive --quiet --port 5010 &
tcpdump -i lo -Z root -s 128 -B 8192 --immediate-mode --time-stamp-precision=nano \\
    -w packets.pcap 'udp and greater 200' 2>tcpdump &
until grep -q listening tcpdump; do sleep 0.1; done
{program} send 127.0.0.1 --udp --size 200 --count {blocks} --rate 500pps --kernel-pacing --wait 20 --json >report
{program} send 127.0.0.1 --udp --size 200 --count 20 --rate 500pps --kernel-pacing --reverse --wait 20 --json >reversed
tc -s qdisc show dev lo
kill %2
wait %2
"""
# An interface with two queues: each has fq, then the second has not.
QUEUES = """
echo fq >/proc/sys/net/core/default_qdisc
ip netns add far
ip link add near numtxqueues 2 type veth peer name there netns far
ip addr add 192.0.2.1/24 dev near
ip -n far addr add 192.0.2.2/24 dev there
ip link set near up
ip -n far link set there up
tc qdisc add dev near root handle 1: mq
ip netns exec far {program} receive --quiet --port 5010 &
send="{program} send 192.0.2.2 --udp --size 200 --count 20 --rate 500pps --kernel-pacing --wait 20 --quiet"
$send
echo "both: $?"
tc qdisc replace dev near parent 1:2 pfifo
$send
echo "one: $?"
"""


def due_ns(packet: bytes) -> int:
    """Returns the time in a block, when it was due: RawPcapReader gives it after the headers of Ethernet, IPv4 and UDP."""
    return int.from_bytes(packet[42 + 24 : 42 + 32])


@needs.marked(user_mode_linux.NEEDED, needs.programs("tc", "tcpdump"))
def test_the_kernel_sends_each_block_when_it_is_due(tmp_path: Path) -> None:
    """The sender gives a block to the kernel up to a gap before it is due, and fq holds it: none leaves early. How late they
    leave depends on how busy the machine is, so it is the tenth that is least late of which something is known."""
    script = (SCRIPT + QUEUES).format(program=program(), blocks=BLOCKS)
    output = user_mode_linux.run_script(script, tmp_path, "net/sched/sch_fq", "drivers/net/veth")
    report, reversed_report = (json.loads((tmp_path / name).read_text()) for name in ("report", "reversed"))
    assert report["test"]["kernel_pacing"] is True
    assert report["blocks_received"] == report["blocks_sent"] == BLOCKS, output
    assert reversed_report["blocks_received"] == 20
    with RawPcapReader(str(tmp_path / "packets.pcap")) as packets:  # in ns
        late = [meta.sec * 10**9 + meta.usec - due_ns(bytes(packet)) for packet, meta in packets][:BLOCKS]
    assert len(late) == BLOCKS, output
    assert min(late) > -GAP_NS / 20  # by the clocks alone
    assert sorted(late)[BLOCKS // 10] < GAP_NS
    throttled = re.search(r"highprio .* throttled (\d+)", output)
    assert throttled and int(throttled[1]) >= BLOCKS / 10, output
    assert "both: 0" in output
    assert "fq at near" in output and "one: 5" in output


def test_without_fq_it_is_refused_at_both_ends(tmp_path: Path) -> None:
    expected = "--kernel-pacing: expected the queueing discipline fq at lo (tc qdisc replace dev lo root fq)"
    options = ("--udp", "--rate", "100pps", "--count", "5", "--kernel-pacing")
    with receiving(tmp_path, "--parallel", "2", "--per-address", "2") as receiver:
        forward = send_raw(receiver.port, *options)
        assert (forward.returncode, forward.stdout) == (5, b"")
        assert expected in forward.stderr.decode() and forward.stderr.count(b"\n") == 1
        reverse = send_raw(receiver.port, *options, "--reverse")
        assert reverse.returncode == 3 and expected in reverse.stdout.decode() + reverse.stderr.decode()


@pytest.mark.parametrize("options", [("--udp",), ("--rate", "1M"), ("--udp", "--rate", "1M", "--offload")])
def test_it_needs_datagrams_and_a_rate(options: tuple[str, ...]) -> None:
    done = send_raw(1, *options, "--kernel-pacing")
    assert done.returncode == 2
    assert (
        "--kernel-pacing: expected --udp and a --rate or a --pattern as well, and no --offload" in done.stderr.decode()
    )


def most_in_a_millisecond(times: list[int]) -> int:
    first, most = 0, 0
    for last, time_ns in enumerate(times):
        while time_ns - times[first] > 1_000_000:
            first += 1
        most = max(most, last + 1 - first)
    return most


def segments_at_the_link(folder: Path) -> dict[tuple[int, int], list[int]]:
    """Times at which segments of full size came to the link, without the first 100 ms (slow start), by direction and port."""
    streams: dict[tuple[int, int], list[int]] = {}
    for row in truth_rows(write_truth(folder, folder / "truth.parquet"), "payload_bytes > 1000"):
        port = row["destination_port"] if row["source_port"] == PORT else row["source_port"]
        streams.setdefault((row["direction"], port), []).append(row["in_ns"])
    return {key: [ns for ns in times if ns > times[0] + 100_000_000] for key, times in streams.items()}


@NEEDED
@pytest.mark.alone
def test_the_kernel_paces_each_stream_without_bursts(tmp_path: Path) -> None:
    """At both ends: 20 Mbit/s are 1.7 segments in a millisecond; a block of 128 KiB that --rate sends at once has 91."""
    options = ("--both", "--streams", "2", "--time", "0.6")
    names = iter("abcdefgh")

    def check() -> None:
        folder = tmp_path / next(names)
        folder.mkdir()
        with lab_of('[both]\nrate = "1Gbit"\ndelay = "2ms"\nqueue = 1000', "fq", folder) as lab:
            inside = tuple(lab.inside("sender"))
            with receiving(folder, inside=tuple(lab.inside("receiver")), port=PORT):
                for rate in ("--fq-rate", "--rate"):
                    report = send(PORT, rate, "20M", *options, host="10.99.0.2", inside=inside)
                    assert report["test"]["fq_rate_bps"] == (20e6 if rate == "--fq-rate" else None)
                    streams = report["receiver"]["streams"] + report["reverse_receiver"]["streams"]
                    if rate == "--fq-rate":
                        assert [stream["rate_mbit_s"] for stream in streams] == [pytest.approx(20, rel=0.06)] * len(
                            streams
                        )
        bursts = [most_in_a_millisecond(times) for times in segments_at_the_link(folder).values()]
        assert len(bursts) == 8 and max(bursts[:4]) <= 10 and min(bursts[4:]) >= 40, bursts

    undisturbed(check, tries=4)
