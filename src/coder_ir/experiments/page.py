"""The page of all results: what was measured, beside what the paper reports."""

import re
from dataclasses import dataclass
from pathlib import Path

from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Report, Setup

PAGE = "results.md"
_PICTURE = re.compile(r"\]\((?=[\w-]+\.png\))")  # pictures lie with the tables
_MARKED = re.compile(r"(?P<mark><!-- table: (?P<name>[\w-]+) -->)\s*(?:\|.*(?:\n|\Z))*\s*")
_BESIDE = ("*paper: ", "not measured", " − topical")  # rows that stay with the whole table
_SECTIONS = {
    "Constraint queries": (
        "diagnostics",
        "survival",
        "benchmarks",
        "nevir",
        "negconstraint",
        "probe",
    ),
    "Ordinary queries": ("ordinary", "parsing", "detection", "beir", "torch"),
    "What does what": ("encoders", "separation", "reranker", "reading", "sensitivity", "recipe"),
    "Our own topics": ("development", "settings", "risk", "goals"),
    "Time": (
        *("efficiency", "encoding", "query-encoding", "search", "reading-cost", "ann"),
        *("kinds", "serving"),
        "kill",
    ),
}
_HEAD = """# Results

This page is written by `coder-ir bench results` from the tables in `docs/results`; `make bench`
measures them. Rows that begin with *paper* are copied from the tables of the CoDeR paper.

How ours and the paper's figures differ, before any of them are compared:

- **Size.** The paper's encoders are BGE-large (335M parameters); ours are bge-small (33M), in int8,
  both vectors in one pass on a laptop's CPU.
- **Training data.** The paper trains on 800 queries each of NevIR and ExcluIR and tests on the
  rest. Ours was trained on neither. Two settings of `auto` were chosen with NevIR's figures in
  view, one with NegConstraint's (the notes of these tables and [the log](encoder-log.md) say
  which); the diagnostic sets were looked at only after everything was fixed.
- **Test data.** NevIR here is the open half of its test set (691 pairs), whose pool of documents is
  smaller. Where data was not at hand, a row says so. The diagnostic sets were built anew as the
  paper's appendix describes, so that their level is not the paper's; compare the change from
  *topical* to a policy, not the absolute figures.
- **Averages** run over all judged queries, with one denominator a table.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that goes above the tables."""

    text: str

    def markdown(self) -> str:
        """The page."""
        return self.text

    def save(self, folder: Path) -> None:
        """Write it above the tables' folder."""
        (folder.parent / PAGE).write_text(self.text, encoding="utf-8")


def compose_results(setup: Setup, report: Report) -> Page:
    """Every table that was measured, in order; one that was not is named."""
    report("results: gathering the tables")
    parts = [_HEAD.strip()]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}")
        for name in names:
            path = setup.out / f"{name}.md"
            if path.is_file():
                text = path.read_text(encoding="utf-8").strip()
                parts.append(f"#{_PICTURE.sub(f']({setup.out.name}/', text)}")
            else:
                parts.append(f"### {name}\n\nNot measured; run: `coder-ir bench {name}`.")
    return Page("\n\n".join(parts) + "\n")


def filled(text: str, folder: Path) -> str:
    """A page with the tables it marks as they were measured.

    A table follows the line `<!-- table: NAME -->`; what it holds is replaced by the rows of
    NAME.md, but for the paper's, those of data that was not there, and differences.
    """

    def table(found: re.Match[str]) -> str:
        path = folder / f"{found['name']}.md"
        if not path.is_file():
            raise NotFound(f"no {path}; run first: coder-ir bench {found['name']}")
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [line for line in lines if line.startswith("|")]
        shown = [row for row in rows if not any(words in row for words in _BESIDE)]
        end = "\n" if found.end() == len(text) else "\n\n"
        return f"{found['mark']}\n\n" + "\n".join(shown) + end

    return _MARKED.sub(table, text)


def fill(page: Path, folder: Path) -> None:
    """Fill the tables a file marks."""
    partial = page.with_name(f"{page.name}.partial")
    partial.write_text(filled(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    partial.replace(page)
