# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --json` is as its JSON Schema says, and has no member that it lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkout import ROOT, SAMPLES, Run

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = ROOT / "reports" / "export" / "schemas" / "analyze-3.json"


def closed(schema: Any) -> Any:
    """The schema without room for further members."""
    if not isinstance(schema, dict):
        return schema
    inner = {
        name: {key: closed(member) for key, member in part.items()} if name == "properties" else closed(part)
        for name, part in schema.items()
    }
    return {**inner, "additionalProperties": False} if "properties" in schema else inner


@pytest.mark.skipif(not SCHEMA.exists(), reason="not in a checkout")
@pytest.mark.parametrize("name", ["tcp_losses.pcap", "udp_blocks.pcap", "findings/dns-failed.pcap.gz", "damaged.pcap"])
def test_the_output_is_as_its_schema_says(name: str, wiretale_run: Run) -> None:
    done = wiretale_run(SAMPLES / name, "--json", "--fail-if", "lost>0", "--fail-if", "cause=policer")
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(closed(schema)).validate(json.loads(done.stdout))
