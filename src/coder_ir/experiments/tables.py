"""A measured table, as JSON for machines and Markdown for people."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coder_ir.metrics import Estimate


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a title, with the raw figures beside them."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    figures: dict[str, Any]  # what the cells were made from, unrounded
    unexpected: tuple[str, ...] = ()  # figures that are not what their description expects

    def markdown(self) -> str:
        """A heading, the table and the notes."""
        lines = [f"## {self.title}", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        lines += ["", *self.notes, ""]
        return "\n".join(lines)

    def save(self, folder: Path) -> None:
        """Write NAME.json and NAME.md."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"title": self.title, **self.figures}, indent=1)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def percent(estimate: Estimate) -> str:
    """Mean in percent with its interval."""
    return f"{100 * estimate.mean:.1f} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


def ranks(estimate: Estimate) -> str:
    """Mean in ranks with its interval."""
    return f"{estimate.mean:.2f} ({estimate.low:.2f}–{estimate.high:.2f})"
