# SPDX-License-Identifier: Apache-2.0
"""The objects that commands print with --json, in short, except for that of `analyze`; json_schemas.py makes schemas of them.

A shape is the name of a type ("integer", "string?" if it may be null), a list of the shape of its elements, or a dict of
members: "name~" may be missing, and "*" is any other name. `of()` reads a record's own declaration.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from json_shapes_programs import PROGRAM_SHAPES, VERSION, Nullable

from wiretale.analyzer.causes.answer import Answer
from wiretale.analyzer.compare.rows import CaptureInterface, ComparedFlowRow, LostPacketRow
from wiretale.analyzer.diff.run import RunFinding
from wiretale.analyzer.theory.capacity import BlockMaximum, Maximum, PathBounds, Stream
from wiretale.analyzer.verify.comparison import Difference, Reason
from wiretale.cli.doctor import Check
from wiretale.reports.export import baseline, compare, diff, explain, theory, verify
from wiretale.traffic.model.agreement import Measure

Shape = Any
BASIC = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: ""}


def of(declared: Any, **more: Shape) -> dict[str, Shape]:
    """Returns the shape of a TypedDict, NamedTuple or dataclass, with further members."""
    hints = typing.get_type_hints(declared, include_extras=True)
    if dataclasses.is_dataclass(declared):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(declared)}
    members = {}
    for name, hint in hints.items():
        optional = typing.get_origin(hint) is typing.NotRequired
        members[f"{name}~" if optional else name] = of_type(typing.get_args(hint)[0] if optional else hint)
    return members | more


def of_type(hint: Any) -> Shape:
    """Returns the shape of a type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        shapes = [of_type(part) for part in parts if part is not types.NoneType]
        (shape,) = shapes
        return nullable(shape) if types.NoneType in parts else shape
    if origin is list:
        return [of_type(parts[0])]
    if origin is dict:
        return {"*": of_type(parts[1])}
    return BASIC[hint] if hint in BASIC else of(hint)


def nullable(shape: Shape) -> Shape:
    return f"{shape}?" if isinstance(shape, str) else Nullable(shape)


RUN = {"path": "string", "kind": "string", "damaged": "boolean", "answer": "string?"}
CHANGE = {
    **dict.fromkeys(("measure", "unit"), "string"),
    **dict.fromkeys(("a", "b", "change", "change_percent"), "number?"),
    "verdict": "string?",
}
CONDITIONS = [{"condition": "string", "value": "number|string?", "unit": "string", "holds": "boolean?"}]
POINT = {
    "role": "string",
    "files": ["string"],
    **dict.fromkeys(("packets", "not_ip", "unread"), "integer"),
    **dict.fromkeys(("first_ns", "last_ns", "dropped"), "integer?"),
    "interfaces": [of(CaptureInterface)],
    "damage": ["string"],
}
LEDGER = {
    **dict.fromkeys(("title", "unit"), "string"),
    "run": "integer?",
    **dict.fromkeys(("sent", "arrived"), "integer?"),
    "lost": {"*": "integer"},
    "lost_total": "integer",
    "stages": [{"stage": "string", "seen": "integer?", "had": "integer?", "missed": "integer?"}],
    "tracer_saw_all": "boolean?",
    **dict.fromkeys(("tracer_missed", "copies", "incomplete_datagrams"), "integer?"),
    "notes": ["string"],
}
CLOCK = {
    **dict.fromkeys(("from", "to", "evidence"), "string"),
    **dict.fromkeys(("offset_ns", "error_ns", "offset_at_ns", "least_rtt_ns"), "integer?"),
    **dict.fromkeys(("skew_ppm", "skew_error_ppm"), "number?"),
    "steps": [{"time_ns": "integer", "change_ns": "integer"}],
    **dict.fromkeys(("packets_forward", "packets_back"), "integer"),
    "assumption": "string?",
}
DELAYS = ("min", "mean", "median", "p90", "p99", "max", "deviation", "jitter")
DELAY = {
    **dict.fromkeys(("from", "to"), "string"),
    "absolute": "boolean",
    "error_ns": "integer?",
    "packets": "integer",
    **{f"{name}_ns": "integer?" for name in DELAYS},
    "below_zero": "integer?",
}
STANDING = {
    "measure": "string",
    "service": "string?",
    "unit": "string",
    "b": "number?",
    "runs": "integer",
    **dict.fromkeys(("median", "p5", "p95", "least", "greatest", "change", "change_percent"), "number?"),
    **dict.fromkeys(("score", "p_alone", "p"), "number?"),
    "verdict": "string?",
}
FLOW_SIDE = {"flow": "integer", "direction": "integer?"}
CITED = {"capture": "integer", "frame": "integer", "role": "string"}
JUDGED = {"packets": "integer", "wire_bytes": "integer"}
PROTOCOL = of(
    Maximum,
    **{f"{name}~": shape for name, shape in of(BlockMaximum).items()},
    **{"largest_unfragmented_payload~": "integer", "block_problem~": "string", "stream~": of(Stream)},
)
TRANSFER = {
    **dict.fromkeys(("flow", "direction"), "integer"),
    **dict.fromkeys(("name", "protocol", "headline"), "string"),
    **dict.fromkeys(("application", "server_name", "limited_by", "exchange"), "string?"),
    "minor": "boolean",
    **dict.fromkeys(("share", "waited_seconds", "goodput_bps", "maximum_bps"), "number?"),
    "times": {"*": {"seconds": "number", "share": "number"}},
    "turns": Nullable({"count": "integer", "*": "number"}),
}
TITLED = [{"code": "string", "title": "string"}]
PAGE = {
    **VERSION,
    **dict.fromkeys(("code", "title"), "string"),
    "unknown": "string?",
    "example": Nullable({"*": "any"}),
}

#: By schema: commands that print it, and its members.
SHAPES: dict[str, tuple[str, dict[str, Shape]]] = {
    compare.SCHEMA: (
        "compare",
        {
            **VERSION,
            "answers": ["string"],
            "captures": [POINT],
            "losses": [LEDGER],
            "clocks": [CLOCK],
            "delays": [DELAY],
            "flows": [of(ComparedFlowRow)],
            "lost_packets": [of(LostPacketRow)],
            "lost_packets_total": "integer",
            "notes": ["string"],
        },
    ),
    diff.SCHEMA: (
        "diff",
        {
            **VERSION,
            **dict.fromkeys(("a", "b"), RUN),
            "verdict": "string?",
            "sentence": "string",
            "times": [{"part": "string", "a_seconds": "number", "b_seconds": "number", "change_seconds": "number"}],
            "findings": [
                {
                    "code": "string",
                    **dict.fromkeys(("a_count", "b_count"), "integer"),
                    **dict.fromkeys(("a_cost", "b_cost", "change"), "number?"),
                    "cost_unit": "string?",
                    "sentence": "string",
                }
            ],
            "changed_most": ["string"],
            "measures": [CHANGE],
            "flows": [{**dict.fromkeys(("a", "b", "matched_by"), "string?"), "measures": [CHANGE]}],
            "flows_total": "integer",
            "findings_appeared": [of(RunFinding)],
            "findings_gone": [of(RunFinding)],
            "conditions": CONDITIONS,
            "failed": "boolean",
        },
    ),
    baseline.SCHEMA: (
        "diff --store",
        {
            **VERSION,
            "store": "string",
            **dict.fromkeys(("runs", "runs_needed", "left_out"), "integer"),
            "level": "number",
            "b": RUN,
            "verdict": "string?",
            "sentence": "string",
            "unusual": [STANDING],
            "measures": [STANDING],
            "findings": [of(RunFinding, runs="integer")],
            "services_new": ["string"],
            "services_gone": ["string"],
            "conditions": CONDITIONS,
            "failed": "boolean",
        },
    ),
    theory.SCHEMA: (
        "theory",
        {
            **VERSION,
            "tcp_with_timestamps_bps": "number?",
            "path": Nullable(of(PathBounds)),
            **dict.fromkeys(("link_bps", "mtu", "ip", "tcp_options"), "integer"),
            "framing": "string",
            "block_bytes": "integer?",
            **dict.fromkeys(("tcp~", "udp~"), PROTOCOL),
        },
    ),
    verify.SCHEMA: (
        "verify",
        {
            **VERSION,
            "wireshark": "string?",
            "file": "string",
            "error": "string?",
            "kinds~": {"*": dict.fromkeys(("both", "wiretale_only", "wireshark_only"), "integer")},
            "reasons~": [of(Reason, count="integer")],
            "events_dropped~": "integer",
            "not_compared~": {"*": "integer"},
            "last_frame~": "integer?",
            "differences~": [of(Difference)],
        },
    ),
    explain.SCHEMA: (
        "analyze --all, and --finding or --cause without a capture",
        {
            **VERSION,
            "inputs~": ["string"],
            "answer~": of(Answer),
            "causes~": "causes",
            "judged~": {
                **JUDGED,
                **dict.fromkeys(("loss", "rtt", "limits"), JUDGED),
                "not_judged": ["any"],
                "sentence": "string",
            },
            "time~": {"*": "number"},
            "transfers~": [TRANSFER],
            "transfers_left_out~": "integer",
            "findings~": "findings",
            **{f"{name}~": shape for name, shape in PAGE.items() if name not in VERSION},
            **dict.fromkeys(("shows~", "severity~", "computed~"), "string"),
            "weakens~": "any",
            "explains~": ["string"],
            "rivals~": {"*": "string"},
        },
    ),
    "wiretale.finding-codes/1": ("analyze --list", {**VERSION, "findings": TITLED, "causes": TITLED}),
    "wiretale.doctor/1": ("doctor", {"checks": [of(Check)]}),
    "wiretale.labs/1": (
        "lab list",
        {
            "labs": [dict.fromkeys(("name", "profile", "status"), "string")],
            "profiles": [dict.fromkeys(("name", "description"), "string")],
            "traces": ["string"],
        },
    ),
    "wiretale.experiment-list/1": (
        "experiment list",
        {"plans": [{"name": "string", "title": "string", "tests": "integer"}]},
    ),
    "wiretale.model-check/1": (
        "experiment model --check",
        {**VERSION, "agrees": "boolean?", "measures": [of(Measure)]},
    ),
    "wiretale.store/1": (
        "store query, and store check",
        {"rows~": [{"*": "any"}], "problems~": [{"path": "string", "text": "string"}]},
    ),
    "wiretale.path/1": (
        "traffic path",
        {
            **dict.fromkeys(("host", "address"), "string"),
            "port": "integer",
            "reached": "boolean",
            "hops": [{"ttl": "integer", "address": "string?", "rtt_ns": ["integer?"], "*": "any"}],
        },
    ),
    "wiretale.interfaces/1": (
        "capture --list",
        {
            "interfaces": [
                {
                    "number": "integer?",
                    "name": "string",
                    "description": "string?",
                    **dict.fromkeys(("up", "loopback"), "boolean"),
                    "addresses": ["string"],
                    **dict.fromkeys(("link_types", "time_stamp_sources"), Nullable(["string"])),
                }
            ]
        },
    ),
}
SHAPES |= PROGRAM_SHAPES
#: Members of causes and findings in wiretale.explain, beside the columns of their tables.
BESIDE_COLUMNS: dict[str, dict[str, Shape]] = {
    "causes": {"frames": [{"*": "any"}], "flows": [FLOW_SIDE], "findings": ["integer"], "rivals": [{"*": "any"}]},
    "findings": {"evidence": "string?", "frames": [CITED], "flows": [FLOW_SIDE]},
}
