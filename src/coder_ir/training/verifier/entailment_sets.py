"""Groups from natural language inference: one hypothesis and up to four labelled premises."""

from collections import defaultdict
from collections.abc import Iterator, Set
from pathlib import Path

from coder_ir.training.reading_items import Label
from coder_ir.training.sources import read_tsv
from coder_ir.training.verifier.groups import Group

NLI = "nli"
_MOST = 4  # premises of one hypothesis
_LABELS: dict[str, Label] = {
    "entailment": "satisfies",
    "contradiction": "violates",
    "neutral": "silent",
}


def entailment_files(folder: Path) -> tuple[Path, ...]:
    """The files of CAD-NLI and NegNLI that are read; `folder` holds both as published."""
    return (
        folder / "CAD-NLI" / "revised_combined" / "train.tsv",
        folder / "NegNLI" / "clean_data" / "SNLI.txt",
        folder / "NegNLI" / "clean_data" / "MNLI.txt",
    )


def entailment_groups(folder: Path, *, held_out: Set[str]) -> list[Group]:
    """A group a hypothesis, which is the query; texts that are held out are left out."""
    premises: dict[str, dict[tuple[str, Label], None]] = defaultdict(dict)
    for premise, hypothesis, label in _rows(folder):
        premises[hypothesis].setdefault((premise, label))
    groups = []
    for hypothesis, labelled in premises.items():
        if not hypothesis or hypothesis in held_out:
            continue
        kept = [(premise, label) for premise, label in labelled if premise not in held_out]
        if kept:
            texts, labels = zip(*kept[:_MOST], strict=True)
            groups.append(Group(NLI, (hypothesis,), texts, (labels,), NLI))
    return groups


def _rows(folder: Path) -> Iterator[tuple[str, str, Label]]:
    """Premise, hypothesis and label of every row that has one of the three labels."""
    edited, *negated = entailment_files(folder)
    for row in read_tsv(edited):
        if row["gold_label"] in _LABELS:
            yield row["sentence1"], row["sentence2"], _LABELS[row["gold_label"]]
    for file in negated:
        for row in read_tsv(file, encoding="cp1252"):
            if row["gold_label"] in _LABELS:
                yield row["Text"], row["Hypothesis"], _LABELS[row["gold_label"]]
