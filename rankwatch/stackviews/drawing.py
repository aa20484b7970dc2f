"""A drawing in SVG as it grows downwards: text, boxes and tooltips; what comes from names stays text."""

from __future__ import annotations

import html
import unicodedata

from rankwatch.stackviews.picture import one_line

WIDTH = 1200
MARGIN = 20
ROW = 20
LETTER = 6.7
"""Width (px) of a character of 11 px in the widest of the fonts that are asked for."""

_STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:11px;fill:#1c2330}"
    ".t,.s,.h,.l,.n{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif}"
    ".t{font-size:18px;font-weight:600}.s{font-size:13px}.h{font-size:14px;font-weight:600}"
    ".l,.n{font-size:12px}.n{fill:#5a6475}"
    "rect{stroke:#fff;stroke-width:1}"
    ".c{fill:#d3deea}.cl{fill:#e9eef4}"
    ".m{fill:#f3b45b}.ml{fill:#fbe0b5}"
    ".k{fill:#fff;stroke:#8893a5;stroke-dasharray:3 2}"
    ".u{fill:url(#unseen);stroke:#8893a5}"
    ".pc{fill:#2b4a6f;font-weight:700}.pm{fill:#8a4600;font-weight:700}"
    ".e{stroke:#b35c00;stroke-width:3}"
)
_PATTERN = (
    '<defs><pattern id="unseen" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="7" height="7" fill="#f4f5f7" stroke="none"/><path d="M0 0V7" stroke="#b9c1cd" stroke-width="2"/>'
    "</pattern></defs>"
)


class Drawing:
    """Elements so far, and how far down they reach (px)."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.height = 0

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        """Text from ``x`` on, on the line ``y``."""
        named = f' class="{style}"' if style else ""
        self.parts.append(f'<text x="{px(x)}" y="{px(y)}"{named}>{_escaped(text)}</text>')

    def line(self, text: str, style: str, height: int) -> None:
        """A line of text below all that is there."""
        self.height += height
        self.text(MARGIN, self.height - 4, text, style)

    def rect(self, x: float, y: float, width: float, style: str, height: float = ROW) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect x="{px(x)}" y="{px(y)}" width="{px(max(width, 0.5))}" height="{px(height)}" class="{style}"/>'
        )

    def group(self, tooltip: str) -> None:
        """What follows until ``end`` has a tooltip."""
        self.parts.append(f"<g><title>{_escaped(tooltip)}</title>")

    def end(self) -> None:
        """The end of a group."""
        self.parts.append("</g>")

    def whole(self, title: str, lines: list[str]) -> str:
        """The file."""
        height = self.height + MARGIN
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">\n'
            f"<title>{_escaped(title)}</title>\n<desc>{_escaped(' '.join(lines))}</desc>\n"
            f'<style>{_STYLE}</style>{_PATTERN}\n<rect width="{WIDTH}" height="{height}" fill="#fff" stroke="none"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def px(number: float) -> str:
    """A length as short as it can be written."""
    return f"{number:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    """Text as XML; line ends are ours, and all else that XML or a reader of it trips over is gone before."""
    return html.escape("\n".join(one_line(part) for part in text.split("\n")))


def fitting(text: str, width: float) -> str:
    """As much of the text as fits into ``width`` px, nothing where that says nothing."""
    room = int((width - 6) / LETTER)
    taken = 0
    for at, char in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken > room:
            cut = text[: max(at - 1, 0)]
            return f"{cut}…" if len(cut) >= 3 else ""
    return text
