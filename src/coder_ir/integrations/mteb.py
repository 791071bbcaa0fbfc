"""MTEB: an index with a policy as a model, and NevIR from a local file; needs the extra `mteb`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from coder_ir.datasets.nevir import load_nevir
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.integrations.asking import Options, changed
from coder_ir.retriever import Retriever
from coder_ir.searching import DEFAULT_POLICY, SearchOptions
from coder_ir.types import Condition, Document, Policy, Ranking

if TYPE_CHECKING:
    pass

_ID = "mteb_id"  # metadata field that holds a document's id, so that candidates can be asked for
_TOGETHER = 256  # queries encoded in one call


class CoderSearch:
    """What MTEB calls a search model: each task's corpus goes into an index of its own.

    A reranking task names candidates for each query; these are then the pool, whatever `n` is.

    Example:
        >>> with CoderSearch(policy="auto") as model:
        ...     mteb.evaluate(model, mteb.get_task("NevIR"), cache=None)
    """

    def __init__(
        self,
        opened: Callable[[Path], Retriever] = Retriever.open,
        *,
        name: str = "coder-ir/built-in",
        policy: str | Policy = DEFAULT_POLICY,
        n: int = 100,
        verify: int | None = None,
    ) -> None:
        """Say how to open an index and how to search it.

        Args:
            opened: gives a retriever for a new folder; `functools.partial(Retriever.open,
                model="my-model")` for one with another model.
            name: what results are filed under, `organisation/model`.
            policy: as in `Retriever.search`.
            n: as in `Retriever.search`.
            verify: as in `Retriever.search`.
        """
        _mteb()
        self._open, self.name = opened, name
        asked: Options = {"policy": policy, "n": n, "verify": verify}
        self.options = changed(SearchOptions(), asked)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._retriever: Retriever | None = None

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB files results under; what depends on the model that is opened stays open."""
        from mteb.models import ModelMeta

        told = {"policy": self.options.chosen_policy.name, "n": self.options.n}
        return ModelMeta(
            loader=None,
            name=self.name,
            revision=_version(),
            release_date=None,
            languages=["eng-Latn"],
            n_parameters=None,
            memory_usage_mb=None,
            max_tokens=None,
            embed_dim=None,
            license=None,
            open_weights=None,
            public_training_code=None,
            public_training_data=None,
            framework=["ONNX"],
            similarity_fn_name=None,
            use_instructions=False,
            training_datasets=None,
            experiment_kwargs={**told, "verify": self.options.verify},
        )

    def index(self, corpus: Iterable[Mapping[str, Any]], **_: Any) -> None:
        """Put a task's documents into a new index; that of the task before goes."""
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="coder-ir-mteb-")
        self._retriever = self._open(Path(self._folder.name) / "index")
        self._retriever.add(_document(row) for row in corpus)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """Scores that strictly fall with rank, by query and document id."""
        retriever = self._retriever
        if retriever is None:
            raise InvalidValue("nothing is indexed yet; call index with a corpus first")
        asked = [(str(row["id"]), _query_text(row)) for row in queries]
        found: dict[str, dict[str, float]] = {query_id: {} for query_id, _ in asked}
        if top_ranked is not None:
            asked = [(query_id, text) for query_id, text in asked if top_ranked.get(query_id)]
        for start in range(0, len(asked), _TOGETHER):
            part = asked[start : start + _TOGETHER]
            options = [self._options(top_k, (top_ranked or {}).get(id_)) for id_, _ in part]
            prepared = retriever.prepare([text for _, text in part], options)
            for (query_id, _text), one in zip(part, prepared, strict=True):
                found[query_id] = falling_scores(retriever.answer(one))
        return found

    def _options(self, top_k: int, candidates: Sequence[str] | None) -> SearchOptions:
        if candidates is None:
            return replace(self.options, k=top_k)
        among = Condition(_ID, "in", tuple(candidates))
        return replace(self.options, k=top_k, n=len(candidates), where=[among])

    def close(self) -> None:
        """Remove the index."""
        if self._retriever is not None:
            self._retriever.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._retriever = self._folder = None

    def __enter__(self) -> Self:
        """Remove the index at the end of a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def nevir_task(path: Path) -> Any:
    """MTEB's own NevIR task over a local file, as `load_nevir` reads it, and no network.

    Each query's candidates are the two passages of its pair, as in MTEB's data.
    """
    mteb = _mteb()
    from datasets import Dataset

    data = load_nevir(path)
    name = {q.query_id: _paired_id(q.query_id) for q in data.queries}
    grades = data.qrels.grades
    task = mteb.get_task("NevIR")
    task.dataset = {
        "default": {
            "test": {
                "corpus": Dataset.from_list(
                    [{"id": d.doc_id, "text": d.text, "title": ""} for d in data.documents]
                ),
                "queries": Dataset.from_list(
                    [{"id": name[q.query_id], "text": q.text} for q in data.queries]
                ),
                "relevant_docs": {
                    name[query_id]: {doc_id: int(grade > 0) for doc_id, grade in judged.items()}
                    for query_id, judged in grades.items()
                },
                "top_ranked": {name[query_id]: list(judged) for query_id, judged in grades.items()},
            }
        }
    }
    task.data_loaded = True
    return task


def falling_scores(ranking: Ranking) -> dict[str, float]:
    """Scores by document, ties pulled apart where 32 bits would not, so that no tool reorders."""
    found: dict[str, float] = {}
    last = np.float32(np.inf)
    for hit in ranking:
        last = min(np.float32(hit.score), np.nextafter(last, np.float32(-np.inf)))
        found[hit.doc_id] = float(last)
    return found


def _mteb() -> Any:
    try:
        import mteb
    except ImportError as error:
        raise MissingExtra("The MTEB model", extra="mteb") from error
    return mteb


def _version() -> str:
    from importlib.metadata import version

    return version("coder-ir")


def _document(row: Mapping[str, Any]) -> Document:
    doc_id = str(row["id"])
    return Document(doc_id, _text(row), row.get("title") or "", {_ID: doc_id})


def _query_text(row: Mapping[str, Any]) -> str:
    """With the instruction behind it, as MTEB gives it to encoders."""
    return " ".join(filter(None, [_text(row), row.get("instruction")]))


def _text(row: Mapping[str, Any]) -> str:
    text = row.get("text")
    if not isinstance(text, str):
        raise InvalidValue(
            f"{row['id']!r} has no text but {sorted(row)}; only tasks over texts can be searched"
        )
    return text


def _paired_id(query_id: str) -> str:
    """`7-q1` as `7_q1`: MTEB finds the pair by what stands before the underscore."""
    pair, _, number = query_id.rpartition("-")
    return f"{pair.replace('_', '-')}_{number}"
