"""How well the parser reads queries that people marked by hand."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from coder_ir.encoders import load_encoder
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import Estimate, mean_with_interval
from coder_ir.query import load_parser
from coder_ir.training.marked_queries import read_marked_part
from coder_ir.types import Constraint, QueryParser

_WORDS = re.compile(r"[a-z0-9]+")
_LEADING = frozenset("a an the his her its their our your my any all".split())
Phrases = Sequence[str]


@dataclass(frozen=True, slots=True)
class Marked:
    """A query, whether it states a constraint, and what it rules out in words of its own."""

    text: str
    constrained: bool
    excluded: Phrases


def measure_parsing(setup: Setup, report: Report) -> Table:
    """Found, false alarms and spans, on our held-out queries and another team's readings."""
    parser = load_parser(load_encoder(setup.model))
    rows: list[tuple[str, ...]] = []
    figures = {}
    for name, queries in _sets(setup).items():
        report(f"parsing: {name}, {len(queries)} queries")
        found = _figures(queries, parser)
        figures[name] = {n: asdict(e) if e else None for n, e in found.items()}
        cells = (percent(estimate) if estimate else "–" for estimate in found.values())
        rows.append((name, str(len(queries)), *cells))
    return Table(
        name="parsing",
        title="What queries rule out, read by the parser",
        columns=("queries", "n", "found", "false alarms", "spans exact", "token F1"),
        rows=tuple(rows),
        notes=(
            "Percent, 95% bootstrap interval over queries. Found: of the queries that state a "
            "constraint. Spans exact: of those, all excluded phrases as marked, a leading article "
            "aside. Token F1: of the words of excluded phrases, less leading articles. "
            "Held out: two further authors, who saw no other query. Development: topics not "
            "trained on, by the authors of the training queries; two numbers of the calibration "
            "were fitted on them. Readings: made by a language model, for ExcluIR; it names the "
            "thing and leaves out what describes it, which our marks keep.",
        ),
        figures=figures,
    )


def _sets(setup: Setup) -> Mapping[str, Sequence[Marked]]:
    own = {
        name: [
            Marked(query.text, query.constrained, query.phrases("excluded"))
            for query in read_marked_part(setup.queries, part)
        ]
        for name, part in (("held out", "heldout"), ("development", "development"))
    }
    path = setup.data / "excluir" / "readings_open.jsonl"
    if not path.is_file():
        return own
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {**own, "readings of ExcluIR": [Marked(r["query"], True, r["excluded"]) for r in rows]}


def _figures(queries: Sequence[Marked], parser: QueryParser) -> dict[str, Estimate | None]:
    parsed = parser.parse([query.text for query in queries])
    pairs = list(zip(queries, parsed, strict=True))
    asking = [(query, said) for query, said in pairs if query.constrained]
    others = [float(said.stated) for query, said in pairs if not query.constrained]
    exact = [float(_alike(query.excluded, _spelled(said))) for query, said in asking]
    return {
        "found": mean_with_interval([float(said.stated) for _, said in asking]),
        "false": mean_with_interval(others) if others else None,
        "exact": mean_with_interval(exact),
        "F1": _token_f1([(query.excluded, _spelled(said)) for query, said in asking]),
    }


def _spelled(said: Constraint) -> list[str]:
    """What is ruled out in words of the query."""
    return [mark.text for mark in said.marks if mark.role == "excluded"]


def _alike(one: Phrases, other: Phrases) -> bool:
    return sorted(map(_bare, one)) == sorted(map(_bare, other))


def _bare(phrase: str) -> str:
    words = _words([phrase])
    while words and words[0] in _LEADING:
        words = words[1:]
    return " ".join(words)


def _words(phrases: Phrases) -> list[str]:
    return [w for phrase in phrases for w in _WORDS.findall(phrase.lower().replace("'s", ""))]


def _token_f1(pairs: Sequence[tuple[Phrases, Phrases]]) -> Estimate:
    """Twice the shared words over all words, the interval drawn over queries."""
    import numpy as np

    counts = np.array([_shared(*pair) for pair in pairs], dtype=np.float64)
    draw = np.random.default_rng(13)
    samples = counts[draw.integers(0, len(counts), (1000, len(counts)))].sum(axis=1)
    low, high = np.percentile(2 * samples[:, 0] / samples[:, 1], [2.5, 97.5])
    shared, total = counts.sum(axis=0)
    return Estimate(float(2 * shared / total), float(low), float(high), len(counts))


def _shared(one: Phrases, other: Phrases) -> tuple[int, int]:
    a, b = (Counter(" ".join(map(_bare, side)).split()) for side in (one, other))
    return (a & b).total(), a.total() + b.total()
