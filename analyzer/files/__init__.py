# SPDX-License-Identifier: Apache-2.0
"""Files beyond plain reading: those that must survive a crash, and captures at URLs."""
