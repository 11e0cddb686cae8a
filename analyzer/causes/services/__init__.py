# SPDX-License-Identifier: Apache-2.0
"""Services over UDP that fail: calls, logins and boot files."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.services import boot_files, calls, logins

CHAPTER = "Calls, logins and boot files"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (calls, logins, boot_files)
