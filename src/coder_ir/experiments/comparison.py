"""Systems side by side over several data sets, as a TOML file in `conditions` describes them."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from math import isnan
from typing import Any

from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import DEPTH, System, answered, benchmark, check_system
from coder_ir.experiments.tables import Table, percent, ranks
from coder_ir.metrics import Estimate, Measure, measure_named, over_pairs, per_query
from coder_ir.types import VIOLATING

Results = dict[str, dict[str, dict[str, Estimate]]]  # data, system, measure
_DATA_NOTE = (
    "percent, ranks for FVR; mean over the judged queries and 95% bootstrap interval, pairs of "
    "queries drawn together"
)


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of another paper, by data set, in the order of the measures; percent or ranks."""

    name: str
    figures: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table: what is asked, of whom, and what should come out."""

    name: str
    title: str
    data: tuple[str, ...]
    measures: tuple[Measure, ...]
    systems: tuple[System, ...]
    published: tuple[Published, ...] = ()
    note: str = ""
    tokens: int | None = None  # a document is cut to; None splits it into passages
    queries: int | None = None  # asked of a data set at most, evenly spread; None: all
    seed: int = 13  # of the bootstrap
    tolerance: float = 1.5  # of an expected rate, points
    rank_tolerance: float = 0.15  # of an expected mean rank
    expected: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)


def load_comparison(name: str) -> Comparison:
    """The comparison of `conditions/NAME.toml`."""
    return parse_comparison(name, described(name))


def described(name: str) -> str:
    """The text of `conditions/NAME.toml`."""
    path = resources.files("coder_ir.experiments") / "conditions" / f"{name}.toml"
    return path.read_text(encoding="utf-8")


def without_expected(text: str) -> dict[str, Any]:
    """What a comparison's TOML asks for, without what it expects."""
    raw = tomllib.loads(text)
    for key in ("tolerance", "rank_tolerance"):
        raw.pop(key, None)
    raw["system"] = [{k: v for k, v in row.items() if k != "expected"} for row in raw["system"]]
    return raw


def parse_comparison(name: str, text: str) -> Comparison:
    """A comparison from TOML; a key that means nothing is refused."""
    try:
        raw = tomllib.loads(text)
        _check(raw)
        rows = raw.pop("system")
        systems = tuple(System(**{k: v for k, v in row.items() if k != "expected"}) for row in rows)
        for system in systems:
            check_system(system)
        return Comparison(
            name=name,
            data=tuple(raw.pop("data")),
            measures=tuple(measure_named(m) for m in raw.pop("measures")),
            systems=systems,
            published=tuple(
                Published(row.pop("name"), row) for row in map(dict, raw.pop("published", []))
            ),
            expected={row["name"]: row["expected"] for row in rows if "expected" in row},
            **raw,
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, InvalidValue) as error:
        raise InvalidFile(f"{name}.toml is not a comparison: {error}") from error


def _check(raw: Mapping[str, Any]) -> None:
    """Refuse what would be left out, or would fail only after a long time of measuring."""
    if raw.get("queries", 1) < 1:
        raise InvalidValue(f"queries must be at least 1, got {raw['queries']}")
    for name in raw["measures"]:
        if measure_named(name).k > DEPTH:
            raise InvalidValue(f"{name} looks deeper than the {DEPTH} hits that are kept")
    _check_figures(raw)


def _check_figures(raw: Mapping[str, Any]) -> None:
    names = [row["name"] for row in raw["system"]]
    if len(set(names)) < len(names):
        raise InvalidValue(f"two systems share a name: {', '.join(names)}")
    stated = [(f"system {row['name']!r}", row.get("expected", {})) for row in raw["system"]]
    for row in raw.get("published", []):
        stated.append((f"published {row['name']!r}", {k: v for k, v in row.items() if k != "name"}))
    for owner, figures in stated:
        for data, values in figures.items():
            if data not in raw["data"]:
                raise InvalidValue(f"{owner} has figures for {data!r}, which is not in data")
            if len(values) != len(raw["measures"]):
                raise InvalidValue(
                    f"{owner} has {len(values)} figures for {data!r}, measures are "
                    f"{len(raw['measures'])}"
                )


def comparing(name: str) -> Callable[[Setup, Report], Table]:
    """The measurement that a TOML file describes."""

    def measure(setup: Setup, report: Report) -> Table:
        return measure_comparison(load_comparison(name), setup, report)

    return measure


def measure_comparison(asked: Comparison, setup: Setup, report: Report) -> Table:
    """Every system over every data set; what is absent gets a row that says so."""
    rows: list[tuple[str, ...]] = []
    results: Results = {}
    sizes, absent = [], {}
    blank = ("–",) * len(asked.measures)
    for data in asked.data:
        try:
            test = benchmark(data, setup, asked.queries)
        except NotFound as error:
            absent[data] = str(error)
            rows.append((data, f"not measured: {error}", *blank))
        else:
            sizes.append(f"{data} {len(test.queries)} queries, {len(test.documents)} documents")
            results[data] = {}
            for system, found in _scores(asked, data, test, setup, report):
                if isinstance(found, str):
                    rows.append((data, f"{system}: not measured, {found}", *blank))
                    continue
                results[data][system] = found
                rows.append((data, system, *(_cell(m, found.get(m.name)) for m in asked.measures)))
        rows += _published(asked, data)
    return Table(
        name=asked.name,
        title=asked.title,
        columns=("data", "system", *(_heading(measure) for measure in asked.measures)),
        rows=tuple(rows),
        notes=(f"{'; '.join([*sizes, _DATA_NOTE])}. {asked.note}".strip(),),
        figures={
            "results": {
                d: {s: {m: asdict(e) for m, e in ms.items()} for s, ms in own.items()}
                for d, own in results.items()
            },
            "absent": absent,
        },
        unexpected=tuple(_unexpected(asked, results)),
    )


def _scores(
    asked: Comparison, data: str, test: TestSet, setup: Setup, report: Report
) -> Iterator[tuple[str, dict[str, Estimate] | str]]:
    """Name and scores of each system, or what is missing to run it."""
    judged = {grade for own in test.qrels.grades.values() for grade in own.values()}
    measures = [m for m in asked.measures if not m.of_violations or VIOLATING in judged]
    for system in asked.systems:
        report(f"{asked.name}: {data}, {system.name}")
        try:
            run = answered(replace(system, tokens=asked.tokens), data, test, setup, report)
        except NotFound as error:
            yield system.name, str(error)
            continue
        yield (
            system.name,
            {
                measure.name: over_pairs(
                    per_query(measure.function, run, test.qrels), test.pairs, seed=asked.seed
                )
                for measure in measures
            },
        )


def _heading(measure: Measure) -> str:
    return f"{measure.name} {'↑' if measure.higher_is_better else '↓'}"


def _cell(measure: Measure, estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return percent(estimate) if measure.rate else ranks(estimate)


def _published(asked: Comparison, data: str) -> list[tuple[str, ...]]:
    return [
        (data, f"*paper: {one.name}*", *map(_number, one.figures[data]))
        for one in asked.published
        if data in one.figures
    ]


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.2f}"


def _unexpected(asked: Comparison, results: Results) -> Iterator[str]:
    """Figures further from what the TOML expects than it tolerates."""
    for system, sets in asked.expected.items():
        for data, values in sets.items():
            found = results.get(data, {}).get(system)
            for measure, value in zip(asked.measures, values, strict=True):
                if not found or measure.name not in found:
                    continue
                seen = found[measure.name].mean * (100 if measure.rate else 1)
                limit = asked.tolerance if measure.rate else asked.rank_tolerance
                if abs(seen - value) > limit:
                    yield (
                        f"{asked.name}: {measure.name} of {system} on {data} is {seen:.2f}, "
                        f"expected {value:.2f} ± {limit:g}"
                    )
