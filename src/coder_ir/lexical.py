"""Words in common: BM25 over whole texts, in memory and in a folder."""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import DuplicateId, InvalidFile, InvalidValue, MissingExtra, NotFound
from coder_ir.folders import check_ours, check_sha256, damaged, locked, read_json, writing
from coder_ir.types import Store
from coder_ir.vectors import FUSED_DECIMALS, best_of_many

K1, B, METHOD = 1.5, 0.75, "lucene"
LEXICAL = "lexical"  # folder inside an index
RECORD = "lexical.json"
_FORMAT = 1
_WHAT = "a BM25 index"


@dataclass(frozen=True, slots=True)
class _Record:
    """What `lexical.json` says."""

    format: int
    rules: str  # how a text becomes terms and terms become scores
    stamp: str
    doc_ids: list[str]
    sha256: dict[str, str]  # of each other file; empty where no document has a term


class LexicalIndex:
    """Documents by their words, less the stop words and cut to their stems.

    BM25 as Lucene scores it, with the defaults of bm25s, k1 = 1.5 and b = 0.75. A document's score
    is the sum, over the words of the query, of
    ln(1 + (N - df + 0.5) / (df + 0.5)) · f / (f + k1 · (1 - b + b · length / mean length)).
    A word that the query repeats counts each time. Stop words are bm25s' English ones, stems those
    of Snowball's English stemmer.
    """

    def __init__(self, doc_ids: Sequence[str], engine: Any, *, stamp: str) -> None:
        """Join parts; `build` and `load` make them. `engine` is None where there is no term."""
        self.doc_ids = list(doc_ids)
        self.stamp = stamp
        self._engine = engine
        self._place = {doc_id: place for place, doc_id in enumerate(self.doc_ids)}

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.doc_ids)

    @classmethod
    def build(cls, doc_ids: Sequence[str], texts: Sequence[str], *, stamp: str = "") -> Self:
        """Count the words of each text; without a `stamp`, it is `stamp_of` ids and texts."""
        if len(doc_ids) != len(texts):
            raise InvalidValue(f"every text needs an id: {len(doc_ids)} ids, {len(texts)} texts")
        if len(set(doc_ids)) != len(doc_ids):
            raise DuplicateId("an id comes twice; give each text an id of its own")
        words = _words(texts)
        distinct = sorted(set(chain.from_iterable(words)))
        stems = dict(zip(distinct, _stems(distinct), strict=True))
        number = {stem: place for place, stem in enumerate(sorted(set(stems.values())))}
        engine = None
        if number:
            bm25s, _ = _libraries()
            engine = bm25s.BM25(k1=K1, b=B, method=METHOD, dtype="float64")
            terms = [[number[stems[word]] for word in text] for text in words]
            engine.index((terms, number), create_empty_token=False, show_progress=False)
        return cls(doc_ids, engine, stamp=stamp or stamp_of(doc_ids, texts))

    def scores(self, query: str, n: int) -> list[tuple[str, float]]:
        """The n best documents with a score above 0, best first; ties go by ascending id.

        A query with no word that the documents have gets no document.
        """
        if n < 1:
            raise InvalidValue(f"n must be at least 1, got {n}")
        terms = [stem for _, stem in self._asked(query)]
        if not terms:
            return []
        # Rounded, for the order of a sum's parts must not tell equal documents apart.
        found = np.round(self._engine.get_scores(terms), FUSED_DECIMALS)
        places = np.flatnonzero(found > 0)
        ids = [self.doc_ids[place] for place in places]
        return [(ids[i], float(found[places[i]])) for i in best_of_many(found[places], ids, n)]

    def matched(self, query: str, doc_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """For each document, the words of the query that it has in some form, in query order."""
        if unknown := [doc_id for doc_id in doc_ids if doc_id not in self._place]:
            raise NotFound(f"no document {unknown[0]!r} in this index")
        places = np.array([self._place[doc_id] for doc_id in doc_ids], dtype=np.int64)
        asked = dict(self._asked(query))
        held = {word: np.isin(places, self._holders(stem)) for word, stem in asked.items()}
        return [tuple(word for word in held if held[word][row]) for row in range(len(doc_ids))]

    def _asked(self, query: str) -> list[tuple[str, str]]:
        """Words of the query with their stems, less those that no document has."""
        if self._engine is None:
            return []
        (words,) = _words([query])
        return [
            (word, stem)
            for word, stem in zip(words, _stems(words), strict=True)
            if stem in self._engine.vocab_dict
        ]

    def _holders(self, stem: str) -> Any:
        """Places of the documents that have a term."""
        term, matrix = self._engine.vocab_dict[stem], self._engine.scores
        return matrix["indices"][matrix["indptr"][term] : matrix["indptr"][term + 1]]

    def save(self, folder: Path) -> None:
        """Write the folder, whole or not at all, in place of an index that was there."""
        check_ours(folder, RECORD, what=_WHAT)
        partial = _beside(folder, "partial")
        with locked(folder), writing(folder):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            if self._engine is not None:
                self._engine.save(partial, allow_pickle=False)
            sha256 = {path.name: file_sha256(path) for path in sorted(partial.iterdir())}
            record = _Record(_FORMAT, _rules(), self.stamp, self.doc_ids, sha256)
            (partial / RECORD).write_text(json.dumps(asdict(record)) + "\n", encoding="utf-8")
            old = _beside(folder, "old")
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
            shutil.rmtree(old, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Check every file's sha256, then load."""
        record = _record(folder)
        if record is None:
            raise NotFound(f"no BM25 index in {folder}; build one and save it there")
        if record.rules != _rules():
            raise InvalidFile(
                f"{folder} was built with other rules ({record.rules}) than this installation's "
                f"({_rules()}); delete it and build it again"
            )
        for name, expected in record.sha256.items():
            check_sha256(folder / name, expected)
        if not record.sha256:
            return cls(record.doc_ids, None, stamp=record.stamp)
        bm25s, _ = _libraries()
        try:
            engine = bm25s.BM25.load(folder, allow_pickle=False)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise damaged(folder / RECORD, str(error)) from error
        if engine.scores["num_docs"] != len(record.doc_ids):
            raise damaged(folder / RECORD, f"it has {len(record.doc_ids)} ids")
        return cls(record.doc_ids, engine, stamp=record.stamp)


class StoredLexical:
    """BM25 over a store's documents, counted anew as soon as they have changed."""

    def __init__(self, store: Store, folder: Path | None, *, read_only: bool = False) -> None:
        """Counts are kept in `folder`, or only read from there; nothing is counted yet.

        Without a folder they are kept in memory.
        """
        self._store = store
        self._folder = folder
        self._read_only = read_only
        self._index: LexicalIndex | None = None
        self._lock = threading.Lock()
        _libraries()  # rather now than after a long time of encoding

    def best(self, query: str, n: int) -> list[str]:
        """Ids of the n documents that score highest, best first."""
        return [doc_id for doc_id, _ in self._current().scores(query, n)]

    def refresh(self) -> None:
        """Count now rather than at the next search."""
        self._current()

    def _current(self) -> LexicalIndex:
        """The counts of the documents as they are now."""
        with self._lock:
            state = f"{self._store.state()}; {_rules()}"
            if self._index is None or self._index.stamp != state:
                self._index = self._loaded(state) or self._counted(state)
            return self._index

    def _loaded(self, state: str) -> LexicalIndex | None:
        folder = self._folder
        if folder is None or not folder.is_dir() or saved_stamp(folder) != state:
            return None
        return LexicalIndex.load(folder)

    def _counted(self, state: str) -> LexicalIndex:
        documents = list(self._store.documents())
        ids, texts = [d.doc_id for d in documents], [d.content for d in documents]
        index = LexicalIndex.build(ids, texts, stamp=state)
        if self._folder is not None and not self._read_only:
            index.save(self._folder)
        return index


def saved_stamp(folder: Path) -> str | None:
    """The stamp of the index in a folder; None where there is no folder or nothing in it."""
    record = _record(folder)
    return None if record is None else record.stamp


def stamp_of(doc_ids: Iterable[str], texts: Iterable[str]) -> str:
    """Digest of the ids, the texts, their order, and the rules that texts are read by."""
    digest = hashlib.sha256(_rules().encode())
    for pair in zip(doc_ids, texts, strict=True):
        digest.update(json.dumps(pair).encode())
    return digest.hexdigest()


def _record(folder: Path) -> _Record | None:
    _restore(folder)
    check_ours(folder, RECORD, what=_WHAT)
    path = folder / RECORD
    if not path.exists():
        return None
    raw = read_json(path)
    if raw.get("format") != _FORMAT:
        raise InvalidFile(
            f"{path} has format {raw.get('format')!r}, this version reads {_FORMAT}; delete "
            f"{folder} to have it built again"
        )
    try:
        record = _Record(**raw)
    except TypeError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(record.doc_ids, list) or not isinstance(record.sha256, dict):
        raise damaged(path, "its fields are not what they were")
    return record


def _restore(folder: Path) -> None:
    """Bring back the index that a `save` had moved aside when it was interrupted."""
    old = _beside(folder, "old")
    if not folder.exists() and old.exists():
        with locked(folder), writing(folder):
            if not folder.exists() and old.exists():  # no other process is at it
                old.rename(folder)


def _beside(folder: Path, ending: str) -> Path:
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}.{ending}")


def _rules() -> str:
    """What decides a score, beside the texts; a new major version of the stemmer cuts anew."""
    bm25s, stemmer = _libraries()
    stops = hashlib.sha256(" ".join(bm25s.stopwords.STOPWORDS_EN).encode()).hexdigest()[:8]
    version = stemmer.version().partition(".")[0]
    return f"{METHOD} k1={K1} b={B}, stop words {stops}, Snowball English of PyStemmer {version}"


def _words(texts: Sequence[str]) -> list[list[str]]:
    """Words of two letters or more in lower case, less the stop words."""
    bm25s, _ = _libraries()
    found: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="english", return_ids=False, show_progress=False
    )
    return found


def _stems(words: Sequence[str]) -> list[str]:
    """The stem of each word; a stemmer a call, for one must not serve two threads at once."""
    _, stemmer = _libraries()
    return list(stemmer.Stemmer("english").stemWords(list(words)))


def _libraries() -> tuple[Any, Any]:
    try:
        import bm25s
        import Stemmer
    except ImportError as error:
        raise MissingExtra("BM25", extra="hybrid") from error
    return bm25s, Stemmer
