# SPDX-License-Identifier: Apache-2.0
"""Causes: what explains findings, and the answer that follows."""
