# SPDX-License-Identifier: Apache-2.0
"""Input that wiretale does not read, and filters in another language: the error has the way out."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from processes import refusal

SAMPLE = "tcp_losses.pcap"


def failure(wiretale_run: Any, *words: str | Path, code: int, **options: Any) -> str:
    """The one line of an error."""
    return refusal(wiretale_run(*words, **options), code)


def erf_record(seconds: int, payload: bytes) -> bytes:
    """A record of ERF with an Ethernet frame."""
    return (
        struct.pack("<II", 0, seconds)
        + struct.pack(">BBHHH", 2, 4, 18 + len(payload), 0, len(payload))
        + b"\0\0"
        + payload
    )


def compressed(kind: str, path: Path, content: bytes) -> None:
    """The file, compressed by Python's own libraries."""
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.pcap", content)
    else:
        path.write_bytes(bz2.compress(content) if kind == "bz2" else lzma.compress(content))


@pytest.mark.parametrize(
    "kind, command", [("bz2", "bunzip2 -c {}"), ("xz", "xz -dc {}"), ("zip", "unzip -p {}")], ids=["bz2", "xz", "zip"]
)
def test_another_compression_has_a_command_that_works(
    wiretale_run: Any, samples: Path, tmp_path: Path, kind: str, command: str
) -> None:
    file = tmp_path / f"a.pcap.{kind}"
    compressed(kind, file, (samples / SAMPLE).read_bytes())
    text = failure(wiretale_run, file, code=4)
    advised = f"{command.format(file)} | wiretale analyze -"
    assert text.endswith(f"not pcap or pcapng; convert it: {advised}"), text
    if shutil.which(command.split()[0]) is None:
        return
    unpacked = subprocess.run(advised.split(" | ")[0].split(), capture_output=True, check=True, timeout=20).stdout
    assert unpacked == (samples / SAMPLE).read_bytes()


@pytest.mark.parametrize(
    "name, content",
    [
        ("a snoop capture", b"snoop\0\0\0\0\0\0\2\0\0\0\4"),
        ("an ERF capture", erf_record(1_700_000_000, bytes(60)) + erf_record(1_700_000_001, bytes(80))),
        ("an ERF capture", erf_record(1_700_000_000, bytes(60))),
        ("a Network Monitor capture", b"GMBU\0\2\0\0"),
        ("a Sniffer capture", b"TRSNIFF data    \x1a"),
        ("a K12 text capture", b"+---------+---------------+----------+\r\n"),
        ("an iptrace capture", b"iptrace 2.0"),
        ("a btsnoop capture", b"btsnoop\0\0\0\0\1"),
    ],
)
def test_another_format_names_editcap(wiretale_run: Any, tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / "odd.cap"
    file.write_bytes(content)
    text = failure(wiretale_run, "info", file, code=4)
    assert text == f"{file}: {name}, not pcap or pcapng; convert it: editcap {file} out.pcapng"
    spaced = tmp_path / "with blank.cap"
    spaced.write_bytes(content)
    assert failure(wiretale_run, "info", spaced, code=4).endswith("convert it: editcap FILE out.pcapng")
    with file.open("rb") as stream:
        assert failure(wiretale_run, "info", "-", code=4, stdin=stream).endswith("editcap FILE out.pcapng")


@pytest.mark.parametrize(
    "content, found",
    [
        (b"# wiretale\n", "23 20 77 69"),
        (bytes(64), "00 00 00 00"),
        (b"<!DOCTYPE html>", "3c 21 44 4f"),
        (b"P" * 99, "50 50 50 50"),
        # a Parquet file that has the fields of two ERF records, nine years apart
        (erf_record(1_913_979_925, bytes(60)) + erf_record(1_631_076_460, bytes(60)), "00 00 00 00"),
    ],
)
def test_foreign_formats_are_recognized_by_their_first_bytes(
    wiretale_run: Any, tmp_path: Path, content: bytes, found: str
) -> None:
    file = tmp_path / "README.md"
    file.write_bytes(content)
    text = failure(wiretale_run, file, code=4)
    assert text == f"{file}: not a capture (expected pcap or pcapng, found {found})"


@pytest.mark.parametrize(
    "command", [["analyze"], ["info"], ["analyze", "--json"], ["analyze", "-o", "out"]], ids=" ".join
)
def test_a_folder_names_the_captures_that_it_skips(
    wiretale_run: Any, samples: Path, tmp_path: Path, command: list[str]
) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    for kind in ("bz2", "xz", "zip"):
        compressed(kind, folder / f"b.pcap.{kind}", (samples / SAMPLE).read_bytes())
    compressed("zip", folder / "a.docx", b"no capture")
    (folder / "a.txt").write_text("no capture\n")
    message = f"{folder}/b.pcap.bz2: a bzip2 file; convert it: bunzip2 -c {folder}/b.pcap.bz2 | wiretale analyze -"
    text = failure(wiretale_run, *command, "day", code=4, cwd=tmp_path).replace("day/", f"{folder}/")
    assert text == f"day: no capture files in this folder; {message} (and 2 more)"
    shutil.copy(samples / "timeouts.pcap", folder)
    done = wiretale_run(*command, "day", cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if "wrote" not in line]
    assert done.returncode == 3 and len(lines) == 3
    assert lines[0] == f"wiretale: skipped {message}".replace(str(folder), "day")


def test_a_folder_with_a_capture_of_another_program(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "with blank").write_bytes(b"snoop\0\0\0\0\0\0\2\0\0\0\4")
    text = failure(wiretale_run, "analyze", tmp_path, code=4)
    assert text.endswith(f"with blank: a snoop capture; convert it: editcap '{tmp_path}/with blank' out.pcapng")
    shutil.copy(samples / SAMPLE, tmp_path)
    with pytest.warns(wiretale.SkippedFileWarning, match="a snoop capture"):
        assert wiretale.analyze(tmp_path).totals["packets"] == 342


def test_a_compression_within_another_has_its_advice(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.pcap.xz.gz"
    file.write_bytes(gzip.compress(lzma.compress((samples / SAMPLE).read_bytes())))
    text = failure(wiretale_run, file, code=4)
    assert text == f"{file}: an xz file within gzip, not pcap or pcapng; decompress the gzip first"


@pytest.mark.parametrize("kind", ["bz2", "xz", "snoop"])
def test_no_report_replaces_a_capture_in_another_format(
    wiretale_run: Any, samples: Path, tmp_path: Path, kind: str
) -> None:
    page = tmp_path / "page.html"
    if kind == "snoop":
        page.write_bytes(b"snoop\0\0\0\0\0\0\2\0\0\0\4")
    else:
        compressed(kind, page, (samples / SAMPLE).read_bytes())
    before = page.read_bytes()
    text = failure(wiretale_run, "analyze", samples / SAMPLE, "--report", page, code=2)
    assert text == f"{page}: is a capture file: expected another name, or --overwrite to replace it"
    assert page.read_bytes() == before
    page.write_bytes(bz2.compress(b"an old page"))
    assert wiretale_run("analyze", samples / SAMPLE, "-q", "--report", page).returncode == 0


def test_an_empty_and_a_missing_file_are_one_line(wiretale_run: Any, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.touch()
    assert failure(wiretale_run, empty, code=4) == f"{empty}: empty (0 bytes)"
    missing = tmp_path / "none.pcap"
    assert failure(wiretale_run, missing, code=4) == f"{missing}: No such file or directory"
    assert failure(wiretale_run, "analyze", tmp_path / "none", code=4).endswith("none: No such file or directory")


# A display filter, and the capture filter for it.
FILTERS = {
    "tcp.port == 443": "tcp port 443",
    "tcp.port==8443": "tcp port 8443",
    "ip.addr==192.0.2.10": "host 192.0.2.10",
    "ip.addr eq 192.0.2.10 and tcp.port eq 8443": "host 192.0.2.10 and tcp port 8443",
    "ip.src == 192.0.2.0/24": "src net 192.0.2.0/24",
    "http": "tcp port 80",
    "tls || quic": "tcp port 443 or udp port 443",
    "dns": "port 53",
    "!(arp or tcp.dstport == 8443)": "not (arp or tcp dst port 8443)",
    "tcp.port in {80, 443, 8000..8500}": "tcp port 80 or tcp port 443 or tcp portrange 8000-8500",
    "tcp.flags.syn == 1 && tcp.flags.ack == 0": "(tcp[13] & 2 != 0) and (tcp[13] & 16 = 0)",
    "tcp.flags.fin": "tcp",
    "tcp.flags.fin == 1": "tcp[13] & 1 != 0",
    "tcp.srcport > 50000": "tcp src portrange 50001-65535",
    "ip.addr != 192.0.2.10": "not host 192.0.2.10",
    "frame.len > 100": "len > 100",
    "ip.ttl < 64 or ipv6": "ip[8] < 64 or ip6",
    "eth.addr == 00:11:22:33:44:55": "ether host 00:11:22:33:44:55",
    "(tcp or udp) and ip.addr == 192.0.2.10": "(tcp or udp) and host 192.0.2.10",
    "vlan.id == 5": "vlan 5",
}


@pytest.mark.parametrize("display", FILTERS)
def test_a_display_filter_is_rewritten(wiretale_run: Any, samples: Path, display: str) -> None:
    text = failure(wiretale_run, samples / SAMPLE, "-f", display, code=2)
    advised = re.fullmatch(
        r"filter '(.*)': that is a Wireshark display filter; as a capture filter: '(.*)'", text, re.DOTALL
    )
    assert advised and advised.groups() == (display, FILTERS[display])
    assert wiretale_run(samples / SAMPLE, "-f", advised[2]).returncode == 0


@needs.TSHARK
@pytest.mark.parametrize("display", [text for text in FILTERS if not re.match("http|tls|dns", text)])
def test_a_rewritten_filter_selects_the_same_packets(wiretale_run: Any, samples: Path, display: str) -> None:
    import json

    document = json.loads(wiretale_run("analyze", samples / SAMPLE, "-f", FILTERS[display], "--json").stdout)
    tshark = ["tshark", "-r", str(samples / SAMPLE), "-Y", display]
    done = subprocess.run(tshark, capture_output=True, text=True, timeout=60, check=True)
    assert sum(row["packets"] for row in document["interfaces"]) == done.stdout.count("\n")


@pytest.mark.parametrize(
    "display, part",
    [
        ("tcp.analysis.retransmission", "tcp.analysis.retransmission; the summary and `wiretale analyze --all` have"),
        ("tcp.stream == 3", "tcp.stream; choose the flow by its hosts and ports"),
        ("frame.number == 7", "frame.number"),
        ("rtp", "rtp"),
        ("tcp.port ==", "tcp.port"),
        ("ip.addr == 192.0.2.10 and tcp.len > 0", "tcp.len"),
        ("(tcp.port == 443", "parentheses that do not match"),
    ],
)
def test_a_display_filter_without_counterpart_names_the_part(
    wiretale_run: Any, samples: Path, display: str, part: str
) -> None:
    text = failure(wiretale_run, samples / SAMPLE, "-f", display, code=2)
    assert f"that is a Wireshark display filter; there is no capture filter for {part}" in text


@pytest.mark.parametrize("wrong", ["(" * 3000 + "tcp.port == 443", "nonsense(", "tcp port", "host", "tcp porrt 443"])
def test_a_wrong_capture_filter_keeps_its_own_error(wiretale_run: Any, samples: Path, wrong: str) -> None:
    assert "display filter" not in failure(wiretale_run, samples / SAMPLE, "-f", wrong, code=2)
