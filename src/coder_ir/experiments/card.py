"""The model card: how the model was made, every figure that was measured, where it fails."""

import re
from dataclasses import dataclass
from pathlib import Path

from coder_ir.encoders.registry import model_folder
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments.setup import Report, Setup

CARD = "model-card.md"
_FIGURES = "<!-- figures -->"
_PICTURE = re.compile(r" ?!\[[^\]]*\]\([^)]*\)")  # pictures stay with the tables
_TABLES = (
    *("goals", "development", "nevir", "negconstraint", "beir", "diagnostics"),
    *("reading", "reading-cost", "ordinary", "parsing", "detection", "risk", "encoding"),
)
_LIMITS = """## Limits

- English. Passages of up to 512 tokens are read whole; training saw at most 192.
- A kind of an excluded thing is not always taken for it: *without nuts* does not reliably rule out
  walnuts that the passage never calls nuts.
- Questions about a fact turned round, over passages that differ in one sentence, are the hardest
  (NevIR above): `auto` orders both questions of a pair right in about 43 of a hundred.
- There is no verifier in the model: one trained over the same layers changes the figures on our
  own topics by less than their intervals, for some thirty times the time (table above).
- The figures are one seed's. Another seed of the same recipe has a pairwise accuracy on NevIR of
  34.7 in place of 37.5 and puts the satisfying passage first in 78.7% of our own queries in place
  of 80.2% (docs/encoder-log.md in the repository).
- Irony, implied preferences and quantities ("at most two flights of stairs") are not modelled.
"""


@dataclass(frozen=True, slots=True)
class Card:
    """A page that goes beside the tables and into the model folder."""

    text: str
    folder: Path

    def markdown(self) -> str:
        """The page."""
        return self.text

    def save(self, folder: Path) -> None:
        """Write it above the tables and beside the weights."""
        (folder.parent / CARD).write_text(self.text, encoding="utf-8")
        (self.folder / "README.md").write_text(self.text, encoding="utf-8")


def compose_card(setup: Setup, report: Report) -> Card:
    """What training wrote, then the tables as they were measured."""
    folder = model_folder(setup.model)
    if folder is None:
        raise InvalidValue(f"a card belongs to a model folder, got {setup.model!r}")
    report(f"card: {folder}")
    card = folder / "README.md"
    made = card.read_text(encoding="utf-8") if card.is_file() else ""
    parts = [made.partition(_FIGURES)[0].strip(), _FIGURES]
    for name in _TABLES:
        path = setup.out / f"{name}.md"
        if not path.is_file():
            raise NotFound(f"no {path}; run first: coder-ir bench {name}")
        parts.append(_PICTURE.sub("", path.read_text(encoding="utf-8")).strip())
    return Card("\n\n".join([*parts, _LIMITS]).lstrip(), folder)
