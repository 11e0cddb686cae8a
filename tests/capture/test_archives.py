# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/howto/data-protection.md, run by --on-close: archives without addresses, and encrypted ones."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import needs
from capture_link import CaptureLink, packets_in
from checkout import ROOT
from processes import output

pytestmark = pytest.mark.xdist_group("capture")

SCRIPTS = re.findall(r"```bash\n(#!/bin/sh\n.*?)```", (ROOT / "docs/howto/data-protection.md").read_text(), re.S)
SENDER = bytes.fromhex("020000000001")


def archived(link: CaptureLink, folder: Path, number: int) -> Path:
    """The file that the script made of a capture of 20 packets, which is gone."""
    script, captures, archive = folder / "script", folder / "captures", folder / "archive"
    captures.mkdir()
    archive.mkdir()
    text = SCRIPTS[number].replace("/etc/wiretale/", f"{folder}/").replace("/archive/", f"{archive}/")
    script.write_text(text.replace("wiretale cut", f"{sys.executable} -m wiretale cut"))
    script.chmod(0o755)
    with link.daemon("-Z", "root", "--on-close", f"{script} {{}}", into=captures / "day.pcapng") as daemon:
        link.send(20)
        assert daemon.stop() == 0, daemon.messages()
    (made,) = [*archive.iterdir(), *captures.glob("[!.]*")]
    return made


def test_an_archive_has_no_addresses(link: CaptureLink, tmp_path: Path) -> None:
    (tmp_path / "pseudonyms.key").write_text("any secret of your own")
    made = archived(link, tmp_path, 0)
    assert packets_in(made) == 20 and SENDER not in made.read_bytes()


def test_an_archive_is_opened_by_its_key_alone(link: CaptureLink, tmp_path: Path) -> None:
    needs.skip_without(needs.programs("openssl"))
    key, certificate, opened = tmp_path / "archive.key", tmp_path / "archive.pem", tmp_path / "opened.pcapng"
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=archive")
    output(*new, "-keyout", str(key), "-out", str(certificate))
    made = archived(link, tmp_path, 1)
    assert made.name == "day.pcapng.cms" and SENDER not in made.read_bytes()
    output("openssl", "cms", "-decrypt", "-inform", "DER", "-inkey", str(key), "-in", str(made), "-out", str(opened))
    assert packets_in(opened) == 20 and SENDER in opened.read_bytes()
