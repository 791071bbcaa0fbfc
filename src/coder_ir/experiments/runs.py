"""Rankings of several policies over one set of documents, and their scores."""

import tempfile
from collections.abc import Callable, Mapping, Sequence

from coder_ir.encoders import Runtime
from coder_ir.experiments.setup import Setup
from coder_ir.metrics import Estimate, mean_with_interval, per_query
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import Document, Policy, Qrels, Query

Run = dict[str, list[str]]
Metric = Callable[[Sequence[str], Mapping[str, int]], float]


def policy_runs(
    setup: Setup,
    documents: Sequence[Document],
    queries: Sequence[Query],
    policies: Mapping[str, Policy],
    runtime: Runtime,
) -> dict[str, Run]:
    """The ten best documents of each query under each policy; texts are truncated, not split."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Retriever.open(folder, model=setup.model, runtime=runtime) as retriever,
    ):
        retriever.add(documents, split=False)
        runs, texts = {}, [query.text for query in queries]
        for name, policy in policies.items():
            rankings = retriever.search_many(texts, SearchOptions(policy=policy))
            runs[name] = {
                query.query_id: [hit.doc_id for hit in ranking]
                for query, ranking in zip(queries, rankings, strict=True)
            }
        return runs


def scored(run: Run, qrels: Qrels, metrics: Mapping[str, Metric]) -> dict[str, Estimate]:
    """Mean of each metric over the judged queries."""
    return {
        name: mean_with_interval(list(per_query(metric, run, qrels).values()))
        for name, metric in metrics.items()
    }
