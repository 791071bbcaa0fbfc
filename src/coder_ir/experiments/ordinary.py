"""What auto costs ordinary queries, and what a constraint that was understood wrongly costs."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from coder_ir.datasets.beir import load_corpus, load_queries
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import System, opened
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import Estimate, mean_with_interval, per_query
from coder_ir.metrics.ranked import ndcg_at
from coder_ir.policies import Auto
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.text import EMPTY_WORDS
from coder_ir.types import Candidates, Constraint, Order, Policy, Qrels, QueryParser, Space, Verdict
from coder_ir.vectors import best_first

SETS = {  # title: folder and file of judgements
    "SciFact": ("scifact", "qrels/test.tsv"),
    "NFCorpus": ("nfcorpus", "qrels/test.tsv"),
    "FiQA, a part": ("ordinary/fiqa-part", "qrels/test.tsv"),
    "CISI": ("ordinary/cisi", "qrels/test.tsv"),
    "DORIS-MAE, dev": ("ordinary/doris-mae", "qrels.tsv"),
    "MS MARCO, pools": ("ordinary/msmarco-pool", "qrels/test.tsv"),
    "FEVER, pools": ("ordinary/fever-pool", "qrels/test.tsv"),
    "TREC-COVID, pools": ("ordinary/trec-covid-pool", "qrels/test.tsv"),
}
_TOKENS = 256
_WORD = re.compile(r"[^\W_]{4,}")
Run = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Misread:
    """Takes a word or two of a query's own topic for ruled out, for certain."""

    def parse(self, queries: Sequence[str]) -> list[Constraint]:
        return [self._parsed(query) for query in queries]

    def _parsed(self, query: str) -> Constraint:
        words = [m for m in _WORD.finditer(query) if m[0].lower() not in EMPTY_WORDS]
        if not words:
            return Constraint(0.0)
        draw = random.Random(query)
        at = draw.randrange(len(words))
        start, end = words[at].start(), words[min(at + draw.randrange(2), len(words) - 1)].end()
        return Constraint(1.0, (query[start:end],), topic=(query[:start] + query[end:]).strip())


@dataclass(frozen=True, slots=True)
class _Sum:
    """The terms of auto added up, nothing bounded, as version 0.1 ranked."""

    auto: Auto = field(default_factory=Auto)
    name: str = "sum"
    spaces: tuple[Space, ...] = ("topical",)

    def order(self, pool: Candidates) -> Order:
        """Sort by topic, compatibility and breach together."""
        scores = self.auto.wanted(pool)
        order = best_first(scores, pool.doc_ids, len(pool))
        return Order([Verdict(i, float(scores[i]), "") for i in order])


def measure_ordinary(setup: Setup, report: Report) -> Table:
    """nDCG@10 of auto minus that of topical, on each set there is."""
    rows: list[tuple[str, ...]] = []
    figures = {}
    for title, (folder, qrels) in SETS.items():
        try:
            test = _load(setup.file(*folder.split("/")), qrels)
        except NotFound as error:
            rows.append((title, f"not measured: {error}", *("–",) * 5))
            continue
        found, stated = _measured(folder.replace("/", "-"), test, setup, report)
        figures[title] = {"stated": stated, **{name: asdict(e) for name, e in found.items()}}
        count = f"{stated} of {len(test.queries)}"
        rows.append((title, count, *(percent(estimate) for estimate in found.values())))
    return Table(
        name="ordinary",
        title="Ordinary queries",
        columns=(
            *("data", "taken for a constraint", "topical", "auto", "auto minus topical"),
            *("misread", "misread, plain sum"),
        ),
        rows=tuple(rows),
        notes=(
            f"nDCG@10 and its differences, points, 95% bootstrap interval over queries; documents "
            f"are cut to {_TOKENS} tokens. Corpora but SciFact's and NFCorpus's are smaller than "
            "the published ones, so that only differences mean something. Misread: a word or two "
            "of each query's own topic is taken for ruled out, for certain; the columns show what "
            "auto, and the same terms added up without a bound, then differ from topical. Nothing "
            "was trained on these sets; that log-odds count, and some of the marked queries, "
            "followed from reading what FiQA and NFCorpus lost.",
        ),
        figures=figures,
    )


def _load(folder: Path, qrels: str) -> TestSet:
    """A BEIR folder; its grades may be fractions, which are kept in thousandths."""
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / qrels).read_text(encoding="utf-8").splitlines()[1:]:
        query_id, doc_id, grade = line.split("\t")
        grades.setdefault(query_id, {})[doc_id] = round(1000 * float(grade))
    queries = [q for q in load_queries(folder / "queries.jsonl") if q.query_id in grades]
    return TestSet(tuple(load_corpus(folder)), tuple(queries), Qrels(grades))


def _measured(
    name: str, test: TestSet, setup: Setup, report: Report
) -> tuple[Mapping[str, Estimate], int]:
    """Estimates by column, and how many queries were taken for one with a constraint."""
    texts = [query.text for query in test.queries]
    with opened(System(name, tokens=_TOKENS), name, test, setup, report) as retriever:
        report(f"ordinary: {name}, {len(texts)} queries")
        stated = sum(constraint.stated for constraint in retriever.parser.parse(texts))
        run = partial(_run, retriever, test)
        topical, auto = (_scores(run(policy), test) for policy in ("topical", "auto"))
        wrong = [_scores(run(policy, _Misread()), test) for policy in ("auto", _Sum())]
    columns = {"topical": topical, "auto": auto, "difference": _minus(auto, topical)}
    misread = {"misread": _minus(wrong[0], topical), "misread sum": _minus(wrong[1], topical)}
    return {n: mean_with_interval(values) for n, values in {**columns, **misread}.items()}, stated


def _run(
    retriever: Retriever, test: TestSet, policy: str | Policy, parser: QueryParser | None = None
) -> Run:
    asked = Retriever(retriever.encoder, retriever.store, parser=parser or retriever.parser)
    rankings = asked.search_many([q.text for q in test.queries], SearchOptions(policy=policy))
    pairs = zip(test.queries, rankings, strict=True)
    return {query.query_id: [hit.doc_id for hit in ranking] for query, ranking in pairs}


def _scores(run: Run, test: TestSet) -> list[float]:
    return list(per_query(partial(ndcg_at, k=10), run, test.qrels).values())


def _minus(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]
