"""BEIR: the built-in topical encoder against torch, and what the policies cost ordinary queries."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from coder_ir.datasets.beir import load_corpus, load_queries
from coder_ir.datasets.qrels import load_qrels
from coder_ir.encoders import Runtime
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.experiments.runs import Run, policy_runs, scored
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import (
    Estimate,
    average_precision_at,
    ndcg_at,
)
from coder_ir.policies import Auto, Sequential, TopicalOnly, Union
from coder_ir.types import Document, Policy, Query
from coder_ir.vectors import best_first, cosine

_SETS = ("scifact", "nfcorpus")
_METRICS = {"nDCG@10": partial(ndcg_at, k=10), "MAP@10": partial(average_precision_at, k=10)}
_POLICIES: dict[str, Policy] = {
    "topical": TopicalOnly(),
    "auto": Auto(),
    "seq, α .5 τ .9": Sequential(alpha=0.5, tau=0.9),
    "union, α .8 p .8": Union(alpha=0.8, p=0.8),
    "seq, default": Sequential(),
    "union, default": Union(),
}
_RUNTIME = Runtime(max_length=256)


def measure_topical(setup: Setup, report: Report) -> Table:
    """nDCG@10 and MAP@10 of torch in float32 and of the built-in model."""
    results: dict[str, dict[str, dict[str, Estimate]]] = {}
    sizes = []
    for name in _SETS:
        documents = load_corpus(setup.file(name))
        qrels = load_qrels(setup.file(name, "qrels", "test.tsv"))
        queries = [
            q for q in load_queries(setup.file(name, "queries.jsonl")) if q.query_id in qrels.grades
        ]
        sizes.append(f"{name} {len(documents)} documents, {len(qrels)} queries")
        report(f"{name}: torch, {len(documents)} documents")
        runs = {"torch float32": _reference(setup, name, documents, queries)}
        report(f"{name}: built-in, {len(documents)} documents")
        runs |= policy_runs(setup, documents, queries, _POLICIES, _RUNTIME)
        results[name] = {system: scored(run, qrels, _METRICS) for system, run in runs.items()}
    return _table(results, sizes)


def _reference(
    setup: Setup, name: str, documents: Sequence[Document], queries: Sequence[Query]
) -> Run:
    """Torch's run; a finished one is kept and used again for the same model and texts."""
    encoder = SentenceTransformerEncoder(setup.reference, runtime=_RUNTIME)
    texts = [d.content for d in documents] + [q.text for q in queries]
    key = hashlib.sha256(f"{encoder.fingerprint}{texts}".encode()).hexdigest()
    kept = setup.out / "cache" / f"{name}-{key[:16]}.json"
    if kept.is_file():
        run: Run = json.loads(kept.read_text(encoding="utf-8"))
        return run
    run = _torch(encoder, documents, queries)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(run), encoding="utf-8")
    return run


def _torch(
    encoder: SentenceTransformerEncoder, documents: Sequence[Document], queries: Sequence[Query]
) -> Run:
    rows = encoder.encode([document.content for document in documents], kind="document")
    asked = encoder.encode([query.text for query in queries], kind="query")
    ids = [document.doc_id for document in documents]
    return {
        query.query_id: [ids[i] for i in best_first(cosine(rows, vector), ids, 10)]
        for query, vector in zip(queries, asked, strict=True)
    }


def _table(results: dict[str, dict[str, dict[str, Estimate]]], sizes: list[str]) -> Table:
    systems = list(results[_SETS[0]])
    rows = [
        (system, *(percent(results[name][system][m]) for name in _SETS for m in _METRICS))
        for system in systems
    ]
    gaps = {
        name: results[name]["topical"]["nDCG@10"].mean
        - results[name]["torch float32"]["nDCG@10"].mean
        for name in _SETS
    }
    costs = {
        name: results[name]["auto"]["nDCG@10"].mean - results[name]["topical"]["nDCG@10"].mean
        for name in _SETS
    }
    cost = ", ".join(f"{name} {100 * value:+.2f}" for name, value in costs.items())
    words = ", ".join(f"{name} {100 * gap:+.2f}" for name, gap in gaps.items())
    return Table(
        name="topical",
        title="Ordinary queries (BEIR)",
        columns=("system", *(f"{name} {metric}" for name in _SETS for metric in _METRICS)),
        rows=tuple(rows),
        notes=(
            f"{'; '.join(sizes)}; {_RUNTIME.max_length} tokens, percent, 95% bootstrap interval. "
            f"Built-in topical minus torch, nDCG@10 in points: {words}. "
            f"Auto minus topical: {cost}.",
        ),
        figures={
            "results": {
                name: {s: {m: asdict(e) for m, e in ms.items()} for s, ms in systems_.items()}
                for name, systems_ in results.items()
            },
            "gap_ndcg": gaps,
            "cost_of_auto": costs,
        },
    )
