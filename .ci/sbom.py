# SPDX-License-Identifier: Apache-2.0
"""Writes a software bill of materials (CycloneDX 1.6) beside a wheel: python .ci/sbom.py WHEEL...

It lists what a wheel contains (plotly.js; in a manylinux wheel also the libraries that are linked statically) and needs.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sys
import tomllib
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / ".ci" / "wheels" / "sources.toml"
PLOTLY = "wiretale/reports/html/page/plotly-cartesian.min.js.gz"
PLOTLY_LICENSE = "MIT AND BSD-3-Clause AND Zlib"
REQUIREMENT = re.compile(r"([\w.-]+)\s*([^;]*?)\s*(?:;\s*(.*))?$")


def component(name: str, version: str, purl: str, license_name: str = "", **more: Any) -> dict[str, Any]:
    """Returns a component; without a version, any that fits will do."""
    licenses = [{"expression": license_name}] if license_name else []
    numbered = {"version": version} if version else {}
    reference = f"{purl}@{version}" if version else purl
    kind = more.pop("kind", "library")
    licensed = {"licenses": licenses} if licenses else {}
    return {"type": kind, "bom-ref": reference, "name": name, **numbered, "purl": reference, **licensed, **more}


def required(metadata: Message) -> Iterator[dict[str, Any]]:
    """Yields the Python packages that pip installs with the wheel."""
    for line in metadata.get_all("Requires-Dist", []):
        matched = REQUIREMENT.match(line)
        if matched and "extra" not in (matched[3] or ""):
            name = matched[1].lower()
            bounds: dict[str, Any] = (
                {"properties": [{"name": "wiretale:bounds", "value": matched[2]}]} if matched[2] else {}
            )
            yield component(name, "", f"pkg:pypi/{name}", **bounds)


def contained(wheel: zipfile.ZipFile, name: str) -> Iterator[dict[str, Any]]:
    """Yields what the wheel has inside, beside wiretale."""
    version = re.search(r"plotly\.js .*?v([\d.]+)", gzip.decompress(wheel.read(PLOTLY))[:400].decode())
    if not version:
        raise SystemExit(f"{PLOTLY} has no version in its first lines")
    yield component("plotly.js-cartesian-dist-min", version[1], "pkg:npm/plotly.js-cartesian-dist-min", PLOTLY_LICENSE)
    if "manylinux" in name and SOURCES.exists():
        for library in tomllib.loads(SOURCES.read_text("utf-8"))["library"]:
            package = f"pkg:deb/debian/{library['package']}"
            yield component(library["package"], library["version"], package, library["license"])


def bill(path: Path) -> dict[str, Any]:
    """Returns the bill of a wheel."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with zipfile.ZipFile(path) as wheel:
        (file,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(file).decode("utf-8"))
        parts = [*contained(wheel, path.name), *required(metadata)]
    name, version = metadata["Name"], metadata["Version"]
    hashes = [{"alg": "SHA-256", "content": digest}]
    subject = component(
        name,
        version,
        f"pkg:pypi/{name}",
        metadata["License-Expression"] or metadata["License"],
        kind="application",
        hashes=hashes,
    )
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    made = {"timestamp": datetime.fromtimestamp(int(epoch), UTC).isoformat().replace("+00:00", "Z")} if epoch else {}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, digest).urn,
        "version": 1,
        "metadata": {**made, "component": subject},
        "components": parts,
        "dependencies": [
            {"ref": subject["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


def main() -> None:
    """Writes WHEEL.cdx.json for each wheel."""
    for name in sys.argv[1:]:
        Path(f"{name}.cdx.json").write_text(json.dumps(bill(Path(name)), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
