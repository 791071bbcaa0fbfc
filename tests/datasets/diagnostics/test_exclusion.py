"""The exclusion rule: two passages of one topic, each ruled out by one of the queries."""

import pytest

from coder_ir.datasets.diagnostics.entities import ENTITIES
from coder_ir.datasets.diagnostics.exclusion import exclusion_candidates
from coder_ir.datasets.diagnostics.passages import Passage
from tests.datasets.diagnostics.texts import passage


def about(food: str, doc_id: str, condition: str = "asthma") -> Passage:
    """A passage whose first and last parts name both the food and the condition."""
    first = f"In our town {food} was given to children with {condition} for a whole school year."
    last = f"At the end {food} was taken daily by a third of the children who had {condition}."
    return passage(
        (
            first,
            f"{doc_id} was the first school that agreed and it has a kitchen with two cooks.",
            "Parents were asked to fill in a diary of every meal and to send it to the school.",
            f"{doc_id} diaries were collected by the teachers and were kept in a locked room.",
            f"A second visit was made by the nurse, who is trained and was not told about {food}.",
            last,
        ),
        doc_id,
        f"{food.capitalize()} and {condition}",
    )


GARLIC, GINGER = about("garlic", "Alder"), about("ginger", "Birch")


def test_each_query_rules_out_the_companion_of_the_other_side():
    candidates = list(exclusion_candidates([GARLIC, GINGER], 13))
    (candidate,) = [c for c in candidates if c.word == "asthma"]
    pair = candidate.pair
    assert pair.source == "Birch+Alder"
    assert pair.changed == "asthma: without garlic -> without ginger"
    assert pair.query_a.replace("garlic", "ginger") == pair.query_b
    assert all("ginger" in text and "asthma" in text for text in (pair.a1, pair.a2))
    assert all("garlic" in text and "asthma" in text for text in (pair.b1, pair.b2))
    assert not any("garlic" in text for text in (pair.a1, pair.a2))


def test_no_second_pair_may_be_about_the_same_topic_and_companion():
    candidates = list(exclusion_candidates([GARLIC, GINGER], 13))
    assert ("asthma and ginger", "asthma and garlic") in [c.alone for c in candidates]


def test_a_neutral_document_has_the_topic_and_no_companion_at_all():
    (candidate,) = exclusion_candidates([GARLIC, GINGER], 13)
    assert candidate.needed.search("Asthma is common.")
    assert candidate.refused.search("Coffee is common.")
    assert not candidate.refused.search("Asthma is common.")


def test_wordings_of_exclusion_vary_with_the_seed():
    asked = {
        candidate.pair.query_a
        for seed in range(40)
        for candidate in exclusion_candidates([GARLIC, GINGER], seed)
    }
    assert any("excluding garlic" in query for query in asked)
    assert any("leave garlic out" in query for query in asked)
    assert any("Setting garlic aside" in query for query in asked)


@pytest.mark.parametrize(
    "other",
    [
        about("garlic", "Cedar"),
        about("ginger and garlic", "Cedar"),
        about("ginger", "Cedar", condition="gout"),
        passage(GINGER.sentences[1:5], "Cedar", "Ginger and asthma"),
    ],
    ids=["same companion", "names both", "other topic", "no parts"],
)
def test_passages_that_do_not_contrast_make_no_pair(other: Passage):
    assert list(exclusion_candidates([GARLIC, other], 13)) == []


@pytest.mark.parametrize(
    ("name", "text", "named", "hinted"),
    [
        ("tea", "two cups of green tea", True, True),
        ("tea", "green tea catechins", True, True),
        ("tea", "catechins", False, True),
        ("tea", "a team of steam engines", False, False),
        ("fish", "fish oil", True, True),
        ("type 2 diabetes", "insulin", False, True),
    ],
)
def test_an_entity_is_named_or_hinted_at(name: str, text: str, named: bool, hinted: bool):
    (entity,) = [entity for entity in ENTITIES if entity.name == name]
    assert (bool(entity.core.search(text)), bool(entity.pattern.search(text))) == (named, hinted)


def test_every_entity_is_recognised_by_its_own_name():
    unknown = [entity.name for entity in ENTITIES if not entity.pattern.search(entity.name)]
    assert unknown == ["lead"]  # the word alone is mostly a verb
