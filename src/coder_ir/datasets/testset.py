"""What every loader of a benchmark returns."""

from dataclasses import dataclass

from coder_ir.types import Document, Qrels, Query


@dataclass(frozen=True, slots=True)
class TestSet:
    """Judged queries over one corpus."""

    documents: tuple[Document, ...]
    queries: tuple[Query, ...]  # judged ones
    qrels: Qrels
    pairs: tuple[tuple[str, str], ...] = ()  # query ids that belong together (NevIR)
