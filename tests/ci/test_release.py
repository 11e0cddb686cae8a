# SPDX-License-Identifier: Apache-2.0
"""What a release is made of: versions that agree, places for the owner's addresses, and the bill of materials of a wheel."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import needs
from checkout import ROOT
from wiretale.version import __version__

pytestmark = needs.marked(needs.ci())


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_the_same_version() -> None:
    assert f"\n## [{__version__}]\n" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "debian/changelog").read_text().startswith(f"wiretale ({__version__}) ")


def test_the_debian_command_starts_wiretale_again(tmp_path: Path) -> None:
    for file, text in {
        "wiretale/__init__.py": "",
        "wiretale/__main__.py": "print('again')",
        "wiretale/cli.py": "import subprocess, sys\ncommand = lambda: subprocess.call([sys.executable, '-P', '-m', 'wiretale'])",
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    script = (ROOT / "debian/wiretale.script").read_text()
    assert script.count('"/usr/lib/wiretale"') == 1
    command = [sys.executable, "-I", "-c", script.replace("/usr/lib/wiretale", str(tmp_path))]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "again\n"


def test_the_owner_fills_in_addresses_once() -> None:
    owner = script("owner")
    filled = owner.filled
    text = "to @owner:security@\n#@owner:repository url: @owner:repository@/issues\n"
    assert filled(text, {"security": "", "repository": ""}) == text
    facts = {"security": "a@b.example", "repository": "https://b.example/w"}
    assert filled(text, facts) == "to a@b.example\nurl: https://b.example/w/issues\n"
    # each fact has a place, and no file has one without a fact
    waiting = {name for _, text in owner.files(ROOT) for name in owner.places(text)}
    by_owner = tomllib.loads((ROOT / ".ci/owner.toml").read_text())
    assert waiting == {name for name, fact in by_owner.items() if not fact}
    assert filled(f"Maintainer: {owner.STANDING['maintainer']}\n", {"maintainer": "A <a@b>"}) == "Maintainer: A <a@b>\n"


def test_a_bill_has_what_a_wheel_contains_and_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "wiretale-1.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    requires = "Requires-Dist: duckdb<3,>=2\nRequires-Dist: scapy>=2.6; extra == 'packets'\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        head = "Name: wiretale\nVersion: 1.0\nLicense: Apache-2.0\n"
        archive.writestr("wiretale-1.0.dist-info/METADATA", head + requires)
        page = "reports/html/page/plotly-cartesian.min.js.gz"
        archive.write(ROOT / page, f"wiretale/{page}")
    sbom = script("sbom")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    bill = sbom.bill(wheel)
    assert "timestamp" not in bill["metadata"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert sbom.bill(wheel)["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    parts = {part["name"] for part in bill["components"]}
    assert {"plotly.js-cartesian-dist-min", "duckdb"} <= parts and "scapy" not in parts
    if sbom.SOURCES.exists():
        assert {"libpcap", "nettle"} <= parts


def test_a_page_carries_the_licenses_of_what_it_contains() -> None:
    licenses = (ROOT / "reports/html/page/plotly-LICENSE.txt").read_text()
    assert re.search(r"plotly\.js \d.*Plotly", licenses) and "</" not in licenses
    assert (
        '<script type="text/plain" id="licenses">{{ licenses|safe }}'
        in (ROOT / "reports/html/page/page.html").read_text()
    )
