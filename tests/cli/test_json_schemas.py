# SPDX-License-Identifier: Apache-2.0
"""What commands print with --json is as its JSON Schema says, and has no member that the schema lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from checkout import ROOT, SAMPLES, Run

jsonschema = pytest.importorskip("jsonschema")
SCHEMAS = ROOT / "reports" / "export" / "schemas"
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


def closed(schema: Any) -> Any:
    """The schema without room for further members, unless any name may be one."""
    if not isinstance(schema, dict):
        return schema
    inner = {
        name: {key: closed(member) for key, member in part.items()} if name == "properties" else closed(part)
        for name, part in schema.items()
    }
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


def check(text: str) -> str:
    """Validates an object; returns the name of its schema."""
    document = json.loads(text)
    name = str(document["schema"])
    schema = json.loads((SCHEMAS / f"{name.removeprefix('wiretale.').replace('/', '-')}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(closed(schema)).validate(document)
    return name


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
