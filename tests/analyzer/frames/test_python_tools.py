# SPDX-License-Identifier: Apache-2.0
"""Packets to and from Scapy and pyshark, and the script that shows verdicts in Wireshark's columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import SAMPLES, Run
from wiretale.analyzer.frames import python_tools

LOSSES = SAMPLES / "tcp_losses.pcap"
TRACE = wiretale.analyze(LOSSES)
pyshark_here = pytest.mark.skipif(
    sys.version_info >= python_tools.FAILS_FROM, reason="pyshark 0.6 fails on this Python"
)


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        (None, [337, 338]),  # of the answer
        ("tail-loss", [337, 338]),
        ("lost-downstream", [155, 338]),
        ([1, 342], [1, 342]),
        (7, [7]),
        (TRACE.finding_frames[:1], [155]),
    ],
)
def test_frames_are_packets_of_scapy(choice: Any, numbers: list[int]) -> None:
    pytest.importorskip("scapy")
    packets = TRACE.scapy(choice)
    assert [packet.comment for packet in packets] == [f"frame {number}".encode() for number in numbers]
    rows = {row["frame"]: row for row in TRACE.packets()}
    for packet, number in zip(packets, numbers, strict=True):
        assert int(packet.time * 10**9) == rows[number]["time_ns"]
        assert packet["IP"].len + 14 == packet.wirelen  # 96 bytes of it were captured


def test_packets_of_scapy_are_analyzed(tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.all")
    read = scapy.rdpcap(str(LOSSES))
    for packets in (read, list(read)):
        trace = wiretale.analyze(packets)
        assert (trace.totals["packets"], trace.answer.cause, trace.answer.sentence) == (
            342,
            "tail-loss",
            TRACE.answer.sentence,
        )
        assert trace.packets(most=2)["frame"] == [1, 2]  # a second pass
    folder = Path(trace.inputs[0]).parent
    assert folder.is_dir()
    del trace
    assert not folder.exists()
    with pytest.raises(wiretale.UsageError, match="packet 1: TCP is no link layer"):
        wiretale.analyze([scapy.TCP()])


def test_a_list_of_paths_makes_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(python_tools, "mkdtemp")
    assert wiretale.analyze([str(LOSSES)]).totals["packets"] == 342


def test_wrong_frames_are_refused() -> None:
    pytest.importorskip("scapy")
    for choice, text in (
        ("no-such", "no cause and no finding"),
        (0, "numbered from 1"),
        ([1, 9999], "frame 9999: is not in"),
        ([{"capture": 5, "frame": 1}], "no capture 5"),
    ):
        with pytest.raises(wiretale.UsageError, match=text):
            TRACE.scapy(choice)


# In a process of its own: a browser of other tests has an event loop in this one.
OPENED = """
import asyncio, contextlib, gc, pyshark, signal, sys, time, wiretale
from wiretale.analyzer.frames.python_tools import ToolLoop
trace = wiretale.analyze(sys.argv[1])
with trace.pyshark("lost-downstream") as capture:
    assert [int(packet.number) for packet in capture] == [155, 338]
    frame = trace.frame(155)  # beside an open capture
    assert signal.set_wakeup_fd(-1) == -1 and signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
assert (frame.number, frame.ip.src, frame.tcp.dstport) == ("155", "192.0.2.10", "5201")
with trace.pyshark("tcp.len > 0") as again:
    assert len(list(again)) == 210
half = trace.pyshark(0)
next(iter(half))
half.cycle, closed = half, half.eventloop
del half
gc.collect()
assert closed.is_closed()
for display_filter, packets in (("tcp.len > 0", 210), (None, 342)):
    capture = pyshark.FileCapture(sys.argv[1], display_filter=display_filter, eventloop=asyncio.new_event_loop())
    assert wiretale.analyze(capture).totals["packets"] == packets

async def in_a_loop():
    assert trace.frame(338).number == "338"
    try:
        trace.pyshark("tcp")
    except wiretale.UsageError as error:
        assert "while an event loop runs" in str(error)
    else:
        raise AssertionError("expected UsageError")

asyncio.run(in_a_loop())

async def ended(waited):
    process = await asyncio.create_subprocess_exec("true")
    time.sleep(waited)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return await process.wait()

loop = ToolLoop()
codes = {loop.run_until_complete(ended(ms / 10_000)) for ms in range(40)}
assert codes <= {0, -signal.SIGKILL}, codes  # never 255, "unknown"
loop.close()
"""


@needs.TSHARK
@pyshark_here
def test_a_capture_is_opened_in_pyshark_and_taken_from_it() -> None:
    pytest.importorskip("pyshark")
    done = subprocess.run([sys.executable, "-c", OPENED, LOSSES], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Exception ignored" in done.stderr) == (0, False), done.stderr
    with pytest.raises(wiretale.UsageError, match="no frame 9999"):
        TRACE.frame(9999)


def test_a_library_that_is_missing_or_fails_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scapy.config", None)
    with pytest.raises(wiretale.MissingToolError, match="pip install scapy"):
        TRACE.scapy()
    monkeypatch.setattr(python_tools, "FAILS_FROM", sys.version_info[:2])
    with pytest.raises(wiretale.MissingToolError, match="pyshark fails on Python"):
        TRACE.pyshark(0)


def fields_of(capture: Path, script: Path) -> list[list[str]]:
    """The frames of which the script says something: number, verdict, finding, cause, cost."""
    names = ("frame.number", *(f"wiretale.{name}" for name in ("verdict", "finding", "cause", "cost")))
    words = ("-X", f"lua_script:{script}", "-r", str(capture), "-Y", "wiretale.cost > 0.1", "-T", "fields")
    done = subprocess.run(
        ["tshark", *words, *(word for name in names for word in ("-e", name))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def loads_scripts(folder: Path) -> bool:
    """Whether this tshark loads a script: some versions do not, as root."""
    script = folder / "probe.lua"
    script.write_text('print("loaded")\n')
    words = ["tshark", "-X", f"lua_script:{script}", "-r", str(LOSSES), "-c", "1"]
    return "loaded" in subprocess.run(words, capture_output=True, text=True, timeout=60).stdout


@needs.TSHARK
def test_wireshark_shows_verdicts_causes_and_cost(wiretale_run: Run, tmp_path: Path) -> None:
    if not loads_scripts(tmp_path):
        pytest.skip("this tshark loads no scripts for this user")
    script, title = tmp_path / "losses.lua", "Losses at the end of a burst"
    done = wiretale_run(LOSSES, "--wireshark", script)
    assert done.returncode == 0 and f"-X lua_script:{script}" in done.stderr
    assert fields_of(LOSSES, script) == [
        ["337", "", "timeout-stalls", title, "0.22401"],
        [
            "338",
            "timeout retransmission, downstream",
            "lost-downstream; timeout-stalls; recovery-limited",
            title,
            "0.22401",
        ],
    ]
    assert fields_of(SAMPLES / "findings" / "slow-server.pcap.gz", script) == []  # another capture
    later = tmp_path / "later.pcap"  # whose first frame is not at a whole second
    subprocess.run(["editcap", "-t", "0.123457", LOSSES, later], check=True, timeout=60)
    assert wiretale_run(later, "--wireshark", tmp_path / "later.lua").returncode == 0
    assert len(fields_of(later, tmp_path / "later.lua")) == 2 and fields_of(later, script) == []
    part = tmp_path / "part.pcap"  # with the same first frame, without the third
    subprocess.run(["tshark", "-r", LOSSES, "-Y", "frame.number != 3", "-w", part], check=True, timeout=60)
    assert fields_of(part, script) == []
    assert wiretale_run(LOSSES, "--wireshark", tmp_path / "x.txt").returncode == 2
    several = wiretale_run(LOSSES, SAMPLES / "timeouts.pcap", "--wireshark", script)
    assert several.returncode == 2 and "expected one capture" in several.stderr
