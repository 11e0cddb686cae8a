# SPDX-License-Identifier: Apache-2.0
"""`wiretale-capture status`: metrics that Prometheus accepts, a health check, spans on demand; and the alerts made of them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

import needs
from capture_link import PACKET_SOCKET, PROGRAM, CaptureLink
from checkout import ROOT
from processes import output, wait_until

pytestmark = pytest.mark.xdist_group("capture")

ALERTS = ROOT / "capture/alerts/wiretale.rules.yml"
PROMTOOL = needs.programs("promtool")
#: 200 segments of TCP with 100 bytes, and the last so many of them again
REPEATING = f"""{PACKET_SOCKET}
import struct, sys
to = PacketSocket("out0")
again = int(sys.argv[1])
for number, place in enumerate([*range(201), *range(201 - again, 201)]):
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 140, number + 1, 0, 64, 6, 0, 0x0a000001, 0x0a000002)
    tcp = struct.pack("!HHIIBBHHH", 40000 + again, 443, 100 * place, 1, 0x50, 16, 500, 0, 0)
    to.send(bytes.fromhex("0200000000020200000000010800") + ip + tcp + bytes(100))
"""


def status(path: Path, *options: str, code: int = 0) -> str:
    done = subprocess.run([PROGRAM, "status", path, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def samples(text: str) -> dict[str, float]:
    """Values by name and labels."""
    lines = [line.removeprefix("wiretale_capture_").rpartition(" ") for line in text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def promtool(*words: str | Path, text: str | None = None) -> None:
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_capture_tells_how_it_is(link: CaptureLink, tmp_path: Path) -> None:
    link.make_folder()
    file = tmp_path / "wiretale.prom"
    options = ("-b", "packets:100", "-b", "files:2", "--keep-before", "1h", "--keep-after", "100ms")
    with link.daemon(*options, watched=True) as daemon:
        assert "ring: 0 files, 0 B\n" in status(link.status)  # nobody can tell yet when it is full
        link.deliver(250)
        wait_until(
            lambda: samples(status(link.status, "--prometheus")).get("ring_files") == 2, "two files are finished"
        )
        metrics = status(link.status, "--prometheus")
        values, line = samples(metrics), json.loads(status(link.status, "--json"))
        (interface,) = line["interfaces"]
        assert values['received_packets_total{interface="in0"}'] == interface["received"] == line["received"] == 250
        assert values['dropped_packets_total{interface="in0",cause="disk"}'] == interface["dropped_disk"] == 0
        assert values["disk_bytes"] == line["disk"]["bytes"] and values["ring_bytes"] == line["ring"]["bytes"] > 0
        assert values['state{state="capturing"}'] == values["up"] == 1 and values['interface_up{interface="in0"}'] == 1
        names = set(re.findall(r"wiretale_capture_\w+", metrics)) | {
            f"wiretale_capture_{name}"
            for name in ("commands_failing", "commands_given_up_total", "commands_removed_early_total")
        }
        assert set(re.findall(r"wiretale_capture_\w+", ALERTS.read_text())) <= names
        if PROMTOOL is None:
            promtool("check", "metrics", text=metrics)
        status(link.status, "--textfile", str(file))
        assert samples(file.read_text()).keys() >= values.keys() and file.stat().st_mode & 0o777 == 0o644
        assert status(link.status, "--check").startswith("CAPTURE OK - 250 packets received, 250 written; none lost | ")
        assert status(link.status, "--check", "--max-silence", "1ns", code=2).startswith(
            "CAPTURE CRITICAL - no packet on in0"
        )
        assert status(link.status).startswith("capturing: 250 packets received")
        for reason in ("No", "a" * 32, "a" * 1000):
            assert "a reason of at most 31 letters" in status(link.status, "--keep", reason, code=5)
        name = status(link.status, "--keep", "intrusion").strip()
        daemon.wait_message(f"kept {name}")
        assert not daemon.stop(signal.SIGTERM)
    assert name.endswith("_intrusion") and json.loads((link.folder / f".{name}.kept").read_text().split()[1]) > 0
    assert status(link.status, "--check", code=2).startswith(f"CAPTURE CRITICAL - {link.status}: ")
    assert status(link.status, "--check", "--bogus", code=3)
    status(link.status, "--textfile", str(file), code=4)
    assert samples(file.read_text()) == {"up": 0}
    os.mkfifo(tmp_path / "wiretale.prom.fifo")  # as a device, which a rename would replace
    assert "fifo: expected a file\n" in status(link.status, "--textfile", f"{file}.fifo", code=2)
    assert {path.name: path.is_fifo() for path in tmp_path.glob("wiretale.prom*")} == {
        "wiretale.prom": False,
        "wiretale.prom.fifo": True,
    }


def test_a_socket_that_closes_is_not_one_that_is_slow(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "status"))
        server.listen()
        done = Thread(target=lambda: server.accept()[0].close())
        done.start()
        assert status(tmp_path / "status", code=4).endswith("status: it closes the connection\n")
        done.join()


@needs.marked(PROMTOOL, None if ALERTS.is_file() else "needs the sources")
def test_each_alert_fires_when_it_should() -> None:
    promtool("check", "rules", ALERTS)
    promtool("test", "rules", ALERTS.with_suffix(".test.yml"))


def test_each_rule_keeps_its_span(link: CaptureLink) -> None:
    """Other packets, a low rate and links that stay begin none."""
    rules = ("match:len == 777", "retransmissions:20%", "rate:2k", "link", "drops")
    options = ("-b", "packets:100", "-b", "files:2", "--keep-before", "1s", "--keep-after", "1ms", "-i", "in8")
    link.make_folder()
    link.add_interface("in8")  # removed below
    with link.daemon(
        *options, *(f"--keep-on={rule}" for rule in rules), "--ring-buffer", "2MiB", watched=True
    ) as daemon:

        def reasons(count: int) -> list[str]:
            wait_until(
                lambda: len(re.findall("kept .*files?;", daemon.messages())) >= count,
                f"{count} spans: {daemon.messages()}",
            )
            return re.findall(r"keeping \S+ \((\w+)\)", daemon.messages())

        link.deliver(60)
        link.send(1, size=777)
        assert reasons(1) == ["match"]
        output(*link.inside(link.sender, sys.executable, "-S", "-c", REPEATING, "0"))
        output(*link.inside(link.sender, sys.executable, "-S", "-c", REPEATING, "100"))
        assert reasons(2) == ["match", "retransmissions"]
        link.send(9000)
        assert reasons(3)[:3] == ["match", "retransmissions", "rate"]
        before = len(reasons(3))
        link.disconnect("in8")
        assert reasons(before + 1)[before] == "link"
        daemon.process.send_signal(signal.SIGSTOP)
        link.send(70, size=1400)
        link.send(60_000)
        daemon.process.send_signal(signal.SIGCONT)
        wait_until(lambda: "(drops)" in daemon.messages(), f"a span: {daemon.messages()}")
        assert "packets were lost" in status(link.status, "--check", code=2)
        assert daemon.stop(signal.SIGTERM) in (0, 3)


def test_a_rule_with_a_wrong_filter_is_refused(link: CaptureLink) -> None:
    for rule, expected in (
        ("match:tpc", "--keep-on match: "),
        ("match: ", "expected drops, link, match: and a filter"),
    ):
        message = link.refused(2, "-b", "packets:100", "--keep-before", "1s", f"--keep-on={rule}")
        assert expected in message and message.count("\n") == 1
