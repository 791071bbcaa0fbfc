"""What each system costs in time, tokens and money, and what that buys."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median
from time import perf_counter

from coder_ir.baselines.asked import Asked
from coder_ir.baselines.decompose import ParserDecomposer
from coder_ir.baselines.ns_ir import NSIR
from coder_ir.baselines.registry import DECOMPOSING
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import MissingExtra, NotFound
from coder_ir.experiments.comparison import load_comparison
from coder_ir.experiments.figures import draw_tradeoff
from coder_ir.experiments.local_model import language_model
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import System, answered, at_hand, benchmark, searcher, thinned
from coder_ir.experiments.tables import Table
from coder_ir.lexical import LEXICAL, StoredLexical
from coder_ir.llm import LanguageModel
from coder_ir.metrics import measure_named, per_query
from coder_ir.retriever import Retriever
from coder_ir.types import Searcher

_DATA = ("antonym", "nevir-open", "excluir")
_WITH_MODEL = "antonym"  # the set on which a language model is asked
_QUERIES = 6  # timed of a set, evenly spread
_SHOWN, _QUALITY = "nevir-open", "FVR@10"  # of the picture
_CROWD = ("hyde, parser", "ns-ir, parser", "compatibility alone")  # left out of it
_OURS, _PEER = "auto", "deo"  # whose times are compared
_PAPER = "HyDE 46.67 h, NS-IR 53.76 h, DEO 9.64 h, CoDeR-Seq 0.08 h, CoDeR-Union 0.07 h"
_COLUMNS = ("data", "system", "offline, s", "a query, ms", "queries/s", "calls", "tokens", "$")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a system takes; all but `offline` and `milliseconds` are means over the queries."""

    offline: float  # seconds before the first query
    milliseconds: float  # of a query, median
    calls: float = 0.0  # of a language model, a query
    tokens: float = 0.0  # a query
    dollars: float = 0.0  # a query

    def cells(self) -> tuple[str, ...]:
        """As a table shows it; money for a thousand queries."""
        rate = 1000 / self.milliseconds if self.milliseconds else 0.0
        return (
            *(f"{self.offline:.1f}", f"{self.milliseconds:.1f}", f"{rate:.3g}"),
            *(f"{self.calls:.3g}", f"{self.tokens:.0f}", f"{1000 * self.dollars:.2f}"),
        )


def measure_efficiency(setup: Setup, report: Report) -> Table:
    """Offline and online time of every system on the same documents and queries, in one run."""
    tests, absent = at_hand(_DATA, setup, cells=len(_COLUMNS) - 2)
    rows: list[tuple[str, ...]] = []
    figures: dict[str, dict[str, Cost]] = {}
    blank = ("–",) * (len(_COLUMNS) - 2)
    for data, test in tests.items():
        figures[data] = {}
        for name, found in _timed(data, test, setup, report):
            if isinstance(found, str):
                rows.append((data, f"{name}: not measured, {found}", *blank))
                continue
            figures[data][name] = found
            rows.append((data, name, *found.cells()))
    picture = _picture(setup, report, figures)
    return Table(
        name="efficiency",
        title="Efficiency",
        columns=_COLUMNS,
        rows=(*rows, *absent),
        notes=(f"{_note(setup)} {_ratio(figures)}{picture}".strip(),),
        figures={data: {n: asdict(c) for n, c in own.items()} for data, own in figures.items()},
    )


def _timed(
    data: str, test: TestSet, setup: Setup, report: Report
) -> Iterator[tuple[str, Cost | str]]:
    """Each system's cost, or what is missing to run it."""
    texts = [query.text for query in thinned(test, _QUERIES).queries]
    with (
        tempfile.TemporaryDirectory() as folder,
        Retriever.open(Path(folder) / "index", model=setup.model) as retriever,
    ):
        start = perf_counter()
        retriever.add(test.documents)
        indexing = perf_counter() - start
        bench = _Bench(retriever, texts, indexing, setup, Path(folder))
        for system in _systems(setup):
            report(f"efficiency: {data}, {system.name}")
            yield system.name, bench.cost(system)
        if data == _WITH_MODEL:
            yield from bench.with_model(report)


@dataclass(frozen=True, slots=True)
class _Bench:
    """An index and the queries that every system is asked."""

    retriever: Retriever
    texts: Sequence[str]
    indexing: float  # seconds
    setup: Setup
    folder: Path

    def cost(
        self, system: System, asked: Asked | None = None, model: LanguageModel | None = None
    ) -> Cost:
        """Of one system."""
        start = perf_counter()
        retriever = self._with_words() if system.hybrid else self.retriever
        opened = searcher(
            system, retriever, self.setup, folder=self.folder / system.name, decomposer=asked
        )
        if isinstance(opened, NSIR):
            opened.read_all()
        building = perf_counter() - start
        if model is None:
            opened.search(self.texts[0], k=10)  # loads what is loaded on first use
        before = model.ledger if model else None
        spent = [_milliseconds(opened, text) for text in self.texts]
        offline = building + (0 if system.system == "bm25" else self.indexing)
        found = Cost(offline, median(spent))
        if model is None or before is None:
            return found
        after, n = model.ledger, len(self.texts)
        return replace(
            found,
            calls=(after.calls - before.calls) / n,
            tokens=(after.tokens - before.tokens) / n,
            dollars=(after.dollars - before.dollars) / n,
        )

    def _with_words(self) -> Retriever:
        """The same index, found in by words too; counting them is part of it."""
        own = self.retriever
        lexical = StoredLexical(own.store, self.folder / "index" / LEXICAL)
        lexical.refresh()
        return Retriever(
            own.encoder,
            own.store,
            calibration=own.calibration,
            lexical=lexical,
            parser=own.parser,
        )

    def with_model(self, report: Report) -> Iterator[tuple[str, Cost | str]]:
        """The systems that ask a language model, asking one."""
        with ExitStack() as stack:
            try:
                model = stack.enter_context(language_model(self.setup))
            except (NotFound, MissingExtra) as error:
                yield from ((f"{name}, model", str(error)) for name in DECOMPOSING)
                return
            for name in DECOMPOSING:
                shown = f"{name}, {model.endpoint.model}"
                report(f"efficiency: {_WITH_MODEL}, {shown}")
                asked = Asked(model, documents=ParserDecomposer())
                yield shown, self.cost(System(shown, system=name), asked, model)


def _milliseconds(opened: Searcher, text: str) -> float:
    start = perf_counter()
    opened.search(text, k=10)
    return 1000 * (perf_counter() - start)


def _systems(setup: Setup) -> list[System]:
    """Those of the diagnostics table, and each topical or default search with the reranker."""
    systems = [one for one in load_comparison("diagnostics").systems if one.decompose == "parser"]
    if setup.reranker is not None and setup.reranker.is_dir():
        reranked = [system for system in load_comparison("reranker").systems if system.rerank]
        systems += [system for system in reranked if system.policy in ("topical", "auto")]
    return systems


def _note(setup: Setup) -> str:
    return (
        f"Median of {_QUERIES} queries of a set, asked one at a time, encoding included, on one "
        "machine in one run. Offline: encoding, counting words, and for NS-IR reading documents. "
        "Calls, tokens and money are of a language model, a query; money for a thousand queries "
        "at 2.50 and 10.00 dollars a million tokens in and out, or as the model's file says. "
        "Rows without a model's name read queries with our parser; with one, NS-IR reads "
        "documents by their words. In the picture, recorded decompositions have the time of the "
        "model asked here. "
        f"The paper, on its six sets and its machine: {_PAPER}, and 5 to 32 dollars for "
        "the first three."
    )


def _ratio(figures: Mapping[str, Mapping[str, Cost]]) -> str:
    """How much faster the default is than the cheapest system with a language model."""
    own = figures.get(_WITH_MODEL, {})
    peers = [name for name in own if name.startswith(f"{_PEER}, ") and own[name].calls]
    if not peers or _OURS not in own:
        return ""
    ratio = own[peers[0]].milliseconds / own[_OURS].milliseconds
    return f"On {_WITH_MODEL}, {_OURS} answers {ratio:.0f} times as fast as {peers[0]}. "


def _time(system: System, figures: Mapping[str, Mapping[str, Cost]]) -> float:
    """Milliseconds a query; recorded decompositions took a language model's time; 0: not known."""
    if system.decompose == "parser":
        found = figures[_SHOWN].get(system.name)
        return found.milliseconds if found else 0.0
    own = figures.get(_WITH_MODEL, {}).items()
    asked = [cost for name, cost in own if cost.calls and name.startswith(f"{system.system}, ")]
    return asked[0].milliseconds if asked else 0.0


def _picture(setup: Setup, report: Report, figures: Mapping[str, Mapping[str, Cost]]) -> str:
    """Quality on one set against milliseconds; empty where the set is not there."""
    if _SHOWN not in figures:
        return ""
    test, points = benchmark(_SHOWN, setup), {}
    for system in load_comparison("diagnostics").systems:
        cost = _time(system, figures)
        if cost and system.name not in _CROWD:
            run = answered(system, _SHOWN, test, setup, report)
            ranks = per_query(measure_named(_QUALITY).function, run, test.qrels).values()
            points[system.name] = (cost, mean(ranks))
    setup.out.mkdir(parents=True, exist_ok=True)
    draw_tradeoff(points, setup.out / "tradeoff.png", y_label=f"{_QUALITY} on {_SHOWN}")
    return "![Quality against time](tradeoff.png)"
