"""Lines over a number, as SVG that reads on light and dark pages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 360, 64, 16, 240, 44
_COLOURS = ("#0b7285", "#2f9e44", "#868e96", "#e8590c", "#9c36b5", "#1971c2", "#c2255c")
Line = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: what it counts, where its marks are, and whether each step multiplies."""

    name: str
    marks: Sequence[float]
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies between the first mark (0) and the last (1)."""
        first, last, at = self.marks[0], self.marks[-1], value
        if self.is_log:
            first, last, at = math.log(first), math.log(last), math.log(max(value, self.marks[0]))
        return (at - first) / (last - first)


def line_plot(title: str, x: Axis, y: Axis, lines: Mapping[str, Line], thick: str = "Palimpsest") -> str:
    """Return the lines as an SVG; those whose name begins with `thick` are drawn thicker."""

    def across(value: float) -> float:
        return _LEFT + x.share(value) * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return _TOP + (1 - y.share(value)) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#868e96">',
        f"<title>{escape(title)}</title>",
    ]
    for mark in y.marks:
        parts.append(
            f'<path d="M{_LEFT} {down(mark):.1f}H{_WIDTH - _RIGHT}" stroke="#868e96" stroke-opacity=".3"/>'
            f'<text x="{_LEFT - 8}" y="{down(mark) + 4:.1f}" text-anchor="end">{mark:,g}</text>'
        )
    for mark in x.marks:
        parts.append(f'<text x="{across(mark):.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{mark:,g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x.name)}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT + 14}" y="{_TOP + 10}">{escape(y.name)}</text>')
    for place, (who, line) in enumerate(lines.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        points = " ".join(f"{across(at):.1f},{down(value):.1f}" for at, value in line)
        width = 2.5 if who.startswith(thick) else 1.2
        label = _TOP + 36 + 22 * place
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            f'<path d="M{_WIDTH - _RIGHT + 14} {label - 4}h18" stroke="{colour}" stroke-width="{width}"/>'
            f'<text x="{_WIDTH - _RIGHT + 38}" y="{label}">{escape(who)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
