# SPDX-License-Identifier: Apache-2.0
"""The commands of a split: captures into shards, and the rows of all shards into one result (docs/split.md)."""
