# SPDX-License-Identifier: Apache-2.0
"""Captures for agents, over the Model Context Protocol."""
