# SPDX-License-Identifier: Apache-2.0
"""`wiretale cut`: the packets that it takes, in every format that is read, and what other programs find in its output."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

import needs
import wiretale
from capture_files import block, enhanced, interface, option, section, write_pcap
from crafted import NEIGHBOR, write_timed
from placed import placed

pytestmark = needs.marked(needs.programs("tshark"))
Frames = list[tuple[str, str]]


def fields(path: Path, *names: str, where: str = "") -> list[list[str]]:
    """Values of every packet, by tshark."""
    command = ["tshark", "-r", path, *(["-Y", where] if where else []), "-T", "fields", "-E", "separator=/t"]
    command += [word for name in names for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def packets(path: Path, where: str = "") -> Frames:
    """Time and digest of the bytes of every packet, by tshark."""
    return [(row[0], row[1]) for row in fields(path, "frame.time_epoch", "frame.md5_hash", where=where)]


@pytest.fixture
def cut(wiretale_run: Any, tmp_path: Path) -> Any:
    def run(*words: object, code: int = 0, name: str = "out.pcapng") -> Path:
        out = tmp_path / name
        done = wiretale_run("cut", *words, "-o", out)
        assert done.returncode == code, done.stderr
        return out

    return run


def test_a_flow_has_its_packets_alone(cut: Any, samples: Path) -> None:
    capture = samples / "two_interfaces.pcapng"
    trace = wiretale.analyze(capture)
    assert len(trace.flows) > 1
    for flow in range(len(trace.flows)):
        numbers = sorted(trace.packets([flow]).column("frame"))
        out = cut(capture, "--flow", flow, "--overwrite")
        of_capture = packets(capture)
        assert packets(out) == [of_capture[frame - 1] for frame in numbers] and numbers
    both = cut(capture, "--flow", 0, "--flow", 1, "--overwrite")
    assert len(packets(both)) == len(trace.packets([0, 1]))


def test_frames_and_times_are_chosen_and_add_up(cut: Any, samples: Path) -> None:
    capture = samples / "tcp_losses.pcap"
    of_capture = packets(capture)
    assert packets(cut(capture, "--frames", "1-10,15,340-")) == [*of_capture[:10], of_capture[14], *of_capture[339:]]
    start, end = of_capture[100][0], of_capture[200][0]
    ranged = cut(capture, "--start", start, "--end", end, name="range.pcapng")
    assert packets(ranged) == [packet for packet in of_capture if float(start) <= float(packet[0]) < float(end)]
    limited = cut(capture, "--flow", 0, "--frames", "1-5", "--end", end, name="limited.pcapng")
    assert packets(limited) == [packet for packet in of_capture if float(packet[0]) < float(end)]
    assert packets(cut(capture, name="all.pcapng")) == of_capture


def test_a_finding_has_the_packets_of_its_evidence(cut: Any, samples: Path) -> None:
    capture = samples / "tcp_losses.pcap"
    row = next(row for row in placed(wiretale.analyze(capture)) if row["code"] == "lost-downstream")
    of_capture = packets(capture)
    expected = of_capture[row["first_frame"] - 1 : row["last_frame"]]
    assert packets(cut(capture, "--finding", row["finding"])) == expected
    assert packets(cut(capture, "--finding", "lost-downstream", name="code.pcapng")) == expected


@pytest.mark.parametrize("name", ["timeouts.pcap", "tcp_losses.pcap"])
def test_a_number_of_the_page_is_that_of_cut(
    cut: Any, wiretale_run: Any, samples: Path, tmp_path: Path, name: str
) -> None:
    """The comments of the copy name the finding at its first frame."""
    report = tmp_path / "report.html"
    assert wiretale_run("analyze", samples / name, "-q", "--report", report).returncode == 0
    listed = re.findall(r'<span class="nth">finding (\d+)</span> ([^<]+?) ?<', report.read_text("utf-8"))
    explained = json.loads(wiretale_run("analyze", samples / name, "--all", "--json").stdout)["findings"]
    rows = placed(wiretale.analyze(samples / name))
    assert len(listed) >= 3
    for number, sentence in listed:
        finding = explained[int(number) - 1]
        code = finding["code"]
        assert (finding["finding"], html.escape(finding["sentence"])) == (int(number), sentence.strip())
        copied = cut(samples / name, "--finding", number, "--annotate", name=f"{number}.pcapng").read_bytes()
        frame = rows[int(number) - 1]["first_frame"]
        assert re.search(rf"[^\0]*\({code}\)[^\0]*frame {frame}\b".encode(), copied), number


def test_packets_around_are_those_within_the_time(cut: Any, samples: Path) -> None:
    capture = samples / "two_interfaces.pcapng"
    of_capture = packets(capture)
    at = float(of_capture[20][0])
    for seconds in (0.001, 0.02, 1000):
        near = [packet for packet in of_capture if abs(float(packet[0]) - at) <= seconds + 1e-9]
        assert packets(cut(capture, "--frames", 21, "--around", seconds, "--overwrite")) == near
    assert len(packets(cut(capture, "--frames", "21,30", "--around", 0.000001, name="two.pcapng"))) >= 2


def test_verdicts_and_findings_are_comments_that_wireshark_filters(cut: Any, samples: Path) -> None:
    capture = samples / "fast_retransmissions.pcap"
    trace = wiretale.analyze(capture)
    kinds = list(zip(trace.events.column("kind"), trace.events.column("frame"), strict=True))
    out = cut(capture, "--annotate")
    for kind in ("fast_retransmission", "duplicate_ack"):
        numbers = sorted({frame for kind_of_event, frame in kinds if kind_of_event == kind})
        spoken = kind.replace("_", " ")
        filtered = fields(out, "frame.number", where=f'frame.comment contains "{spoken}"')
        assert [int(row[0]) for row in filtered] == numbers and numbers
    row = next(row for row in placed(trace) if row["first_frame"])
    comments = fields(out, "frame.comment", where=f"frame.number == {row['first_frame']}")
    assert f"({row['code']})" in comments[0][0] and f"frame {row['first_frame']}" in comments[0][0]
    assert packets(out) == packets(capture)


def test_servers_have_their_names(cut: Any, tmp_path: Path) -> None:
    client, server = (
        Ether(dst=NEIGHBOR) / IP(src="10.0.0.1", dst="10.0.0.2"),
        Ether(dst=NEIGHBOR) / IP(src="10.0.0.2", dst="10.0.0.1"),
    )
    request = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
    timed = [
        (0.0, client / TCP(sport=4000, dport=80, flags="S", seq=9)),
        (0.1, server / TCP(sport=80, dport=4000, flags="SA", seq=5, ack=10)),
        (0.2, client / TCP(sport=4000, dport=80, flags="PA", seq=10, ack=6) / request),
    ]
    out = cut(write_timed(tmp_path / "named.pcap", timed), "--annotate")
    command = ["tshark", "-N", "dn", "-r", out, "-T", "fields", "-e", "ip.dst_host"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert names == ["www.example.org", "10.0.0.1", "www.example.org"]
    public = cut(tmp_path / "named.pcap", "--annotate", "--anonymize", name="public.pcapng")
    assert b"example" not in public.read_bytes()


def test_descriptions_counts_and_times_stay(cut: Any, tmp_path: Path) -> None:
    texts = (
        option(2, b"eth7") + option(3, b"uplink") + option(9, b"\x09") + option(11, b"\0tcp") + option(1, b"left port")
    )
    counts = block(
        5, b"\0" * 4 + b"\0" * 8 + option(4, (90).to_bytes(8, "little")) + option(5, (7).to_bytes(8, "little"))
    )
    ticks = (1_700_000_000_000_000_001, 1_700_000_000_002)  # ns, ms
    frames = [enhanced(ticks[n % 2] + n, bytes(60), number=n % 2) for n in range(4)]
    source = tmp_path / "in.pcapng"
    source.write_bytes(section() + interface(texts) + interface(option(9, b"\x03")) + b"".join(frames) + counts)
    out = cut(source)
    before, after = (wiretale.analyze(path, interfaces_only=True).interfaces.rows() for path in (source, out))
    same = ("name", "filter", "comment", "snaplen", "link_type", "received", "dropped_interface", "time_resolution_ns")
    assert [[row[name] for name in same if name in row] for row in before] == [
        [row[name] for name in same if name in row] for row in after
    ]
    assert packets(source) == packets(out)
    interfaces = [row[0] for row in fields(out, "frame.interface_id")]
    assert interfaces == ["0", "1", "0", "1"]


def test_every_format_is_read(cut: Any, samples: Path, tmp_path: Path) -> None:
    plain = samples / "tcp_losses.pcap"
    of_capture = packets(plain)
    packed = tmp_path / "packed.pcap.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    files = [packed]
    for program, suffix in (("zstd", "zst"), ("lz4", "lz4")):
        if shutil.which(program):
            files.append(tmp_path / f"packed.pcap.{suffix}")
            with plain.open("rb") as source, files[-1].open("wb") as target:
                subprocess.run([program, "-q", "-c"], stdin=source, stdout=target, check=True)
    for kind in ("pcapng", "nsecpcap"):
        files.append(tmp_path / f"{kind}.capture")
        subprocess.run(["editcap", "-F", kind, plain, files[-1]], check=True)
    for file in files:
        out = cut(file, "--frames", "3-9", "--overwrite")
        assert [(float(time), digest) for time, digest in packets(out)] == [
            (float(time), digest) for time, digest in of_capture[2:9]
        ]


def test_several_captures_are_merged(cut: Any, samples: Path, tmp_path: Path, wiretale_run: Any) -> None:
    halves = []
    for number, frames in enumerate(("1-100", "101-400")):
        halves.append(tmp_path / f"half{number}.pcap")
        subprocess.run(["editcap", "-r", "-F", "pcap", samples / "tcp_losses.pcap", halves[-1], frames], check=True)
    assert packets(cut(*halves, "--flow", 0)) == packets(samples / "tcp_losses.pcap")
    done = wiretale_run("cut", *halves, "--frames", "1", "-o", tmp_path / "x.pcapng")
    assert done.returncode == 2 and "expected one capture" in done.stderr


def test_headers_end_behind_the_transport_header(cut: Any, samples: Path) -> None:
    out = cut(samples / "vlan_ipv6.pcap", "--headers")
    lengths = fields(samples / "vlan_ipv6.pcap", "frame.len", "tcp.hdr_len")
    cuts = fields(out, "frame.len", "tcp.hdr_len", "frame.cap_len", "ip.hdr_len", "vlan.id")
    assert [row[:2] for row in cuts] == lengths
    for _, header, captured, ip, vlan in (row for row in cuts if row[1]):
        assert int(captured) == 14 + 4 * len(vlan.split(",") if vlan else []) + int(ip or 40) + int(header)


def test_a_packet_without_a_time_has_none(cut: Any, tmp_path: Path) -> None:
    frame = bytes(12) + b"\x08\x00" + bytes(86)
    source = tmp_path / "simple.pcapng"
    source.write_bytes(section() + interface() + block(3, len(frame).to_bytes(4, "little") + frame))
    for words in ((), ("--headers",), ("--anonymize",)):
        trace = wiretale.analyze(cut(source, *words, "--overwrite"))
        assert "time-unknown" in trace.findings.column("code"), words


def test_damage_is_reported_and_the_packets_before_it_are_copied(cut: Any, samples: Path) -> None:
    out = cut(samples / "damaged.pcap", "--anonymize", code=3)
    assert len(packets(out)) == 60
    assert cut(samples / "damaged.pcap", "--flow", 0, code=3, name="flow.pcapng").stat().st_size


def test_standard_input_and_output(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    capture = samples / "tcp_losses.pcap"
    out = tmp_path / "piped.pcapng"
    with capture.open("rb") as stream, out.open("wb") as target:
        words = ("cut", "-", "--frames", "2-4", "-o", "-")
        done = wiretale_run(*words, stdin=stream, stdout=target, stderr=subprocess.PIPE, capture_output=False)
    assert (done.returncode, done.stderr) == (0, "wiretale: 3 of 342 packets\n")
    assert packets(out) == packets(capture)[1:4]


def test_an_input_is_never_replaced(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    source, key = tmp_path / "in.pcap", tmp_path / "key"
    shutil.copy(samples / "tcp_losses.pcap", source)
    key.write_bytes(os.urandom(32))
    link = tmp_path / "link.pcapng"
    link.symlink_to(source)
    before = hashlib.sha256(source.read_bytes()).digest()
    for out, words in ((source, ()), (link, ()), (source, ("--overwrite",)), (key, ("--anonymize", "--key", key))):
        assert wiretale_run("cut", source, *words, "-o", out).returncode == 2
    other = tmp_path / "other.pcapng"
    assert wiretale_run("cut", source, "-o", other).returncode == 0
    assert wiretale_run("cut", source, "--frames", "1", "-o", other).returncode == 2
    assert wiretale_run("cut", source, "--frames", "1", "-o", other, "--overwrite").returncode == 0
    assert wiretale_run("cut", source, "-o", tmp_path / "none" / "x").returncode == 4
    assert hashlib.sha256(source.read_bytes()).digest() == before and len(key.read_bytes()) == 32
    assert not list(tmp_path.glob(".partial*"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--flow", "9"], 2, "there is no flow 9: 0 is the only one"),
        (["--finding", "99"], 2, "finding 99: expected 1 to"),
        (["--finding", "no-such"], 2, "'no-such'"),
        (["--frames", "0-3"], 2, "expected frame numbers"),
        (["--frames", "9-3"], 2, "expected frame numbers"),
        (["--around", "1"], 2, "--around needs"),
        (["--frames", "1", "--around", "-1"], 2, "expected seconds"),
        (["--key", "x"], 2, "--key needs --anonymize"),
        (["--anonymize", "--key", "/nonexistent"], 4, "cannot read the key"),
        (["--anonymize", "--key", "/dev/null"], 4, "expected 16 bytes"),
        (["--start", "2026-01-02", "--end", "2026-01-01"], 2, "expected a time before end"),
    ],
)
def test_wrong_usage(
    wiretale_run: Any, samples: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    done = wiretale_run("cut", samples / "tcp_losses.pcap", *words, "-o", tmp_path / "out.pcapng")
    assert done.returncode == code and message in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not list(tmp_path.iterdir())


def test_a_pipe_cannot_be_read_twice(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    with (samples / "tcp_losses.pcap").open("rb") as stream:
        done = wiretale_run("cut", "-", "--flow", "0", "-o", tmp_path / "x.pcapng", stdin=stream)
    assert done.returncode == 2 and "read twice" in done.stderr


def test_an_empty_choice_is_an_empty_capture(cut: Any, samples: Path) -> None:
    assert packets(cut(samples / "tcp_losses.pcap", "--frames", "5000")) == []


def test_large_packets_keep_their_bytes(cut: Any, tmp_path: Path) -> None:
    source = write_pcap(tmp_path / "large.pcap", [(n, bytes([n]) * 200_000) for n in range(1, 20)])
    assert packets(cut(source)) == packets(source)


def test_a_name_of_pcap_gets_pcap(cut: Any, samples: Path, tmp_path: Path) -> None:
    """With the unit of the input's times; what pcap cannot hold is refused, and no file is left."""
    nanoseconds = tmp_path / "ns.pcapng"
    nanoseconds.write_bytes(section() + interface(option(9, b"\x09")) + enhanced(1_700_000_000_000_000_001, bytes(60)))
    for source, name, magic in (
        (samples / "tcp_losses.pcap", "us.pcap", "d4c3b2a1"),
        (nanoseconds, "ns.CAP", "4d3cb2a1"),
        (samples / "tcp_losses.pcap", "plain.capture", "0a0d0d0a"),
    ):
        out = cut(source, name=name)
        assert out.read_bytes()[:4].hex() == magic and packets(out) == packets(source)
    empty = cut(samples / "tcp_losses.pcap", "--frames", "9000-", name="empty.pcap")
    assert packets(empty) == [] and empty.stat().st_size == 24
    secret = cut(samples / "tcp_losses.pcap", "--anonymize", "--headers", name="secret.dmp")
    assert wiretale.analyze(secret).flows.rows()[0]["packets"] == 342
    linktypes = section() + interface() + block(1, (101).to_bytes(4, "little") + bytes(4))
    units = section() + interface(option(9, b"\x06")) + interface(option(9, b"\x09"))
    for content, reason in ((linktypes, "two link types"), (units, "two resolutions")):
        source = tmp_path / "in.pcapng"
        source.write_bytes(content + enhanced(1, bytes(60)) + enhanced(2, bytes(60), number=1))
        with pytest.raises(wiretale.UsageError, match=reason):
            wiretale.cut(source, output=tmp_path / "no.pcap")
    with pytest.raises(wiretale.UsageError, match="no comments"):
        wiretale.cut(nanoseconds, output=tmp_path / "no.pcap", annotate=True)
    assert not (tmp_path / "no.pcap").exists()


def test_python_writes_the_same_file(cut: Any, samples: Path, tmp_path: Path) -> None:
    capture, place = samples / "tcp_losses.pcap", tmp_path / "api.pcapng"
    made = wiretale.cut(capture, output=place, flows=[0], frames=[3, (5, 9)], around=0.001, annotate=True)
    out = cut(capture, "--flow", 0, "--frames", "3,5-9", "--around", 0.001, "--annotate")
    assert place.read_bytes() == out.read_bytes() and (made.read, made.written) == (342, 342)
    with pytest.warns(wiretale.DamagedInputWarning):
        assert wiretale.cut(samples / "damaged.pcap", output=tmp_path / "damaged.pcapng", anonymize=True).damage
    for wrong in (
        {"frames": [(9, 3)]},
        {"frames": [0]},
        {"around": -1},
        {"key": "x"},
        {"flows": [7]},
        {"output": capture},
    ):
        with pytest.raises(wiretale.UsageError):
            wiretale.cut(capture, **{"output": tmp_path / "wrong.pcapng", **wrong})
    assert not (tmp_path / "wrong.pcapng").exists()


def test_one_message_for_one_damage(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    done = wiretale_run("cut", samples / "damaged.pcap", "--flow", 0, "-q", "-o", tmp_path / "x.pcapng")
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr


def test_commands_of_the_report_work(samples: Path, tmp_path: Path) -> None:
    """Each finding of the page has the command that copies its packets."""
    capture = shutil.copy(samples / "two_interfaces.pcapng", tmp_path / "with blanks.pcapng")
    page = wiretale.analyze(capture).report(tmp_path / "report.html").read_text()
    commands = [html.unescape(text) for text in re.findall(r'data-copy="(wiretale cut [^"]*)"', page)]
    assert commands
    for command in commands:
        words = shlex.split(command)
        done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and packets(tmp_path / words[-1]), done.stderr
    part = wiretale.analyze(capture, filter="tcp").report(tmp_path / "part.html").read_text()
    assert "wiretale cut" not in re.sub(r"<script.*</script>", "", part, flags=re.DOTALL)
