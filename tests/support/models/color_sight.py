# SPDX-License-Identifier: Apache-2.0
"""Colors as people see them: contrast (WCAG 2), difference (CIEDE2000), and color blindness."""

from __future__ import annotations

import math

Color = tuple[float, float, float]  # sRGB, 0 to 1

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE TVCG 15(6)
# 2009, table 1, severity 1.0; for linear RGB.
SIGHTS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# Linear sRGB to XYZ with the white of D65 (IEC 61966-2-1).
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def linear(value: float) -> float:
    """A part of an sRGB color as light."""
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def times(matrix: tuple[tuple[float, float, float], ...], color: Color) -> Color:
    """A matrix times a color."""
    first, second, third = (sum(factor * part for factor, part in zip(row, color, strict=True)) for row in matrix)
    return first, second, third


def light(color: Color, sight: str = "normal") -> Color:
    """Linear RGB, as seen."""
    red, green, blue = times(SIGHTS[sight], (linear(color[0]), linear(color[1]), linear(color[2])))
    return min(1, max(0, red)), min(1, max(0, green)), min(1, max(0, blue))


def lab(seen: Color) -> Color:
    """CIELAB of linear RGB."""

    def root(value: float) -> float:
        return math.cbrt(value) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116

    x, y, z = (root(part / white) for part, white in zip(times(XYZ, seen), WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(first: Color, second: Color, sight: str = "normal") -> float:
    """CIEDE2000 of two colors as seen."""
    return ciede2000(lab(light(first, sight)), lab(light(second, sight)))


def ciede2000(first: Color, second: Color) -> float:
    """Of two CIELAB colors, after Sharma, Wu, Dalal: The CIEDE2000 Color-Difference Formula, 2005."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 if a or b else 0.0 for a, b in ((a1, b1), (a2, b2)))
    turn = 0.0 if not c1 * c2 else (h2 - h1 + 180) % 360 - 180
    delta_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    t = 1 - 0.17 * math.cos(math.radians(mean_h - 30)) + 0.24 * math.cos(math.radians(2 * mean_h))
    t += 0.32 * math.cos(math.radians(3 * mean_h + 6)) - 0.20 * math.cos(math.radians(4 * mean_h - 63))
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    r_c = 2 * math.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    r_t = -math.sin(math.radians(60 * math.exp(-(((mean_h - 275) / 25) ** 2)))) * r_c
    l_part, c_part, h_part = (l2 - l1) / s_l, (c2 - c1) / s_c, delta_h / s_h
    return math.sqrt(l_part**2 + c_part**2 + h_part**2 + r_t * c_part * h_part)


def contrast(first: Color, second: Color) -> float:
    """WCAG 2: from 1 to 21."""
    darker, lighter = sorted(times(XYZ, light(color))[1] for color in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def from_hex(text: str) -> Color:
    """Of `#rrggbb`."""
    red, green, blue = (int(text[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue
