# SPDX-License-Identifier: Apache-2.0
"""How sessions send, in which order, and what runs beside them: plans, commands, runs on this host, and their tables."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import needs
from checkout import Run
from traffic_ends import free_port
from wiretale.traffic.experiment.beside import round_trips
from wiretale.traffic.experiment.plan import Plan, read_plan
from wiretale.traffic.experiment.sending import NAMES
from wiretale.traffic.experiment.store import Store
from wiretale.traffic.experiment.summary import interval, t95

pytestmark = pytest.mark.xdist_group("experiment")

Row = dict[str, Any]
UDP = '[[test]]\nname = "u"\nprotocol = "udp"\nsizes = [100]\nrates = ["1M"]\ncount = 20\n'
TCP = '[[test]]\nname = "t"\nprotocol = "tcp"\nsizes = [100]\ncount = 20\n'


def read(text: str) -> Plan:
    return read_plan(text, "plan.toml", "plan")


def rows(path: Path) -> list[Row]:
    with path.open() as file:
        return list(csv.DictReader(file))


def run(wiretale_run: Run, folder: Path, text: str, *options: str) -> Path:
    plan, out = folder / "plan.toml", folder / "out"
    plan.write_text('interval = "100ms"\n' + text)
    done = wiretale_run("experiment", "run", plan, "-o", out, "--port", str(free_port()), *options)
    assert done.returncode == 0, done.stderr
    return out


def raw(out: Path) -> Iterator[Row]:
    for path in sorted((out / "raw").glob("*.json")):
        yield json.loads(path.read_text())


# --- plans


def test_every_option_reaches_the_generator(wiretale_run: Run, tmp_path: Path) -> None:
    """As the generator reports it back: the plan that both ends agreed on, and the bursts that it made."""
    common = 'buffer = "64KiB"\nttl = 7\ndf = "dont"\n'
    tcp = 'no_delay = true\nwrite_each = true\ncongestion = "reno"\nmss = 500\ndscp = "af41"\nreverse = true\nfq_rate = "1.5G"\n'
    udp = 'dscp = 46\nburst = 4\nburst_cap = 9\noffload = "always"\n'
    poisson = UDP.replace('"u"', '"p"') + "poisson = true\n"
    out = run(wiretale_run, tmp_path, TCP + common + tcp + UDP + common + udp + poisson)
    reported = {data["test"]["group"]: data["sessions"][0]["report"]["test"] for data in raw(out)}
    shared = {"buffer_bytes": 65536, "ttl": 7, "df": "dont"}
    expected = {
        "t": {
            "no_delay": True,
            "write_each": True,
            "congestion": "reno",
            "mss": 500,
            "fq_rate_bps": 1.5e9,
            "dscp": 34,
            "direction": "reverse",
        },
        "u": {"dscp": 46, "pacing": "burst", "burst": 4, "burst_cap": 9, "offload": True},
        "p": {"pacing": "poisson"},
    }
    for group, options in expected.items():
        settings = options if group == "p" else {**shared, **options}
        assert {name: reported[group][name] for name in settings} == settings
    assert {row["group"]: row["settings"] for row in rows(out / "results.csv")} == {
        "t": "buffer=65536 no_delay write_each congestion=reno dscp=af41 ttl=7 mss=500 fq_rate=1500000000 df=dont reverse",
        "u": "buffer=65536 dscp=46 ttl=7 df=dont offload=always burst=4 burst_cap=9",
        "p": "poisson",
    }
    every = {name for text in (common, tcp, udp, "poisson = ") for name in NAMES if f"{name} = " in f"\n{text}"}
    assert every == set(NAMES) - {"kernel_pacing"}  # see below


def test_kernel_pacing_reaches_the_generator(wiretale_run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(UDP + "kernel_pacing = true\n")
    done = wiretale_run("experiment", "run", plan, "-o", tmp_path / "out", "--port", str(free_port()))
    assert done.returncode != 0
    assert "--kernel-pacing: expected the queueing discipline fq at lo" in done.stdout + done.stderr


def test_joined_datagrams_are_those_of_each_choice(wiretale_run: Run, tmp_path: Path) -> None:
    """Over loopback, which passes joined datagrams on, so that the default is not to join."""
    text = UDP.replace('rates = ["1M"]\n', "").replace("count = 20", "count = 200")
    out = run(wiretale_run, tmp_path, text + 'offload = ["default", "always", "never"]\n')
    reports = {data["test"]["name"]: data["sessions"][0]["report"] for data in raw(out)}
    names = {f"u-100-offload-{name}-t1": name for name in ("default", "always", "never")}
    choices = {names[test]: report["test"]["offload"] for test, report in reports.items()}
    assert choices == {"default": None, "always": True, "never": False}
    counts = {names[test]: report["sender"]["blocks_offloaded"] for test, report in reports.items()}
    assert counts["default"] == counts["never"] == 0 < counts["always"] <= 200
    settings = {names[row["test"]]: row["settings"] for row in rows(out / "results.csv")}
    assert settings == {"default": "", "always": "offload=always", "never": "offload=never"}


def test_a_list_makes_a_test_for_each_combination() -> None:
    plan = read(TCP + 'congestion = ["cubic", "reno"]\nno_delay = [true, false]\nstreams = [1, 2]\n')
    combinations = [(s.sending.congestion, s.sending.no_delay, s.streams) for test in plan.tests for s in test.sessions]
    assert sorted(combinations) == sorted((c, n, s) for c in ("cubic", "reno") for n in (False, True) for s in (1, 2))
    assert "t-100-no-delay-off-cubic-streams2-t1" in {test.name for test in plan.tests}


def test_lists_of_sessions_that_run_together_are_combined() -> None:
    session = '[[test.session]]\nprotocol = "tcp"\nsize = 100\nseconds = 1\n'
    text = f'[[test]]\nname = "t"\n{session}congestion = ["cubic", "bbr"]\n{session}buffer = [4096, 8192]\n'
    combinations = [tuple((s.sending.congestion, s.sending.buffer) for s in test.sessions) for test in read(text).tests]
    assert combinations == [((c, None), (None, b)) for c in ("cubic", "bbr") for b in (4096, 8192)]


def test_a_random_order_is_that_of_its_seed_and_keeps_trials_together() -> None:
    text = TCP.replace("[100]", "[100, 200, 300, 400, 500, 600]") + "trials = 3\n"

    def order(head: str) -> list[tuple[int, str]]:
        return [(test.trial, test.name) for test in read(head + text).tests]

    plain, first, again, other = order(""), *(order(f'order = "random"\nseed = {n}\n') for n in (1, 1, 2))
    assert first == again != other and plain != first and sorted(plain) == sorted(first)
    assert [trial for trial, _ in first] == [1] * 6 + [2] * 6 + [3] * 6
    assert [name[:-3] for _, name in first[:6]] != [name[:-3] for _, name in first[6:12]]


def test_a_dry_run_has_the_programs(wiretale_run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[receiver]\naddress = "10.0.0.2"\n'
        + TCP
        + 'ping = "100ms"\n[[test.program]]\ncommand = "curl -s \'http://{address}/a b\'"\nstart = 2\nseconds = 3\n'
    )
    done = wiretale_run("experiment", "run", plan, "--dry-run")
    lines = done.stdout.splitlines()
    assert "env LC_ALL=C ping -n -D -O -i 0.1 10.0.0.2 & sleep 2" in lines
    assert "(sleep 2; timeout 3 curl -s 'http://10.0.0.2/a b') &" in lines


# --- runs


@needs.marked(needs.programs("ping"))
def test_ping_measures_before_under_load_and_after(wiretale_run: Run, tmp_path: Path) -> None:
    text = UDP.replace("count = 20", "seconds = 1") + 'ping = "50ms"\nping_alone = "500ms"\n'
    out = run(wiretale_run, tmp_path, text)
    pings = rows(out / "latency.csv")
    (data,) = raw(out)
    assert 25 <= len(pings) <= 60 and all(0 < float(row["rtt_ms"]) < 1000 for row in pings)
    first, last = data["ping"]["from_ns"], data["ping"]["to_ns"]
    assert all((first <= int(row["time_ns"]) <= last) is (row["loaded"] == "true") for row in pings)
    assert sum(row["loaded"] == "true" for row in pings) >= 10
    report = data["sessions"][0]["report"]
    assert first <= report["sender"]["first_ns"] and report["sender"]["last_ns"] <= last


def test_programs_run_beside_the_sessions(wiretale_run: Run, tmp_path: Path) -> None:
    """One ends by itself, one is stopped after its time, one with the sessions, at their places in time."""
    clock = "sh -c 'date +%s%N; {then}'"
    programs = [("done", 0, ""), ("sleep 30", "300ms", "seconds = 0.2"), ("exec sleep 30", 0, "")]
    text = UDP.replace("count = 20", "seconds = 1")
    for number, (then, start, more) in enumerate(programs):
        words = clock.format(then="true" if then == "done" else then)
        text += f'[[test.program]]\nlabel = "p{number}"\ncommand = "{words}"\nstart = {json.dumps(start)}\n{more}\n'
    out = run(wiretale_run, tmp_path, text)
    (data,) = raw(out)
    assert [program["exit_code"] for program in data["programs"]] == [0, None, None]
    assert data["error"] is None
    begun = [int(program["output"].split()[0]) - data["started_ns"] for program in data["programs"]]
    assert min(begun) > 0 and begun[1] >= 0.3e9
    assert data["ended_ns"] - data["started_ns"] < 20e9  # and not 30 s


def test_a_program_that_fails_is_named(wiretale_run: Run, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(UDP.replace("count = 20", "seconds = 1") + '[[test.program]]\ncommand = "ls /no/such/place"\n')
    done = wiretale_run("experiment", "run", plan, "-o", out, "--port", str(free_port()))
    assert done.returncode == 3 and "u-100-1mbit-t1 failed: ls: " in done.stderr
    plan.write_text(UDP + '[[test.program]]\ncommand = "no-such-program x"\n')
    done = wiretale_run("experiment", "run", plan, "-o", tmp_path / "other")
    assert done.returncode == 5 and "no-such-program is missing" in done.stderr and len(done.stderr.splitlines()) == 1


@needs.marked(needs.root(), needs.programs("tcpdump"))
def test_flows_of_other_programs_are_taken_from_the_capture(wiretale_run: Run, tmp_path: Path) -> None:
    """Python's web server and client: 300,000 bytes beside a session."""
    (tmp_path / "file").write_bytes(bytes(300_000))
    port = free_port()
    server = f"python3 -m http.server {port} --bind 127.0.0.1 --directory {shlex.quote(str(tmp_path))}"
    client = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/file').read()"
    session = UDP.replace("count = 20", "seconds = 6")
    text = (
        f'[tracer]\ninterface = "lo"\n{session}[[test.program]]\ncommand = {json.dumps(server)}\n'
        f"[[test.program]]\nstart = 2\ncommand = {json.dumps('python3 -c ' + shlex.quote(client))}\n"
    )
    out = run(wiretale_run, tmp_path, text)
    done = wiretale_run("experiment", "report", out, "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "Flows of other programs" in page and f"127.0.0.1 port {port}" in page and "300 kB" in page


def test_facts_about_both_hosts_are_kept_once(wiretale_run: Run, tmp_path: Path) -> None:
    out = run(wiretale_run, tmp_path, UDP)
    hosts = json.loads((out / "hosts.json").read_text())
    (entry,) = hosts["runs"]
    kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
    for end in ("sender", "receiver"):
        assert kernel in entry[end]["kernel"][0]
        assert entry[end]["settings"]["net.core.rmem_max"] == Path("/proc/sys/net/core/rmem_max").read_text().strip()
    facts = {end: entry[end] for end in ("sender", "receiver")}
    Store(out).keep_hosts(facts, entry["since_ns"] + 5)
    assert Store(out).hosts() == [entry]
    changed = {**facts, "sender": {**facts["sender"], "kernel": ["another"]}}
    Store(out).keep_hosts(changed, entry["since_ns"] + 9)
    assert Store(out).hosts() == [entry, {"since_ns": entry["since_ns"] + 9, **changed}]


# --- tables


def test_means_and_intervals_are_those_of_the_trials(wiretale_run: Run, tmp_path: Path) -> None:
    out = run(wiretale_run, tmp_path, UDP + "trials = 4\n")
    values = [float(row["throughput_mbit_s"]) for row in rows(out / "results.csv")]
    (line,) = (row for row in rows(out / "summary.csv") if row["measure"] == "throughput_mbit_s")
    mean, squares = fmean(values), sum((value - fmean(values)) ** 2 for value in values)
    half = 3.182 * (squares / 3) ** 0.5 / 2  # Student's t for 3 degrees of freedom, by the table of any textbook
    assert (line["trials"], float(line["mean"])) == ("4", pytest.approx(mean))
    assert [float(line["ci95_low"]), float(line["ci95_high"])] == pytest.approx([mean - half, mean + half], rel=1e-4)
    assert [float(line["least"]), float(line["largest"])] == pytest.approx([min(values), max(values)])


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)])
def test_quantiles_of_students_t(freedom: int, expected: float) -> None:
    assert t95(freedom) == pytest.approx(expected, abs=0.001)


def test_a_single_trial_has_no_interval() -> None:
    assert interval([3.0]) is None and interval([1.0, 3.0]) == pytest.approx((2 - 12.706, 2 + 12.706))


def test_answers_of_ping_are_read_by_number() -> None:
    """One is missing, one comes after it was noted as missing, and numbers begin again after 65,535."""
    answer = "[{at}.5] 64 bytes from 10.0.0.2: icmp_seq={n} ttl=64 time={ms} ms\n"
    missing = "[{at}.0] no answer yet for icmp_seq={n}\n"
    text = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n" + answer.format(at=1, n=1, ms=0.25)
    text += missing.format(at=2, n=2) + missing.format(at=3, n=3) + answer.format(at=4, n=3, ms=1500)
    assert list(round_trips(text)) == [(1, 1.5, 0.25), (2, 2.0, None), (3, 4.5, 1500.0)]
    text = answer.format(at=1, n=32768, ms=1) + answer.format(at=2, n=65535, ms=1) + answer.format(at=3, n=0, ms=2)
    assert [number for number, _, _ in round_trips(text)] == [32768, 65535, 65536]
