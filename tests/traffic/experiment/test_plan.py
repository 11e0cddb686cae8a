# SPDX-License-Identifier: Apache-2.0
"""Plans: the built-in ones equal the studies, and errors name their place in the file."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale.traffic.experiment
from checkout import Run
from processes import refusal
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.traffic.experiment.endpoint import Endpoint, parse_endpoint
from wiretale.traffic.experiment.plan import BUILT_IN, Plan, Session, plan_text, read_plan, scaled

PUBLISHED = Path(wiretale.traffic.experiment.__path__[0]) / "published"
GOOD = """
[[test]]
name = "one"
protocol = "udp"
sizes = [100, 200]
count = 10
"""


def built_in(name: str) -> Plan:
    return read_plan(*plan_text(name))


def published(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def sessions(plan: Plan, group: str, trial: int = 1) -> Iterator[Session]:
    for test in plan.tests:
        if test.group == group and test.trial == trial:
            yield from test.sessions


def read(text: str, **options: Any) -> Plan:
    return read_plan(text, "plan.toml", "plan", **options)


# --- the studies


def test_s2_sends_the_blocks_of_the_controller_sweep_five_times() -> None:
    expected = Counter(
        {
            (row["test"], int(row["block_bytes"]), int(row["block_count"])): int(row["trials"])
            for row in published("controller_sweep")
        }
    )
    plan = built_in("s2-controller-sweep")
    planned = Counter((test.group, test.sessions[0].block_bytes, test.sessions[0].count) for test in plan.tests)
    assert planned == expected and len(plan.tests) == 27 * 5
    assert {(t.group, s.protocol, s.header_bytes) for t in plan.tests for s in t.sessions} == {
        ("tcp", "tcp", 0),
        ("udp", "udp", 0),
        ("udp+12", "udp", 12),
    }


def test_s3_sends_a_hundred_blocks_and_ten_of_the_published_sizes_five_times() -> None:
    expected = {
        (row["protocol"], int(row["block_bytes"]), int(row["block_count"])) for row in published("file_transfer")
    } | {(protocol, size, 10) for protocol in ("tcp", "udp") for size in (60000, 4096)}
    plan = built_in("s3-file-transfer")
    planned = Counter((s.protocol, s.block_bytes, s.count) for test in plan.tests for s in test.sessions)
    assert set(planned) == expected and set(planned.values()) == {5}


def test_s4_sends_the_blocks_of_the_benchmark() -> None:
    expected = {(r["protocol"], int(r["block_bytes"]), int(r["blocks_sent"])) for r in published("block_benchmark")}
    plan = built_in("s4-block-benchmark")
    assert {(s.protocol, s.block_bytes, s.count) for test in plan.tests for s in test.sessions} == expected


def test_s5_offers_every_rate_of_the_sweep() -> None:
    rows = published("rate_sweep")
    plan = built_in("s5-rate-sweep")
    for group, media in (("wire", {"wire 100 Mb/s"}), ("wireless", {"802.11b", "802.11g"})):
        expected = {float(row["offered_mbps"]) * 1e6 for row in rows if row["medium"] in media}
        assert {session.rate_bps for session in sessions(plan, group)} == expected
    (tcp,), (udp,) = (list(sessions(plan, f"maximum {name}")) for name in ("TCP", "UDP"))
    assert (tcp.protocol, tcp.rate_bps, udp.protocol, udp.rate_bps) == ("tcp", None, "udp", None)


def test_s5_starts_three_tcp_sessions_at_once_and_ten_seconds_apart() -> None:
    plan = built_in("s5-parallel-tcp")
    trials = Counter((row["experiment"], row["port"]) for row in published("parallel_tcp"))
    blocks = 50 * 2**20 // 8192  # of `-n 50M`, which iperf takes instead of the `-t 40` before it
    for experiment, expected in (
        ("three TCP at once", [(0, 10, None, None)] * 3),
        (
            "three TCP 10 s apart (40 s each)",
            [(0, 40, None, 256000), (10, None, blocks, 256000), (20, None, blocks, 256000)],
        ),
    ):
        tests = [test for test in plan.tests if test.group == experiment]
        assert len(tests) == trials[experiment, "5001"]
        for test in tests:
            assert [(s.start_s, s.seconds, s.count, s.sending.buffer) for s in test.sessions] == expected
    assert len([test for test in plan.tests if test.group == "maximum TCP"]) == trials["maximum TCP", "5001"]


def test_s5_mixes_one_session_with_none_to_five_of_the_other_protocol() -> None:
    expected = {(int(r["tcp_sessions"]), int(r["udp_sessions"]), r["measured"]) for r in published("tcp_udp_mix")}
    planned = set()
    for test in built_in("s5-tcp-udp-mix").tests:
        counts = Counter(session.protocol for session in test.sessions)
        assert {s.rate_bps for s in test.sessions if s.protocol == "udp"} <= {10e6}
        assert {(s.seconds, s.start_s) for s in test.sessions} == {(60, 0)}
        assert {s.sending.buffer for s in test.sessions if s.protocol == "udp"} <= {73728}
        planned.add((counts["tcp"], counts["udp"], "tcp" if "TCP measured" in test.group else "udp"))
    assert planned == expected


def test_s5_durations_overlap() -> None:
    plan = built_in("s5-durations")
    spans = {test.group: [(s.start_s, s.start_s + (s.seconds or 0)) for s in test.sessions] for test in plan.tests}
    assert plan.trials == 3 and spans == {
        "60 s and three of 10 s": [(0, 60), (10, 20), (30, 40), (50, 60)],
        "60 s, 30 s and two of 10 s": [(0, 60), (0, 30), (0, 10), (30, 40)],
    }


def test_quick_has_little_to_send() -> None:
    plan = built_in("quick")
    assert sum(test.seconds for test in plan.tests) < 4
    assert sum((s.count or 0) * s.block_bytes for test in plan.tests for s in test.sessions) < 20e6


def test_published_figures_are_those_that_the_package_carries() -> None:
    originals = needs.shared("published")
    carried = sorted(PUBLISHED.glob("*.csv"))  # others may be added there
    assert carried and all((originals / path.name).read_bytes() == path.read_bytes() for path in carried)


# --- the grammar of plans


def test_sizes_and_rates_make_a_test_each_in_every_trial() -> None:
    plan = read(GOOD + 'rates = ["1M", "2.5Mbit"]\ntrials = 2')
    assert [test.name for test in plan.tests] == [
        f"one-{size}-{rate}mbit-t{trial}" for trial in (1, 2) for size in (100, 200) for rate in ("1", "2.5")
    ]
    assert [test.trial for test in plan.tests] == [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    "amount, counts",
    [
        ("count = 7", [7, 7]),
        ("counts = [7, 8]", [7, 8]),
        ('bytes = "1KiB"', [10, 5]),
        ("bytes = 1", [1, 1]),
    ],
)
def test_an_amount_is_by_count_or_bytes(amount: str, counts: list[int]) -> None:
    plan = read(GOOD.replace("count = 10", amount))
    assert [test.sessions[0].count for test in plan.tests] == counts


def test_sessions_repeat_after_each_other() -> None:
    text = '[[test]]\nname="t"\n[[test.session]]\nprotocol="tcp"\nsize="8KiB"\nseconds="1m"\nrepeat=3\nevery="500ms"\nstart=2'
    (test,) = read(text).tests
    assert [(s.start_s, s.seconds, s.label) for s in test.sessions] == [
        (2.0, 60.0, "tcp 1"),
        (2.5, 60.0, "tcp 2"),
        (3.0, 60.0, "tcp 3"),
    ]
    assert test.seconds == 63


def test_trials_of_the_command_line_count_for_every_test() -> None:
    assert len(read(GOOD + "trials = 5", trials=3).tests) == 6
    assert read("trials = 4" + GOOD).trials == 4


def test_scale_makes_less_of_everything() -> None:
    plan = scaled(built_in("s5-parallel-tcp"), 0.1)
    apart = next(test for test in plan.tests if "apart" in test.group)
    assert [(s.start_s, s.seconds, s.count) for s in apart.sessions] == [(0, 4, None), (1, None, 640), (2, None, 640)]
    assert min(s.count or 0 for t in scaled(built_in("s3-file-transfer"), 1e-6).tests for s in t.sessions) == 1


def test_the_tracer_is_where_the_receiver_is_unless_said_otherwise() -> None:
    ends = '[sender]\nnetns="a"\n[receiver]\nssh="me@far"\n[tracer]\ninterface="eth0"\n'
    plan = read(ends + GOOD)
    assert plan.tracer and plan.tracer.endpoint == Endpoint(ssh="me@far") == plan.receiver
    plan = read(ends + 'endpoint = {netns = "b"}\nfilter="udp"\nsnaplen=200\n' + GOOD)
    assert plan.tracer and (plan.tracer.endpoint.netns, plan.tracer.filter, plan.tracer.snaplen) == ("b", "udp", 200)
    plan = read(ends + 'endpoint = "sender"\n' + GOOD)
    assert plan.tracer and plan.tracer.endpoint == plan.sender


SESSION = '[[test]]\nname = "t"\n[[test.session]]\nprotocol = "tcp"\nsize = 100\n'


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "test: expected 1 to 10000 tests"),
        ("= 1", "plan.toml: Invalid"),
        (GOOD.replace('"udp"', '"sctp"'), "test 1 (one): protocol: 'sctp': expected one of tcp, udp"),
        (GOOD.replace("100, 200", "31"), "test 1 (one): sizes: a block of 31 bytes"),
        (GOOD.replace("100, 200", "65508"), "expected 32 to 65507 bytes in udp"),
        (GOOD.replace("100, 200", ""), "sizes: []: expected at least one value"),
        (GOOD.replace("100, 200", "true"), "sizes: [True]: expected a whole number of bytes"),
        (GOOD.replace("count = 10", "count = 0"), "count: 0: expected a whole number from 1"),
        (GOOD.replace("count = 10", "counts = [1]"), "counts: expected 2 numbers, one for each size, found 1"),
        (GOOD.replace("count = 10", ""), "expected one of count, counts, bytes, seconds, file, found none"),
        (GOOD + "bytes = 5", "found count and bytes"),
        (GOOD + 'rates = ["fast"]', "rates: ['fast']: expected bits per second"),
        (GOOD + 'rates = ["0M"]', "rates: ['0M']: expected bits per second"),
        (GOOD + "trials = 0", "trials: 0: expected a whole number from 1 to 1000"),
        (GOOD + "color = 3", "test 1 (one): color: unknown key: expected"),
        (GOOD + GOOD, "two tests are one-100-t1"),
        ("color = 3" + GOOD, "color: unknown key"),
        (GOOD.replace('name = "one"', ""), "test 1: name: is missing"),
        (GOOD.replace("[[test]]", "[test]"), "expected [[test]], with two brackets"),
        ("[tracer]\nsnaplen = 100" + GOOD, "[tracer]: interface: is missing"),
        ('[tracer]\ninterface = "lo"\nsnaplen = 10' + GOOD, "[tracer]: snaplen: 10: expected a whole number from 68"),
        (
            '[tracer]\ninterface = "lo"\nendpoint = "moon"' + GOOD,
            "[tracer]: endpoint: 'moon': expected here, ssh:user@host",
        ),
        ('[receiver]\nssh = "-oProxyCommand=x"' + GOOD, "[receiver]: ssh: '-oProxyCommand=x': expected user@host"),
        ('[sender]\nnetns = "a b"' + GOOD, "[sender]: netns: 'a b'"),
        ('[sender]\nnetns = "a"\nssh = "b"' + GOOD, "[sender]: expected either ssh or netns"),
        ("[receiver]\nport = 70000" + GOOD, "[receiver]: port: 70000: expected 1 to 65535"),
        (SESSION + 'seconds = "2d"', "test 1 (t), session 1: seconds: '2d': expected a time up to a day"),
        (SESSION + "seconds = 0", "session 1: seconds: 0: expected a time over 0"),
        (SESSION + "seconds = 1\nrepeat = 65", "repeat: 65"),
        (SESSION + "seconds = 1\nsizes = [5]", "session 1: sizes: unknown key"),
        ("test = 3", "test: expected [[test]]"),
        ("sender = 3" + GOOD, "[sender]: expected a table"),
        (GOOD + 'congestion = "cubic"', "test 1 (one): congestion: expected only in tcp"),
        (GOOD + 'fq_rate = "10M"', "test 1 (one): fq_rate: expected only in tcp"),
        (GOOD + 'fq_rate = "9k"', "fq_rate: '9k': expected bits per second from 100k on"),
        (GOOD + 'fq_rate = "max"', "fq_rate: 'max': expected bits per second from 100k on"),
        (GOOD + "poisson = true", "poisson: expected a rate as well"),
        (GOOD + "kernel_pacing = true", "kernel_pacing: expected a rate as well"),
        (GOOD + 'rates = ["1M"]\nburst = 8\nburst_cap = 4', "burst_cap: expected at least burst"),
        (GOOD + 'rates = ["1M"]\nburst = 8\npoisson = true', "poisson: expected no burst as well"),
        (GOOD + "buffer = []", "buffer: expected at least one value"),
        (GOOD + "dscp = 64", "dscp: 64: expected 0 to 63, or a name"),
        (GOOD + "offload = true", "offload: True: expected one of default, always, never"),
        (GOOD + 'ping = "1ms"', "ping: '1ms': expected at least 10 ms"),
        (GOOD + '[[test.program]]\ncommand = "it\'s"', "program 1: command"),
        (GOOD + '[[test.program]]\ncommand = "true"\nat = "moon"', "at: 'moon': expected one of sender, receiver"),
        ('order = "any"' + GOOD, "order: 'any': expected one of plan, random"),
        ("seed = 3" + GOOD, 'seed: expected order = "random" as well'),
        (SESSION + 'seconds = 1\noffload = "never"', "session 1: offload: expected only in udp"),
        (SESSION + 'file = "f"\nreverse = true', "session 1: reverse: expected no file"),
    ],
)
def test_errors_name_file_table_and_key(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        read(text)
    assert str(error.value).startswith("plan.toml: ") and says in str(error.value)


def test_a_plan_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="quick, s2-controller-sweep"):
        plan_text(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(InputError, match="UTF-8"):
        plan_text(str(tmp_path / "latin.toml"))


def test_the_command_names_file_and_key_of_an_error(wiretale_run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("color = 3" + GOOD)
    done = wiretale_run("experiment", "run", plan, "-o", tmp_path / "out")
    assert refusal(done).startswith(f"{plan}: color: unknown key: expected ")
    missing = refusal(wiretale_run("experiment", "run", "qick", "-o", tmp_path / "out", cwd=tmp_path))
    assert missing.startswith("qick: no such plan: expected a file, or one of quick, ")


@pytest.mark.parametrize("text", ["here", "ssh:me@far", "netns:lab-a"])
def test_an_endpoint_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_endpoint(text)) == text


@pytest.mark.parametrize("text", ["", "ssh", "ssh:", "netns:", "netns:a/b", "ssh:a b", "host:x", "netns:-x"])
def test_an_endpoint_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_endpoint(text)


def test_another_plan_has_another_digest() -> None:
    plans = [read(GOOD), read(GOOD + "trials = 2"), read(GOOD.replace("10", "11")), read("[receiver]\nport=9" + GOOD)]
    assert len({plan.digest() for plan in plans}) == len(plans)
    assert read(GOOD).digest() == read(GOOD + "# a remark").digest()


@pytest.mark.parametrize(
    ("protocol", "keys", "says"),
    [
        ("udp", 'pattern = "p"\nrate = "1M"', "rate: expected no rate with a pattern"),
        ("udp", 'pattern = "p"\nturns = "t"', "turns: expected no turns with a pattern"),
        ("tcp", 'turns = "t"\nsize = 100', "size: expected no size with turns"),
        ("tcp", 'turns = "t"\nbytes = 100', "bytes: expected no bytes with turns"),
        ("tcp", 'turns = "t"\nreverse = true', "reverse: expected no turns"),
        ("udp", "size = 100\ncount = 1\ndraw = true", "draw: expected a pattern or turns"),
        ("udp", 'size = 32\nfile = "x"', "33 to 65507 bytes in udp with a file"),
        ("udp", 'pattern = "long"', "line 1: expected at most 98"),
        ("udp", 'pattern = "fifo"', "expected a regular file"),
    ],
)
def test_contradictions_are_found_before_the_run(
    wiretale_run: Run, tmp_path: Path, protocol: str, keys: str, says: str
) -> None:
    (tmp_path / "p").write_text("32 1000\n")
    (tmp_path / "t").write_text("32 1000 32 1000\n")
    (tmp_path / "long").write_text(f"# {'a' * 97}\n32 1000\n")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "plan.toml").write_text(f'[[test]]\nname = "t"\n[[test.session]]\nprotocol = "{protocol}"\n{keys}\n')
    done = wiretale_run("experiment", "run", "plan.toml", "--dry-run", cwd=tmp_path)
    assert done.returncode in (2, 4) and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("keys", "says"),
    [('pattern = "p"', "33 to 65507"), ("size = 99\ncount = 1\nreverse = true", "expected no reverse")],
)
def test_a_session_that_cannot_send_a_file_is_refused(wiretale_run: Run, tmp_path: Path, keys: str, says: str) -> None:
    (tmp_path / "p").write_text("32 1000\n")
    (tmp_path / "plan.toml").write_text(f'[[test]]\nname = "t"\n[[test.session]]\nprotocol = "udp"\n{keys}\n')
    done = wiretale_run("experiment", "run", "plan.toml", "--file", "p", "--dry-run", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and says in done.stderr, done.stderr


# --- the commands


def test_a_dry_run_prints_every_command_and_runs_none(wiretale_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = wiretale_run("experiment", "run", "s2-controller-sweep", "-o", out, "--dry-run", "--interface", "lo")
    assert done.returncode == 0 and not out.exists()
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert len(lines) == 1 + 2 * 135  # receiver; tracer and sender
    sends = [shlex.split(line) for line in lines if " send " in line]
    assert {word[word.index("--count") + 1] for word in sends if word[word.index("--size") + 1] == "44"} == {"262144"}
    assert sum("--udp" in words for words in sends) == 90
    assert all(subprocess.run(["sh", "-n", "-c", line.removesuffix("&")]).returncode == 0 for line in lines[:5])


def test_the_least_size_and_count_are_those_of_the_controller(wiretale_run: Run) -> None:
    done = wiretale_run(
        "experiment", "run", "s2-controller-sweep", "--dry-run", "--trials", "1", "-P", "2KiB", "-L", "3000"
    )
    sends = [shlex.split(line) for line in done.stdout.splitlines() if " send " in line]
    sent = [tuple(int(words[words.index(name) + 1]) for name in ("--size", "--count")) for words in sends]
    assert sent == [(size + more, max(3000, 2**23 // size)) for more in (0, 0, 12) for size in (2048, 4096, 8192)]


def test_a_dry_run_quotes_words_for_a_shell(wiretale_run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[sender]\nssh="me@far"\n[receiver]\naddress="10.0.0.1"\nnetns="b"\n'
        '[tracer]\ninterface="e0"\nfilter="udp and not port 53"\n'
        '[[test]]\nname="f"\nprotocol="tcp"\nsizes=[1000]\nfile="/tmp/a b"\n'
    )
    done = wiretale_run("experiment", "run", plan, "--dry-run")
    assert done.returncode == 0, done.stderr
    receiver, _, tracer, sender = done.stdout.splitlines()
    assert shlex.split(receiver)[1:4] == ["netns", "exec", "b"]
    assert shlex.split(tracer)[1:4] == ["netns", "exec", "b"] and "udp and not port 53" in shlex.split(tracer)
    words = shlex.split(sender)
    assert words[0].endswith("ssh") and "me@far" in words
    assert "wiretale-traffic send 10.0.0.1 --port 5010 --size 1000 --file '/tmp/a b'" in words[-1]


def test_the_list_names_every_built_in_plan(wiretale_run: Run) -> None:
    done = wiretale_run("experiment", "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BUILT_IN)


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["run", "quick"], 2, "-o DIR"),
        (["run", "nothing", "-o", "x"], 2, "no such plan"),
        (["run", "nothing.toml", "-o", "x"], 4, "no such plan"),
        (["run", "quick", "-o", "x", "--scale", "0"], 2, "a factor over 0"),
        (["run", "quick", "-o", "x", "--sender", "moon"], 2, "ssh:user@host"),
        (["run", "quick", "-o", "x", "--trials", "0"], 2, "1 to 1000"),
        (["run", "s3-file-transfer", "-o", "x", "--tracer", "here"], 2, "--tracer needs --interface"),
        (["run", "quick", "-o", "x", "--host=-x"], 2, "expected an address"),
        (["run", "quick", "-o", "x", "--receiver", "netns:wt-none-such"], 2, "no network namespace wt-none-such"),
        (["report", "nowhere", "-o", "r.html"], 4, "experiment run"),
        (["run", "quick", "-o", "x", "-P", "1MiB"], 2, "--min-size 1048576: expected at most the largest size"),
        ([], 2, "ACTION"),
    ],
)
def test_wrong_usage_is_one_line(wiretale_run: Run, tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    done = wiretale_run("experiment", *arguments, cwd=tmp_path)
    assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "x").exists()
