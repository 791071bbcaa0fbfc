"""Does better evidence make better answers? Retrieve, let a model answer, judge the direction."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from coder_ir.datasets.testset import TestSet
from coder_ir.errors import MissingExtra
from coder_ir.experiments.comparison import load_comparison
from coder_ir.experiments.local_model import language_model
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import System, answered, benchmark
from coder_ir.experiments.tables import Table, percent, ranks
from coder_ir.llm import LanguageModel
from coder_ir.metrics import Estimate, measure_named, over_pairs, per_query
from coder_ir.types import SATISFYING, VIOLATING, Query

if TYPE_CHECKING:
    from pydantic import BaseModel

_DATA, _QUERIES = "nevir-open", 20
_SYSTEMS = (
    *("topical", "bm25", "hyde, recorded", "ns-ir, recorded", "deo, recorded"),
    *("seq", "union", "auto"),
)
_SEED = 13
_LOG = "probe-log.jsonl"
# The paper's prompt, from its appendix.
_ANSWER = """\
You are a question answering assistant.

You are given retrieved passages that are relevant to the question.

Answer the question based on the retrieved passage.

Question:
{query}

Retrieved passage:
{passage}

Rules:
- Output only the short answer.
- Do not output any explanation, punctuation, or extra text."""
_JUDGE = """\
Two passages answer a question in opposite ways. Someone gave the answer below. Which passage does \
it agree with: A, B, or neither?

Question: {query}
Passage A: {a}
Passage B: {b}
Answer: {answer}"""


@dataclass(frozen=True, slots=True)
class Step:
    """One query of one system, from evidence to verdict."""

    system: str
    query_id: str
    query: str
    doc_id: str  # of the first hit; "" where there is none
    answer: str
    judged: str  # A, B or neither
    satisfying: str  # which letter the satisfying passage had
    correct: bool


def measure_probe(setup: Setup, report: Report) -> Table:
    """Share of answers in the satisfying direction, and the first violating rank."""
    test = benchmark(_DATA, setup, _QUERIES)
    systems = [one for one in load_comparison("benchmarks").systems if one.name in _SYSTEMS]
    rows, figures = [], {}
    setup.cache.mkdir(parents=True, exist_ok=True)
    with (
        language_model(setup, cache=setup.cache / "llm.sqlite") as model,
        (setup.out / _LOG).open("w", encoding="utf-8") as log,
    ):
        for system in systems:
            report(f"probe: {system.name}")
            right, fvr = _probed(system, test, model, setup, report, log)
            rows.append((system.name, percent(right), ranks(fvr)))
            figures[system.name] = {"accuracy": asdict(right), "FVR@10": asdict(fvr)}
        ledger = model.ledger
    return Table(
        name="probe",
        title="RAG probe",
        columns=("system", "answers in the satisfying direction ↑", "FVR@10 ↑"),
        rows=tuple(rows),
        notes=(
            f"{len(test.queries)} queries of {_DATA}, evenly spread; {model.endpoint.model} "
            "answers from the first hit and judges its answers, shown both passages in random "
            f"order. {ledger}. Every step is in {_LOG}. The paper (20 queries, GPT-4o): BM25 15%, "
            "BGE 30%, DEO 30%, CoDeR-Seq 40%.",
        ),
        figures=figures,
    )


def _probed(
    system: System, test: TestSet, model: LanguageModel, setup: Setup, report: Report, log: Any
) -> tuple[Estimate, Estimate]:
    run = answered(system, _DATA, test, setup, report)
    right = {}
    for step in _steps(system, run, test, model):
        log.write(json.dumps(asdict(step), ensure_ascii=False) + "\n")
        log.flush()
        right[step.query_id] = float(step.correct)
    fvr = per_query(measure_named("FVR@10").function, run, test.qrels)
    return over_pairs(right, test.pairs, seed=_SEED), over_pairs(fvr, test.pairs, seed=_SEED)


def _steps(
    system: System, run: dict[str, list[str]], test: TestSet, model: LanguageModel
) -> Iterator[Step]:
    texts = {document.doc_id: document.content for document in test.documents}
    verdict = _verdict()
    for query in test.queries:
        doc_id = (run.get(query.query_id) or [""])[0]
        passage = texts.get(doc_id, "")
        answer = model.write(_ANSWER.format(query=query.text, passage=passage), whole=False)
        good, bad = _sides(query, test, texts)
        first = Random(f"{_SEED} {query.query_id}").random() < 0.5
        a, b = (good, bad) if first else (bad, good)
        judged: Any = model.ask(_JUDGE.format(query=query.text, a=a, b=b, answer=answer), verdict)
        letter = "A" if first else "B"
        yield Step(
            *(system.name, query.query_id, query.text, doc_id, answer),
            *(judged.agrees_with, letter, judged.agrees_with == letter),
        )


def _sides(query: Query, test: TestSet, texts: dict[str, str]) -> tuple[str, str]:
    """Text of a satisfying and of a violating passage."""
    grades = test.qrels.grades[query.query_id]
    good, bad = (
        next((doc_id for doc_id, grade in grades.items() if grade == wanted), "")
        for wanted in (SATISFYING, VIOLATING)
    )
    return texts.get(good, ""), texts.get(bad, "")


def _verdict() -> "type[BaseModel]":
    try:
        from typing import Literal

        from pydantic import BaseModel
    except ImportError as error:
        raise MissingExtra("The probe", extra="llm") from error

    class Verdict(BaseModel):
        """Which passage an answer agrees with."""

        agrees_with: Literal["A", "B", "neither"]

    return Verdict
