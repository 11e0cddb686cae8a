# SPDX-License-Identifier: Apache-2.0
"""Commands and filters of the report, taken from the page with the mouse and run in a shell."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, UDP, Ether, Raw, rdpcap, wrpcap

import needs
import wiretale
from checkout import Run
from crafted import NEIGHBOR
from placed import placed
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-commands")

ODD = """it's a "test" $(x) & more.pcap"""
CORNERS = """id => { const range = document.createRange(); range.selectNodeContents(document.getElementById(id));
  const boxes = [...range.getClientRects()], first = boxes[0], last = boxes.at(-1);
  return [first.left + 1, first.top + first.height / 2, last.right - 1, last.top + last.height / 2]; }"""


def selected(page: Page, text_id: str) -> str:
    """The text of an element, selected by the mouse."""
    page.page.evaluate(
        "id => document.getElementById(id).scrollIntoView({ block: 'center' })", text_id
    )  # free of the dock
    left, top, right, bottom = page.page.evaluate(CORNERS, text_id)
    page.page.mouse.move(left, top)
    page.page.mouse.down()
    page.page.mouse.move(right, bottom, steps=4)
    page.page.mouse.up()
    return str(page.page.evaluate("getSelection().toString()"))


def copied(page: Page, button: str) -> str:
    """The text that a button copies, pasted into the search."""
    page.page.evaluate("document.getElementById('find').value = ''; delete document.body.dataset.copied")
    page.page.click(button)
    page.until("document.body.dataset.copied")
    page.page.focus("#find")
    page.page.keyboard.press("Control+V")
    text = page.page.input_value("#find")
    page.page.fill("#find", "")
    return str(text)


def run(command: str, folder: Path) -> Path:
    """Runs a command as a person does, in a shell in the folder of the captures; returns the file that it wrote."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (command, done.stderr)
    written = re.search(r"wrote (.*?): [\d,]+ of", done.stderr)
    assert written, done.stderr
    return folder / written[1]


def opened(page: Page, folder: Path, *names: str, fragment: str = "", **options: Any) -> wiretale.Trace:
    """Opens the report of captures that are named as on a command line in their folder."""
    trace = wiretale.analyze(*names, **options)
    page.open(trace.report(folder / "report.html"), fragment)
    return trace


@pytest.fixture
def odd(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with captures whose names must be quoted."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(samples / "tcp_losses.pcap", tmp_path / ODD)
    shutil.copy(samples / "vlan_ipv6.pcap", tmp_path / "-v other.pcap")
    return tmp_path


def times(path: Path) -> list[float]:
    return [float(packet.time) for packet in rdpcap(str(path))]


@pytest.mark.parametrize("range_", [None, (0.1, 0.3), (0.10161, 0.101611)])
def test_the_command_of_a_flow_copies_the_packets_in_its_range(
    page: Page, odd: Path, range_: tuple[float, float] | None
) -> None:
    trace = opened(page, odd, ODD, fragment=f"#flow=0&t={range_[0]}-{range_[1]}" if range_ else "#flow=0")
    base = int(page.page.evaluate("data.base"))
    since = [(row["time_ns"] - base) / 1e9 for row in trace.packets([0]).rows()]
    in_range = [time for time in since if not range_ or range_[0] <= time <= range_[1]]
    assert page.page.inner_text("#packet-count").startswith(f"{len(in_range)} packet")
    command = selected(page, "flow-command")
    assert command == copied(page, "#copy-flow-cut") and ("--start" in command) == bool(range_)
    cut_file = run(command, odd)
    assert cut_file.name == "flow-0.pcapng"
    assert [round(time - base / 1e9, 6) for time in times(cut_file)] == [round(time, 6) for time in in_range]


def test_a_range_that_the_mouse_drew_is_cut_exactly(page: Page, odd: Path) -> None:
    opened(page, odd, ODD, fragment="#flow=0")
    page.drawn()
    axis = "yaxis"
    start, end = page.range()
    low, high = page.range(axis)
    (left, right) = (page.pixel("xaxis", start + (end - start) * share) for share in (0.15, 0.4))
    (top, bottom) = (page.pixel(axis, low + (high - low) * share) for share in (0.9, 0.1))
    page.drag((left, top), (right, bottom))
    count = int(page.until("document.getElementById('packet-count').textContent.match(/^(\\d+) packets of 342/)?.[1]"))
    assert 0 < count < 342
    assert len(times(run(selected(page, "flow-command"), odd))) == count


@needs.TSHARK
def test_the_filter_of_a_range_selects_the_same_packets(page: Page, odd: Path) -> None:
    opened(page, odd, ODD, fragment="#flow=0&t=0.1-0.3")
    count = int(page.page.inner_text("#packet-count").split()[0])
    command = ["tshark", "-r", ODD, "-Y", selected(page, "flow-filter")]
    listed = subprocess.run(command, cwd=odd, capture_output=True, text=True, timeout=60, check=True)
    assert len(listed.stdout.splitlines()) == count


def test_flows_and_frames_of_several_files_have_their_commands(page: Page, odd: Path) -> None:
    trace = opened(page, odd, ODD, "./-v other.pcap")
    for flow in trace.flows.rows():
        page.page.evaluate(f"location.hash = '#flow={flow['flow']}&frame={flow['last_frame']}'")
        page.until(f"document.body.dataset.flow === '{flow['flow']}' && choice.frame === {flow['last_frame']}")
        page.until(f"document.getElementById('frame-command').textContent.includes('-o frame-{flow['last_frame']}.')")
        assert len(times(run(selected(page, "flow-command"), odd))) == flow["packets"]
        assert page.page.inner_text("#frame-filter") == f"frame.number == {flow['last_frame']}"
        (time,) = times(run(f"{copied(page, '#copy-cut')} --overwrite", odd))
        last_packets = [row for row in trace.packets([flow["flow"]]).rows() if row["frame"] == flow["last_frame"]]
        assert round(time * 1e6) == last_packets[0]["time_ns"] // 1000
        (odd / f"flow-{flow['flow']}.pcapng").unlink()


def test_a_file_whose_name_begins_with_a_dash_can_be_cut(page: Page, odd: Path) -> None:
    trace = opened(page, odd, "-v other.pcap")
    command = selected(page, "flow-command")
    assert command.startswith("wiretale cut './-v other.pcap' -o flow-")
    flow = int(page.page.evaluate("choice.flow"))
    assert len(times(run(command, odd))) == trace.flows.column("packets")[flow]


@needs.TSHARK
def test_each_finding_has_a_command_that_copies_its_evidence(page: Page, odd: Path) -> None:
    trace = opened(page, odd, ODD)
    page.page.evaluate("for (const part of document.querySelectorAll('#findings details')) part.open = true")
    codes = page.page.locator("#findings .filter code")
    commands = [text for text in codes.all_inner_texts() if text.startswith("wiretale")]
    findings = placed(trace)
    assert {int(re.findall(r"--finding (\d+)", text)[0]) for text in commands} == {
        number for number, row in enumerate(findings, 1) if row["flow"] is not None
    }
    for command in dict.fromkeys(commands):
        finding = findings[int(re.findall(r"--finding (\d+)", command)[0]) - 1]
        texts = subprocess.run(
            ["tshark", "-r", str(run(command, odd)), "-T", "fields", "-e", "frame.comment"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        assert f"frame {finding['first_frame']}" in texts and f"({finding['code']})" in texts


@pytest.mark.parametrize("options", [{"filter": "tcp"}, {"start": "2026-01-15T12:00:00.1Z"}], ids=["filter", "start"])
def test_flows_with_other_numbers_are_cut_by_their_frames(page: Page, odd: Path, options: dict[str, str]) -> None:
    trace = opened(page, odd, ODD, "./-v other.pcap", fragment="#flow=0", **options)
    command = selected(page, "flow-command")
    assert "--flow" not in command and "--frames" in command
    assert len(times(run(command, odd))) == trace.flows.column("packets")[0]


def test_standard_input_has_no_commands(page: Page, samples: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    capture = (samples / "tcp_losses.pcap").read_bytes()
    subprocess.run(
        [sys.executable, "-m", "wiretale", "analyze", "-", "--report", str(report), "-q"],
        input=capture,
        timeout=60,
        check=True,
    )
    page.open(report, "#flow=0&frame=155")
    assert not page.page.is_visible("#flow-cut") and not page.page.is_visible("#frame-cut")
    assert page.page.is_visible("#frame-filter")


# --- reports without payload

SECRET = b"Passw0rd-is-hunter2"


def inside(page: str) -> bytes:
    """All that a page holds: its text, and what is packed in it."""
    contents = [page.encode()]
    for text in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", page):
        try:
            raw = base64.b64decode(text)
        except ValueError:
            continue
        contents.append(raw)
        if raw[:2] == b"\x1f\x8b":
            contents.append(gzip.decompress(raw))
    return b"\0".join(contents)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Packets with a secret, one of which is retransmitted."""
    ends = Ether(dst=NEIGHBOR) / IP(src="10.0.0.1", dst="10.0.0.2")
    packets = [ends / TCP(sport=4000, dport=80, seq=1, flags="PA") / Raw(SECRET + b"x" * 100) for _ in range(2)]
    packets.append(ends / UDP(sport=4001, dport=4002) / Raw(SECRET))
    wrpcap(str(tmp_path / "private.pcap"), packets)
    return tmp_path / "private.pcap"


@pytest.mark.parametrize("way", ["report", "stdout", "folder", "python"])
def test_a_report_without_frames_has_no_payload(wiretale_run: Run, private: Path, way: str) -> None:
    folder = private.parent
    for switch, has in (([], True), (["--no-frames"], False)):
        report = folder / f"{way}{has}.html"
        if way == "report":
            assert wiretale_run("analyze", private, "--report", report, *switch).returncode == 0
            text = report.read_text()
        elif way == "stdout":
            text = wiretale_run("analyze", private, "--report", "-", *switch).stdout
        elif way == "folder":
            assert wiretale_run("analyze", private, "-o", folder / f"out{has}", *switch).returncode == 0
            text = (folder / f"out{has}" / "report.html").read_text()
        else:
            text = wiretale.analyze(private).report(report, frames=has).read_text()
        contents = inside(text)
        assert ((SECRET in contents), (b"wiretale cut" in contents)) == (has, True)
        assert has or SECRET.hex().encode() not in contents.replace(b":", b"").replace(b" ", b"")
        assert has or json.loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])["frames"]["list"] == []


def test_a_report_without_frames_says_so_and_has_the_command(page: Page, private: Path) -> None:
    page.open(wiretale.analyze(private).report(private.parent / "report.html", frames=False), "#flow=0&frame=2")
    assert "without the bytes of frames" in page.page.inner_text("#frame-note")
    assert page.page.is_visible("#frame-facts") and not page.page.is_visible("#frame-bytes")
    assert len(times(run(copied(page, "#copy-cut"), private.parent))) == 1 and page.complaints == []


def test_no_frames_needs_a_report(wiretale_run: Run, private: Path) -> None:
    done = wiretale_run("analyze", private, "--no-frames")
    assert (done.returncode, done.stdout) == (2, "") and "--no-frames needs --report" in done.stderr
