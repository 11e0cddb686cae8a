# SPDX-License-Identifier: Apache-2.0
"""From flows of a capture to a plan that sends such flows, and the test whether they agree."""
