"""Filters: each fault is found on a pair that has it and on no other."""

from dataclasses import replace

import pytest

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.quality import alike, changed_words, fault, repeats
from coder_ir.datasets.diagnostics.sheet import Pair
from tests.datasets.diagnostics.texts import FERN, KELP, pair

TURNED = FERN[2].replace("increased", "reduced")
GOOD = pair(
    query_a="Bracken litter increased ammonia release",
    query_b="Bracken litter reduced ammonia release",
    a1=" ".join(FERN[:3]),
    a2=" ".join(FERN[2:]),
    b1=" ".join((*FERN[:2], TURNED)),
    b2=" ".join((TURNED, *FERN[3:])),
)


def judged(given: Pair, *, minimal: bool = True) -> str:
    topic = frozenset(("bracke", "litter", "ammoni"))
    return fault(Candidate(given, "increased", topic, minimal=minimal))


def test_a_pair_without_fault_passes():
    assert judged(GOOD) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"query_a": "Bracken litter increased"}, "a query of 3 words"),
        ({"query_b": "bracken " * 21}, "a query of 21 words"),
        ({"query_a": "Bracken (litter increased ammonia release"}, "unbalanced brackets"),
        ({"query_b": "Waves at the outer wall"}, "a query without its topic"),
        ({"query_b": GOOD.query_a}, "equal queries"),
        ({"a1": GOOD.a1.replace("twelve", "(twelve")}, "a broken sentence"),
        ({"a2": GOOD.a2 + " And then the"}, "a broken sentence"),
        ({"b1": "RESULTS: " + GOOD.b1}, "a broken sentence"),
        ({"b2": " ".join((KELP[0], KELP[4]))}, "a document without the topic"),
        ({"a2": GOOD.a1}, "two documents of a side that are alike"),
        (
            {"b1": GOOD.b1.replace("twelve paths", "a few of the old tracks and lanes")},
            "one change",
        ),
        ({"b1": GOOD.a1}, "one change"),
    ],
)
def test_a_fault_is_found(changes: dict[str, str], says: str):
    assert says in judged(replace(GOOD, **changes))


def test_sides_may_differ_freely_where_the_kind_does_not_change_words():
    other = replace(GOOD, b1=GOOD.b1.replace("twelve paths", "a few of the old tracks and lanes"))
    assert judged(other, minimal=False) == ""


def test_a_near_copy_of_an_earlier_query_or_document_is_a_repeat():
    other = pair(2, query_a="Storm waves at the outer harbour wall", a1=" ".join(KELP[:3]))
    assert not repeats(other, [GOOD])
    assert repeats(replace(other, query_a=GOOD.query_b + "!"), [GOOD])
    assert repeats(replace(other, b2=GOOD.a1), [GOOD])
    assert repeats(replace(other, neutral1=GOOD.a1), [GOOD])


def test_likeness_is_shared_words_over_all_words():
    assert alike("one two three", "Two, three four!") == pytest.approx(2 / 4)
    assert alike("", "") == 0


def test_changed_words_are_counted_on_the_longer_side():
    assert changed_words("it rose fast", "it did not rise fast") == 3
    assert changed_words("it rose", "it rose") == 0
