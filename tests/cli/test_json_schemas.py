# SPDX-License-Identifier: Apache-2.0
"""What commands print with --json is as its JSON Schema says, and has no member that the schema lacks."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import needs
from checkout import SAMPLES, Run
from json_schema import SCHEMAS, check_schema
from processes import wait_until
from traffic_ends import free_port, program, receiving

pytest.importorskip("jsonschema")
pytestmark = pytest.mark.skipif(not SCHEMAS.exists(), reason="not in a checkout")
LOSSES, TIMEOUTS = (str(SAMPLES / name) for name in ("tcp_losses.pcap", "timeouts.pcap"))
COMMANDS = [
    *(
        ("analyze", str(SAMPLES / name), "--json", "--fail-if", "lost>0", "--fail-if", "cause=policer")
        for name in ("tcp_losses.pcap", "udp_blocks.pcap", "findings/dns-failed.pcap.gz", "damaged.pcap")
    ),
    ("analyze", str(SAMPLES / "findings/bufferbloat.pcap.gz"), "--all", "--json"),
    ("analyze", "--finding", "loss-pattern", "--json"),
    ("analyze", "--cause", "tail-loss", "--json"),
    ("analyze", "--list", "--json"),
    ("compare", str(SAMPLES / "mirror_router.pcap"), str(SAMPLES / "lost_tail.pcap"), "--json"),
    ("diff", LOSSES, TIMEOUTS, "--json", "--fail-if", "goodput<-5%"),
    ("diff", LOSSES, str(SAMPLES / "damaged.pcap"), "--json"),  # a finding without a cost
    ("theory", "--link", "1G", "--rtt", "20ms", "--loss", "0.1%", "--block", "1000", "--json"),
    ("verify", LOSSES, "--json"),
    ("doctor", "--json"),
    ("lab", "list", "--json"),
    ("experiment", "list", "--json"),
    ("traffic", "path", "127.0.0.1", "--json"),
    ("capture", "--list", "--json"),
]


def check(text: str) -> str:
    """Validates a printed object; returns the name of its schema."""
    return check_schema(json.loads(text))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_output_is_as_its_schema_says(words: tuple[str, ...], wiretale_run: Run) -> None:
    if words[0] == "verify" and not shutil.which("tshark"):
        pytest.skip("needs tshark")
    check(wiretale_run(*words).stdout)


def test_stores_answer_as_their_schemas_say(tmp_path: Path, wiretale_run: Run) -> None:
    store = str(tmp_path / "store")
    wiretale_run("store", "add", store, LOSSES, TIMEOUTS)
    assert check(wiretale_run("store", "query", store, "SELECT count(*) AS n FROM flows", "--json").stdout)
    assert check(wiretale_run("store", "check", store, "--json").stdout)
    assert "baseline" in check(wiretale_run("diff", "--store", store, LOSSES, "--json").stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("--udp", "--count", "200", "--rate", "10M", "--interval", "0.1"),
        ("--both", "--count", "50", "--streams", "2"),
        ("--reverse", "--udp", "--count", "20"),
    ],
    ids=" ".join,
)
def test_both_ends_of_a_test_report_as_their_schemas_say(tmp_path: Path, words: tuple[str, ...]) -> None:
    with receiving(tmp_path, "--once") as receiver:
        command = [program(), "send", "127.0.0.1", "-p", str(receiver.port), "--json", *words]
        sent = subprocess.run(command, capture_output=True, text=True, timeout=needs.SECONDS)
        assert sent.returncode == 0, sent.stderr
    names = [check(line) for line in (sent.stdout + receiver.out.read_text()).splitlines()]
    assert {"wiretale.send/1", "wiretale.receive/1"} <= set(names)
    assert ("wiretale.interval/1" in names) == ("--interval" in words)


def test_ttcp_reports_as_its_schema_says() -> None:
    port = str(free_port())
    command = [program(), "ttcp", "-r", "-s", "-p", port, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        sends = [program(), "ttcp", "-t", "-s", "-n", "20", "-p", port, "--json", "127.0.0.1"]

        def sent() -> str:
            return subprocess.run(sends, capture_output=True, text=True, timeout=needs.SECONDS).stdout

        ends: list[str] = []
        wait_until(lambda: ends.append(sent()) or bool(ends[-1]), "the receiver listens")
        received = receiver.communicate(timeout=needs.SECONDS)[0]
    assert check(ends[-1]) == check(received) == "wiretale.ttcp/1"


@needs.marked(needs.root())
def test_a_capture_tells_its_state_as_its_schema_says(tmp_path: Path, wiretale_run: Run) -> None:
    socket = tmp_path / "status"
    (tmp_path / "ring").mkdir()
    words = [
        "-i",
        "lo",
        "-w",
        tmp_path / "ring",
        "--status",
        socket,
        "-b",
        "files:3",
        "-b",
        "filesize:1000",
        "--user",
        "root",
    ]
    ring = [*words, "--on-close", "true", "--keep-on", "retransmissions:5%", "--keep-before", "1s"]
    capture = shutil.which("wiretale-capture", path=str(Path(program()).parent))
    with subprocess.Popen([str(capture), *map(str, ring)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as daemon:
        try:
            wait_until(socket.exists, "the capture runs")
            assert check(wiretale_run("status", socket, "--json").stdout) == "wiretale.capture/1"
        finally:
            daemon.terminate()
            daemon.communicate(timeout=needs.SECONDS)
