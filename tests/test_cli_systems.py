"""run with other systems, language models, words and cross-encoders, by the built-in model."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from coder_ir.baselines.rerank import CrossEncoder
from coder_ir.datasets.documents import read_documents
from tests.conftest import Command
from tests.language_server import Desk, LanguageServer, Reply, Request, refusal
from tests.test_cli import jsonl, real

KEY = "sk-marker-9876543210-do-not-show"
TEXTS = {
    "garden": "Back rooms look onto a silent garden.",
    "club": "The club downstairs plays music until four in the morning.",
    "pool": "There is a heated pool for swimming.",
    "xr600": "The XR600 amplifier, XR600 series.",
    "xr700": "XR700 headphones by the XR company.",
    "fuse": "Breakfast is served in the hall, and the fuse box beside the kitchen door takes "
    "type XR-500.",
    "sea": "From the balcony one sees the sea.",
}
ASKED = {
    "q1": "a quiet room without music",
    "q2": "swimming, but not in the sea",
    "q3": "headphones",
    "q4": "a room without a balcony",
    "q5": "where is breakfast, not dinner",
}
NEEDS = {"bm25": ("bm25s", "hybrid"), "ns-ir": ("ot", "baselines")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index; tests get a copy, for systems keep files in it."""
    folder = tmp_path_factory.mktemp("systems")
    rows = [{"_id": name, "text": text} for name, text in TEXTS.items()]
    jsonl(folder / "corpus.jsonl", rows)
    done = real("index", "index", "corpus.jsonl", "--threads", 1, cwd=folder)
    assert done.code == 0, done.err
    return folder / "index"


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    rows = [{"_id": name, "text": text} for name, text in ASKED.items()]
    return jsonl(tmp_path / "queries.jsonl", rows)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A single query."""
    return jsonl(tmp_path / "one.jsonl", [{"_id": "q", "text": "XR-500"}])


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "run.trec"


def lines(output: Path) -> list[list[str]]:
    return [line.split() for line in output.read_text(encoding="utf-8").splitlines()]


def found(output: Path, query: str) -> list[str]:
    return [line[2] for line in lines(output) if line[0] == query]


class TestSystems:
    @pytest.mark.parametrize("system", ["bm25", "dense", "hyde", "deo", "ns-ir"])
    def test_it_writes_a_run_of_its_own_name_with_falling_scores(
        self, cli: Command, index: Path, queries: Path, output: Path, system: str
    ):
        if system in NEEDS:
            pytest.importorskip(NEEDS[system][0], reason=f"needs the extra {NEEDS[system][1]}")
        done = cli("run", index, queries, "-o", output, "--system", system, "-k", 6)
        assert (done.code, done.out) == (0, "")
        assert f"{output}: 5 queries, 30 lines" in done.err
        assert {line[5] for line in lines(output)} == {f"coder-ir-{system}"}
        for query in ASKED:
            mine = [line for line in lines(output) if line[0] == query]
            assert [int(line[3]) for line in mine] == [1, 2, 3, 4, 5, 6]
            assert len({line[2] for line in mine} & TEXTS.keys()) == 6
            assert all(float(a[4]) > float(b[4]) for a, b in pairwise(mine))

    def test_another_encoder_for_dense_keeps_its_vectors_in_the_index(
        self, cli: Command, index: Path, queries: Path, output: Path
    ):
        options = ("-o", output, "--system", "dense")
        cli("run", index, queries, *options)
        own = [line[:4] for line in lines(output)]
        done = cli("run", index, queries, *options, "--encoder", "built-in")
        assert done.code == 0
        assert [line[:4] for line in lines(output)] == own  # for it is the index's own encoder
        assert len(list(index.glob("dense-*/rows-*.npy"))) == 1

    def test_a_folder_that_cannot_be_written_to_does_not_stop_it(
        self,
        cli: Command,
        index: Path,
        one: Path,
        output: Path,
        monkeypatch: pytest.MonkeyPatch,
    ):
        pytest.importorskip("bm25s", reason="needs the extra hybrid")
        usual = os.access
        monkeypatch.setattr(
            "os.access",
            lambda path, mode, **how: str(path) != str(index) and usual(path, mode, **how),
        )
        assert cli("run", index, one, "-o", output, "--system", "bm25").code == 0
        assert found(output, "q")[0] == "fuse"
        assert not (index / "bm25").exists()


CODER_ONLY: dict[str, Sequence[object]] = {
    "--policy": ("--policy", "union"),
    "--policy ": ("--policy", "seq", "--alpha", 0.5),
    "--pool": ("--pool", 5),
    "--where": ("--where", "stars>3"),
    "--exclude": ("--exclude", "music", "--hard"),
    "--require": ("--require", "garden"),
    "--max-risk": ("--max-risk", 0.5),
    "--verify": ("--verify", 3),
    "--verify ": ("--verify", 0),
    "--verifier": ("--verifier", "folder"),
    "--hybrid": ("--hybrid",),
}


class TestConflicts:
    """Nothing that these commands name is there, so each is refused before anything is loaded."""

    def refused(self, cli: Command, tmp_path: Path, *options: object) -> str:
        gone = tmp_path / "nowhere"
        done = cli("run", gone, gone / "queries.jsonl", "-o", gone / "run.trec", *options)
        assert (done.code, done.out) == (2, "")
        return done.err

    def test_an_unknown_system_lists_the_known_ones(self, cli: Command, tmp_path: Path):
        says = "no system 'splade'; there are coder, bm25, dense, hyde, deo, ns-ir\n"
        assert self.refused(cli, tmp_path, "--system", "splade") == f"coder-ir: {says}"

    @pytest.mark.parametrize("option", CODER_ONLY)
    def test_an_option_of_coder_is_not_ignored(self, cli: Command, tmp_path: Path, option: str):
        said = self.refused(cli, tmp_path, "--system", "deo", *CODER_ONLY[option])
        assert f"{option.strip()} is an option of system coder, not of deo" in said

    @pytest.mark.parametrize("system", ["coder", "bm25", "dense"])
    @pytest.mark.parametrize(
        "options", [("--decompose", "parser"), ("--llm", "model.toml")], ids=lambda o: o[0]
    )
    def test_a_system_that_reads_queries_as_they_are_takes_no_reader(
        self, cli: Command, tmp_path: Path, system: str, options: Sequence[str]
    ):
        said = self.refused(cli, tmp_path, "--system", system, *options)
        assert f"{options[0]} is for hyde, deo, ns-ir; {system} reads queries as they are" in said

    @pytest.mark.parametrize("system", ["coder", "bm25", "hyde", "deo", "ns-ir"])
    def test_only_dense_takes_an_encoder(self, cli: Command, tmp_path: Path, system: str):
        said = self.refused(cli, tmp_path, "--system", system, "--encoder", "built-in")
        assert f"--encoder is an option of system dense, not of {system}" in said

    def test_a_language_model_must_be_named(self, cli: Command, tmp_path: Path):
        said = self.refused(cli, tmp_path, "--system", "deo", "--decompose", "llm")
        assert "--decompose llm needs --llm FILE, which says how to reach a model" in said

    @pytest.mark.parametrize("reader", ["parser", "said.jsonl"])
    def test_a_language_model_that_would_not_be_asked_is_refused(
        self, cli: Command, tmp_path: Path, reader: str
    ):
        options = ("--system", "deo", "--decompose", reader, "--llm", "model.toml")
        said = self.refused(cli, tmp_path, *options)
        assert f"--llm is not asked with --decompose {reader}; drop one" in said

    def test_a_depth_without_a_cross_encoder_is_refused(self, cli: Command, tmp_path: Path):
        assert "--depth 5 needs --rerank MODEL" in self.refused(cli, tmp_path, "--depth", 5)


class TestRecorded:
    @pytest.fixture
    def said(self, tmp_path: Path) -> Path:
        row = {
            "query": "XR-500",
            "positive": ["swimming in a heated pool"],
            "negative": ["an amplifier"],
            "passage": TEXTS["pool"],
            "formula": "∃x (Pool(x) ∧ ¬Amplifier(x))",
        }
        return jsonl(tmp_path / "said.jsonl", [{"note": "made up"}, row])

    def test_a_recorded_passage_is_what_hyde_searches_with(
        self, cli: Command, index: Path, one: Path, output: Path, said: Path
    ):
        options = ("-o", output, "--system", "hyde")
        assert cli("run", index, one, *options).code == 0
        by_parser = found(output, "q")
        assert cli("run", index, one, *options, "--decompose", said).code == 0
        recorded = found(output, "q")
        assert recorded.index("pool") < by_parser.index("pool")

    def test_a_missing_record_exits_1_and_is_named(
        self, cli: Command, index: Path, one: Path, output: Path, tmp_path: Path
    ):
        gone = tmp_path / "gone.jsonl"
        done = cli("run", index, one, "-o", output, "--system", "deo", "--decompose", gone)
        assert (done.code, done.out) == (1, "")
        assert f"no file {gone} with recorded decompositions" in done.err


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    pytest.importorskip("openai", reason="needs the extra llm")
    with Desk(KEY, monkeypatch) as opened:
        yield opened


def endpoint(path: Path, server: LanguageServer) -> Path:
    path.write_text(
        f'model = "small"\nbase_url = "{server.url}"\nstructured = "json_object"\n'
        'retries = 0\nconcurrency = 1\nkey_variable = "OPENAI_API_KEY"\n'
        "[price]\nprompt = 100\ncompletion = 200\n"
    )
    return path


def splitting(request: Request) -> Reply:
    """Splits any query at its first `without` or `not`."""
    query = request["messages"][0]["content"].split("Query: ")[1].split("\n")[0]
    wanted, _, unwanted = query.replace(" not ", " without ").partition(" without ")
    negative = [unwanted] if unwanted else []
    return Reply(json.dumps({"positive": [wanted], "negative": negative}))


class TestLanguageModel:
    def test_each_query_is_asked_about_once_and_the_costs_are_shown(
        self, cli: Command, index: Path, queries: Path, output: Path, desk: Desk, tmp_path: Path
    ):
        server = desk.server(script=splitting)
        options = ("--system", "deo", "--llm", endpoint(tmp_path / "model.toml", server))
        done = cli("run", index, queries, "-o", output, *options)
        assert (done.code, done.out) == (0, "")
        assert len(server.requests) == len(ASKED)
        assert {request["response_format"]["type"] for request in server.requests} == {
            "json_object"
        }
        # Ten tokens in and five out a call: a tenth of a cent each way.
        assert "5 calls of the language model, 0 answers from the cache, 75 tokens, " in done.err
        assert "0.0100 dollars" in done.err

    def test_a_second_run_asks_nothing_and_finds_the_same(
        self, cli: Command, index: Path, queries: Path, output: Path, desk: Desk, tmp_path: Path
    ):
        server = desk.server(script=splitting)
        options = ("--system", "deo", "--llm", endpoint(tmp_path / "model.toml", server))
        cli("run", index, queries, "-o", output, *options)
        before = output.read_text()
        done = cli("run", index, queries, "-o", output, *options, "--decompose", "llm")
        assert (done.code, output.read_text()) == (0, before)
        assert len(server.requests) == len(ASKED)
        says = "0 calls of the language model, 5 answers from the cache, 0 tokens, 0.0000 dollars"
        assert says in done.err

    def test_a_run_that_the_server_stopped_goes_on_without_a_call_paid_twice(
        self, cli: Command, index: Path, queries: Path, output: Path, desk: Desk, tmp_path: Path
    ):
        refusing = desk.server(
            script=lambda request: (
                splitting(request)
                if len(refusing.requests) <= 3
                else refusal(401, f"Incorrect API key provided: {KEY}")
            )
        )
        options = ("-o", output, "--system", "deo", "--llm", tmp_path / "model.toml")
        endpoint(tmp_path / "model.toml", refusing)
        done = cli("run", index, queries, *options)
        assert (done.code, done.out) == (1, "")
        says = "refused the key in the environment variable OPENAI_API_KEY (401: Incorrect API key"
        assert says in done.err
        assert "3 calls of the language model, 0 answers from the cache" in done.err
        assert not output.exists()

        willing = desk.server(script=splitting)
        endpoint(tmp_path / "model.toml", willing)
        assert cli("run", index, queries, *options).code == 0
        asked = [text for text in ASKED.values() if any(text in p for p in willing.prompts)]
        assert asked == [ASKED["q4"], ASKED["q5"]]
        assert len(willing.requests) == 2
        assert {line[0] for line in lines(output)} == ASKED.keys()

    @pytest.mark.parametrize("status", [200, 401])
    def test_the_key_goes_to_the_server_and_nowhere_else(
        self,
        cli: Command,
        index: Path,
        queries: Path,
        output: Path,
        desk: Desk,
        tmp_path: Path,
        status: int,
    ):
        # A server that repeats the key, in its answers and in its refusals.
        telling = Reply(f"Your key is {KEY}.") if status == 200 else refusal(401, f"no: {KEY}")
        server = desk.server(telling)
        llm = endpoint(tmp_path / "model.toml", server)
        done = cli("run", index, queries, "-o", output, "--system", "hyde", "--llm", llm)
        assert done.code == (0 if status == 200 else 1)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        assert KEY not in done.out + done.err
        assert (index / "llm.sqlite").is_file()
        for path in tmp_path.rglob("*"):
            assert path.is_dir() or KEY.encode() not in path.read_bytes(), path

    def test_a_file_that_is_not_there_exits_1(
        self, cli: Command, index: Path, one: Path, output: Path, desk: Desk, tmp_path: Path
    ):
        gone = tmp_path / "gone.toml"
        done = cli("run", index, one, "-o", output, "--system", "hyde", "--llm", gone)
        assert (done.code, done.out) == (1, "")
        assert f"no language model settings {gone}" in done.err


@pytest.mark.usefixtures("words")
class TestHybrid:
    @pytest.fixture
    def words(self) -> None:
        pytest.importorskip("bm25s", reason="needs the extra hybrid")

    def test_an_exact_code_is_found_that_vectors_alone_rank_lower(
        self, cli: Command, index: Path, one: Path, output: Path
    ):
        cli("run", index, one, "-o", output)
        plain = found(output, "q")
        done = cli("run", index, one, "-o", output, "--hybrid")
        assert (done.code, done.out) == (0, "")
        assert plain.index("fuse") > 0
        assert found(output, "q")[0] == "fuse"

    def test_an_index_without_counts_is_counted_for_the_run_and_keeps_none(
        self, cli: Command, index: Path, one: Path, output: Path
    ):
        assert cli("run", index, one, "-o", output, "--hybrid").code == 0
        assert not (index / "lexical").exists()

    def test_index_counts_words_ahead_of_the_first_search(
        self,
        cli: Command,
        built: Path,
        index: Path,
        one: Path,
        output: Path,
        monkeypatch: pytest.MonkeyPatch,
    ):
        done = cli("index", index, built.parent / "corpus.jsonl", "--hybrid")
        assert done.code == 0
        assert "0 documents written, 7 unchanged, 7 in all" in done.err
        monkeypatch.setattr(
            "coder_ir.lexical.LexicalIndex.build", lambda *a, **k: pytest.fail("counted again")
        )
        assert cli("run", index, one, "-o", output, "--hybrid").code == 0
        assert found(output, "q")[0] == "fuse"

    def test_index_without_the_option_counts_nothing(self, cli: Command, built: Path, index: Path):
        assert cli("index", index, built.parent / "corpus.jsonl").code == 0
        assert not (index / "lexical").exists()


class TestRerank:
    @pytest.fixture
    def reranker(self, shared: Path) -> Path:
        path = shared / "models" / "ms-marco-MiniLM-L12-int8-onnx"
        if not path.is_dir():
            pytest.skip("needs the MS MARCO cross-encoder, which is not on this machine")
        return path

    @pytest.mark.parametrize("system", ["coder", "dense"])
    def test_the_first_hits_stand_by_the_cross_encoders_logit(
        self,
        cli: Command,
        built: Path,
        index: Path,
        queries: Path,
        output: Path,
        reranker: Path,
        system: str,
    ):
        done = cli("run", index, queries, "-o", output, "--system", system, "--rerank", reranker)
        assert (done.code, done.out) == (0, "")
        texts = {d.doc_id: d.text for d in read_documents([str(built.parent / "corpus.jsonl")])}
        model = CrossEncoder(reranker)
        for query, text in ASKED.items():
            mine = [line for line in lines(output) if line[0] == query]
            logits = model.score(text, [texts[line[2]] for line in mine])
            assert [float(line[4]) for line in mine] == pytest.approx(list(logits), abs=1e-5)
            assert all(above > below for above, below in pairwise(logits))

    def test_hits_past_the_depth_keep_their_order(
        self, cli: Command, index: Path, one: Path, output: Path, reranker: Path
    ):
        options = ("-o", output, "--system", "dense")
        cli("run", index, one, *options)
        plain = found(output, "q")
        assert cli("run", index, one, *options, "--rerank", reranker, "--depth", 3).code == 0
        again = found(output, "q")
        assert set(again[:3]) == set(plain[:3])
        assert again[3:] == plain[3:]

    def test_a_cross_encoder_that_is_nowhere_exits_1(
        self,
        cli: Command,
        index: Path,
        one: Path,
        output: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ):
        pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # no network
        done = cli("run", index, one, "-o", output, "--rerank", tmp_path / "gone")
        assert (done.code, done.out) == (1, "")
        assert f"no cross-encoder '{tmp_path / 'gone'}'" in done.err
