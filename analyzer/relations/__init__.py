# SPDX-License-Identifier: Apache-2.0
"""Flows that are one conversation, seen at several places or several times."""
