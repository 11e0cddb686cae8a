# SPDX-License-Identifier: Apache-2.0
"""From captures to tables and findings."""
