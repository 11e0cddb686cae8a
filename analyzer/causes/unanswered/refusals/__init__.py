# SPDX-License-Identifier: Apache-2.0
"""Ports that get no or no good answer while their host answers others: no listener, or a firewall."""
