"""The pool of a query from Milvus: a search a space, and which of the passages found are current.

Passages of a document that was replaced or removed may still be in the collection, and those of
one that is being written already are. The row of the document names the version that counts; all
others are dropped here. Where some were, a writer may have been at work between the two looks: the
search is done again until the index was the same before and after.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coder_ir.stores.milvus.address import CollectionSettings
from coder_ir.stores.milvus.connections import TIMEOUT, Connections, documents_of
from coder_ir.stores.milvus.rows import HEAD, STATE, Head, key_of
from coder_ir.stores.milvus.schema import SPACES, Passages
from coder_ir.stores.milvus.where import any_of, expression
from coder_ir.stores.pool import (
    Found,
    PassageRow,
    as_candidates,
    best_documents,
    passage_row,
    widths,
)
from coder_ir.types import Candidates, Condition, Floats, Scores, Space, VectorPair
from coder_ir.vectors import cosine

MOST = 16_384
"""Results that Milvus gives at most."""
CHUNK = 500  # keys an expression
_PAGE = 1_000  # rows a page, where all are read
_ATTEMPTS = 4
_PLACE = ["document", "version", "number", "start", "stop"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pool is wanted for."""

    query: VectorPair
    n: int
    spaces: Sequence[Space]
    where: Sequence[Condition]
    also: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Hits:
    """Passages with what a search says of them, in step."""

    rows: list[Mapping[str, Any]]  # pk, place and, unless read page by page, both vectors
    scores: Scores  # cosine in the space searched, rounded


@dataclass
class _Seen:
    """The documents as far as one attempt has looked."""

    versions: dict[str, str] = field(default_factory=dict)  # "": no such document
    ids: dict[str, str] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)
    stale: bool = False  # a passage was found that does not count


class Search:
    """One query against an index."""

    def __init__(self, connections: Connections, passages: Passages, asked: Asked) -> None:
        """Nothing is asked of the server yet."""
        self._connections = connections
        self._passages = passages
        self._asked = asked
        self._condition = expression(asked.where)
        self._seen = _Seen()
        self._numbers: dict[str, int] = {}  # keys of documents and passages to numbers

    def pool(self) -> Candidates:
        """The pool of a moment at which nothing was being written, if there was one."""
        before: set[str] = set()
        for left in reversed(range(_ATTEMPTS)):
            self._seen = _Seen()
            chosen = self._chosen()
            states = self._seen.states
            if not self._seen.stale or states == before or not left:
                break
            before = states
        return self._candidates(chosen)

    def _chosen(self) -> list[Mapping[str, Any]]:
        """The best passage of each document of the pool."""
        found: dict[str, Mapping[str, Any]] = {}
        for space in self._asked.spaces:
            found |= {row["pk"]: row for row in self._best(space)}
        found |= {row["pk"]: row for row in self._named()}
        return list(found.values())

    def _best(self, space: Space) -> list[Mapping[str, Any]]:
        for wanted in widths(self._asked.n):
            if wanted > MOST:
                break
            hits, floor = self._top(space, wanted)
            if (best := self._settled(hits, floor, self._asked.n)) is not None:
                return best
        best = self._settled(self._every(space), -np.inf, self._asked.n)
        assert best is not None  # every passage was seen
        return best

    def _settled(self, hits: _Hits, floor: float, n: int) -> list[Mapping[str, Any]] | None:
        current = self._current(hits.rows)
        rows = [self._row(hits.rows[i]) for i in current]
        best = best_documents(Found(rows, hits.scores[current], floor), n)
        return None if best is None else [hits.rows[current[i]] for i in best]

    def _top(self, space: Space, wanted: int) -> tuple[_Hits, float]:
        """The best passages, and what those it has not seen score at most."""
        settings = self._connections.settings
        shape, name = settings.shape, settings.collection
        vector = self._asked.query.space(space)[:1]
        parameters = shape.search_parameters(self._passages.index, wanted)

        def search(client: Any) -> Any:
            return client.search(
                name,
                data=vector,
                anns_field=space,
                limit=wanted,
                filter=self._condition,
                output_fields=[*_PLACE, *SPACES],
                search_params={"metric_type": "IP", "params": parameters},
                **consistency(self._connections),
            )

        hits = self._connections.call(search)[0]
        raw = [hit["distance"] for hit in hits]
        rows = _distinct({"pk": hit["pk"], **hit["entity"]} for hit in hits)
        floor = float(min(raw)) if len(raw) >= wanted else -np.inf
        return _Hits(rows, cosine(_matrix(rows, space, vector.shape[1]), vector[0])), floor

    def _every(self, space: Space) -> _Hits:
        """All passages, read page by page; only their places and scores are kept."""
        vector = self._asked.query.space(space)
        rows: list[Mapping[str, Any]] = []
        scores: list[Scores] = []

        def scan(client: Any) -> None:
            rows.clear()
            scores.clear()
            fields = [*_PLACE, space]
            for page in pages(client, self._connections, self._condition, fields):
                scores.append(cosine(_matrix(page, space, vector.shape[1]), vector[0]))
                rows.extend({k: v for k, v in row.items() if k != space} for row in page)

        self._connections.call(scan)
        return _Hits(rows, np.concatenate([np.zeros(0), *scores]))

    def _named(self) -> list[Mapping[str, Any]]:
        """Of the first n documents of `also` that meet the conditions, the best topical passage."""
        also = [key_of(doc_id) for doc_id in self._asked.also]
        rows: list[Mapping[str, Any]] = []
        condition = f" and {self._condition}" if self._condition else ""
        distinct = list(dict.fromkeys(also))
        for start in range(0, len(distinct), CHUNK):
            keys = distinct[start : start + CHUNK]
            rows += self._of_documents(f"{any_of('document', keys)}{condition}")
        rows = [rows[i] for i in self._current(rows)]
        present = {row["document"] for row in rows}
        joining = {key for key in [key for key in also if key in present][: self._asked.n]}
        rows = [row for row in rows if row["document"] in joining]
        vector = self._asked.query.topical
        scores = cosine(_matrix(rows, "topical", vector.shape[1]), vector[0])
        best = self._settled(_Hits(rows, scores), -np.inf, max(1, len(joining)))
        return best or []

    def _of_documents(self, condition: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []

        def read(client: Any) -> None:
            found.clear()
            for page in pages(client, self._connections, condition, [*_PLACE, *SPACES]):
                found.extend(page)

        self._connections.call(read)
        return _distinct(found)

    def _current(self, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Positions of the passages whose version is that of their document."""
        self._look_up({row["document"] for row in rows})
        current = [
            i
            for i, row in enumerate(rows)
            if self._seen.versions[row["document"]] == row["version"]
        ]
        self._seen.stale |= len(current) < len(rows)
        return current

    def _look_up(self, keys: set[str]) -> None:
        unknown = sorted(keys - set(self._seen.versions))
        for key in unknown:
            self._seen.versions[key] = ""
        if not unknown:
            return
        for head in heads(
            self._connections, unknown, ["version", "doc_id"], state=self._seen.states
        ):
            self._seen.versions[head.key] = head.version
            self._seen.ids[head.key] = head.doc_id

    def _row(self, row: Mapping[str, Any]) -> PassageRow:
        key = row["document"]
        document = self._numbers.setdefault(key, len(self._numbers))
        place = (row["number"], row["start"], row["stop"])
        return passage_row(0, self._seen.ids[key], document, place)

    def _candidates(self, chosen: list[Mapping[str, Any]]) -> Candidates:
        bare = [row["pk"] for row in chosen if "topical" not in row or "compatibility" not in row]
        whole = {row["pk"]: row for row in self._with_vectors(bare)}
        # A passage that is gone by now belongs to a document that was replaced in the meantime.
        rows = [whole.get(row["pk"], row) for row in chosen]
        rows = [row for row in rows if all(space in row for space in SPACES)]
        vectors = (_matrix(rows, s, self._asked.query.space(s).shape[1]) for s in SPACES)
        return as_candidates(
            [self._row(row) for row in rows], VectorPair(*vectors), self._asked.query
        )

    def _with_vectors(self, pks: Sequence[str]) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        name = self._connections.settings.collection
        for start in range(0, len(pks), CHUNK):
            condition = any_of("pk", pks[start : start + CHUNK])
            fields = [*_PLACE, *SPACES]
            found += query(self._connections, name, condition, fields)
        return found


def heads(
    connections: Connections,
    keys: Sequence[str],
    fields: Sequence[str],
    *,
    state: set[str] | None = None,
) -> list[Head]:
    """The rows of those documents that are present; `state` takes the states they were read at."""
    name = documents_of(connections.settings.collection)
    found = []
    for start in range(0, len(keys), CHUNK):
        wanted = [*keys[start : start + CHUNK], STATE]
        for row in query(connections, name, any_of("pk", wanted), ["part", "body", *fields]):
            if row["pk"] == STATE and state is not None:
                state.add(row["body"])
            elif row["part"] == HEAD:
                found.append(Head.from_row(row))
    return found


def query(
    connections: Connections, name: str, condition: str, fields: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Rows that meet a condition, of which few do."""
    found = connections.call(
        lambda client: client.query(
            name, filter=condition, output_fields=list(fields), **consistency(connections)
        )
    )
    return list(found)


def pages(
    client: Any,
    connections: Connections,
    condition: str,
    fields: Sequence[str],
    *,
    name: str | None = None,
) -> Iterable[list[Mapping[str, Any]]]:
    """All rows that meet a condition, page by page; of the passages unless `name` says else."""
    iterator = client.query_iterator(
        name or connections.settings.collection,
        batch_size=_PAGE,
        filter=condition,
        output_fields=list(fields),
        **consistency(connections),
    )
    try:
        while page := iterator.next():
            yield list(page)
    finally:
        iterator.close()


def consistency(connections: Connections) -> dict[str, Any]:
    """How far behind an answer may be; Milvus Lite is never."""
    shape: CollectionSettings = connections.settings.shape
    return {"timeout": TIMEOUT} | (
        {} if connections.lite else {"consistency_level": shape.consistency}
    )


def _distinct(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each passage once: a request that was sent twice may have stored it twice."""
    return list({row["pk"]: row for row in rows}.values())


def _matrix(rows: Sequence[Mapping[str, Any]], space: Space, dimensions: int) -> Floats:
    """The vectors of some passages, (n, dimensions)."""
    if not rows:
        return np.empty((0, dimensions), dtype=np.float32)
    return np.array([row[space] for row in rows], dtype=np.float32)
