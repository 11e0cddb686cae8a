# SPDX-License-Identifier: Apache-2.0
"""What a link can carry, by arithmetic alone."""
