# SPDX-License-Identifier: Apache-2.0
"""setup.cfg names every folder of Python files: an editable installation works without, a wheel does not."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

from checkout import ROOT


def package_of(folder: Path, homes: dict[str, Path]) -> str | None:
    """Returns the package whose modules a folder has; None if no home is above it."""
    for package, home in homes.items():
        if folder == home or home in folder.parents:
            return ".".join([package, *folder.relative_to(home).parts])
    return None


def test_every_package_is_in_the_wheel() -> None:
    declared = ConfigParser()
    declared.read(ROOT / "setup.cfg")
    entries = declared["options"]["package_dir"].split("\n")
    homes = {
        name.strip(): ROOT / place.strip() for name, _, place in (entry.partition("=") for entry in entries if entry)
    }
    existing = {package_of(path.parent, homes) for home in homes.values() for path in home.rglob("*.py")}
    assert set(declared["options"]["packages"].split()) == existing - {None} and len(existing) > 30
