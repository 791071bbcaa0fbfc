"""Retriever with constraints, stated in the query or beside it; scores worked out by hand.

The fake encoder gives `without` and `with` an axis of their own, as a stand-in for one that has
learnt what they mean. It knows no disco, of which only the fake verifier reads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from coder_ir import Document, Retriever
from coder_ir.calibration import Calibration, Logistic
from coder_ir.errors import InvalidValue
from coder_ir.policies import POLICIES, Auto
from coder_ir.policies.auto import floor_of
from coder_ir.searching import SearchOptions
from coder_ir.stores import SqliteStore
from coder_ir.text import split_sentences
from coder_ir.types import Constraint, Hit, Ranking
from tests.conftest import FakeEncoder, FakeParser
from tests.fake_verifier import FakeVerifier

WORDS = ["hotel", "garden", "sea", "without", "with"]
HOTELS = [
    Document("loud", "hotel. The disco opens at ten."),
    Document("calm", "hotel garden- without+ noise. No disco here."),
    Document("car", "hotel sea- with+ parking. Near the ring road."),
]
ALIKE = [
    Document("a", "hotel sea. The disco is loud."),
    Document("b", "hotel sea. Every room is big."),
]
# A loss is how far s_T + s_C - 0.1 x breach is behind the best, if all of a constraint counts.
PLAIN = Auto(strength=1.0, unnamed=1.0, exclusion=0.1, firmness=10.0)
AFFIRMS = "Filtered, since it affirms an excluded phrase or lacks a required one."
# A risk of 1/4 without a breach.
CALIBRATION = Calibration(Logistic((0.0, 0.0, 4 * log(3)), -log(3)))


@pytest.fixture
def hotels(tmp_path: Path) -> Iterator[Retriever]:
    store = SqliteStore(tmp_path / "index")
    with Retriever(
        FakeEncoder(WORDS), store, parser=FakeParser(), verifier=FakeVerifier()
    ) as opened:
        opened.add(HOTELS)
        yield opened


@pytest.fixture
def calibrated(hotels: Retriever) -> Retriever:
    return Retriever(
        hotels.encoder,
        hotels.store,
        calibration=CALIBRATION,
        parser=FakeParser(0.6),
        verifier=FakeVerifier(),
    )


def ids(ranking: Ranking) -> list[str]:
    return [hit.doc_id for hit in ranking]


def gone(ranking: Ranking) -> list[tuple[str, str]]:
    return [(one.doc_id, one.reason) for one in ranking.filtered]


def by_id(ranking: Ranking) -> dict[str, float]:
    return {hit.doc_id: hit.score for hit in ranking}


def floor_and_gap(ranking: Ranking) -> tuple[float, float]:
    topical = np.array([hit.topical for hit in ranking])
    return floor_of(topical), topical.max() - floor_of(topical)


def kept(ranking: Ranking, losses: dict[str, float]) -> dict[str, float]:
    """The scores that `PLAIN` makes of the topical ones at these losses and what was read."""
    floor, gap = floor_and_gap(ranking)

    def lead(hit: Hit) -> float:
        own = hit.topical - floor
        left = own * exp(-PLAIN.firmness * losses[hit.doc_id] / gap)
        if hit.reading is None:
            return left
        denied = PLAIN.denial * hit.reading.violates
        return left * (1 - denied) + PLAIN.affirmation * hit.reading.satisfies * sqrt(own * gap)

    return {hit.doc_id: floor + lead(hit) for hit in ranking}


def losses_of(ranking: Ranking) -> dict[str, float]:
    """The losses by which `PLAIN` came to these scores."""
    floor, gap = floor_and_gap(ranking)
    return {
        hit.doc_id: -log((hit.score - floor) / (hit.topical - floor)) * gap / PLAIN.firmness
        for hit in ranking
    }


class TestExclude:
    def test_without_a_phrase_the_topic_decides(self, hotels: Retriever):
        assert ids(hotels.search("hotel")) == ["loud", "calm", "car"]

    def test_a_document_that_affirms_the_phrase_falls(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco"], policy=PLAIN)
        assert ids(ranking) == ["calm", "loud", "car"]
        # The compatibility query is hotel + without: loud 1 + .707, calm .707 + 1, car .707 + .5.
        losses = {"calm": 0, "loud": 0, "car": 0.5}
        assert by_id(ranking) == pytest.approx(kept(ranking, losses), abs=1e-3)
        readings = {hit.doc_id: hit.reading for hit in ranking}
        assert {doc_id: said and said.violates for doc_id, said in readings.items()} == {
            "calm": 0.06,
            "loud": 0.9,
            "car": 0.1,
        }

    def test_unread_it_falls_by_the_vectors_alone(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco"], policy=PLAIN, verify=0)
        assert {hit.reading for hit in ranking} == {None}
        losses = {"calm": 0, "loud": 0, "car": 0.5}
        assert by_id(ranking) == pytest.approx(kept(ranking, losses), abs=1e-3)

    def test_a_document_about_the_phrase_falls_even_where_it_denies_it(self, hotels: Retriever):
        hotels.add([Document("inland", "hotel. No sea at all.")])
        ranking = hotels.search("hotel", exclude=["sea"], policy=PLAIN, verify=0)
        losses, best = losses_of(ranking), ranking[0].topical + ranking[0].compatibility
        lost = {
            hit.doc_id: best - losses[hit.doc_id] - hit.topical - hit.compatibility
            for hit in ranking
        }
        about = (0.7071 - 0.5) / 0.5  # how far a cosine of .707 is from .5 to 1
        assert lost == pytest.approx(
            {"loud": 0, "calm": 0, "inland": -0.1 * about, "car": -0.1 * about}, abs=1e-3
        )

    def test_read_it_rises_above_one_that_affirms_it(self, hotels: Retriever):
        hotels.add([Document("inland", "hotel sea-. No sea at all.")])
        hotels.add([Document("beach", "hotel sea-. The sea is near.")])
        unread = ids(hotels.search("hotel", exclude=["sea"], verify=0))
        assert unread.index("beach") < unread.index("inland")  # equal scores go by id
        found = ids(hotels.search("hotel", exclude=["sea"]))
        assert found.index("inland") < found.index("beach")

    def test_it_falls_by_what_is_read_where_the_encoder_does_not_know_the_word(
        self, hotels: Retriever
    ):
        hotels.add(ALIKE)
        assert ids(hotels.search("hotel sea", k=2)) == ["a", "b"]
        found = ids(hotels.search("hotel sea", exclude=["disco"]))
        assert found.index("b") < found.index("a")

    def test_the_reason_quotes_what_decided_and_the_scoring_says_what_it_cost(
        self, hotels: Retriever
    ):
        loud = hotels.search("hotel", exclude=["disco"], policy=PLAIN)[1]
        assert loud.reason == "Goes against “no disco”: “The disco opens at ten.”"
        assert loud.scoring == (
            f"Topic 1.000, now {loud.score:.3f} by compatibility 0.707, "
            "read as satisfying 0.06, violating 0.90."
        )

    def test_soft_mode_filters_nothing(self, hotels: Retriever):
        assert hotels.search("hotel", exclude=["disco"]).filtered == ()

    def test_the_phrase_enters_the_compatibility_score_and_not_the_topical_one(
        self, hotels: Retriever
    ):
        before, after = hotels.search("hotel"), hotels.search("hotel", exclude=["disco"])
        assert {hit.doc_id: hit.topical for hit in after} == {
            hit.doc_id: hit.topical for hit in before
        }
        calm = [next(hit for hit in found if hit.doc_id == "calm") for found in (before, after)]
        assert [hit.compatibility for hit in calm] == pytest.approx([0.707, 1], abs=1e-3)

    def test_hard_mode_drops_what_affirms_it_and_keeps_what_denies_it(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco"], mode="hard")
        assert ids(ranking) == ["calm", "car"]
        assert gone(ranking) == [("loud", AFFIRMS)]
        assert [hit.rank for hit in ranking] == [1, 2]

    @pytest.mark.parametrize("policy", list(POLICIES))
    def test_hard_mode_drops_it_whatever_the_policy(self, hotels: Retriever, policy: str):
        ranking = hotels.search("hotel", exclude=["disco"], mode="hard", policy=policy)
        assert "loud" not in ids(ranking)
        assert "loud" in [one.doc_id for one in ranking.filtered]

    def test_several_phrases_count_each(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco", "ring road"], mode="hard")
        assert ids(ranking) == ["calm"]
        assert sorted(one.doc_id for one in ranking.filtered) == ["car", "loud"]

    def test_hard_mode_fills_the_k_places_from_what_is_left(self, hotels: Retriever):
        assert ids(hotels.search("hotel", k=2, exclude=["disco"], mode="hard")) == ["calm", "car"]

    def test_hard_mode_may_leave_nothing(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["hotel"], mode="hard")
        assert (ranking.hits, len(ranking.filtered)) == ((), 3)

    def test_a_batch_answers_as_single_searches_do(self, hotels: Retriever):
        options = SearchOptions(exclude=["disco"], mode="hard", explain=True)
        together = hotels.search_many(["hotel", "sea without parking"], options)
        assert together == [
            hotels.search(query, exclude=["disco"], mode="hard", explain=True)
            for query in ("hotel", "sea without parking")
        ]


class TestRequire:
    def test_a_document_that_has_the_phrase_rises(self, hotels: Retriever):
        assert ids(hotels.search("hotel")) == ["loud", "calm", "car"]
        ranking = hotels.search("hotel", require=["parking"], policy=PLAIN)
        assert ids(ranking) == ["loud", "car", "calm"]
        # The compatibility query is hotel + with: car .707 + 1, loud 1 + .707, calm .707 + .5;
        # by the vectors all of them lack parking, of which the encoder knows nothing.
        losses = {"car": 0, "loud": 0, "calm": 0.5}
        assert by_id(ranking) == pytest.approx(kept(ranking, losses), abs=1e-3)

    def test_hard_mode_drops_what_lacks_it(self, hotels: Retriever):
        ranking = hotels.search("hotel", require=["parking"], mode="hard")
        assert ids(ranking) == ["car"]
        assert gone(ranking) == [("loud", AFFIRMS), ("calm", AFFIRMS)]

    def test_what_denies_a_phrase_lacks_it(self, hotels: Retriever):
        ranking = hotels.search("hotel", require=["disco"], mode="hard")
        assert ids(ranking) == ["loud"]

    def test_it_goes_together_with_an_exclusion(self, hotels: Retriever):
        hotels.add([Document("both", "hotel. A disco, and parking for all.")])
        ranking = hotels.search("hotel", exclude=["disco"], require=["parking"], mode="hard")
        assert ids(ranking) == ["car"]


class TestRisk:
    def test_a_model_without_calibration_knows_no_risk(self, hotels: Retriever):
        assert {hit.risk for hit in hotels.search("hotel", exclude=["disco"])} == {None}

    def test_a_limit_of_risk_without_a_calibration_is_refused(self, hotels: Retriever):
        with pytest.raises(InvalidValue, match="max_risk needs a calibrated model, which 'fake'"):
            hotels.search("hotel", exclude=["disco"], max_risk=0.5)

    def test_a_limit_of_one_needs_no_calibration(self, hotels: Retriever):
        assert len(hotels.search("hotel", exclude=["disco"], max_risk=1)) == 3

    def test_a_hit_that_was_read_has_the_risk_that_was_read(self, calibrated: Retriever):
        ranking = calibrated.search("hotel", exclude=["disco"])
        risk = {hit.doc_id: hit.risk for hit in ranking}
        assert risk == pytest.approx({"calm": 0.05, "loud": 0.95, "car": 0.25})

    def test_unread_a_calibrated_model_gives_each_hit_its_risk(self, calibrated: Retriever):
        ranking = calibrated.search("hotel", exclude=["sea"], verify=0)
        risk = {hit.doc_id: hit.risk for hit in ranking}
        odds = 3 ** (4 * (0.7071 - 0.5) / 0.5 - 1)  # car is as near to the sea as .707
        expected = {"calm": 0.25, "loud": 0.25, "car": odds / (1 + odds)}
        assert risk == pytest.approx(expected, abs=1e-3)

    def test_a_constraint_that_the_query_states_counts_in_full(self, calibrated: Retriever):
        ranking = calibrated.search("hotel without disco")
        assert ranking.constraint.probability == 0.6
        risk = {hit.doc_id: hit.risk for hit in ranking}
        assert risk == pytest.approx({"calm": 0.05, "loud": 0.95, "car": 0.25})

    def test_what_is_riskier_than_the_limit_is_filtered_with_both_numbers(
        self, calibrated: Retriever
    ):
        ranking = calibrated.search("hotel", exclude=["disco"], max_risk=0.5)
        assert ids(ranking) == ["calm", "car"]
        assert gone(ranking) == [("loud", "Filtered, since its risk of 0.95 is above 0.5.")]
        assert ranking.filtered[0].risk == pytest.approx(0.95)

    def test_a_limit_all_stay_under_changes_nothing(self, calibrated: Retriever):
        loose = calibrated.search("hotel", exclude=["disco"], max_risk=0.96)
        assert loose == calibrated.search("hotel", exclude=["disco"])


class TestExplain:
    def test_nobody_asked_and_no_sentence_is_named(self, hotels: Retriever):
        assert {hit.decisive for hit in hotels.search("hotel")} == {""}

    def test_unread_the_sentence_without_which_compatibility_differs_most_is_named(
        self, hotels: Retriever
    ):
        ranking = hotels.search("hotel", exclude=["disco"], explain=True, verify=0)
        assert {hit.doc_id: hit.decisive for hit in ranking} == {
            "loud": "hotel.",
            "calm": "hotel garden- without+ noise.",
            "car": "hotel sea- with+ parking.",
        }

    def test_read_it_is_the_one_that_the_verifier_names(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco"], explain=True)
        assert {hit.doc_id: hit.decisive for hit in ranking} == {
            "loud": "The disco opens at ten.",
            "calm": "No disco here.",
            "car": "hotel sea- with+ parking.",  # which is silent on it
        }

    def test_what_the_verifier_names_is_there_unasked(self, hotels: Retriever):
        ranking = hotels.search("hotel", exclude=["disco"])
        assert {hit.doc_id: hit.decisive for hit in ranking} == {
            "loud": "The disco opens at ten.",
            "calm": "No disco here.",
            "car": "",
        }

    def test_it_need_not_be_the_first(self, hotels: Retriever):
        hotels.add([Document("late", "sea- here. It is a hotel without+ noise.")])
        ranking = hotels.search("hotel", exclude=["disco"], explain=True)
        late = next(hit for hit in ranking if hit.doc_id == "late")
        assert late.decisive == "It is a hotel without+ noise."

    @pytest.mark.parametrize("policy", list(POLICIES))
    def test_it_is_a_sentence_of_the_passage(self, tmp_path: Path, policy: str):
        text = "hotel here. Two words. sea here. A garden. hotel without+ noise."
        encoder, store = FakeEncoder(WORDS, limit=6), SqliteStore(tmp_path / "i")
        with Retriever(encoder, store, parser=FakeParser(), verifier=FakeVerifier()) as retriever:
            retriever.add([Document("long", text), *HOTELS])
            for hit in retriever.search("hotel without disco", policy=policy, explain=True):
                assert hit.decisive in split_sentences(hit.passage_text)

    @pytest.mark.parametrize(
        ("text", "decisive"), [("One hotel.", "One hotel."), ("", "")], ids=["one", "none"]
    )
    def test_a_text_of_at_most_one_sentence_is_decided_by_it(
        self, hotels: Retriever, text: str, decisive: str
    ):
        hotels.add([Document("short", text)])
        hits = {hit.doc_id: hit for hit in hotels.search("hotel", explain=True)}
        assert hits["short"].decisive == decisive

    def test_it_changes_nothing_else(self, hotels: Retriever):
        plain, told = hotels.search("hotel"), hotels.search("hotel", explain=True)
        assert [(hit.doc_id, hit.score, hit.reason) for hit in told] == [
            (hit.doc_id, hit.score, hit.reason) for hit in plain
        ]


class TestConstraint:
    def test_a_ranking_shows_the_cue_and_what_it_excludes(self, hotels: Retriever):
        found = hotels.search("hotel without disco").constraint
        assert (found.cues, found.excluded, found.topic) == (("without",), ("disco",), "hotel")

    def test_a_query_that_states_none_shows_none(self, hotels: Retriever):
        assert hotels.search("hotel").constraint == Constraint(0.0)

    def test_explicit_phrases_are_shown_too(self, hotels: Retriever):
        found = hotels.search("hotel without disco", exclude=["stairs"], require=["parking"])
        assert found.constraint.excluded == ("disco", "stairs")
        assert found.constraint.required == ("parking",)

    def test_an_empty_index_shows_it_as_well(self, tmp_path: Path):
        store = SqliteStore(tmp_path / "empty")
        with Retriever(
            FakeEncoder(WORDS), store, parser=FakeParser(), verifier=FakeVerifier()
        ) as retriever:
            ranking = retriever.search("hotel without disco", explain=True)
        assert (ranking.hits, ranking.constraint.excluded) == ((), ("disco",))

    def test_a_detected_constraint_never_drops_a_document_by_itself(self, hotels: Retriever):
        ranking = hotels.search("hotel without disco")
        assert (len(ranking), ranking.filtered) == (3, ())

    def test_a_detected_constraint_lowers_what_affirms_it(self, hotels: Retriever):
        hotels.add(ALIKE)
        found = ids(hotels.search("hotel sea without disco"))
        assert found.index("b") < found.index("a")


@dataclass(frozen=True)
class Case:
    query: str
    exclude: Sequence[str] = ()
    require: Sequence[str] = ()
    reads: bool = True  # by a parser; operators alone if not


@pytest.mark.parametrize(
    "case",
    [
        Case("hotel without disco"),
        Case("hotel -disco", reads=False),
        Case("hotel", exclude=["disco"]),
        Case("hotel", require=["parking"]),
    ],
    ids=["detected", "operator", "excluded", "required"],
)
def test_the_topical_policy_is_never_touched_by_a_constraint(hotels: Retriever, case: Case):
    parser = hotels.parser if case.reads else None
    retriever = Retriever(hotels.encoder, hotels.store, parser=parser, verifier=FakeVerifier())
    ranking = retriever.search(
        case.query, policy="topical", exclude=case.exclude, require=case.require
    )
    assert ranking.constraint.probability == 1
    assert len(ranking) == 3
    assert [hit.score for hit in ranking] == [hit.topical for hit in ranking]
    expected = sorted(ranking, key=lambda hit: (-hit.topical, hit.doc_id))
    assert list(ranking) == expected


def test_the_topical_policy_ignores_what_a_calibrated_model_detects(
    hotels: Retriever, calibrated: Retriever
):
    plain = hotels.search("hotel without disco", policy="topical")
    assert ids(calibrated.search("hotel without disco", policy="topical")) == ids(plain)
