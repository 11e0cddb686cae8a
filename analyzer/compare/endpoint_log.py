# SPDX-License-Identifier: Apache-2.0
"""What the programs at both ends said of a test: the JSON of wiretale-traffic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError

SCHEMAS = ("wiretale.send/1", "wiretale.receive/1")
LOG_BYTES_MOST = 256 * 1024 * 1024


@dataclass
class EndpointLog:
    """One test, one way. What no log tells is None."""

    run: int | None
    protocol: str | None
    #: blocks that were asked for; None for a test by time or bytes
    planned: int | None = None
    sent: int | None = None
    sent_bytes: int | None = None
    #: failed sends by their reason
    send_errors: dict[str, int] = field(default_factory=dict)
    received: int | None = None
    received_bytes: int | None = None
    duplicate: int | None = None
    corrupt: int | None = None
    #: what the receiver's kernel dropped, by its own counters
    host_dropped: int | None = None
    host_dropped_source: str | None = None
    complete: bool | None = None


def whole_number(value: object) -> int | None:
    """A count, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def objects_in(text: str) -> Iterator[Any]:
    """JSON objects, one a line or one over the whole file. ValueError when it is neither."""
    try:
        yield json.loads(text)
    except ValueError:
        for line in text.splitlines():
            if line.strip():
                yield json.loads(line)


def read_reports(path: str) -> list[dict[str, Any]]:
    """The reports in a file, interval lines left out. InputError when there are none."""
    try:
        if Path(path).stat().st_size > LOG_BYTES_MOST:
            raise InputError(
                f"{path}: expected a log of wiretale send or receive --json, of at most {LOG_BYTES_MOST:,} bytes"
            )
        found = list(objects_in(Path(path).read_text("utf-8")))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: expected JSON, the output of wiretale send or receive --json") from None
    reports = [one for one in found if isinstance(one, dict) and one.get("schema") in SCHEMAS]
    if not reports:
        raise InputError(
            f'{path}: expected the output of wiretale send or receive --json, an object with "schema" {" or ".join(SCHEMAS)}'
        )
    return reports


def part(report: dict[str, Any], name: str) -> dict[str, Any]:
    """A member that is an object, or an empty one."""
    value = report.get(name)
    return value if isinstance(value, dict) else {}


def first_number(*values: object) -> int | None:
    """The first that is a count."""
    return next((number for value in values if (number := whole_number(value)) is not None), None)


def merge_reports(sent: dict[str, Any], got: dict[str, Any], reverse: bool = False) -> EndpointLog:
    """One test as both ends tell it: each end of what it did itself, the other where it is silent."""
    test = {**part(got, "test"), **part(sent, "test")}
    way = "reverse_" if reverse else ""
    if reverse:  # the way back is sent by the receiver of the way forth
        sent, got = got, sent
    sender, told = part(sent, f"{way}sender"), part(got, f"{way}sender")
    receiver, heard = part(got, f"{way}receiver"), part(sent, f"{way}receiver")
    errors = sender.get("send_errors") or told.get("send_errors") or {}
    top = {} if reverse else {**got, **sent}
    return EndpointLog(
        run=whole_number(test.get("run")),
        protocol=test.get("protocol") if isinstance(test.get("protocol"), str) else None,
        planned=whole_number(test.get("count")),
        sent=first_number(sender.get("blocks_sent"), told.get("blocks_sent"), top.get("blocks_sent")),
        sent_bytes=first_number(sender.get("bytes_sent"), told.get("bytes_sent"), top.get("bytes_sent")),
        send_errors={str(k): v for k, v in errors.items() if whole_number(v)} if isinstance(errors, dict) else {},
        received=first_number(
            receiver.get("blocks_received"), heard.get("blocks_received"), top.get("blocks_received")
        ),
        received_bytes=first_number(
            receiver.get("bytes_received"), heard.get("bytes_received"), top.get("bytes_received")
        ),
        duplicate=first_number(receiver.get("blocks_duplicate"), heard.get("blocks_duplicate")),
        corrupt=first_number(receiver.get("blocks_corrupt"), heard.get("blocks_corrupt")),
        host_dropped=first_number(receiver.get("host_dropped"), heard.get("host_dropped")),
        host_dropped_source=next(
            (s for s in (receiver.get("host_dropped_source"), heard.get("host_dropped_source")) if isinstance(s, str)),
            None,
        ),
        complete=sent.get("complete", got.get("complete"))
        if isinstance(sent.get("complete", got.get("complete")), bool)
        else None,
    )


def by_run(reports: Sequence[dict[str, Any]]) -> dict[int | None, dict[str, Any]]:
    """The last report of each run."""
    return {whole_number(part(report, "test").get("run")): report for report in reports}


def read_logs(sender_log: str | None, receiver_log: str | None) -> list[EndpointLog]:
    """The tests that the logs tell of. InputError for a file that is no log."""
    sent = by_run(read_reports(sender_log)) if sender_log else {}
    got = by_run(read_reports(receiver_log)) if receiver_log else {}
    logs = []
    for run in {**sent, **got}:
        pair = sent.get(run, {}), got.get(run, {})
        logs.append(merge_reports(*pair))
        if any("reverse_sender" in report for report in pair):
            logs.append(merge_reports(*pair, reverse=True))
    return logs
