# SPDX-License-Identifier: Apache-2.0
"""Labs of several hosts, hops and cross traffic: their round trips, the truth of each link, and nothing is left of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import needs
from checkout import ROOT
from lab_bench import COMMAND, NEEDED, NEEDS_TRAFFIC, last_json, truth_rows, wiretale_lab
from processes import command_lines, refusal, wait_until
from wiretale.analyzer.errors import UsageError
from wiretale.traffic.lab.profile import make_profile
from wiretale.traffic.program import find_program

pytestmark = [pytest.mark.xdist_group("live"), NEEDED, NEEDS_TRAFFIC, needs.marked(needs.programs("ping"))]
ROUND_TRIPS = {"near": 20, "middle": 60, "far": 120}
BLOCKS = "direction = 0 AND block_sequence IS NOT NULL"
HAS_IPV6 = Path("/proc/sys/net/ipv6").exists()
CHAIN = """
[both]
rate = "20Mbit"
delay = "3ms"
[forward]
loss = "4%"
[[hop]]
name = "isp"
rate = "10Mbit"
delay = "10ms"
[hop.forward]
loss = "3%"
[[hop]]
name = "metro"
delay = "2ms"
[[host]]
name = "client"
delay = "20ms"
[[host]]
name = "server"
at = "receiver"
"""
RUN = """
[[cross]]
from = "client"
to = "server"
send = "--udp --rate 1M --size 1000"
start = "0.2s"
[scenario]
study = "own"
row = 1
case = "chain"
protocol = "udp"
packet_bytes = 500
rate_bps = 1000000
seconds = 1
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs are recorded where no other test looks."""
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path / "state" / "labs"))


def left_of(name: str) -> list[str]:
    """Namespaces of a lab that exist."""
    return [path.name for path in Path("/run/netns").iterdir() if path.name.startswith(f"wt-{name}-")]


@contextmanager
def lab_up(name: str, profile: str, folder: Path) -> Iterator[None]:
    up = wiretale_lab("up", profile, name, "-o", str(folder))
    try:
        assert up.returncode == 0, up.stderr
        yield
    finally:
        down = wiretale_lab("down", name, "--force")
        assert down.returncode == 0, down.stderr
    assert left_of(name) == [] and "fidelity: " in down.stderr


def round_trip_ms(name: str, host: str, address: str) -> float:
    """The shortest of three."""
    command = ["ip", "netns", "exec", f"wt-{name}-{host}", "ping", "-n", "-c", "3", "-i", "0.02", "-W", "2", address]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    match = re.search(r"= ([\d.]+)/", output)
    assert match, (host, address, output)
    return float(match[1])


def delivered(rows: list[dict[str, Any]]) -> int:
    """Packets that left a link."""
    return sum(row["fate"] == "delivered" for row in rows)


def send(name: str, host: str, *options: str) -> subprocess.Popen[str]:
    """Starts a sender of one second on a host."""
    program = [find_program("wiretale-traffic"), "send", "10.99.0.2", "--time", "1", "--json", *options]
    return subprocess.Popen([*COMMAND, "shell", name, host, "--", *program], stdout=subprocess.PIPE, text=True)


def test_hosts_have_their_round_trips_and_share_the_bottleneck(tmp_path: Path) -> None:
    name = f"w{os.getpid()}"
    receive = [find_program("wiretale-traffic"), "receive", "--parallel", "2", "--quiet"]
    with lab_up(name, "dumbbell", tmp_path):
        for address in ("10.99.0.2", *(["fd00:99::2"] if HAS_IPV6 else [])):
            round_trips = {host: round_trip_ms(name, host, address) for host in ROUND_TRIPS}
            assert all(0 < round_trips[host] - ms < 5 for host, ms in ROUND_TRIPS.items()), round_trips
        with subprocess.Popen([*COMMAND, "shell", name, "receiver", "--", *receive]) as receiver:
            senders = [send(name, host, "--udp", "--rate", "9M", "--wait", "5") for host in ("near", "far")]
            reports = [last_json(sender.communicate(timeout=60)[0]) for sender in senders]
            receiver.terminate()
        assert wiretale_lab("shell", "near", "--", "true").returncode == 0
    for host, address, report in zip(("near", "far"), ("10.98.1.2", "10.98.3.2"), reports, strict=True):
        of_host = truth_rows(tmp_path / f"truth-{host}.parquet", BLOCKS)
        came = truth_rows(tmp_path / "truth.parquet", f"{BLOCKS} AND source = '{address}'")
        assert {row["source"] for row in of_host} == {address}
        assert len(came) == delivered(of_host) == report["blocks_sent"]
        assert delivered(came) == report["blocks_received"] < len(came)
    bottleneck = truth_rows(tmp_path / "truth.parquet", BLOCKS)
    gone = sorted((row["due_ns"], row["ip_bytes"]) for row in bottleneck if row["fate"] == "delivered")
    both = gone[len(gone) // 4 : -len(gone) // 4]  # while both send
    assert sum(size for _, size in both[1:]) * 8e9 / (both[-1][0] - both[0][0]) == pytest.approx(10e6, rel=0.02)


def test_hosts_reach_each_other_over_all_hops(tmp_path: Path) -> None:
    """At sender, receiver and router, with both families; an attached namespace gets the next number."""
    name, outside = f"h{os.getpid()}", f"wtt{os.getpid()}"
    hosts = '[[host]]\nname = "middle"\nat = "metro"\n'
    (tmp_path / "p.toml").write_text(CHAIN.replace("%", "e-9%") + hosts)
    expected = {("client", 2): 70, ("client", 3): 66, ("server", 3): 4}  # between hosts, by the settings of their links
    up = wiretale_lab("up", str(tmp_path / "p.toml"), name)
    try:
        assert "client 10.98.1.2, server 10.98.2.2, middle 10.98.3.2" in up.stderr, up.stderr
        for (host, number), ms in expected.items():
            for address in (f"10.98.{number}.2", *([f"fd00:98:{number}::2"] if HAS_IPV6 else [])):
                assert 0 < round_trip_ms(name, host, address) - ms < 5, (host, address)
        for address in ("10.99.1.1", "10.99.1.2", *(["fd00:99:1::2"] if HAS_IPV6 else [])):
            assert round_trip_ms(name, "client", address) > 40, address
        done = wiretale_lab("attach", "receiver", f"netns:wt-{name}-client", "--name", name)
        assert "this is a host of the lab" in refusal(done)
        subprocess.run(["ip", "netns", "add", outside], check=True)
        attached = wiretale_lab("attach", "receiver", f"netns:{outside}", "--name", name)
        assert "attached as 10.98.4.2" in attached.stderr, attached.stderr
        assert 0 < round_trip_ms(name, "client", "10.98.4.2") - 70 < 5
        done = wiretale_lab("shell", name, "middle", "--", "ip", "-4", "address")
        assert done.returncode == 0 and "10.98.3.2/30" in done.stdout, done.stderr
        assert "left" in wiretale_lab("shell", "tracer.isp", "--", "ip", "link").stdout
        assert "down: expected sender, tracer, receiver, client" in refusal(wiretale_lab("shell", name, "down"))
    finally:
        every = wiretale_lab("down", "--all")
        subprocess.run(["ip", "netns", "delete", outside], check=False)
    assert (every.returncode, left_of(name)) == (0, []), every.stderr


@pytest.mark.parametrize("damage", ["half", '{"hosts": 5}', '{"hosts": [5]}'])
def test_a_lab_with_a_damaged_record_is_removed_with_all_its_hosts_and_no_other(tmp_path: Path, damage: str) -> None:
    """The name of the other lab begins with that of the damaged one."""
    name = f"d{os.getpid()}"
    profile = '[[hop]]\nname = "isp"\n[[host]]\nname = "client"\n'
    (tmp_path / "p.toml").write_text(profile)
    assert wiretale_lab("up", str(tmp_path / "p.toml"), name).returncode == 0
    other = f"wt-{name}-b-tracer.isp"
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        record = tmp_path / "state" / "labs" / f"{name}.json"
        content = json.loads(record.read_text())
        partly = {**content, **json.loads(damage)} if damage != "half" else {}
        record.write_text(json.dumps(partly) if partly else record.read_text()[:40])
        assert f"{name} " in wiretale_lab("list").stdout
        down = wiretale_lab("down", name)
        assert down.returncode == 0 and not record.exists(), down.stderr
        assert left_of(name) == [other]
    finally:
        subprocess.run(["ip", "netns", "delete", other], check=False)


def processes_with(text: str) -> list[list[str]]:
    """Command lines with a text."""
    return [words for _, words in command_lines() if any(text in word for word in words)]


def followed(folder: Path) -> list[dict[str, Any]]:
    """Rows of the query in docs/lab.md that joins two links."""
    (query,) = re.findall(r"```sql\n(CREATE MACRO [^`]*truth-isp[^`]*)```", (ROOT / "docs" / "lab.md").read_text())
    with duckdb.connect() as connection:
        result = connection.execute(query.replace("DIR", str(folder)))
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_losses_add_up_over_the_hops_and_cross_traffic_has_its_rate(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN + RUN)
    out = tmp_path / "out"
    done = wiretale_lab("run", str(tmp_path / "chain.toml"), "-o", str(out), "--json")
    assert done.returncode == 0, done.stderr
    result = last_json(done.stdout)
    check_flow(out, result)
    check_cross(out, result)
    rows = followed(out)
    (way,) = (way for way in result["links"]["isp"]["directions"] if way["from"] == "left")
    assert len(rows) == way["packets"] == result["link"][0]["delivered"]
    assert all(row["first_index"] and row["second_index"] for row in rows)
    assert min(row["first_ns"] for row in rows) > 3e6
    assert min(row["second_ns"] for row in rows if row["fate"] == "delivered") > 10e6


def test_a_run_that_overwrites_leaves_only_its_files_and_those_of_the_user(tmp_path: Path) -> None:
    out, scenario = tmp_path / "out", RUN[RUN.index("[scenario]") :].replace("seconds = 1", "seconds = 0.3")
    further = '[[host]]\nname = "client"\n[[cross]]\nfrom = "client"\nto = "receiver"\nsend = "-u --rate 1M"\n'
    for name, text in {"first": further + scenario, "next": scenario}.items():
        (tmp_path / f"{name}.toml").write_text(f'[both]\nrate = "20Mbit"\n{text}')
    done = wiretale_lab("run", str(tmp_path / "first.toml"), "-o", str(out))
    assert done.returncode == 0, done.stderr
    first = names_in(out)
    gone = {name for name in first if "-client" in name or name.startswith("cross-")}
    assert {"truth-client.bin", "truth-client.parquet", "link-client.log", "cross-1-receiver.out"} <= gone
    of_user = {"truth-mine.bin", "truth-client.txt", "link-notes.log", "cross-1.txt", "cross-33.log", "before/notes"}
    for name in (*of_user, "results.json"):
        (out / name).write_text("of the user, or of a study")
    done = wiretale_lab("run", str(tmp_path / "next.toml"), "-o", str(out), "--overwrite")
    assert done.returncode == 0, done.stderr
    assert names_in(out) == first - gone | of_user


def names_in(folder: Path) -> set[str]:
    """Files by name; captures have the time in theirs."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {re.sub(r"[^/]+\.pcapng", "*.pcapng", name) for name in names}


def check_flow(out: Path, result: dict[str, Any]) -> None:
    """The losses of all hops are those of the flow; they differ in place although the hops have the same kind."""
    flow = f"{BLOCKS} AND source = '10.99.0.1'"
    hops = [truth_rows(out / f"truth{part}.parquet", flow) for part in ("", "-isp", "-metro")]
    lost = [{row["block_sequence"] for row in rows if row["fate"] == "random"} for rows in hops]
    assert len(hops[0]) == result["packets_sent"] == 251
    assert lost[0] and lost[1] and not lost[0] & lost[1] and not lost[2]
    assert result["queue_packets"] is result["queue_packets_max"] is None  # the flow's packets do not show all queues
    assert sum(map(len, lost)) == result["packets_lost"] == result["packets_sent"] - result["packets_received"]


def check_cross(out: Path, result: dict[str, Any]) -> None:
    """It begins later than the flow, and ends with it, not after the 10 s that a sender takes without an amount."""
    cross = truth_rows(out / "truth-client.parquet", BLOCKS)
    seconds = (cross[-1]["in_ns"] - cross[0]["in_ns"]) / 1e9
    assert 0.5 < seconds < 5
    assert sum(row["payload_bytes"] for row in cross[1:]) * 8 / seconds == pytest.approx(1e6, rel=0.1)
    assert {(row["source"], row["destination"]) for row in cross} == {("10.98.1.2", "10.98.2.2")}
    (report,) = result["cross"]
    assert (report["from"], report["to"], report["port"]) == ("client", "server", 5901)
    assert report["sender"]["blocks_sent"] == len(cross)
    assert sorted(result["links"]) == ["client", "isp", "metro", "server"]


def test_the_fidelity_is_that_of_the_worst_link(tmp_path: Path) -> None:
    """The link of one hop is stopped for 0.2 s."""
    name = f"v{os.getpid()}"
    (tmp_path / "p.toml").write_text(CHAIN)
    assert wiretale_lab("up", str(tmp_path / "p.toml"), name, "-o", str(tmp_path / "out")).returncode == 0
    try:
        log = str(tmp_path / "out" / "truth-isp.bin")
        (link,) = (pid for pid, words in command_lines() if log in words and "wiretale-link" in words[0])
        command = [*COMMAND, "shell", name, "sender", "--", "ping", "-c", "100", "-i", "0.01", "-W", "1", "10.99.0.2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ping:
            assert ping.stdout and ping.stdout.readline() and ping.stdout.readline()
            os.kill(link, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(link, signal.SIGCONT)
    finally:
        down = wiretale_lab("down", name, "--force")
    assert "not valid" in down.stderr, down.stderr
    summaries = {part: json.loads((tmp_path / "out" / f"link{part}.out").read_text()) for part in ("-metro", "-isp")}
    most = [summaries[part]["fidelity"]["error_ns_max"] / 1e6 for part in ("-metro", "-isp")]
    assert most[0] < most[1] and f"max {most[1]:.3g} ms" in down.stderr


def test_a_killed_run_takes_all_hosts_and_links_with_it(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN + RUN.partition("[scenario]")[0])
    out = tmp_path / "out"
    command = [*COMMAND, "run", "s5-rate-sweep", "--profile", str(tmp_path / "chain.toml"), "-o", str(out)]
    with (tmp_path / "said").open("w") as messages, subprocess.Popen(command, stderr=messages) as process:
        name = f"run-{process.pid}"

        def is_crossing() -> bool:
            inside = subprocess.run(["ip", "netns", "pids", f"wt-{name}-client"], capture_output=True, text=True).stdout
            return any(words[1:2] == ["send"] and str(pid) in inside.split() for pid, words in command_lines())

        try:
            wait_until(lambda: process.poll() is not None or is_crossing(), (tmp_path / "said").read_text)
            assert process.poll() is None and len(left_of(name)) == 11, (tmp_path / "said").read_text()
        finally:
            process.kill()
    wait_until(lambda: not left_of(name), lambda: left_of(name))
    wait_until(lambda: not processes_with(str(out)), lambda: processes_with(str(out)))
    assert f"{name} " not in wiretale_lab("list").stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[host]]\ndelay = 1", "p.toml: host 1: name: is missing"),
        ('[[host]]\nname = "tracer"', "p.toml: host 1: name: 'tracer': expected a name"),
        ('[[host]]\nname = "a-b"', "p.toml: host 1: name: 'a-b': expected a name"),
        ('[[hop]]\nname = "a"\n[[host]]\nname = "a"', "p.toml: host 1: name: 'a': expected a name"),
        ('[[host]]\nname = "a"\nat = "isp"', "p.toml: host 1: at: 'isp': expected one of sender, receiver"),
        ('[[host]]\nname = "a"\n[host.reverse]\ndelay = ""', "p.toml: host 1, reverse: delay: '': expected"),
        ('[host]\nname = "a"', "p.toml: host: expected [[host]], with two brackets"),
        ('[[cross]]\nfrom = "sender"\nto = "b"', "p.toml: cross 1: to: 'b': expected one of receiver"),
        (
            '[[cross]]\nfrom = "sender"\nto = "receiver"\nsend = "\'"',
            'p.toml: cross 1: send: "\'": No closing quotation',
        ),
        ('[[cross]]\nfrom = "sender"\nto = "receiver"\nsend = "-u"\nat = 1', "p.toml: cross 1: at: unknown key"),
    ],
)
def test_a_wrong_topology_is_named_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(expected)}"):
        make_profile("p", text, "p.toml")


def test_a_sender_of_cross_traffic_that_failed_makes_the_run_fail_after_its_results(tmp_path: Path) -> None:
    """A loopback address as the source is permitted in the check before the lab, but reaches no other host."""
    text = '[[host]]\nname = "client"\n' + RUN.replace("server", "receiver").replace("seconds = 1", "seconds = 0.5")
    second = '[[cross]]\nfrom = "client"\nto = "receiver"\nsend = "--udp --rate 1M --bind 127.0.0.1"\n'
    (tmp_path / "p.toml").write_text(text + second)
    done = wiretale_lab("run", str(tmp_path / "p.toml"), "-o", str(tmp_path / "out"))
    assert done.returncode == 5
    message = done.stderr.splitlines()[-1]
    assert re.search(
        r"p\.toml: cross 2: wiretale-traffic send: 10\.99\.0\.2 port 5902: .* \(exit code 4\)$", message
    ), message
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    first, failed = result["cross"]
    assert first["error"] is None and first["sender"]["blocks_sent"] > 10
    assert failed["sender"] is None and failed["error"] and message.endswith(failed["error"])
    assert result["packets_received"] > 100


def test_cross_traffic_must_not_have_the_ends_of_a_scenario() -> None:
    text = RUN.replace('"client"', '"receiver"').replace('"server"', '"sender"')
    with pytest.raises(UsageError, match="cross 1: to: 'sender': expected another host"):
        make_profile("p", text, "p.toml")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("--size 1000", "--size 4"), "cross 1: send: --size 4: expected"),
        (("--size 1000", "10.0.0.1"), "cross 1: send: 10.0.0.1: expected no further argument"),
        (("--size 1000", "--help"), "cross 1: send: expected options of a test"),
        (
            ("--size 1000", "--stop-receiver"),
            "cross 1: send: --stop-receiver: the receivers of a lab have no such option",
        ),
        (
            ('delay = "20ms"', 'delay = "\\u0000"'),
            "host 1, forward: delay: '\\x00': expected a number or a text without blanks",
        ),
        (('delay = "20ms"', 'delay = "fast"'), "link-client: --forward: delay=fast: expected"),
    ],
)
def test_an_option_that_is_refused_is_one_line_and_nothing_is_left(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    (tmp_path / "chain.toml").write_text((CHAIN + RUN).replace(*change))
    command = [*COMMAND, "run", str(tmp_path / "chain.toml"), "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate(timeout=60)
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    assert expected in refusal(done) and left_of(f"run-{process.pid}") == []
