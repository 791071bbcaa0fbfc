"""Neutral documents: where they come from and what keeps a text from being one."""

import re
from dataclasses import replace

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.neutral import Neighbours, neutrals
from tests.datasets.diagnostics.test_build import field_study
from tests.datasets.diagnostics.texts import pair, passage

OWN = field_study("gorse", "quarry", "increased")
NEAR = field_study("gorse", "meadow", "left")
FAR = field_study("nettle", "dune", "left")
PAIR = pair(
    source="gorse-quarry",
    a1=" ".join(OWN.sentences[3:6]),
    a2=" ".join(OWN.sentences[5:8]),
)
TOPIC = frozenset("gorse quarry soil ammoni leaves releas dried crumbl".split())
CANDIDATE = Candidate(PAIR, "increased", TOPIC)


def test_the_source_comes_first_and_then_the_nearest_other_passage():
    first, second = neutrals(CANDIDATE, Neighbours([FAR, NEAR, OWN]))
    assert first.startswith("The gorse is found on the soil of the quarry")
    assert "gorse" in second
    assert "meadow" in second


def test_what_follows_the_finding_is_never_taken_from_the_source():
    late = replace(OWN, sentences=OWN.sentences[5:] + OWN.sentences[:2])
    (only,) = neutrals(CANDIDATE, Neighbours([late, NEAR]))
    assert "meadow" in only


def test_a_refused_word_or_a_missing_needed_one_rules_a_text_out():
    neighbours = Neighbours([NEAR, OWN])
    refusing = replace(CANDIDATE, refused=re.compile("meadow"))
    needing = replace(CANDIDATE, needed=re.compile("meadow"))
    assert [("meadow" in text) for text in neutrals(refusing, neighbours)] == [False]
    assert [("meadow" in text) for text in neutrals(needing, neighbours)] == [True]


def test_a_text_that_says_the_claim_itself_is_none():
    said = "Dried gorse leaves were found to bind ammonia in quarry soil by a team that came late."
    other = passage((said, *FAR.sentences), "other")
    assert all(said not in text for text in neutrals(CANDIDATE, Neighbours([OWN, other])))


def test_a_word_is_rare_in_few_passages_only():
    neighbours = Neighbours([OWN, NEAR, FAR, field_study("fern", "moor", "left")])
    assert neighbours.is_rare("quarry")
    assert not neighbours.is_rare("soil")
    assert not neighbours.is_rare("unheard")
