"""Exclusion pairs: one topic with either of two companions ruled out."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from coder_ir.datasets.diagnostics.candidate import Candidate, pick
from coder_ir.datasets.diagnostics.entities import CONDITION, ENTITIES, FOOD, Entity
from coder_ir.datasets.diagnostics.passages import Passage, content_words, joined, windows
from coder_ir.datasets.diagnostics.quality import alike
from coder_ir.datasets.diagnostics.sheet import OPEN, Pair

_TOPIC = {  # how a query speaks of a topic whose companions are of the other kind
    CONDITION: (
        "dietary and environmental factors in {t}",
        "what can influence {t}",
        "research on the causes and prevention of {t}",
        "foods, nutrients or exposures studied in relation to {t}",
        "things that may raise or lower the risk of {t}",
    ),
    FOOD: (
        "health effects of {t}",
        "diseases and conditions linked to {t}",
        "research on {t} and human health",
        "what {t} may do to the body",
        "medical studies of {t}",
    ),
}
_WITHOUT = (
    "{t}, excluding {x}",
    "{t}, but not {x}",
    "{t}, leaving out {x}",
    "{t}, other than {x}",
    "{t}, except for {x}",
    "{t}, nothing about {x}",
    "{t}, without any mention of {x}",
    "{t}, apart from {x}",
    "{t} (not {x})",
    "I need {t}, but please leave {x} out.",
    "Setting {x} aside, {t}",
)
_MOST_NAMED = 3  # entities of a kind that a passage may be about
_OFTEN = 4  # sentences that name what a passage is about, where its title does not
_OF_A_TOPIC = 4  # pairs
_PARTNERS = 6  # passages that one is set against
_APART = 0.6  # Jaccard of words from which two sub-documents of a passage are too alike


@dataclass(frozen=True, slots=True)
class Focus:
    """A passage that is about a topic and one companion, with two parts that name both."""

    passage: Passage
    topic: Entity
    companion: Entity
    first: str
    second: str

    @property
    def about(self) -> str:
        """Topic and companion by name, the same whichever of the two is the topic."""
        return " and ".join(sorted([self.topic.name, self.companion.name]))

    @property
    def text(self) -> str:
        """Both parts."""
        return f"{self.first} {self.second}"


def exclusion_candidates(passages: Sequence[Passage], seed: int) -> Iterator[Candidate]:
    """Two passages of a topic with different companions; a query rules out either companion."""
    waiting: dict[str, list[Focus]] = defaultdict(list)
    for passage in passages:
        for focus in _focuses(passage):
            partners = (other for other in waiting[focus.topic.name] if _contrast(focus, other))
            for partner in islice(partners, _PARTNERS):
                yield _candidate(focus, partner, seed)
            waiting[focus.topic.name].append(focus)


def _focuses(passage: Passage) -> Iterator[Focus]:
    """Topics and companions of the other kind that the title or many sentences name."""
    named = [
        entity
        for entity in ENTITIES
        if entity.core.search(passage.title)
        or sum(entity.core.search(s) is not None for s in passage.sentences) >= _OFTEN
    ]
    foods, conditions = ([e for e in named if e.kind == kind] for kind in (FOOD, CONDITION))
    if max(len(foods), len(conditions)) > _MOST_NAMED:
        return
    for food, condition in product(foods, conditions):
        for topic, companion in ((condition, food), (food, condition)):
            parts = _parts(passage, topic, companion)
            if parts:
                yield Focus(passage, topic, companion, *parts)


def _parts(passage: Passage, topic: Entity, companion: Entity) -> tuple[str, str] | None:
    """Two unlike parts, each of which names the topic and its companion."""
    found = [
        text
        for start, end in windows(passage.sentences)
        if topic.core.search(text := joined(passage.sentences[start:end]))
        and companion.core.search(text)
    ]
    for i, one in enumerate(found):
        for two in reversed(found[i + 1 :]):
            if alike(one, two) < _APART and one not in two and two not in one:
                return one, two
    return None


def _contrast(one: Focus, other: Focus) -> bool:
    """Whether neither speaks of the other's companion."""
    if one.companion == other.companion or one.passage == other.passage:
        return False
    return not (
        one.companion.pattern.search(other.text) or other.companion.pattern.search(one.text)
    )


def _candidate(one: Focus, other: Focus, seed: int) -> Candidate:
    key = f"{one.passage.doc_id}+{other.passage.doc_id}"
    about = pick(_TOPIC[one.topic.kind], seed, key).format(t=one.topic.name)
    frame = pick(_WITHOUT, seed, key)
    query_a, query_b = (
        _capital(frame.format(t=about, x=focus.companion.name)) for focus in (other, one)
    )
    changed = f"{one.topic.name}: without {other.companion.name} -> without {one.companion.name}"
    pair = Pair(
        *("", "exclusion", key, changed, OPEN, "", query_a, query_b),
        *(one.first, one.second, other.first, other.second, "", ""),
    )
    named = (found[0] for focus in (one, other) for found in _mentions(focus))
    return Candidate(
        pair,
        one.topic.name,
        frozenset(content_words(" ".join((one.topic.name, *named)))),
        needed=one.topic.core,
        refused=_KIND[one.companion.kind],
        minimal=False,
        most=_OF_A_TOPIC,
        alone=(one.about, other.about),  # else documents of another pair would break its queries
    )


def _mentions(focus: Focus) -> Iterator[re.Match[str]]:
    return focus.topic.core.finditer(focus.text)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


_KIND = {  # any entity of a kind
    kind: re.compile("|".join(e.pattern.pattern for e in ENTITIES if e.kind == kind), re.IGNORECASE)
    for kind in (FOOD, CONDITION)
}
