"""NS-IR (Xu et al., 2025): nearest documents, ranked anew by texts read beside their logic.

The description leaves some things open. Chosen here, where the authors' code shows it as it does:
the cost of moving a token is 1 - s, s = ((cos + 1) / 2) (1 - D (i/m - j/n)^2) scaled to [0, 1],
with relative positions in [0, 1] and D = 0.2; all tokens weigh the same and the plan is the exact
one; the aligned vector is the pooled text times the sum over the plan of text times formula, per
dimension; a connective that the plan joins to a text token counts nothing for that token. Texts and
formulas are read without the query's prefix, and a document by its best passage. Signs of
a formula get spaces round them and joined words are parted, for else ¬TomRobinson would be read as
one broken word.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Decomposer
from coder_ir.baselines.formulas import CONNECTIVES, NOT
from coder_ir.baselines.kept import KeptVectors
from coder_ir.encoders.tokens import TokenEncoder, TokenVectors
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.searching import passage_texts
from coder_ir.types import Candidates, Floats, Order, Ranking, Scores, Verdict
from coder_ir.vectors import SCORE_DECIMALS, best_first

Matrix = NDArray[np.float64]
_DISTORTION = 0.2  # D
_SIGNS = re.compile(f"[{NOT}{''.join(sorted(CONNECTIVES))}]")
_JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BATCH = 16  # documents read together


@dataclass(frozen=True, slots=True)
class LogicVectors:
    """A text as its formula changes it; both (dimensions,)."""

    aligned: Floats
    constrained: Floats


class NSIR:
    """The first documents of plain search by the sum of two similarities of text and logic."""

    def __init__(
        self,
        base: Indexed,
        decomposer: Decomposer,
        *,
        folder: Path | None = None,
        first: int = 100,
    ) -> None:
        """Documents are read once and kept in `folder`; None keeps them while this lives."""
        if first < 1:
            raise InvalidValue(f"NS-IR ranks at least 1 document anew, got {first}")
        if not isinstance(base.encoder, TokenEncoder):
            raise InvalidValue(
                f"NS-IR needs a model folder, which gives vectors of tokens; got "
                f"{base.encoder.spec!r}"
            )
        self._base, self._decomposer, self._first = base, decomposer, first
        self._tokens: TokenEncoder = base.encoder
        self._kept = KeptVectors(folder / "ns-ir.sqlite" if folder else None)
        self._seen: dict[str, LogicVectors] = {}  # by text
        _transport_library()

    def search(self, query: str, k: int = 10) -> Ranking:
        """At most k hits; those past the first hundred follow in the order of plain search."""
        own = self._base.encode(query, k)
        pool = self._base.nearest(own, own.topical[0], max(k, self._first))
        near = best_first(pool.topical, pool.doc_ids, len(pool))
        head, rest = near[: self._first], near[self._first :]
        scores = self._scores(query, pool.part(head)) if head else np.zeros(0)
        again = best_first(scores, [pool.doc_ids[i] for i in head], len(head))
        verdicts = [
            Verdict(head[i], float(scores[i]), f"Text and logic agree by {scores[i]:.3f} of 2.")
            for i in again
        ]
        verdicts += [
            Verdict(i, float(pool.topical[i]) - 1, f"Not among the first {self._first}.")
            for i in rest
        ]
        return self._base.ranking(query, "ns-ir", pool, Order(verdicts), k)

    def read_all(self) -> None:
        """Read every document now rather than when it first comes near a query."""
        count = self._base.store.count()
        if count:
            own = self._base.encode("all", count)
            pool = self._base.nearest(own, own.topical[0], count)
            self._documents(passage_texts(pool, self._base.store.get))

    def _scores(self, query: str, pool: Candidates) -> Scores:
        (asked,) = self._read([query], [self._decomposer.formula(query)])
        documents = self._documents(passage_texts(pool, self._base.store.get))
        total = [
            _similarity(asked.aligned, one.aligned)
            + _similarity(asked.constrained, one.constrained)
            for one in documents
        ]
        return np.round(np.array(total), SCORE_DECIMALS)

    def _documents(self, texts: Sequence[str]) -> list[LogicVectors]:
        """Those seen before from memory or the file, the others read and kept."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._seen]
        formulas = self._decomposer.formulas(fresh)
        for start in range(0, len(fresh), _BATCH):
            part = slice(start, start + _BATCH)
            self._see(fresh[part], formulas[part])
        return [self._seen[text] for text in texts]

    def _see(self, texts: Sequence[str], formulas: Sequence[str]) -> None:
        """Take these from the file, or read them and write them there."""
        stamp, pairs = self._tokens.fingerprint, list(zip(texts, formulas, strict=True))
        keys = {text: self._kept.key(stamp, text, formula) for text, formula in pairs}
        known = self._kept.get(list(keys.values()))
        missing = [(text, formula) for text, formula in pairs if keys[text] not in known]
        read = self._read([text for text, _ in missing], [formula for _, formula in missing])
        found = {keys[text]: one for (text, _), one in zip(missing, read, strict=True)}
        self._kept.put({key: (one.aligned, one.constrained) for key, one in found.items()})
        found |= {key: LogicVectors(*pair) for key, pair in known.items()}
        self._seen |= {text: found[key] for text, key in keys.items()}

    def _read(self, texts: Sequence[str], formulas: Sequence[str]) -> list[LogicVectors]:
        if not texts:
            return []
        both = self._tokens.token_vectors([*texts, *map(_spaced, formulas)])
        pairs = zip(both[: len(texts)], both[len(texts) :], strict=True)
        return [logic_vectors(text, formula) for text, formula in pairs]

    def close(self) -> None:
        """Release the file."""
        self._kept.close()


def logic_vectors(text: TokenVectors, formula: TokenVectors) -> LogicVectors:
    """A text read beside its formula."""
    plan = transport(cost(text.rows, formula.rows))
    return LogicVectors(
        aligned(text, formula, plan).astype(np.float32),
        constrained(text, formula, plan).astype(np.float32),
    )


def cost(text: Floats, formula: Floats) -> Matrix:
    """What moving each token of the text to each of the formula costs, from 0 to 1."""
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (text, formula))
    likeness = (one.astype(np.float64) @ other.T.astype(np.float64) + 1) / 2
    if min(likeness.shape) > 1:
        apart = _places(len(text))[:, None] - _places(len(formula))[None, :]
        likeness = likeness * (1 - _DISTORTION * apart**2)
    low, high = likeness.min(), likeness.max()
    return 1 - (likeness - low) / (high - low) if high > low else np.zeros_like(likeness)


def _places(n: int) -> Matrix:
    return np.arange(n) / (n - 1)


def transport(costs: Matrix) -> Matrix:
    """The cheapest plan between tokens that all weigh the same; (text, formula), sums to 1."""
    rows, columns = costs.shape
    plan = _transport_library().emd(np.full(rows, 1 / rows), np.full(columns, 1 / columns), costs)
    return np.asarray(plan, dtype=np.float64)


def _transport_library() -> Any:
    try:
        import ot
    except ImportError as error:
        raise MissingExtra("NS-IR", extra="baselines") from error
    return ot


def aligned(text: TokenVectors, formula: TokenVectors, plan: Matrix) -> Matrix:
    """The pooled text, each dimension weighed by how it agrees along the plan."""
    agreement: Matrix = (text.rows * (plan @ formula.rows)).sum(axis=0)
    return text.pooled * agreement


def constrained(text: TokenVectors, formula: TokenVectors, plan: Matrix) -> Matrix:
    """The text as the formula's tokens attend to it, turned by connectives.

    To a text token that the plan does not join to it, a connective adds its own vector, and ¬
    takes it away.
    """
    signs = np.array([_sign(token) for token in formula.tokens], dtype=np.float64)
    turned = np.where(plan > 0, 0.0, signs).T  # (formula, text)
    lengths = (formula.rows**2).sum(axis=1, keepdims=True)
    logits = formula.rows @ text.rows.T + turned * lengths
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    seen = weights @ text.rows + (weights * turned).sum(axis=1, keepdims=True) * formula.rows
    return np.asarray(seen.mean(axis=0), dtype=np.float64)


def _spaced(formula: str) -> str:
    return _SIGNS.sub(r" \g<0> ", _JOINED.sub(" ", formula))


def _sign(token: str) -> int:
    return -1 if token == NOT else int(token in CONNECTIVES)


def _similarity(one: Floats, other: Floats) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return (float(one @ other) / lengths + 1) / 2 if lengths else 0.5
