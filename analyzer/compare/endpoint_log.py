# SPDX-License-Identifier: Apache-2.0
"""Reads the reports of both ends of a test: the JSON of wiretale send and receive."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError

SCHEMAS = ("wiretale.send/1", "wiretale.receive/1")
LOG_BYTES_MAX = 256 * 1024 * 1024


@dataclass
class EndpointLog:
    """One test in one direction; counts that no log has are None."""

    run: int | None
    protocol: str | None
    #: requested blocks; None for a test by time or bytes
    planned: int | None = None
    sent: int | None = None
    sent_bytes: int | None = None
    #: failed sends by reason
    send_errors: dict[str, int] = field(default_factory=dict)
    received: int | None = None
    received_bytes: int | None = None
    #: drops of the receiver's kernel, by its counters
    host_dropped: int | None = None
    host_dropped_source: str | None = None
    #: losses in hosts by place, by the counters of both kernels; empty over TCP, and if one is unknown
    counted: dict[str, int] = field(default_factory=dict)
    complete: bool | None = None


def whole_number(value: object) -> int | None:
    """Returns a count; None if the value is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def objects_in(text: str) -> Iterator[Any]:
    """Yields JSON objects: one per line, or one over the whole file. Raises ValueError if it is neither."""
    try:
        yield json.loads(text)
    except ValueError:
        for line in text.splitlines():
            if line.strip():
                yield json.loads(line)


def read_reports(path: str) -> list[dict[str, Any]]:
    """Returns the reports in a file without interval lines. Raises InputError without any."""
    try:
        if Path(path).stat().st_size > LOG_BYTES_MAX:
            raise InputError(
                f"{path}: expected a log of wiretale send or receive --json, of at most {LOG_BYTES_MAX:,} bytes"
            )
        objects = list(objects_in(Path(path).read_text("utf-8")))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: expected JSON, the output of wiretale send or receive --json") from None
    reports = [report for report in objects if isinstance(report, dict) and report.get("schema") in SCHEMAS]
    if not reports:
        raise InputError(
            f'{path}: expected the output of wiretale send or receive --json, an object with "schema" {" or ".join(SCHEMAS)}'
        )
    return reports


def part(report: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns a member that is an object, else an empty one."""
    value = report.get(name)
    return value if isinstance(value, dict) else {}


def first_count(sources: Sequence[dict[str, Any]], name: str) -> int | None:
    """Returns the first count of that name."""
    return next((count for source in sources if (count := whole_number(source.get(name))) is not None), None)


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def counted_losses(reports: Sequence[dict[str, Any]], name: str) -> dict[str, int]:
    """Returns the losses in hosts by place, if the counters of both are known, so that the network had the rest."""
    members = {"sender_host": "sender_host", "receiver_host": "receiver_kernel", "receiver_program": "application"}
    for losses in (part(report, name) for report in reports):
        counts = {place: whole_number(losses.get(member)) for member, place in members.items()}
        counted = {place: count for place, count in counts.items() if count is not None}
        if len(counted) == len(members) and whole_number(losses.get("path")) is not None:
            return counted
    return {}


def merge_reports(sent: dict[str, Any], got: dict[str, Any], reverse: bool = False) -> EndpointLog:
    """Merges the reports of both ends about one test: each end's own counts, else those that it got from the other."""
    test = {**part(got, "test"), **part(sent, "test")}
    top = {} if reverse else {**got, **sent}
    prefix = "reverse_" if reverse else ""
    if reverse:  # the receiver of the forward direction sends
        sent, got = got, sent
    senders = [part(sent, f"{prefix}sender"), part(got, f"{prefix}sender")]
    receivers = [part(got, f"{prefix}receiver"), part(sent, f"{prefix}receiver")]
    errors = senders[0].get("send_errors") or senders[1].get("send_errors") or {}
    sources = (text_of(receiver.get("host_dropped_source")) for receiver in receivers)
    complete = sent.get("complete", got.get("complete"))
    return EndpointLog(
        run=whole_number(test.get("run")),
        protocol=text_of(test.get("protocol")),
        planned=whole_number(test.get("count")),
        sent=first_count([*senders, top], "blocks_sent"),
        sent_bytes=first_count([*senders, top], "bytes_sent"),
        send_errors={str(k): v for k, v in errors.items() if whole_number(v)} if isinstance(errors, dict) else {},
        received=first_count([*receivers, top], "blocks_received"),
        received_bytes=first_count([*receivers, top], "bytes_received"),
        host_dropped=first_count(receivers, "host_dropped"),
        host_dropped_source=next((source for source in sources if source is not None), None),
        counted=counted_losses([sent, got], "reverse_losses" if reverse else "losses"),
        complete=complete if isinstance(complete, bool) else None,
    )


def by_run(reports: Sequence[dict[str, Any]]) -> dict[int | None, dict[str, Any]]:
    """Returns the last report of each run."""
    return {whole_number(part(report, "test").get("run")): report for report in reports}


def read_logs(sender_log: str | None, receiver_log: str | None) -> list[EndpointLog]:
    """Returns the tests in the logs. Raises InputError if a file is no log."""
    sent = by_run(read_reports(sender_log)) if sender_log else {}
    got = by_run(read_reports(receiver_log)) if receiver_log else {}
    logs = []
    for run in {**sent, **got}:
        pair = sent.get(run, {}), got.get(run, {})
        logs.append(merge_reports(*pair))
        if any("reverse_sender" in report for report in pair):
            logs.append(merge_reports(*pair, reverse=True))
    return logs
