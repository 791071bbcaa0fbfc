"""Trains the query parser: a small recurrent network over the encoder's own token states."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coder_ir.datasets.documents import json_lines
from coder_ir.encoders.folder import Manifest, Parsing, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.query.parser import KINDS, TAGS, Layout
from coder_ir.training.marked_queries import (
    MarkedQuery,
    noisy,
    read_marked_part,
    reworded,
    unmarked,
)
from coder_ir.training.parser_graph import Weights, parser_graph
from coder_ir.training.rounding import quantise
from coder_ir.types import Floats, Span

if TYPE_CHECKING:
    import torch

Report = Callable[[str], None]
_GRAPH = "parser.onnx"
_BATCH = 64  # queries
_TAGS, _NAMES = 8.0, 0.1  # weights beside the loss of sentence kinds


@dataclass(frozen=True, slots=True)
class ParserPlan:
    """How to train a parser."""

    width: int = 128  # units of the network in each direction
    layers: int = 2
    epochs: int = 6
    rate: float = 3e-3
    dropout: float = 0.3
    noisy: float = 0.4  # copies with other cues and spelling, as a share of all queries
    ordinary: int = 8000  # real queries that state no constraint, at most
    least: int = 3  # queries in which a thing must be implied to be learnt
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Example:
    """A query's token states and what each token and sentence should be."""

    states: Floats  # (tokens, dimensions), float16
    tags: list[int]  # one a token
    names: Floats  # (tokens, names), 1 where an implied word rules the thing out
    sentences: list[tuple[list[int], int]]  # rows of a sentence and its kind


def train_parser(
    folder: Path, *, queries: Path, ordinary: Path | None, plan: ParserPlan, report: Report
) -> None:
    """Train a parser over a model folder's shared layers and store it there.

    Args:
        folder: the model folder.
        queries: folder with marked queries, train.txt* and development.txt*.
        ordinary: jsonl of queries that state no constraint; half of those that may be trained on
            are.
        plan: how to train.
        report: told how far it is.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("Training a parser", extra="train") from error
    encoder = OnnxEncoder(folder)
    if encoder.manifest.trunk is None:
        raise InvalidValue(f"{folder} has no layers that its roles share; a parser reads those")
    marked = read_marked_part(queries, "train")
    development = read_marked_part(queries, "development")
    if not marked or not development:
        empty = "development" if marked else "train"
        raise InvalidValue(f"{queries / empty}.txt holds no queries; write some, one a line")
    names = implied_names(marked, least=plan.least)
    rng = random.Random(plan.seed)
    plain = _ordinary(ordinary, queries, plan, rng) if ordinary else []
    clean = [*marked, *plain]
    drawn = rng.sample(clean, round(plan.noisy * len(clean)))
    copies = [noisy(reworded(query, rng), rng) for query in drawn]
    report(f"reading {len(marked)} queries, {len(copies)} noisy copies, {len(plain)} ordinary ones")
    examples = list(read_examples(encoder, [*clean, *copies], names))
    torch.manual_seed(plan.seed)
    network = _network(plan, examples[0].states.shape[1], Layout(names).width)
    _fit(network, examples, plan, names, report)
    held_out = read_examples(encoder, development, names)
    scale, shift = _calibrated(network, held_out)
    _store(folder, parser_graph(_weights(network, plan)), Parsing(_GRAPH, names, scale, shift))


def implied_names(queries: Sequence[MarkedQuery], *, least: int) -> tuple[str, ...]:
    """What words imply in at least so many queries, in order of name."""
    counts = Counter(name for query in queries for name in set(query.phrases("implied")))
    return tuple(sorted(name for name, count in counts.items() if count >= least))


def _ordinary(path: Path, queries: Path, plan: ParserPlan, rng: random.Random) -> list[MarkedQuery]:
    """Queries without marks; those that state a constraint, on reading, are left out."""
    stated = stated_by(queries)
    with path.open("rb") as lines:
        rows = [row for _, row in json_lines(lines, str(path)) if row.get("use") != "Measure"]
    texts = [str(row["text"]) for row in rows]
    learnt = [text for text in texts if is_learnt(text) and text not in stated]
    chosen = rng.sample(learnt, min(plan.ordinary, len(learnt)))
    return [unmarked(text) for text in chosen]


def stated_by(queries: Path) -> frozenset[str]:
    """Real queries that were read and do state a constraint."""
    path = queries / "real-constraints.jsonl"
    if not path.is_file():
        return frozenset()
    with path.open("rb") as lines:
        return frozenset(str(row["text"]) for _, row in json_lines(lines, str(path)))


def is_learnt(text: str) -> bool:
    """Whether an ordinary query of a data set is trained on; the other half is measured."""
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 0


def read_examples(
    encoder: OnnxEncoder, queries: Sequence[MarkedQuery], names: tuple[str, ...]
) -> Iterator[Example]:
    """Token states of each query, encoded as a search encodes it, with its labels."""
    at = {name: number for number, name in enumerate(names)}
    for start in range(0, len(queries), 500):
        part = queries[start : start + 500]
        tokens = encoder.query_tokens([query.text for query in part])
        for query, own in zip(part, tokens, strict=True):
            if not own.offsets:
                continue
            tags = [0] * len(own.offsets)
            implied = np.zeros((len(tags), len(names)), dtype=np.float32)
            for span, segment in query.roles():
                for row in _rows(own.offsets, span):
                    tags[row] = TAGS.index(segment.role)
                    implied[row, [at[name] for name in segment.names if name in at]] = 1
            sentences = [
                (rows, KINDS.index(kind))
                for span, kind in query.kinds()
                if (rows := _rows(own.offsets, span))
            ]
            yield Example(own.states.astype(np.float16), tags, implied, sentences)


def _rows(offsets: Sequence[tuple[int, int]], span: Span) -> list[int]:
    return [i for i, (a, b) in enumerate(offsets) if a < span.end and b > span.start]


def _network(plan: ParserPlan, dimensions: int, outputs: int) -> Any:
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(plan.dropout)
            self.lstm = nn.LSTM(
                dimensions,
                plan.width,
                num_layers=plan.layers,
                bidirectional=True,
                batch_first=True,
                dropout=plan.dropout if plan.layers > 1 else 0.0,
            )
            self.out = nn.Linear(2 * plan.width, outputs)

        def forward(self, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(
                self.drop(states), lengths, batch_first=True, enforce_sorted=False
            )
            hidden, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return self.out(self.drop(hidden))  # type: ignore[no-any-return]

    return Network()


def _fit(
    network: Any, examples: list[Example], plan: ParserPlan, names: tuple[str, ...], report: Report
) -> None:
    import torch

    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=0.01)
    steps = plan.epochs * -(-len(examples) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=plan.rate, total_steps=steps, pct_start=0.1
    )
    rng = random.Random(plan.seed)
    network.train()
    for epoch in range(1, plan.epochs + 1):
        total = count = 0.0
        for batch in _batches(examples, rng):
            loss = _loss(network, batch, Layout(names))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, count = total + loss.item(), count + 1
        report(f"epoch {epoch} of {plan.epochs}: loss {total / count:.4f}")
    network.eval()


def _batches(examples: list[Example], rng: random.Random) -> Iterator[list[Example]]:
    """Shuffled, queries of like length together."""
    mixed = sorted(examples, key=lambda example: len(example.tags) + rng.random() * 12)
    batches = [mixed[start : start + _BATCH] for start in range(0, len(mixed), _BATCH)]
    rng.shuffle(batches)
    yield from batches


def _logits(network: Any, batch: Sequence[Example]) -> torch.Tensor:
    import torch

    widest = max(len(example.tags) for example in batch)
    states = np.zeros((len(batch), widest, batch[0].states.shape[1]), dtype=np.float32)
    for row, example in enumerate(batch):
        states[row, : len(example.tags)] = example.states
    lengths = torch.tensor([len(example.tags) for example in batch])
    return network(torch.from_numpy(states), lengths)  # type: ignore[no-any-return]


def _loss(network: Any, batch: Sequence[Example], layout: Layout) -> torch.Tensor:
    """Of tags on all tokens, of names on implied ones, of the kind of each sentence."""
    import torch
    from torch.nn import functional

    own = torch.cat(
        [rows[: len(e.tags)] for rows, e in zip(_logits(network, batch), batch, strict=True)]
    )  # (tokens of the batch, outputs)
    tags = torch.tensor([tag for example in batch for tag in example.tags])
    loss = _TAGS * functional.cross_entropy(own[:, : len(TAGS)], tags)
    loss = loss + functional.cross_entropy(
        _pooled(own, _places(batch)), torch.tensor([k for e in batch for _, k in e.sentences])
    )
    implied = tags == TAGS.index("implied")
    if implied.any():
        said = own[implied][:, -len(layout.names) :]
        target = torch.from_numpy(np.concatenate([e.names for e in batch]))[implied]
        each = functional.binary_cross_entropy_with_logits(said, target, reduction="none")
        loss = loss + _NAMES * each.sum(dim=1).mean()
    return loss


def _places(batch: Sequence[Example]) -> list[tuple[int, int]]:
    """Rows of the batch's tokens that are in a sentence, and the number of that sentence."""
    found, first, number = [], 0, 0
    for example in batch:
        for rows, _ in example.sentences:
            found += [(first + row, number) for row in rows]
            number += 1
        first += len(example.tags)
    return found


def _pooled(own: torch.Tensor, places: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Each sentence's logits: those of its tokens, weighed by the network."""
    import torch

    rows, numbers = (torch.tensor(side) for side in zip(*places, strict=True))
    kinds = own[rows, len(TAGS) : len(TAGS) + len(KINDS)]
    shares = own[rows, len(TAGS) + len(KINDS)].clamp(-30, 30).exp()[:, None]
    total = torch.zeros(int(numbers.max()) + 1, len(KINDS) + 1)
    summed = total.index_add(0, numbers, torch.cat([shares * kinds, shares], dim=1))
    return summed[:, :-1] / summed[:, -1:]


def _calibrated(network: Any, examples: Iterable[Example]) -> tuple[float, float]:
    """Scale and shift that make the probability of a constraint true on held-out sentences."""
    import torch
    from sklearn.linear_model import LogisticRegression

    margins, labels = [], []
    with torch.no_grad():
        for example in examples:
            logits = _logits(network, [example])[0]
            if not example.sentences:
                continue
            pooled = _pooled(logits, _places([example]))
            for own, (_, kind) in zip(pooled, example.sentences, strict=True):
                margins.append(float(own[0] - own[1:].logsumexp(dim=0)))
                labels.append(kind == 0)
    fitted = LogisticRegression(C=100.0).fit(np.array(margins)[:, None], labels)
    return round(float(fitted.coef_[0, 0]), 4), round(float(fitted.intercept_[0]), 4)


def _weights(network: Any, plan: ParserPlan) -> Weights:
    state = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    return Weights(plan.layers, plan.width, state)


def _store(folder: Path, graph: Any, parsing: Parsing) -> None:
    """The graph in int8: a new file, then the manifest that names it, so a kill breaks nothing."""
    manifest = Manifest.load(folder)
    partial = folder / f"{_GRAPH}.partial"
    quantise(graph, partial, per_channel=False)  # the faster one; the parses are as good
    digest = file_sha256(partial)
    name = f"parser-{digest[:8]}.onnx"
    partial.replace(folder / name)
    old = manifest.parser.graph if manifest.parser else None
    digests = {file: value for file, value in manifest.sha256.items() if file != old}
    replace(manifest, parser=replace(parsing, graph=name), sha256={**digests, name: digest}).save(
        folder
    )
    if old and old != name:
        (folder / old).unlink(missing_ok=True)
