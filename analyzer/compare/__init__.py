# SPDX-License-Identifier: Apache-2.0
"""Captures of one traffic at two or more capture points, joined packet by packet."""
