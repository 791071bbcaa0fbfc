"""BEIR: the built-in int8 topical encoder against torch in float32."""

import hashlib
import json
from collections.abc import Sequence

from coder_ir.datasets.beir import load_beir
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.experiments.runs import Run, policy_runs, scored
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.experiments.topical import (
    BEIR_METRICS,
    BEIR_NOTE,
    BEIR_RUNTIME,
    BEIR_SETS,
    Results,
    beir_table,
)
from coder_ir.policies import TopicalOnly
from coder_ir.types import Document, Query
from coder_ir.vectors import best_first, cosine

TORCH, BUILT_IN = "torch float32", "built-in, int8"


def measure_torch(setup: Setup, report: Report) -> Table:
    """nDCG@10 and MAP@10 of the same topical encoder, before and after export."""
    results: Results = {}
    sizes = []
    for name in BEIR_SETS:
        data = load_beir(setup.file(name))
        sizes.append(f"{name} {len(data.documents)} documents, {len(data.queries)} queries")
        report(f"{name}: torch, {len(data.documents)} documents")
        runs = {TORCH: _reference(setup, name, data.documents, data.queries)}
        report(f"{name}: built-in, {len(data.documents)} documents")
        asked = {BUILT_IN: TopicalOnly()}
        runs |= policy_runs(setup, data.documents, data.queries, asked, BEIR_RUNTIME)
        results[name] = {s: scored(run, data.qrels, BEIR_METRICS) for s, run in runs.items()}
    return torch_table(results, sizes)


def torch_table(results: Results, sizes: Sequence[str]) -> Table:
    """The two systems and their gap."""
    gaps = {
        name: results[name][BUILT_IN]["nDCG@10"].mean - results[name][TORCH]["nDCG@10"].mean
        for name in BEIR_SETS
    }
    words = ", ".join(f"{name} {100 * gap:+.2f}" for name, gap in gaps.items())
    return beir_table(
        "torch",
        "The built-in topical encoder against torch (BEIR)",
        results,
        note=f"{'; '.join(sizes)}; {BEIR_NOTE} Built-in minus torch, nDCG@10 in points: {words}.",
        figures={"gap_ndcg": gaps},
    )


def _reference(
    setup: Setup, name: str, documents: Sequence[Document], queries: Sequence[Query]
) -> Run:
    """Torch's run; a finished one is kept and used again for the same model and texts."""
    encoder = SentenceTransformerEncoder(setup.reference, runtime=BEIR_RUNTIME)
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
