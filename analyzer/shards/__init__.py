# SPDX-License-Identifier: Apache-2.0
"""Captures split into shards that other machines analyze, and their rows gathered to those of one run (docs/split.md)."""
