"""The plot of `benchmarks.quality`: evidence against tokens, as SVG that reads on light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 360, 52, 16, 210, 40
_COLOURS = ("#0b7285", "#2f9e44", "#868e96", "#e8590c", "#9c36b5", "#1971c2", "#c2255c")


def plot(means: Mapping[str, Sequence[float]], budgets: Sequence[int]) -> str:
    """Return the means of each contestant at each budget as an SVG."""

    def x(number: int) -> float:
        return _LEFT + number * (_WIDTH - _LEFT - _RIGHT) / (len(budgets) - 1)

    def y(value: float) -> float:
        return _TOP + (1 - value) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#868e96">',
        "<title>Share of the messages that answer which a prompt shows, by its tokens of memory</title>",
    ]
    for tenth in range(0, 11, 2):
        parts.append(
            f'<path d="M{_LEFT} {y(tenth / 10):.1f}H{_WIDTH - _RIGHT}" stroke="#868e96" stroke-opacity=".3"/>'
            f'<text x="{_LEFT - 8}" y="{y(tenth / 10) + 4:.1f}" text-anchor="end">{tenth * 10} %</text>'
        )
    for number, budget in enumerate(budgets):
        parts.append(f'<text x="{x(number):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{budget:,} tokens</text>')
    ranked = sorted(means, key=lambda who: -means[who][-1])
    for place, who in enumerate(ranked):
        colour = _COLOURS[list(means).index(who) % len(_COLOURS)]
        points = " ".join(f"{x(number):.1f},{y(value):.1f}" for number, value in enumerate(means[who]))
        width = 3 if who.startswith("Palimpsest") else 1.5
        label = _TOP + 16 + 22 * place
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            f'<path d="M{_WIDTH - _RIGHT + 14} {label - 4}h18" stroke="{colour}" stroke-width="{width}"/>'
            f'<text x="{_WIDTH - _RIGHT + 38}" y="{label}">{escape(who)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
