"""Retriever with the fake encoder: every ranking here can be worked out by hand."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from coder_ir import (
    Added,
    Candidates,
    Condition,
    Document,
    Order,
    Retriever,
    Sequential,
    Union,
    Verdict,
)
from coder_ir.encoders import Runtime
from coder_ir.errors import (
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    ModelMismatch,
    NotFound,
)
from coder_ir.policies import POLICIES
from coder_ir.stores import SqliteStore
from coder_ir.types import Json, Span
from coder_ir.vectors import best_first
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]
HOTELS = [
    Document("court", "hotel quiet+", "", {"stars": 3, "city": "Rome"}),  # right subject, permitted
    Document("street", "hotel noisy+", "", {"stars": 4, "city": "Rome"}),  # right subject, half
    Document(
        "tavern", "hotel- club+", "", {"stars": 5, "city": "Bari"}
    ),  # right subject, ruled out
    Document("park", "garden- quiet+", "", {"stars": 1, "city": "Bari"}),  # another subject
]
QUERY = "hotel quiet+"


@pytest.fixture
def hotels(retriever: Retriever) -> Retriever:
    retriever.add(HOTELS)
    return retriever


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("coder_ir.intake._BATCH_DOCUMENTS", 10)
    return 10


@pytest.fixture
def splitting(tmp_path: Path) -> Iterator[Retriever]:
    """Passages of five words."""
    with Retriever(
        FakeEncoder(WORDS, limit=5), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as opened:
        yield opened


def ids(ranking) -> list[str]:
    return [hit.doc_id for hit in ranking]


def plain(count: int, text: str = "hotel") -> list[Document]:
    return [Document(f"d{i:04}", text) for i in range(count)]


# --- searching


def test_documents_added_are_found_best_first(hotels):
    assert ids(hotels.search(QUERY, k=2)) == ["court", "street"]


def test_hits_are_ranked_from_one(hotels):
    assert [hit.rank for hit in hotels.search(QUERY, policy="topical")] == [1, 2, 3, 4]


def test_a_hit_carries_both_scores(hotels):
    street = hotels.search(QUERY)[1]
    assert street.topical == pytest.approx(1.0, abs=1e-3)
    assert street.compatibility == pytest.approx(0.5, abs=1e-3)


def test_a_hit_carries_the_score_it_was_ranked_by(hotels):
    street = hotels.search(QUERY, policy="seq")[1]
    assert street.score == pytest.approx(0.2 * street.topical + 0.8 * street.compatibility)


def test_a_hit_carries_the_document(hotels):
    court = hotels.search(QUERY)[0]
    assert (court.text, court.title) == ("hotel quiet+", "")
    assert court.metadata == {"stars": 3, "city": "Rome"}


def test_a_hit_gives_its_reason_with_the_scores_in_it(hotels):
    street = hotels.search(QUERY, policy="seq")[1]
    assert f"compatibility {street.compatibility:.3f} reaches 0.3" in street.reason


def test_the_passage_of_a_short_text_is_all_of_it(hotels):
    court = hotels.search(QUERY)[0]
    assert (court.passage.number, court.passage_text) == (0, "hotel quiet+")


def test_what_the_policy_dropped_is_listed_with_scores_and_reason(hotels):
    (tavern,) = hotels.search(QUERY, policy="seq").filtered
    assert tavern.doc_id == "tavern"
    assert tavern.topical == pytest.approx(1.0, abs=1e-3)
    assert tavern.compatibility == pytest.approx(0.0, abs=1e-3)
    assert "below the threshold 0.3" in tavern.reason


def test_what_is_merely_past_k_is_not_called_filtered(hotels):
    ranking = hotels.search(QUERY, k=1, policy="seq")
    assert (ids(ranking), [gone.doc_id for gone in ranking.filtered]) == (["court"], ["tavern"])


def test_a_ranking_names_its_query_and_policy(hotels):
    ranking = hotels.search(QUERY, policy="union")
    assert (ranking.query, ranking.policy) == (QUERY, "union")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("auto", ["court", "street", "tavern", "park"]),
        ("topical", ["court", "street", "tavern", "park"]),
        ("compatibility", ["court", "park", "street", "tavern"]),
        ("seq", ["court", "street", "park"]),
        ("union", ["court", "park", "street"]),
    ],
)
def test_each_named_policy_orders_by_its_own_rule(hotels, policy, expected):
    assert ids(hotels.search(QUERY, policy=policy)) == expected


def test_auto_is_the_policy_where_none_is_named(hotels):
    assert hotels.search(QUERY) == hotels.search(QUERY, policy="auto")


def test_union_scores_by_both_ranks_inside_the_pool(hotels):
    park = hotels.search(QUERY, policy="union")[1]  # fourth by topic, second by compatibility
    assert park.score == pytest.approx(0.3 / 4 + 0.7 / 2)


def test_an_unknown_policy_is_refused_with_the_names_there_are(hotels):
    named = "one of auto, topical, compatibility, seq, union, got 'best'"
    with pytest.raises(InvalidValue, match=named):
        hotels.search(QUERY, policy="best")


def test_a_policy_object_with_other_settings_is_used(hotels):
    assert ids(hotels.search(QUERY, policy=Sequential(tau=0.9))) == ["court"]


class LeastTopical:
    """A user's policy: worst subject first, all but one dropped."""

    name = "least"
    spaces = ("topical",)

    def order(self, pool: Candidates) -> Order:
        order = best_first(-pool.topical, pool.doc_ids, len(pool))
        verdicts = [Verdict(i, -float(pool.topical[i]), "Because.") for i in order]
        return Order(verdicts[:1], verdicts[1:])


def test_a_policy_of_the_users_own_decides_order_and_reasons(hotels):
    ranking = hotels.search(QUERY, policy=LeastTopical())
    assert ids(ranking) == ["park"]
    assert {gone.reason for gone in ranking.filtered} == {"Because."}
    assert ranking.policy == "least"


def test_equal_documents_are_listed_by_ascending_id(retriever):
    retriever.add(reversed(plain(30)))
    assert ids(retriever.search("hotel", k=5)) == ["d0000", "d0001", "d0002", "d0003", "d0004"]


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(hotels, k):
    with pytest.raises(InvalidValue, match=f"k must be at least 1, got {k}"):
        hotels.search(QUERY, k=k)


def test_a_pool_below_one_is_refused(hotels):
    with pytest.raises(InvalidValue, match="at least 1 document, got 0"):
        hotels.search(QUERY, n=0)


def test_k_larger_than_the_corpus_returns_everything(hotels):
    assert len(hotels.search(QUERY, k=1000, policy="topical")) == 4


def test_n_limits_the_pool(hotels):
    of_two = hotels.search(QUERY, k=1, n=2, policy="seq")
    of_three = hotels.search(QUERY, k=1, n=3, policy="seq")
    assert [gone.doc_id for gone in of_two.filtered] == []
    assert [gone.doc_id for gone in of_three.filtered] == ["tavern"]


def test_n_is_raised_to_k(retriever):
    retriever.add(plain(30))
    assert len(retriever.search("hotel", k=20, n=5)) == 20


@pytest.mark.parametrize("query", ["", " ", "\n\t  "], ids=["empty", "space", "white space"])
def test_a_query_without_a_word_is_refused(hotels, query):
    with pytest.raises(InvalidValue, match="query is empty; say what to look for"):
        hotels.search(query)


def test_a_batch_names_the_query_that_is_empty(hotels):
    with pytest.raises(InvalidValue, match=r"query 2 is empty"):
        hotels.search_many([QUERY, " "])


def test_a_batch_answers_as_single_searches_do(hotels):
    queries = [QUERY, "garden", "club"]
    assert hotels.search_many(queries) == [hotels.search(query) for query in queries]


def test_a_batch_reports_progress_query_by_query(hotels):
    done: list[int] = []
    hotels.search_many([QUERY, "garden"], progress=done.append)
    assert done == [1, 1]


@pytest.mark.parametrize("policy", list(POLICIES))
def test_an_empty_index_gives_an_empty_ranking(retriever, policy):
    ranking = retriever.search("hotel", policy=policy)
    assert (ranking.hits, ranking.filtered) == ((), ())


@pytest.mark.parametrize("policy", list(POLICIES))
def test_a_filter_nothing_passes_gives_an_empty_ranking(hotels, policy):
    ranking = hotels.search(QUERY, policy=policy, where=["stars>9"])
    assert (ranking.hits, ranking.filtered) == ((), ())


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["city=Rome"], ["court", "street"]),
        (["stars>=4"], ["street", "tavern"]),
        (["stars<4", "city=Bari"], ["park"]),
        (["stars in 1,5"], ["tavern", "park"]),
        (["city!=Rome"], ["tavern", "park"]),
        ([Condition("stars", "=", (3,))], ["court"]),
    ],
    ids=["equal", "at least", "both", "in", "unequal", "object"],
)
def test_where_limits_the_documents(hotels, where, expected):
    assert ids(hotels.search(QUERY, policy="topical", where=where)) == expected


def test_a_condition_that_cannot_be_read_is_refused(hotels):
    with pytest.raises(InvalidValue, match="got 'stars'"):
        hotels.search(QUERY, where=["stars"])


def test_a_single_text_as_where_is_refused_as_a_whole(hotels):
    with pytest.raises(InvalidValue, match="stars>4"):
        hotels.search(QUERY, where="stars>4")


def test_a_document_deleted_while_a_search_runs_is_no_error(hotels, tmp_path):
    other = SqliteStore(tmp_path / "index")

    class Slow(LeastTopical):
        def order(self, pool: Candidates) -> Order:
            other.delete(["street"])
            return POLICIES["topical"].order(pool)

    ranking = hotels.search(QUERY, policy=Slow())
    other.close()
    assert [(hit.rank, hit.doc_id) for hit in ranking] == [(1, "court"), (2, "tavern"), (3, "park")]


# --- adding


def test_add_says_what_it_did(retriever):
    assert retriever.add(HOTELS) == Added(written=4, unchanged=0)
    assert len(retriever) == 4


def test_adding_nothing_does_nothing(retriever):
    assert retriever.add([]) == Added(0, 0)


def test_an_unchanged_document_is_not_encoded_again(hotels, encoder):
    encoder.encoded.clear()
    assert hotels.add(HOTELS) == Added(written=0, unchanged=4)
    assert encoder.encoded == []


@pytest.mark.parametrize(
    "changed",
    [
        Document("court", "hotel sea", "", {"stars": 3, "city": "Rome"}),
        Document("court", "hotel quiet+", "Court", {"stars": 3, "city": "Rome"}),
        Document("court", "hotel quiet+", "", {"stars": 4, "city": "Rome"}),
    ],
    ids=["text", "title", "metadata"],
)
def test_a_changed_document_is_encoded_again_and_replaced(hotels, encoder, changed):
    encoder.encoded.clear()
    assert hotels.add([changed, *HOTELS[1:]]) == Added(written=1, unchanged=3)
    assert encoder.encoded == [changed.content]
    assert hotels.get("court") == changed


def test_a_changed_document_is_found_by_its_new_words_only(hotels):
    hotels.add([Document("street", "sea")])
    assert hotels.search("sea", k=1)[0].doc_id == "street"
    assert ids(hotels.search("noisy", k=4, policy="compatibility"))[0] != "street"


def test_title_and_text_are_encoded_together(retriever, encoder):
    retriever.add([Document("a", "quiet", "garden")])
    assert encoder.encoded == ["garden quiet"]


def test_a_document_without_text_is_kept(retriever):
    retriever.add([Document("a", "")])
    assert retriever.get("a") == Document("a", "", "", {})


def test_null_bytes_in_a_text_lose_nothing(retriever):
    retriever.add([Document("a", "before \0 after hotel")])
    assert retriever.search("hotel")[0].text == "before \0 after hotel"


@pytest.mark.parametrize("doc_id", ["", "a\0b", 7], ids=["empty", "null byte", "number"])
def test_a_bad_id_is_refused_and_documents_before_it_are_kept(retriever, doc_id):
    with pytest.raises(InvalidValue, match="document id must be text without null bytes"):
        retriever.add([HOTELS[0], Document(doc_id, "x"), HOTELS[1]])
    assert ids(retriever.search(QUERY)) == ["court"]


def test_an_id_that_comes_twice_is_refused_and_documents_before_it_are_kept(retriever):
    with pytest.raises(DuplicateId, match="'court' comes twice"):
        retriever.add([HOTELS[0], HOTELS[1], Document("court", "other"), HOTELS[2]])
    assert ids(retriever.search(QUERY)) == ["court", "street"]
    assert retriever.get("court") == HOTELS[0]


def test_an_id_may_come_again_in_another_call(hotels):
    assert hotels.add([Document("court", "sea")]) == Added(written=1, unchanged=0)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), date(2020, 1, 1)], ids=["nan", "infinity", "date"]
)
def test_metadata_that_is_no_json_is_refused_and_documents_before_it_are_kept(retriever, value):
    with pytest.raises(InvalidValue, match="metadata"):
        retriever.add([HOTELS[0], Document("bad", "hotel", "", {"x": value})])
    assert ids(retriever.search(QUERY, where=["city=Rome"])) == ["court"]


@pytest.mark.parametrize(
    "document",
    [
        Document("half\ud800", "hotel"),
        Document("half", "hotel \ud800"),
        Document("half", "hotel", "\ud800"),
        Document("half", "hotel", "", {"x": "\ud800"}),
    ],
    ids=["id", "text", "title", "metadata"],
)
def test_half_a_character_is_refused_and_documents_before_it_are_kept(retriever, document):
    with pytest.raises(CoderError, match="half"):
        retriever.add([HOTELS[0], document])
    assert ids(retriever.search(QUERY)) == ["court"]


def test_half_a_character_in_a_query_is_refused(hotels):
    class Strict(FakeEncoder):
        def encode(self, texts, *, kind, progress=None):
            for text in texts:
                text.encode()  # as tokenizers do
            return super().encode(texts, kind=kind, progress=progress)

    hotels.encoder = Strict(WORDS)
    with pytest.raises(InvalidValue, match="query"):
        hotels.search("hotel \udcff")


def test_documents_are_read_lazily(retriever, small_batches):
    ahead = []

    def source() -> Iterator[Document]:
        for read, document in enumerate(plain(35)):
            ahead.append(read - len(retriever))
            yield document

    retriever.add(source())
    assert len(retriever) == 35
    assert max(ahead) < small_batches


def test_a_batch_is_bounded_in_characters_too(retriever, monkeypatch):
    monkeypatch.setattr("coder_ir.intake._BATCH_CHARACTERS", 100)
    done: list[int] = []
    retriever.add(plain(5, "hotel " * 10), progress=done.append)
    assert done == [2, 2, 1]


def test_progress_counts_documents_batch_by_batch_unchanged_ones_too(retriever, small_batches):
    retriever.add(plain(5))
    done: list[int] = []
    retriever.add(plain(25), progress=done.append)
    assert done == [10, 10, 5]


def test_an_error_in_the_source_comes_after_what_preceded_it_is_stored(retriever, small_batches):
    def source() -> Iterator[Document]:
        yield from plain(17)
        raise InvalidFile("docs.jsonl:18 is not JSON")

    with pytest.raises(InvalidFile, match=r"docs\.jsonl:18"):
        retriever.add(source())
    assert len(retriever) == 17


def test_an_interrupted_add_keeps_whole_batches_and_a_second_one_does_the_rest(
    retriever, encoder, small_batches
):
    def source() -> Iterator[Document]:
        yield from plain(25)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retriever.add(source())
    assert len(retriever) == 20
    encoder.encoded.clear()
    assert retriever.add(plain(30)) == Added(written=10, unchanged=20)
    assert len(encoder.encoded) == 10


def test_deleted_documents_are_gone(hotels):
    assert hotels.delete(["court", "nowhere"]) == 1
    assert ids(hotels.search(QUERY)) == ["street", "tavern", "park"]
    with pytest.raises(NotFound, match="no document 'court'"):
        hotels.get("court")


def test_a_deleted_document_can_be_added_again(hotels):
    hotels.delete(["court"])
    assert hotels.add(HOTELS) == Added(written=1, unchanged=3)
    assert ids(hotels.search(QUERY))[0] == "court"


def test_delete_refuses_a_single_text(hotels):
    with pytest.raises(InvalidValue, match="takes a list of ids, got the text 'court'"):
        hotels.delete("court")
    assert len(hotels) == 4


def test_compact_keeps_the_ranking(hotels):
    before = hotels.search(QUERY)
    hotels.compact()
    assert hotels.search(QUERY) == before


# --- long texts

LONG = "one two three four five garden seven eight nine ten sea quiet"


def test_a_long_text_is_found_by_its_last_passage(splitting):
    splitting.add([Document("long", LONG), Document("short", "hotel")])
    hit = splitting.search("sea", k=1)[0]
    assert (hit.doc_id, hit.passage.number, hit.passage_text) == ("long", 2, "sea quiet")


def test_a_long_text_comes_back_whole_and_once(splitting):
    splitting.add([Document("long", LONG), Document("short", "hotel")])
    ranking = splitting.search("sea- garden+", policy=Union(p=0))  # its passages 2 and 1
    assert [(hit.doc_id, hit.text) for hit in ranking] == [("long", LONG), ("short", "hotel")]


def test_the_passage_counts_from_the_title(splitting):
    splitting.add([Document("long", LONG, "A title")])
    hit = splitting.search("garden", k=1)[0]
    assert "garden" in hit.passage_text
    assert hit.passage.span == Span(22, 51)


def test_without_splitting_a_long_text_is_truncated(splitting):
    splitting.add([Document("long", LONG)], split=False)
    hit = splitting.search("sea", policy="topical")[0]
    assert hit.topical < 0.1
    assert (hit.passage.number, hit.passage_text) == (0, LONG)


def test_a_document_added_without_splitting_is_encoded_again_with_it(splitting):
    splitting.add([Document("long", LONG)], split=False)
    assert splitting.add([Document("long", LONG)]) == Added(written=1, unchanged=0)
    assert splitting.search("sea", k=1)[0].passage.number == 2


def test_a_document_with_one_passage_kept_and_one_dropped_is_a_hit_and_not_filtered(splitting):
    splitting.add([Document("long", "hotel- one two three four quiet+")])
    ranking = splitting.search("hotel- quiet+", policy="union")
    assert (ids(ranking), ranking.filtered) == (["long"], ())


def test_a_shorter_version_leaves_no_old_passage_behind(splitting):
    splitting.add([Document("long", LONG)])
    splitting.add([Document("long", "garden")])
    assert splitting.search("sea", k=1)[0].topical == pytest.approx(0, abs=0.1)


def test_a_document_of_one_megabyte_is_stored_whole(tmp_path):
    text = "word " * 209_715 + "sea"  # 1 MB
    with Retriever(
        FakeEncoder(WORDS, limit=400), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as retriever:
        retriever.add([Document("big", text), Document("small", "hotel")])
        hit = retriever.search("sea", k=1)[0]
        assert (hit.doc_id, hit.text == text) == ("big", True)


def test_a_text_of_200_pages_is_found_by_a_word_on_its_last_page(tmp_path):
    text = " ".join(["hotel"] * 99_900 + ["club"] + ["filler"] * 99)
    with Retriever(
        FakeEncoder(WORDS, limit=300), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as retriever:
        retriever.add([Document("book", text), Document("leaf", "hotel sea")])
        hit = retriever.search("club", k=1)[0]
        assert (hit.doc_id, hit.passage.number) == ("book", 333)
        assert "club" in hit.passage_text.split()


# --- models


def other_model() -> FakeEncoder:
    return FakeEncoder(WORDS, name="other")


def test_an_index_of_another_model_is_refused_and_both_are_named(hotels, tmp_path):
    store = SqliteStore(tmp_path / "index")
    with pytest.raises(ModelMismatch, match=r"built with model 'fake' .* not 'other'"):
        Retriever(other_model(), store, verifier=FakeVerifier())
    store.close()


def test_an_index_of_another_model_is_refused_with_the_command_that_builds_it_anew(
    hotels, tmp_path
):
    store = SqliteStore(tmp_path / "index")
    with pytest.raises(ModelMismatch) as refused:
        Retriever(other_model(), store)
    store.close()
    assert "build it anew with: coder-ir index NEW_INDEX DOCS… --model other" in str(refused.value)


def test_an_index_of_an_earlier_version_is_refused_with_the_command_that_builds_it_anew(
    hotels, tmp_path
):
    later = FakeEncoder([*WORDS, "sun"], name="fake")
    store = SqliteStore(tmp_path / "index")
    with pytest.raises(
        ModelMismatch,
        match=r"built by an earlier version of coder-ir, or of model 'fake', whose vectors differ; "
        r"build it anew with: coder-ir index NEW_INDEX DOCS… --model fake$",
    ):
        Retriever(later, store)
    store.close()


def test_an_index_of_an_earlier_built_in_model_is_rebuilt_without_naming_it(tmp_path):
    with Retriever(FakeEncoder(WORDS, name="built-in"), SqliteStore(tmp_path / "index")) as old:
        old.add(HOTELS)
    with pytest.raises(ModelMismatch, match=r"anew with: coder-ir index NEW_INDEX DOCS…$"):
        Retriever.open(tmp_path / "index")


def test_documents_rank_the_same_whether_they_came_in_bulk_or_one_at_a_time(tmp_path):
    """The built-in model, whose int8 graphs scale by all that they are given at once."""
    rooms = [
        Document("quiet", "A quiet room above the garden, far from any road."),
        Document(
            "loud", "Our rooms are over the bar, " + "where a band plays late, " * 30 + "yes."
        ),
        Document("short", "A room."),
        Document("long", "The inn stands in a valley. " * 120 + "No music is played at night."),
    ]
    with Retriever.open(tmp_path / "bulk") as bulk, Retriever.open(tmp_path / "single") as single:
        bulk.add(rooms)
        for room in reversed(rooms):
            single.add([room])
        for query in ("a room without music", "a band in the bar", "inn"):
            assert bulk.search(query).hits == single.search(query).hits


def test_an_index_nobody_added_to_takes_any_model(retriever, tmp_path):
    with Retriever(
        other_model(), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as other:
        assert len(other) == 0


def test_a_model_that_came_second_to_a_new_index_may_not_add(retriever, tmp_path):
    with Retriever(
        other_model(), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as second:
        retriever.add(HOTELS[:1])
        with pytest.raises(ModelMismatch, match=r"built with model 'fake' .* not 'other'"):
            second.add(HOTELS[1:])
    assert len(retriever) == 1


def test_a_model_that_came_second_to_a_new_index_may_not_search(retriever, tmp_path):
    with Retriever(
        other_model(), SqliteStore(tmp_path / "index"), verifier=FakeVerifier()
    ) as second:
        retriever.add(HOTELS)
        with pytest.raises(ModelMismatch, match=r"built with model 'fake' .* not 'other'"):
            second.search(QUERY)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The specs that `Retriever.open` asked to load."""
    specs: list[str] = []

    def load(spec: str, *, runtime: object) -> FakeEncoder:
        specs.append(spec)
        return FakeEncoder(WORDS, name=spec)

    monkeypatch.setattr("coder_ir.retriever.load_encoder", load)
    monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda name, *, threads: FakeVerifier())
    return specs


def test_a_new_index_opens_with_the_built_in_model(loaded, tmp_path):
    Retriever.open(tmp_path / "index").close()
    assert loaded == ["built-in"]


def test_an_index_opens_with_the_model_it_was_built_with(loaded, tmp_path):
    with Retriever.open(tmp_path / "index", model="mine") as retriever:
        retriever.add(HOTELS)
    with Retriever.open(str(tmp_path / "index")) as retriever:
        assert len(retriever.search(QUERY)) == 4
    assert loaded == ["mine", "mine"]


def test_opening_with_another_model_is_refused(loaded, tmp_path):
    with Retriever.open(tmp_path / "index", model="mine") as retriever:
        retriever.add(HOTELS)
    with pytest.raises(ModelMismatch, match=r"'mine' .* not 'yours'"):
        Retriever.open(tmp_path / "index", model="yours")


def test_opening_read_only_what_is_not_there_is_not_found(loaded, tmp_path):
    with pytest.raises(NotFound, match="no index in"):
        Retriever.open(tmp_path / "index", read_only=True)
    assert loaded == []


@pytest.mark.parametrize(("depth", "fits"), [(64, True), (66, False), (5000, False)])
def test_metadata_that_is_nested_too_deeply_is_refused(retriever, depth: int, fits: bool):
    value: Json = 1
    for _ in range(depth - 1):
        value = [value]
    document = Document("deep", "hotel", "", {"a": value})
    if fits:
        assert retriever.add([document]).written == 1
    else:
        with pytest.raises(InvalidValue, match=r"nested|not JSON"):
            retriever.add([document])


@pytest.mark.parametrize(
    ("named", "runtime", "expected"),
    [
        (None, None, ("built-in", 0)),
        ("mine", None, ("mine", 0)),
        (None, Runtime(threads=2), ("built-in", 2)),
    ],
    ids=["built-in", "by name", "threads"],
)
def test_an_index_opens_with_the_verifier_that_is_named(
    loaded, tmp_path, monkeypatch, named, runtime, expected
):
    asked: list[tuple[str, int]] = []

    def load(name: str, *, threads: int) -> FakeVerifier:
        asked.append((name, threads))
        return FakeVerifier()

    monkeypatch.setattr("coder_ir.retriever.load_verifier", load)
    Retriever.open(tmp_path / "index", verifier=named, runtime=runtime).close()
    assert asked == [expected]


def test_without_a_verifier_the_built_in_one_reads(encoder, tmp_path, monkeypatch):
    own = FakeVerifier()
    monkeypatch.setattr("coder_ir.retriever.load_verifier", lambda: own)
    with Retriever(encoder, SqliteStore(tmp_path / "index")) as retriever:
        retriever.add(HOTELS)
        assert own.asked == []
        retriever.search(QUERY, exclude=["garden"])
    assert len(own.asked) == 1


def test_hard_mode_reads_whole_documents_from_the_top_and_stops_after_k(splitting):
    splitting.add(
        [
            Document("a", "hotel hotel hotel hotel hotel here there is a disco"),
            Document("b", "hotel hotel hotel hotel garden here there is no disco"),
            Document("c", "hotel hotel hotel garden garden here there is nothing else"),
            Document("d", "hotel hotel garden garden garden here there is a disco"),
        ]
    )
    splitting.verifier.asked.clear()
    ranking = splitting.search("hotel", k=1, policy="topical", exclude=["disco"], mode="hard")
    assert ids(ranking) == ["b"]
    assert [gone.doc_id for gone in ranking.filtered] == ["a"]
    parts = ["here there is a disco", "here there is no disco"]
    assert [(query, texts[1:]) for query, texts in splitting.verifier.asked] == [
        ("without disco", [part]) for part in parts
    ]
