# SPDX-License-Identifier: Apache-2.0
"""From tables to what people and programs read."""
