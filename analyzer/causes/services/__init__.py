# SPDX-License-Identifier: Apache-2.0
"""Services that fail or refuse: calls, logins and boot files; routers and ports of a LAN that disagree."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.services import (
    associations,
    bgp,
    blocked,
    boot_files,
    calls,
    http2,
    leases,
    logins,
    polls,
    quic_closed,
    refused,
    routers,
    wlan,
)

CHAPTER = "Calls, logins, boot files and routers"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    calls,
    logins,
    blocked,
    refused,
    leases,
    bgp,
    http2,
    quic_closed,
    associations,
    polls,
    boot_files,
    routers,
    wlan,
)
