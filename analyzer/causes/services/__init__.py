# SPDX-License-Identifier: Apache-2.0
"""Services that fail or refuse: calls, logins and boot files; routers and ports of a LAN that disagree."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.services import bgp, boot_files, calls, leases, logins, refused, routers

CHAPTER = "Calls, logins, boot files and routers"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (calls, logins, refused, leases, bgp, boot_files, routers)
