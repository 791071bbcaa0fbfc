"""run: every query of a file, with CoDeR or another system over the same documents."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coder_ir.cli.search import (
    Alpha,
    Exact,
    Exclude,
    Hard,
    Hybrid,
    Index,
    K,
    MaxRisk,
    Model,
    PolicyName,
    Pool,
    Quantile,
    Require,
    Tau,
    Threads,
    Verifier,
    Verify,
    Where,
    policy_option,
    search_options,
)
from coder_ir.cli.talk import progress_bar, say
from coder_ir.errors import InvalidValue

if TYPE_CHECKING:
    from coder_ir.baselines.decompose import Decomposer
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.retriever import Retriever
    from coder_ir.types import Query, Ranking, Searcher

_CODER = "coder"


def run(
    index: Index,
    queries: Annotated[Path, typer.Argument(help="jsonl with _id and text.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="TREC run file to write.")],
    system: Annotated[
        str, typer.Option(help="coder, bm25, dense, hyde, deo or ns-ir, over the same documents.")
    ] = _CODER,
    k: K = 100,
    policy: PolicyName = "",
    pool: Pool = 100,
    where: Where = None,
    exclude: Exclude = None,
    require: Require = None,
    hard: Hard = False,
    max_risk: MaxRisk = 1.0,
    verify: Verify = None,
    alpha: Alpha = None,
    tau: Tau = None,
    quantile: Quantile = None,
    hybrid: Hybrid = False,
    exact: Exact = False,
    decompose: Annotated[
        str,
        typer.Option(
            help="How hyde, deo and ns-ir read a query: parser, llm, or a jsonl file of recorded "
            "decompositions. Default: llm where --llm is given, else parser."
        ),
    ] = "",
    llm: Annotated[
        Path | None, typer.Option(help="TOML file that says how a language model is reached.")
    ] = None,
    llm_documents: Annotated[
        bool,
        typer.Option(
            "--llm-documents",
            help="Let the model read documents too (ns-ir), a call for each; else by their words.",
        ),
    ] = False,
    encoder: Annotated[
        str, typer.Option(help="Encoder of dense, by name or folder. Default: the index's own.")
    ] = "",
    rerank: Annotated[
        str, typer.Option(help="Cross-encoder, by name or folder, that orders the first hits anew.")
    ] = "",
    depth: Annotated[int, typer.Option(help="Hits that --rerank orders anew.")] = 20,
    model: Model = None,
    verifier: Verifier = None,
    threads: Threads = 0,
) -> None:
    """Search for every query of a file and write a TREC run.

    A run with a language model that was interrupted asks nothing twice: its answers are kept beside
    the index.

    Example: coder-ir run my-index queries.jsonl -o run.trec --policy union

    Example: coder-ir run my-index queries.jsonl -o deo.trec --system deo --llm model.toml
    """
    from coder_ir.datasets.beir import load_queries
    from coder_ir.datasets.trec import write_run
    from coder_ir.encoders.onnx import Runtime
    from coder_ir.errors import NotFound
    from coder_ir.retriever import Retriever
    from coder_ir.searching import Asking

    chosen = policy_option(policy, alpha, tau, quantile)
    options = search_options(k, chosen, pool, where, exclude, require, hard=hard)
    options = replace(options, max_risk=max_risk, verify=verify)
    given = {
        "--policy": policy or alpha is not None or tau is not None or quantile is not None,
        "--pool": pool != 100,
        "--where": where,
        "--exclude": exclude,
        "--require": require,
        "--max-risk": max_risk < 1,
        "--verify": verify is not None,
        "--verifier": verifier,
        "--hybrid": hybrid,
        "--exact": exact,
    }
    other = _Other(system, decompose, llm, llm_documents, encoder)
    other.check([name for name, value in given.items() if value])
    _check_depth(depth, rerank)
    asked = load_queries(queries)
    if not output.parent.is_dir():
        raise NotFound(f"no folder {output.parent} to write {output.name} into")
    runtime, reranked = Runtime(threads=threads), _reranking(rerank, depth, threads)
    with Retriever.open(
        index,
        model=model,
        read_only=True,
        runtime=runtime,
        hybrid=hybrid,
        exact=exact,
        verifier=verifier,
    ) as retriever:
        ours, texts = system == _CODER, [query.text for query in asked]
        opened = (
            _itself(Asking(retriever, options))
            if ours
            else other.opened(retriever, index, texts, runtime)
        )
        with opened as first, progress_bar("searching", len(asked)) as done:
            rankings = list(_answers(reranked(first), asked, k, done))
    ids = [query.query_id for query in asked]
    name = options.chosen_policy.name if system == _CODER else system
    write_run(output, zip(ids, rankings, strict=True), tag=f"coder-ir-{name}")
    say(f"{output}: {len(asked)} queries, {sum(map(len, rankings))} lines")


def _answers(
    searcher: "Searcher", asked: Sequence["Query"], k: int, done: Callable[[int], None]
) -> Iterator["Ranking"]:
    for query in asked:
        yield searcher.search(query.text, k)
        done(1)


@contextmanager
def _quiet() -> Iterator[None]:
    yield None


@contextmanager
def _itself(searcher: "Searcher") -> Iterator["Searcher"]:
    yield searcher


def _check_depth(depth: int, model: str) -> None:
    if depth < 1:
        raise InvalidValue(f"--depth must be at least 1, got {depth}")
    if depth != 20 and not model:
        raise InvalidValue(f"--depth {depth} needs --rerank MODEL, which orders so many hits anew")


def _reranking(model: str, depth: int, threads: int) -> "Callable[[Searcher], Searcher]":
    """Puts a searcher's first hits in the order of a cross-encoder, where one is named."""
    from coder_ir.baselines import Reranked, load_cross_encoder

    if not model:
        return lambda searcher: searcher
    scorer = load_cross_encoder(model, threads=threads or None)
    return lambda searcher: Reranked(searcher, scorer, depth=depth)


@dataclass(frozen=True, slots=True)
class _Other:
    """Another system over an index's documents, and what it reads queries with."""

    system: str
    decompose: str
    llm: Path | None
    llm_documents: bool
    encoder: str

    def check(self, given: list[str]) -> None:
        """Refuse options that would be ignored, before anything is loaded."""
        from coder_ir.baselines.registry import DECOMPOSING, SYSTEMS

        if self.system not in (_CODER, *SYSTEMS):
            known = ", ".join((_CODER, *SYSTEMS))
            raise InvalidValue(f"no system {self.system!r}; there are {known}")
        if self.system != _CODER and given:
            raise InvalidValue(f"{given[0]} is an option of system {_CODER}, not of {self.system}")
        if self.system not in DECOMPOSING and (self.decompose or self.llm):
            option = "--decompose" if self.decompose else "--llm"
            raise InvalidValue(
                f"{option} is for {', '.join(DECOMPOSING)}; {self.system} reads queries as they are"
            )
        if self.encoder and self.system != "dense":
            raise InvalidValue(f"--encoder is an option of system dense, not of {self.system}")
        if self.decompose == "llm" and self.llm is None:
            raise InvalidValue("--decompose llm needs --llm FILE, which says how to reach a model")
        if self.llm_documents and (self.system != "ns-ir" or self.llm is None):
            raise InvalidValue("--llm-documents is for system ns-ir with --llm FILE")
        if self.llm is not None and self.decompose not in ("", "llm"):
            raise InvalidValue(f"--llm is not asked with --decompose {self.decompose}; drop one")

    @contextmanager
    def opened(
        self, retriever: "Retriever", index: str, queries: Sequence[str], runtime: "Runtime"
    ) -> Iterator["Searcher"]:
        """The system; what it makes of the documents is kept in the index's folder."""
        from coder_ir.baselines import NSIR
        from coder_ir.baselines.asked import Asked
        from coder_ir.baselines.by_vector import Indexed
        from coder_ir.baselines.registry import Workplace, open_system
        from coder_ir.stores import index_folder

        folder = index_folder(index)
        if folder is not None and not os.access(folder, os.W_OK):
            folder = None
        base = Indexed(retriever.encoder, retriever.store)
        with self._decomposer(folder, queries) as decomposer:
            work = Workplace(base, decomposer, folder, encoder=self.encoder, runtime=runtime)
            with progress_bar("encoding", len(retriever)) if self.encoder else _quiet() as done:
                searcher = open_system(self.system, replace(work, progress=done))
            try:
                if isinstance(decomposer, Asked):  # paid for only once all else is ready
                    with progress_bar("asking the model", len(set(queries))) as done:
                        decomposer.prefetch(queries, system=self.system, progress=done)
                yield searcher
            finally:
                if isinstance(searcher, NSIR):
                    searcher.close()

    @contextmanager
    def _decomposer(self, folder: Path | None, queries: Sequence[str]) -> Iterator["Decomposer"]:
        from coder_ir.baselines.decompose import ParserDecomposer
        from coder_ir.baselines.recorded import Recorded

        if self.decompose not in ("", "parser", "llm"):
            recorded = Recorded(Path(self.decompose))
            if missing := recorded.missing(queries):
                say(f"{self.decompose} lacks {len(missing)} of the queries; the parser reads those")
            yield recorded
        elif self.llm is None:
            yield ParserDecomposer()
        elif folder is None:
            raise InvalidValue(
                "the index has no folder that can be written to, so that answers that are paid "
                "for could not be kept; build the index in a folder of your own"
            )
        else:
            with self._asked(self.llm, folder) as asked:
                yield asked

    @contextmanager
    def _asked(self, llm: Path, folder: Path) -> Iterator["Decomposer"]:
        from coder_ir.baselines.asked import Asked
        from coder_ir.baselines.decompose import ParserDecomposer
        from coder_ir.llm import Endpoint, LanguageModel

        with LanguageModel(Endpoint.load(llm), cache=folder / "llm.sqlite") as model:
            try:
                yield Asked(model, documents=None if self.llm_documents else ParserDecomposer())
            finally:  # what a run that was stopped has cost, too
                say(str(model.ledger))
