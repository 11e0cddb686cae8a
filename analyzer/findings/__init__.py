# SPDX-License-Identifier: Apache-2.0
"""Rules over the tables, and the findings that they make."""
