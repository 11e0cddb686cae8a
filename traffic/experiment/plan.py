# SPDX-License-Identifier: Apache-2.0
"""A plan in TOML (docs/experiments.md): the traffic between two endpoints, its repetitions, and the tracer."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.traffic.experiment import plan_value as read
from wiretale.traffic.experiment.beside import Ping, Program, read_ping, read_programs
from wiretale.traffic.experiment.endpoint import Endpoint, parse_endpoint
from wiretale.traffic.experiment.plan_value import PlanTable
from wiretale.traffic.experiment.sending import Sending, read_sending, variants
from wiretale.traffic.pattern import read_pattern

BUILT_IN = (
    "quick",
    "s2-controller-sweep",
    "s3-file-transfer",
    "s4-block-benchmark",
    "s5-rate-sweep",
    "s5-parallel-tcp",
    "s5-tcp-udp-mix",
    "s5-durations",
)
BLOCK_LEAST = 32  # common/block.h
BLOCK_MOST = {"tcp": 65_536, "udp": 65_507}
TESTS_MOST = 10_000
SESSIONS_MOST = 64
INTERVAL_LEAST_S = 0.05
PLAN_BYTES_MOST = 1 << 20
AMOUNTS = ("count", "counts", "bytes", "seconds", "file")
NOT_WITH_LINES = ("turns", "size", "rate", "counts", "bytes", "file")  # the file has them


@dataclass(frozen=True)
class Tracer:
    """The capture of a test."""

    endpoint: Endpoint
    interface: str = read.key(read.text)
    filter: str | None = read.key(read.text, None)
    snaplen: int = read.key(read.integer(68, 262_144), 128)
    margin_s: float = 0.5
    optional: bool = read.key(read.switch, False)


@dataclass(frozen=True)
class Session:
    """A sender of a test: blocks of one size over one protocol."""

    protocol: str
    block_bytes: int
    header_bytes: int = 0
    count: int | None = None
    seconds: float | None = None
    file: str | None = None
    rate_bps: float | None = None
    pattern: str | None = None  # a file of sizes and gaps; block_bytes is then the largest size
    pattern_digest: str | None = None
    turns: str | None = None  # a file of requests and responses; block_bytes is then the largest of both
    draw: bool = False  # lines of the file at random
    streams: int = 1
    start_s: float = 0.0
    label: str = ""
    sending: Sending = field(default_factory=Sending)


@dataclass(frozen=True)
class Test:
    """One trial of sessions that run together, with other programs beside them."""

    name: str
    group: str
    trial: int
    sessions: tuple[Session, ...]
    programs: tuple[Program, ...] = ()
    ping: Ping | None = None

    @property
    def seconds(self) -> float:
        """The planned duration; a session without a duration counts 0."""
        return max(session.start_s + (session.seconds or 0) for session in self.sessions)


@dataclass(frozen=True)
class Plan:
    """Endpoints, capture and tests of an experiment."""

    name: str
    title: str
    study: str | None
    trials: int
    sender: Endpoint
    receiver: Endpoint
    address: str
    port: int
    tracer: Tracer | None
    interval_s: float
    pause_s: float
    tests: tuple[Test, ...]
    seed: int | None = None  # of a random order

    @property
    def sessions_most(self) -> int:
        """The largest number of sessions at the same time."""
        return max(len(test.sessions) for test in self.tests)

    def digest(self) -> str:
        """Returns a hash of the plan."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def slug(text: str) -> str:
    """Returns a text for file names."""
    return re.sub(r"[^a-z0-9+.]+", "-", text.lower()).strip("-.") or "test"


def endpoint(table: PlanTable) -> Endpoint:
    """Returns the endpoint of the keys ssh and netns."""
    ssh, netns = table.take("ssh", read.text, ""), table.take("netns", read.text, "")
    try:
        return Endpoint(ssh or None, netns or None)
    except ValueError as error:
        raise table.error("", str(error)) from None


def named_endpoint(value: object) -> str | Endpoint:
    """Returns the endpoint of `sender`, `receiver`, `ssh:user@host`, `netns:NAME`, `here`, or a table."""
    if isinstance(value, dict):
        unknown = set(value) - {"ssh", "netns"}
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: expected ssh or netns")
        return Endpoint(**{key: read.text(text) for key, text in value.items()})
    if value in ("sender", "receiver"):
        return str(value)
    return parse_endpoint(read.text(value))


def read_tracer(table: PlanTable, sender: Endpoint, receiver: Endpoint) -> Tracer | None:
    """Returns the table [tracer], or None if it is missing."""
    if not table.data:
        return None
    where = table.take("endpoint", named_endpoint, "receiver")
    endpoint = where if isinstance(where, Endpoint) else {"sender": sender, "receiver": receiver}[where]
    return table.fill(Tracer, endpoint=endpoint, margin_s=table.take("margin", read.duration, 0.5))


def size_fault(protocol: str, size: int, has_file: bool) -> str | None:
    """Returns why a block is too small or too large. One of a file has at least a byte of it."""
    least, most = BLOCK_LEAST + has_file, BLOCK_MOST[protocol]
    if least <= size <= most:
        return None
    with_file = " with a file" if has_file else ""
    return f"a block of {size} bytes, with its header: expected {least} to {most} bytes in {protocol}{with_file}"


def check_size(table: PlanTable, key: str, protocol: str, size: int, has_file: bool) -> None:
    """Raises UsageError if a block is too small or too large."""
    if why := size_fault(protocol, size, has_file):
        raise table.error(key, why)


def read_amounts(table: PlanTable, nominal: tuple[int, ...]) -> list[dict[str, Any]]:
    """Returns the amount of each size; a test must have exactly one key of an amount."""
    amounts = [key for key in AMOUNTS if key in table.data]
    if len(amounts) != 1:
        names = " and ".join(amounts) or "none"
        raise table.error("", f"expected one of {', '.join(AMOUNTS)}, found {names}")
    table.known_keys.update(AMOUNTS)
    (key,) = amounts
    if key == "counts":
        counts = table.need(key, read.several(read.integer(1, 2**53)))
        if len(counts) != len(nominal):
            raise table.error(key, f"expected {len(nominal)} numbers, one for each size, found {len(counts)}")
        return [{"count": count} for count in counts]
    if key == "bytes":
        total = table.need(key, read.byte_count)
        return [{"count": max(1, total // size)} for size in nominal]
    if key == "count":
        amount: dict[str, Any] = {"count": table.need(key, read.integer(1, 2**53))}
    elif key == "seconds":
        amount = {"seconds": table.need(key, read.long_duration)}
    else:
        amount = {"file": str(Path(table.need(key, read.text)).expanduser())}
    return [amount for _ in nominal]


def read_cases(table: PlanTable, name: str) -> Iterator[tuple[str, tuple[Session, ...]]]:
    """Yields a case with a single session for each size and rate."""
    protocol = table.need("protocol", read.word("tcp", "udp"))
    nominal = table.need("sizes", read.several(read.byte_count))
    header = table.take("header", read.integer(0, 1024), 0)
    rates = table.take("rates", read.several(read.bit_rate), [None])
    streams = table.take("streams", read.integer(1, 64), 1)
    has_file = "file" in table.data
    amounts = read_amounts(table, nominal)
    sending = read_sending(table, protocol, all(rates), has_file)
    table.end()
    for size, amount in zip(nominal, amounts, strict=True):
        check_size(table, "sizes", protocol, size + header, has_file)
        for rate in rates:
            parts = [name, str(size + header), *([f"{rate / 1e6:g}mbit"] if rate else [])]
            session = Session(
                protocol,
                size + header,
                header_bytes=header,
                rate_bps=rate,
                streams=streams,
                label=name,
                sending=sending,
                **amount,
            )
            yield slug("-".join(parts)), (session,)


def read_lines(table: PlanTable, protocol: str) -> dict[str, Any]:
    """Returns size, amount and file of a session with a pattern or turns; its path is relative to the plan."""
    key = "pattern" if "pattern" in table.data else "turns"
    path = Path(table.file).parent / Path(table.need(key, read.text)).expanduser()
    if protocol != (needed := "udp" if key == "pattern" else "tcp"):
        raise table.error(key, f"expected only in {needed}")
    for other in NOT_WITH_LINES:
        if other in table.data:
            raise table.error(other, f"expected no {other} with {'a pattern' if key == 'pattern' else key}")
    try:
        pattern = read_pattern(path, key == "turns")
    except ValueError as error:
        raise table.error(key, str(error)) from None
    seconds = table.take("seconds", read.long_duration, None)
    count = table.take("count", read.integer(1, 2**53), None if seconds else pattern.lines)
    if seconds and count:
        raise table.error("", "expected one of count and seconds, found both")
    return {
        "block_bytes": pattern.largest,
        **({"seconds": seconds} if seconds else {"count": count}),
        key: str(path.absolute()),
        "pattern_digest": pattern.digest,
        "draw": table.take("draw", read.switch, False),
    }


def read_sized(table: PlanTable, protocol: str) -> dict[str, Any]:
    """Returns size, amount and rate of a session with blocks of one size."""
    if "draw" in table.data:
        raise table.error("draw", "expected a pattern or turns as well")
    size = table.need("size", read.byte_count)
    check_size(table, "size", protocol, size, "file" in table.data)
    (amount,) = read_amounts(table, (size,))
    return {"block_bytes": size, **amount, "rate_bps": table.take("rate", read.bit_rate, None)}


def read_session(table: PlanTable) -> Iterator[Session]:
    """Yields a session as often as it is repeated."""
    protocol = table.need("protocol", read.word("tcp", "udp"))
    table.known_keys.update(("pattern", "turns", "draw", "size", "rate"))
    has_lines = "pattern" in table.data or "turns" in table.data
    traffic = (read_lines if has_lines else read_sized)(table, protocol)
    sending = read_sending(table, protocol, bool(traffic.get("rate_bps")), "file" in traffic)
    if sending.reverse and "turns" in traffic:
        raise table.error("reverse", "expected no turns, which go both ways")
    start, every = table.take("start", read.duration, 0.0), table.take("every", read.duration, 0.0)
    streams = table.take("streams", read.integer(1, 1 if has_lines else 64), 1)
    repeat = table.take("repeat", read.integer(1, SESSIONS_MOST), 1)
    label = table.take("label", read.text, protocol)
    table.end()
    for number in range(repeat):
        named = f"{label} {number + 1}" if repeat > 1 else label
        start_s = start + number * every
        yield Session(protocol, **traffic, streams=streams, start_s=start_s, label=named, sending=sending)


def read_together(table: PlanTable, name: str) -> Iterator[tuple[str, tuple[Session, ...]]]:
    """Yields a case with the sessions that run at the same time for each combination of the values in their lists."""
    tables = table.tables("session")
    table.end()
    for combination in itertools.product(*(list(variants(session_table)) for session_table in tables)):
        copies = [
            PlanTable(session_table.file, session_table.where, data)
            for session_table, (_, data) in zip(tables, combination, strict=True)
        ]
        sessions = tuple(session for session_table in copies for session in read_session(session_table))
        if len(sessions) > SESSIONS_MOST:
            raise table.error("session", f"expected at most {SESSIONS_MOST} at the same time, found {len(sessions)}")
        yield slug("-".join([name, *(word for words, _ in combination for word in words)])), sessions


def read_alone(table: PlanTable, name: str) -> Iterator[tuple[str, tuple[Session, ...]]]:
    """Yields the cases of a test with a single session, for each combination of the values in its lists."""
    for words, data in list(variants(table)):
        copy = PlanTable(table.file, table.where, data)
        copy.known_keys = table.known_keys
        for case, sessions in read_cases(copy, name):
            yield slug("-".join([case, *words])), sessions


def read_test(table: PlanTable, trials: int) -> list[Test]:
    """Returns all trials of all cases of a test."""
    name = table.need("name", read.text)
    table.where += f" ({name})"
    trials = table.take("trials", read.integer(1, 1000), trials)
    programs, ping = read_programs(table), read_ping(table)
    cases = list((read_together if "session" in table.data else read_alone)(table, name))
    return [
        Test(f"{case}-t{trial}", name, trial, sessions, programs, ping)
        for case, sessions in cases
        for trial in range(1, trials + 1)
    ]


def in_order(top: PlanTable, tests: list[Test], seed: int | None) -> tuple[Test, ...]:
    """Orders tests by trial: each case must run once before the next trial, so that changes of the network affect all alike.

    With a seed, the cases of each trial have a random order, so that none always follows the same other one.
    """
    if not 0 < len(tests) <= TESTS_MOST:
        raise top.error("test", f"expected 1 to {TESTS_MOST} tests with their trials, found {len(tests)}")
    names: set[str] = set()
    for test in tests:
        if test.name in names:
            raise top.error("test", f"two tests are {test.name}: expected a name of its own for each")
        names.add(test.name)
    if seed is not None:
        random.Random(seed).shuffle(tests)
    return tuple(sorted(tests, key=lambda test: test.trial))


def read_seed(top: PlanTable) -> int | None:
    """Returns the seed of a random order; None if the tests run in the order of the plan."""
    order = top.take("order", read.word("plan", "random"), "plan")
    seed = top.take("seed", read.plain(0, 2**53), None)
    if order == "plan" and seed is not None:
        raise top.error("seed", 'expected order = "random" as well')
    return (seed or 0) if order == "random" else None


def read_plan(text: str, file: str, name: str, trials: int | None = None) -> Plan:
    """Returns the plan in a text; `trials` replaces its own. UsageError names file, table and key of a wrong value."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    top = PlanTable(file, "", data)
    own_trials = top.take("trials", read.integer(1, 1000), 1)
    tests = top.tables("test")
    if trials is not None:
        for test in tests:
            test.data["trials"] = trials
    sender, there = top.table("sender"), top.table("receiver")
    ends = endpoint(sender), endpoint(there)
    seed = read_seed(top)
    plan = Plan(
        name=name,
        title=top.take("title", read.text, name),
        study=top.take("study", read.text, "") or None,
        trials=trials or own_trials,
        sender=ends[0],
        receiver=ends[1],
        address=there.take("address", read.text, "127.0.0.1"),
        port=there.take("port", read.port, 5010),
        tracer=read_tracer(top.table("tracer"), *ends),
        interval_s=max(INTERVAL_LEAST_S, top.take("interval", read.long_duration, 1.0)),
        pause_s=top.take("pause", read.duration, 0.0),
        tests=in_order(top, [test for table in tests for test in read_test(table, own_trials)], seed),
        seed=seed,
    )
    for table in (sender, there, top):
        table.end()
    return plan


def plan_text(name: str) -> tuple[str, str, str]:
    """Returns text, file and name of a plan: a built-in one, or a file. InputError if neither exists."""
    if name in BUILT_IN:
        folder = files("wiretale.traffic.experiment").joinpath("plans")
        return folder.joinpath(f"{name}.toml").read_text("utf-8"), name, name
    path = Path(name)
    try:
        with path.open("rb") as opened:
            content = opened.read(PLAN_BYTES_MOST + 1)
        if len(content) > PLAN_BYTES_MOST:
            raise InputError(f"{name}: expected a plan of at most {PLAN_BYTES_MOST} bytes")
        return content.decode(), name, path.stem
    except InputError:
        raise
    except FileNotFoundError:
        # A name is a wrong choice, as that of a profile; a path is a file that is missing.
        kind = InputError if path.suffix or len(path.parts) > 1 else UsageError
        raise kind(f"{name}: no such plan: expected a file, or one of {', '.join(BUILT_IN)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: expected text in UTF-8") from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}") from None


def with_sessions(plan: Plan, change: Callable[[Session], Session]) -> Plan:
    """Returns a plan with every session changed."""
    return replace(plan, tests=tuple(replace(t, sessions=tuple(map(change, t.sessions))) for t in plan.tests))


def scaled(plan: Plan, scale: float) -> Plan:
    """Returns a plan with scaled counts, times and offsets; a shorter one has shorter report intervals."""

    def scaled_session(session: Session) -> Session:
        count = session.count and max(1, round(session.count * scale))
        seconds = session.seconds and session.seconds * scale
        return replace(session, count=count, seconds=seconds, start_s=session.start_s * scale)

    def scaled_test(test: Test) -> Test:
        return replace(test, programs=tuple(program.scaled(scale) for program in test.programs))

    interval_s = max(INTERVAL_LEAST_S, plan.interval_s * min(scale, 1))
    plan = replace(plan, tests=tuple(map(scaled_test, plan.tests)), interval_s=interval_s)
    return with_sessions(plan, scaled_session)


def with_file(plan: Plan, file: str) -> Plan:
    """Returns a plan that sends a file instead of its payload. UsageError if a session cannot send one."""

    def sending_file(session: Session) -> Session:
        reverse = "expected no reverse, because a file goes to the receiver" if session.sending.reverse else None
        if why := reverse or size_fault(session.protocol, session.block_bytes, True):
            raise UsageError(f"--file: session {session.label}: {why}")
        return replace(session, count=None, seconds=None, pattern=None, turns=None, draw=False, file=file)

    return with_sessions(plan, sending_file)


def with_least(plan: Plan, size: int | None, count: int | None) -> Plan:
    """Returns a plan without tests of blocks below a size, whose sessions with a count send at least so many blocks.

    Sizes are nominal, without the bytes of `header`. UsageError if no test is left.
    """
    if size is not None:
        tests = [t for t in plan.tests if all(s.block_bytes - s.header_bytes >= size for s in t.sessions)]
        if not tests:
            raise UsageError(f"--min-size {size}: expected at most the largest size of the plan")
        plan = replace(plan, tests=tuple(tests))
    if count is None:
        return plan
    return with_sessions(plan, lambda session: replace(session, count=session.count and max(session.count, count)))
