# SPDX-License-Identifier: Apache-2.0
"""wiretale doctor on this machine."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wiretale.cli import doctor


def test_bounds_are_those_of_the_package(samples: Path) -> None:
    setup = configparser.ConfigParser()
    setup.read(samples.parent / "setup.cfg")
    required = set(setup["options"]["install_requires"].split())
    assert required == {
        f"{name}>={'.'.join(map(str, least))}" + (f",<{'.'.join(map(str, beyond))}" if beyond else "")
        for name, least, beyond in doctor.MODULES
    }


def test_versions_are_compared_as_numbers() -> None:
    assert doctor.check_module("rich", (1,), None).state == "ok"
    assert doctor.check_module("rich", (1,), (2,)).state == "warning"
    assert doctor.check_module("rich", (1000,), None).state == "warning"
    missing = doctor.check_module("no-such-package", (1,), (2,))
    assert missing.state == "missing" and missing.remedy.endswith("-m pip install 'no-such-package>=1,<2'")
    assert doctor.version_numbers("1.10.2rc1") == (1, 10, 2) > (1, 9)


def test_every_failed_check_names_its_remedy(wiretale_run: Any) -> None:
    done = wiretale_run("doctor", "--json")
    for check in json.loads(done.stdout)["checks"]:
        assert check["state"] in ("ok", "note", "warning", "missing")
        assert check["remedy"] or check["state"] == "ok" or "cannot be told" in check["found"], check


def test_offloads_are_those_of_the_kernel() -> None:
    assert doctor.offload_features("no-such-dev0") is None
    features = doctor.offload_features("lo")
    assert features is None or set(features) <= {"tso", "gso", "gro", "lro"}


@pytest.mark.parametrize(("module", "words"), [("rich", "rich is missing"), ("wiretale.analyzer._core", "native core")])
def test_a_missing_part_is_one_line(samples: Path, module: str, words: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None\nfrom wiretale.cli import main\nsys.exit(main(sys.argv[1:]))"
    arguments = [sys.executable, "-c", code, "analyze", str(samples / "vlan_ipv6.pcap")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 5 and words in done.stderr
    assert done.stderr.startswith("wiretale: ") and done.stderr.count("\n") == 1
