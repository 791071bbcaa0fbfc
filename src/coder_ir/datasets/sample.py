"""The sample corpus inside the package: 120 passages and a dozen queries with labels."""

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from coder_ir.datasets.documents import read_documents
from coder_ir.types import Document


@dataclass(frozen=True, slots=True)
class SampleQuery:
    """A constraint query with the passages that keep to it and those that break it."""

    text: str
    domain: str
    satisfying: frozenset[str]
    violating: frozenset[str]


def sample_documents_file() -> Path:
    """The sample passages as BEIR jsonl."""
    return Path(str(resources.files("coder_ir") / "sample" / "passages.jsonl"))


def load_sample() -> tuple[list[Document], list[SampleQuery]]:
    """Documents and labelled queries."""
    path = sample_documents_file()
    lines = path.with_name("queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [
        SampleQuery(
            row["query"], row["domain"], frozenset(row["satisfying"]), frozenset(row["violating"])
        )
        for row in map(json.loads, lines)
    ]
    return list(read_documents([str(path)])), queries
