"""Names to measurements."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidValue, NotFound, NotReproduced
from coder_ir.experiments.ann import measure_ann
from coder_ir.experiments.card import Card, compose_card
from coder_ir.experiments.comparison import comparing, described, without_expected
from coder_ir.experiments.detection import measure_detection
from coder_ir.experiments.development import measure_development
from coder_ir.experiments.durability import measure_durability
from coder_ir.experiments.efficiency import measure_efficiency
from coder_ir.experiments.encoding import measure_encoding, measure_query_encoding
from coder_ir.experiments.goals import measure_goals
from coder_ir.experiments.index_kinds import measure_index_kinds
from coder_ir.experiments.local_model import has_local_model
from coder_ir.experiments.nevir import measure_nevir
from coder_ir.experiments.ordinary import measure_ordinary
from coder_ir.experiments.page import Page, compose_results
from coder_ir.experiments.parsing import measure_parsing
from coder_ir.experiments.probe import measure_probe
from coder_ir.experiments.reading import measure_reading
from coder_ir.experiments.reading_cost import measure_reading_cost
from coder_ir.experiments.recipe import measure_recipe
from coder_ir.experiments.risk import measure_risk
from coder_ir.experiments.search_cost import measure_search_cost
from coder_ir.experiments.sensitivity import measure_sensitivity
from coder_ir.experiments.separation import measure_separation
from coder_ir.experiments.serving import measure_serving
from coder_ir.experiments.settings import measure_settings
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.survival import measure_survival
from coder_ir.experiments.systems import files_digest, package_digest, searching, weights
from coder_ir.experiments.tables import Table

__all__ = ["EXPERIMENTS", "Setup", "run_experiments"]

# Tables that a TOML file describes.
COMPARISONS = (
    *("diagnostics", "benchmarks", "negconstraint", "beir", "torch", "encoders", "reranker"),
)

EXPERIMENTS: dict[str, Callable[[Setup, Report], Table | Card | Page]] = {
    "development": measure_development,
    "settings": measure_settings,
    "recipe": measure_recipe,
    "parsing": measure_parsing,
    "detection": measure_detection,
    "ordinary": measure_ordinary,
    "risk": measure_risk,
    "diagnostics": comparing("diagnostics"),
    "survival": measure_survival,
    "benchmarks": comparing("benchmarks"),
    "nevir": measure_nevir,
    "negconstraint": comparing("negconstraint"),
    "beir": comparing("beir"),
    "torch": comparing("torch"),
    "encoders": comparing("encoders"),
    "separation": measure_separation,
    "reranker": comparing("reranker"),
    "reading": measure_reading,
    "sensitivity": measure_sensitivity,
    "efficiency": measure_efficiency,
    "encoding": measure_encoding,
    "query-encoding": measure_query_encoding,
    "search": measure_search_cost,
    "reading-cost": measure_reading_cost,
    "ann": measure_ann,
    "kinds": measure_index_kinds,
    "serving": measure_serving,
    "kill": measure_durability,
    "probe": measure_probe,
    "goals": measure_goals,
    "card": compose_card,
    "results": compose_results,
}
# Long, or in need of a quiet machine, or a language model.
WHEN_NAMED = ("settings", "recipe", "torch", "ann", "kinds", "serving", "probe")
_FROM_OTHERS = ("goals", "card", "results")  # cheap, and made of the other tables


def run_experiments(names: Sequence[str], setup: Setup, *, report: Report) -> Iterator[str]:
    """Run those named, or all but the longest; write each as it is done and give its Markdown.

    What was measured with the same code, model and data is read from `out`. A measurement that
    lacks its data is reported and left out, and figures that are not what their TOML expects are
    gathered; both raise NotReproduced, after everything else is written.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise InvalidValue(f"no measurement {name!r}; there are {', '.join(EXPERIMENTS)}")
    base, wrong = _base(setup), []
    for name in names or [name for name in EXPERIMENTS if name not in WHEN_NAMED]:
        done = _Mark(name, setup, base)
        if name not in _FROM_OTHERS and (unexpected := done.known()) is not None:
            report(f"{name}: measured before with the same code, model and data")
            wrong += unexpected
            yield done.text.read_text(encoding="utf-8")
            continue
        try:
            table = EXPERIMENTS[name](setup, report)
        except NotFound as error:
            report(f"{name}: not measured, {error}")
            wrong.append(f"{name} was not measured: {error}")
            continue
        table.save(setup.out)
        found = list(table.unexpected) if isinstance(table, Table) else []
        done.write(found)
        wrong += found
        yield table.markdown()
    if wrong:
        raise NotReproduced("\n".join(wrong))


@dataclass(frozen=True, slots=True)
class _Mark:
    """That a table was measured, and with what."""

    name: str
    setup: Setup
    base: str  # state of everything that all tables share

    @property
    def text(self) -> Path:
        """The table's Markdown."""
        return self.setup.out / f"{self.name}.md"

    @property
    def _file(self) -> Path:
        return self.setup.cache / "done" / f"{self.name}.json"

    def _state(self) -> list[str]:
        """Code, model, data, the table's own description, and the files it was written to."""
        own = described(self.name) if self.name in COMPARISONS else ""
        written = (self.text, self.text.with_suffix(".json"))
        return [self.base, own, *(file_sha256(path) if path.is_file() else "" for path in written)]

    def known(self) -> list[str] | None:
        """What was unexpected; None where it has to be measured."""
        if not (self._file.is_file() and self.text.is_file()):
            return None
        kept = json.loads(self._file.read_text(encoding="utf-8"))
        unexpected: list[str] = kept["unexpected"]
        return unexpected if kept["state"] == self._state() else None

    def write(self, unexpected: list[str]) -> None:
        """Whole or not at all."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        kept = {"state": self._state(), "unexpected": unexpected}
        partial.write_text(json.dumps(kept), encoding="utf-8")
        partial.replace(self._file)


def _base(setup: Setup) -> str:
    """Equal exactly when measuring again would find the same: code, model, data at hand.

    Taken once a call, for code that changes while it runs is not the code that measures. What the
    descriptions expect matters only to their own tables.
    """
    files = sorted(
        (path.relative_to(setup.data).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in setup.data.rglob("*")
        if path.is_file()
    )
    parts = [
        package_digest(leave_out=("cli",)),
        weights(setup.model),
        files_digest(setup.reranker) if setup.reranker else "",
        (files, setup.reference, files_digest(setup.written)),
        setup.llm.read_text(encoding="utf-8") if setup.llm else has_local_model(),
        [without_expected(described(each)) for each in COMPARISONS],
        searching(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
