"""Readers of the public and written sources, each a folder as published to triplets."""

import csv
import json
import lzma
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from coder_ir.datasets.wordnet import load_antonyms
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.exclusions import pick, read_exclusions, read_sets
from coder_ir.types import Triplet

_FEVER_SECOND = ("v0.2/fever_symmetric_dev", "v0.2/fever_symmetric_test")
Reader = Callable[[Path], Iterator[Triplet]]


def read_written(folder: Path) -> Iterator[Triplet]:
    """Contrast items: `qa` is satisfied by `a` and violated by `b`, `qb` the reverse."""
    for row in read_contrast_items(folder):
        group = item_group(row)
        licence = "CC BY-SA" if "CC BY-SA" in row["source"] else "Apache-2.0"
        for query, good, bad in (
            (row["qa"], row["a"], row["b"]),
            (row.get("qb"), row["b"], row["a"]),
        ):
            if query:
                yield Triplet(query, good, bad, group, f"written: {row['source']}", licence)


def read_contrast_items(folder: Path, files: str = "contrast*.jsonl*") -> Iterator[dict[str, Any]]:
    """Rows with `a`, `b`, `qa`, `qb` and often `neutral`, of a folder's contrast files.

    A row with `of` holds further questions on the passages of that item, which stands before it.
    """
    found = sorted(folder.glob(files))
    if not found:
        raise NotFound(f"no {files} in {folder}")
    passages: dict[str, dict[str, Any]] = {}
    for file in found:
        for row in read_jsonl(file):
            first = row.get("of", row["id"])
            known = passages.setdefault(first, {k: v for k, v in row.items() if k in _PASSAGES})
            if "of" in row and not known:
                raise InvalidFile(f"{file}: {row['id']} asks about {first}, which is not before it")
            yield {**known, **row}


_PASSAGES = ("a", "b", "neutral", "source", "domain", "topic")


def item_group(row: dict[str, Any]) -> str:
    """Items on one passage have one group: `edit-12-a` and `edit-12-b` are both of `edit-12`."""
    return re.sub(r"^((?:conda|edit)-\d+)-[\w-]+$", r"\1", row.get("of", row["id"]))


def read_condaqa(folder: Path) -> Iterator[Triplet]:
    """Questions with a passage that answers yes (wanted) and an edit of it that answers no."""
    for row in read_jsonl(folder / "dev_flip_triples.jsonl"):
        group = "conda-" + row["id"].split("-")[0]
        yield Triplet(
            row["question"], row["doc_yes"], row["doc_no"], group, "CondaQA dev", "Apache-2.0"
        )


def read_fever_symmetric(folder: Path) -> Iterator[Triplet]:
    """Claims with supporting and refuting evidence of the symmetric set."""
    evidence: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    groups: dict[str, str] = {}
    for name in ("v0.1/fever_symmetric_full", *_FEVER_SECOND):
        for row in read_jsonl(folder / f"symmetric_{name}.jsonl"):
            claim = _untokenise(row["claim"])
            text = _untokenise(row.get("evidence_sentence") or row["evidence"])
            groups.setdefault(claim, f"fever-{_original(str(row['id']))}")
            if text not in evidence[claim][row["label"]]:
                evidence[claim][row["label"]].append(text)
    for claim, by_label in evidence.items():
        for good, bad in zip(by_label["SUPPORTS"], by_label["REFUTES"], strict=False):
            yield Triplet(claim, good, bad, groups[claim], "FeverSymmetric", "CC BY-SA 3.0")


def _original(row_id: str) -> str:
    """The FEVER id (six digits at most) that a generated one extends by 000000 and a number."""
    return row_id[:-7] if len(row_id) > 7 else row_id


def read_cad_nli(folder: Path) -> Iterator[Triplet]:
    """Hypotheses with a premise that entails and a minimally edited one that contradicts."""
    premises: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in ("train", "dev", "test"):
        for row in read_tsv(folder / "revised_combined" / f"{part}.tsv"):
            premises[row["sentence2"]][row["gold_label"]].append(row["sentence1"])
    for number, (hypothesis, by_label) in enumerate(premises.items()):
        for good, bad in zip(by_label["entailment"], by_label["contradiction"], strict=False):
            yield Triplet(hypothesis, good, bad, f"cad-{number}", "CAD-NLI", "Apache-2.0")


def read_sem_anto_neg(folder: Path) -> Iterator[Triplet]:
    """Negated statements with their affirmative paraphrase and two near-opposites."""
    path = folder / "datasets" / "antonym-substitution" / "original" / "SemAntoNeg_v1.0.json"
    for row in read_jsonl(path):
        good, group = row["sentences"][row["label"]], f"anto-{row['idx']}"
        for bad in row["sentences"]:
            if bad != good:
                yield Triplet(row["input"], good, bad, group, "SemAntoNeg", "CC BY-SA 4.0")


def read_scone(folder: Path) -> Iterator[Triplet]:
    """Statements with a sentence that entails them and their own negation, and the reverse.

    Where the sentence with an extra negated clause still holds the whole statement, it stands for
    the affirmative side, so that a negation word alone tells nothing.
    """
    for part in ("train", "test"):
        plain = _csv(folder / "scone_nli" / part / "no_negation.csv")
        longer = _csv(folder / "scone_nli" / part / "one_not_scoped.csv")
        for row, other in zip(plain, longer, strict=True):
            if not _same_content(row["sentence2_edited"], row["sentence2"]):
                continue
            premise, hypothesis = _sentence(row["sentence1"]), _sentence(row["sentence2"])
            affirmed = _sentence(row["sentence2_edited"])
            if row["gold_label_edited"] == "entailment":
                good = _wider(row["sentence1_edited"], other["sentence1_edited"])
                texts = (affirmed, good, hypothesis)
            else:
                bad = _wider(row["sentence2_edited"], other["sentence2_edited"])
                texts = (hypothesis, premise, bad)
            yield Triplet(*texts, f"scone-{part}-{row['group_index']}", "ScoNe", "CC0")


def _same_content(affirmed: str, negated: str) -> bool:
    """Whether the pair differs by its negation only; some pairs say another thing altogether."""
    starts = {word[:3] for word in _tokens(negated)} | {"som"}
    return all(word[:3] in starts for word in _tokens(affirmed) if len(word) > 3)


def _wider(plain: str, longer: str) -> str:
    """The longer sentence if it holds the plain one word for word, else the plain one."""
    inside = " ".join(_tokens(plain)) in " ".join(_tokens(longer))
    return _sentence(longer if inside else plain)


def _sentence(text: str) -> str:
    text = re.sub(r"\b([Aa]) (?=[aeio])(?!eu|one)", r"\1n ", " ".join(text.split()).strip('" '))
    return text[0].upper() + text[1:].rstrip(".") + "."


def read_neg_nli(folder: Path) -> Iterator[Triplet]:
    """Hypotheses with a text that entails them and its negated variant that contradicts them.

    RTE is left out: its labels do not tell a contradiction from what is merely not entailed.
    """
    for name in ("SNLI", "MNLI"):
        rows = read_tsv(folder / "clean_data" / f"{name}.txt", encoding="cp1252")
        for hypothesis, block in groupby(rows, key=lambda row: row["Hypothesis"]):
            found = {row["gold_label"]: (row["Text"], row["index"]) for row in block}
            if not {"entailment", "contradiction"} <= found.keys():
                continue
            (good, index), (bad, _) = found["entailment"], found["contradiction"]
            if not re.search(r"\bnot (?:is|are|was|were|him)\b", f"{hypothesis} {good} {bad}"):
                group = f"negnli-{name}-{int(index) // 3}"
                yield Triplet(hypothesis, good, bad, group, "NegNLI", "MIT")


def read_afin(folder: Path) -> Iterator[Triplet]:
    """What a negated sentence affirms, with the sentence and the same without its negation."""
    for part in ("train", "dev", "test"):
        for row in read_jsonl(folder / f"{part}.jsonl"):
            undone = _undone(row["sentence"].split(), row["verb"])
            sure = all(row.get(f"s{i}", 4) == 4 for i in range(1, 6))
            if undone and sure and _differs(row["pi"], row["sentence"]):
                good, bad = _untokenise(row["sentence"]), _untokenise(undone)
                group = f"afin-{row['unique_id']}"
                yield Triplet(row["pi"], good, bad, group, "AFIN", "Apache-2.0")


_AUXILIARIES = frozenset(
    "is are was were am be been has have had can could will would should must might may did".split()
)
_ONLY_WITH_NEGATION = frozenset(
    "any anymore anyone anything anybody anywhere either yet until till necessarily only just even "
    "all much long but because merely simply unless whether nor or so enough every".split()
)
_SUBORDINATE = frozenset(
    "if when whether where who which that thought believed because so unless says said most others "
    "miracle please".split()
)
_VAGUE = frozenset("some certain not might several something things could were most".split())


def _undone(words: Sequence[str], verb: str) -> str:
    """The sentence without its one not, n't or never; empty where doing so is not safe."""
    cues = [i for i, word in enumerate(words) if negates(word)]
    if len(cues) != 1 or cues[0] == 0 or words[cues[0]] not in ("not", "n't", "never"):
        return ""
    at = cues[0]
    before, lower = words[at - 1].lower(), [word.lower() for word in words]
    barred = _SUBORDINATE & set(lower[:at]) or _ONLY_WITH_NEGATION & set(lower[at:])
    if barred or verb not in words[at + 1 : at + 3] or {"``", "''", "`"} & set(words):
        return ""
    head, tail = list(words[: at - 1]), list(words[at + 1 :])
    if before == "do" and tail[0] == verb:
        verb = verb if head else verb.capitalize()
        return " ".join([*head, verb, *tail[1:]])
    if before == "does" and tail[0] == verb:
        return " ".join([*head, _third_person(verb), *tail[1:]])
    whole = {"ca": "can", "wo": "will"}.get(before, words[at - 1])
    if whole.lower() in _AUXILIARIES or (words[at] == "never" and tail[0] == verb):
        return " ".join([*head, whole, *tail])
    return ""


def _third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", verb) else "s")


def _differs(reading: str, sentence: str) -> bool:
    """Whether a reading is more than the bare clause, which the undone sentence would state too."""
    starts = {word[:4] for word in _tokens(sentence)}
    words = [word for word in _tokens(reading) if word not in ("a", "an", "the")]
    if _VAGUE & set(words) or words[0][:4] not in starts:  # vague, or about something else
        return False
    return any(len(word) > 3 and word[:4] not in starts for word in words)


def read_cannot_pairs(folder: Path) -> Iterator[Triplet]:
    """Wikipedia statements and their contradictions, each asked for against the other.

    The files give no paraphrase to ask with, so the query is the statement itself in the form of a
    question or a request. Pairs without a negation or an antonym to tell them apart are left out.
    """
    opposites = _opposites()
    seen: set[tuple[str, str]] = set()
    for name in CANNOT_FILES:
        for number, row in enumerate(read_tsv(folder / "datasets" / f"{name}.tsv")):
            pair = (row["sentence"].strip(), row["negated"].strip())
            if not all(map(_stands_alone, pair)) or not _opposed(*pair, opposites):
                continue
            for good, bad in (pair, pair[::-1]):
                if (good, bad) not in seen:
                    seen.add((good, bad))
                    group = f"cannot-{Path(name).name}-{number}"
                    yield Triplet(_asked(good), good, bad, group, "CANNOT", "CC BY-SA 4.0")


CANNOT_FILES = (
    *(f"wikifactcheck-english/processed/wikifactcheck_english_{i}" for i in range(5)),
    "glue-diagnostic/processed/glue_diagnostic",
)
_CUES = frozenset(
    "not never no cannot without neither nor none nobody nothing nowhere fail fails failed failing "
    "refuse refuses refused refusing unable lack lacks lacked lacking incapable absent".split()
)
_CONTEXT = frozenset(
    "it its they their them he his him she her this these those that such however furthermore "
    "moreover but also there we our i you both others another".split()
)
_PARTLY = frozenset("some all only sometimes may".split())  # their opposites may both hold
_REQUESTS = (
    "Is it true that {}?",
    "evidence that {}",
    "sources saying that {}",
    "Does any text say that {}?",
    "find a passage stating that {}",
    "I read that {}. Is there a source?",
    "Can you confirm that {}?",
    "where is it written that {}",
)
_BE = re.compile(r"^((?:The |An? )?(?:[\w'’()-]+ ){1,5}?)(is|are|was|were|can|will|should) (.+)\.$")


def negates(word: str) -> bool:
    """Whether a word turns round what stands beside it."""
    return word.lower() in _CUES or word.lower().endswith("n't")


def _stands_alone(statement: str) -> bool:
    """Whether a statement is long enough, clean, and names what it is about."""
    words = statement.split()
    clean = (
        "  " not in statement
        and statement.endswith(".")
        and not re.search(r" [;s,] |\W\.$", statement)
    )
    return clean and len(words) > 5 and not _CONTEXT & set(_tokens(" ".join(words[:5])))


def _opposed(one: str, two: str, opposites: dict[str, set[str]]) -> bool:
    here, there = set(_tokens(one)), set(_tokens(two))
    gone, come = here - there, there - here
    if {"if", "since"} & (here | there):
        return False
    negated = any(map(negates, here)) != any(map(negates, there))
    if negated:
        return len(gone) + len(come) <= 8
    if _PARTLY & (gone | come):
        return False
    few = len(gone) <= 3 and len(come) <= 3 and not any(map(negates, gone | come))
    stems = {_stem(word) for word in come}
    return few and any(opposites.get(_stem(word), set()) & stems for word in gone)


def _opposites() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in load_antonyms():
        found[_stem(pair.word)].add(_stem(pair.antonym))
        found[_stem(pair.antonym)].add(_stem(pair.word))
    return found


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|e|s|d)$", "", word) if len(word) > 4 else word


def _asked(statement: str) -> str:
    """The statement as a yes-or-no question where it is plain how, else within a request."""
    found = _BE.match(statement)
    body = statement.rstrip(".")
    first = body.split()[0]
    if first in ("The", "A", "An", "In", "On", "At", "Some", "Many", "Most", "All", "No", "During"):
        body = body[0].lower() + body[1:]
    question = found and first not in ("In", "On", "At", "During", "No") and "," not in found[1]
    if found and question and not any(map(negates, _tokens(statement))):
        subject = body[: len(found[1])]
        return f"{found[2].capitalize()} {subject}{found[3]}?"
    return pick(_REQUESTS, statement).format(body)


READERS: dict[str, tuple[Reader, ...]] = {
    "written": (read_written,),
    "CondaQA-dev": (read_condaqa,),
    "FeverSymmetric": (read_fever_symmetric,),
    "CAD-NLI": (read_cad_nli,),
    "CANNOT": (read_sem_anto_neg, read_cannot_pairs),
    "ScoNe": (read_scone,),
    "NegNLI": (read_neg_nli,),
    "AFIN": (read_afin,),
    "2wiki_corpus": (read_exclusions, read_sets),
}
"""Folder name to its readers."""


def _tokens(text: str) -> list[str]:
    return re.findall(r"[\w'’-]+", text.lower())


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """One JSON value a line; a broken line is named."""
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidFile(f"{path}:{number} is not JSON: {error}") from error


def _csv(path: Path) -> Iterator[dict[str, str]]:
    with _opened(path) as lines:
        yield from csv.DictReader(lines)


def read_tsv(path: Path, *, encoding: str = "utf-8") -> Iterator[dict[str, str]]:
    """Rows by column name; quotes are plain characters."""
    with _opened(path, encoding=encoding) as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _opened(path: Path, *, encoding: str = "utf-8") -> IO[str]:
    if not path.is_file():
        raise NotFound(f"no file {path}; the folder should hold the source as published")
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding=encoding, newline="")
    return path.open(encoding=encoding, newline="")


_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "``": '"',
    "''": '"',
    "--": "–",
}


def _untokenise(text: str) -> str:
    """Penn Treebank tokens back to ordinary spacing."""
    words = [_BRACKETS.get(word, word) for word in text.split()]
    text = re.sub(r" ([.,;:?!)\]]|n't\b|'s\b)", r"\1", " ".join(words))
    return re.sub(r"([(\[]) ", r"\1", text)
