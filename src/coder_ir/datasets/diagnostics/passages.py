"""Source passages as clean whole sentences, and the sub-documents cut from them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.datasets.beir import load_corpus
from coder_ir.text import EMPTY_WORDS, split_sentences, words_of

SHORTEST, LONGEST = 40, 110  # words of a sub-document
MOST_SENTENCES = 4
_FEWEST = 5  # whole sentences a passage needs to be worth cutting

_HEADS = (
    "abstract|aims?|analysis|availability|backgrounds?|cases?|collection|conclusions?|conclusion"
    r"\(s\)|context|criteria|data|design|discussion|exposures?|extraction|findings|funding|hypothesis"
    "|implementation|implications|importance|interpretation|interventions?|introduction"
    "|limitations|main|materials?|measurements?|measures?|methodology|methods?|motivation"
    "|objectives?|outcomes?|participants|patients|principal|publisher|purpose|rationale|recent"
    r"|registration|relevance|reports?|research|results?|result\(s\)|review|selection|setting"
    "|significance|sources|statistical|strategy|search|study|subjects|summary|synthesis|trial"
    "|unlabelled|graphical|experimental|approach|statement|new|noteworthy|highlights|key|points"
)
_HEAD = rf"(?:(?i:{_HEADS})(?:(?:,? (?:and|AND|of|OF|the|THE|&) |[/, ]+)(?i:{_HEADS}))*)"
_HEADING = re.compile(rf"^{_HEAD}(?:\s*:\s*|\s+(?=[A-Z\d“\"(]))")
_MEASURED = re.compile(r"\d+\.\d|\d%|\d+ (?:mg|g|kg|ml|mmol)\b")
_MOST_MEASURED = 2  # figures in a sentence that still reads as prose
_STATISTICS = re.compile(
    r"\s*[(\[][^()\[\]]*(?:%|[=<>≤≥±]|\bCI\b|\bvs\b|\bFigs?\b|\bTables?\b)[^()\[\]]*[)\]]"
)
_NUMBERED = re.compile(r"\s*\[[\d,\s–-]+\]")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:e\.g|i\.e|vs|cf|al|approx|ca|Dr|Mr|St|spp?|subsp|var|No|Fig|Figs|Eq|Ref|U\.S"
    r"|U\.K|resp|etc|min|max|wt|Inc|Ltd|Co))\.$"
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|may|might|will|would|should|must|did|does|do"
    r"|(?:show|suggest|indicat|demonstrat|reveal|increas|decreas|reduc|report|result|provid|requir"
    r"|us|induc|inhibit|improv|express|represent|contribut|promot|affect|involv|enhanc|includ"
    r"|produc|regulat|associat|activat|observ|identif|develop|play|contain|remain|lower|caus|lead"
    r"|occur|depend|support|differ|correlat|predict|prevent|appear|examin|investigat|compar"
    r"|evaluat|determin|assess|receiv|consist|bind|form|act|find|protect|encod|mediat|control"
    r"|exhibit|display|undergo|function|need|respond|target|serv|allow|enabl|arise|exist|emerg"
    r"|modulat|block|interact|accumulat|vari|stimulat)(?:e|es|s|ed|ies|ied|d)"
    r"|found|led|became|gave|made|took|rose|fell|underwent|grew|bound|arose)\b"
)
_NOT_PROSE = re.compile(
    r"©|copyright|all rights reserved|clinicaltrials|\bdoi\b|https?:|www\.|supplementary|\bfunded"
    r"|karger|elsevier|john wiley|published by|this abstract|\bISRCTN|\bNCT\d|et al\b|\.\."
    r"|\?\?|;.*;|\bthe authors?\b|editor|figure \d|table \d",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|finally|interestingly|importantly"
    r"|notably|remarkably|surprisingly|specifically|indeed|in particular|strikingly|first|second"
    r"|third|lastly|here|overall|unexpectedly|of note|in fact|consequently), (?=\w)",
    re.IGNORECASE,
)
_LEANING = re.compile(
    r"^(?:th(?:is|ese|ose|ey|eir|us|erefore|at)|it|its|such|both|he|she|his|her|hence|similar"
    r"|in contrast|by contrast|conversely|nevertheless|nonetheless|instead|likewise|similarly|also"
    r"|accordingly|as a result|in turn|together|taken together|collectively|in conclusion|in sum"
    r"|another|further|again|yet|but|and|or|so|the (?:former|latter|same|other|two|effect|effects"
    r"|association|associations|difference|differences|increase|decrease|reduction|improvement"
    r"|results?|findings?|changes?))\b",
    re.IGNORECASE,
)
_OWN_STUDY = re.compile(
    r"^(?:this|these) (?:study|article|review|paper|work|report|studies)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A source document, its abstract headings and statistics in brackets taken out."""

    doc_id: str
    title: str
    sentences: tuple[str, ...]  # whole ones only, in order


def read_passages(folder: Path) -> list[Passage]:
    """The passages of a BEIR folder that are long enough to cut, in the corpus's order."""
    found = (
        Passage(document.doc_id, document.title, tuple(whole_sentences(document.text)))
        for document in load_corpus(folder)
    )
    return [passage for passage in found if len(passage.sentences) >= _FEWEST]


def whole_sentences(text: str) -> Iterator[str]:
    """Sentences a reader can take alone; headings, statistics and fragments are left out."""
    text = _STATISTICS.sub("", _NUMBERED.sub("", " ".join(text.split())))
    for sentence in _joined(split_sentences(text)):
        clean = _HEADING.sub("", sentence).strip()
        if clean and clean != sentence:
            clean = clean[0].upper() + clean[1:]
        if is_whole(clean):
            yield clean


def is_whole(sentence: str) -> bool:
    """Whether it begins and ends as a sentence does, has a verb and closes its brackets."""
    words = sentence.split()
    return (
        6 <= len(words) <= 45
        and sentence[0].isupper()
        and sentence[-1] in ".!?"
        and all(sentence.count(one) == sentence.count(two) for one, two in ("()", "[]", "“”"))
        and sentence.count('"') % 2 == 0
        and not sentence.startswith(("To ", "Whether "))
        and len(_MEASURED.findall(sentence)) <= _MOST_MEASURED
        and _FINITE.search(sentence) is not None
        and _NOT_PROSE.search(sentence) is None
    )


def is_leaning(sentence: str) -> bool:
    """Whether its opening points back at a sentence before it."""
    return _LEANING.match(sentence) is not None and _OWN_STUDY.match(sentence) is None


def without_connective(sentence: str) -> str:
    """The sentence as it can open a text: no "However," in front."""
    bare = _CONNECTIVE.sub("", sentence)
    return bare[0].upper() + bare[1:] if bare != sentence else sentence


def joined(sentences: Sequence[str]) -> str:
    """One text of the sentences, fit to be read alone."""
    return " ".join([without_connective(sentences[0]), *sentences[1:]])


def fits(sentences: Sequence[str]) -> bool:
    """Whether they make a sub-document: two to four sentences of 40 to 110 words."""
    length = sum(len(sentence.split()) for sentence in sentences)
    return 2 <= len(sentences) <= MOST_SENTENCES and SHORTEST <= length <= LONGEST


def windows(sentences: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start and end of every run of sentences that makes a sub-document a reader can take alone."""
    for start in range(len(sentences)):
        if is_leaning(without_connective(sentences[start])):
            continue
        for end in range(start + 2, min(start + MOST_SENTENCES, len(sentences)) + 1):
            if fits(sentences[start:end]):
                yield start, end


def content_words(text: str) -> set[str]:
    """Lower-cased words that carry meaning, each cut to its first letters so forms meet."""
    return {word[:6] for word in words_of(text) if len(word) > 2 and word not in _COMMON}


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    """Sentences whose split at an abbreviation or before a small letter is undone."""
    whole = ""
    for piece in pieces:
        if whole and not (_ABBREVIATION.search(whole) or piece[0].islower()):
            yield whole
            whole = ""
        whole = f"{whole} {piece}".strip()
    if whole:
        yield whole


_COMMON = EMPTY_WORDS | frozenset(
    "not no than then also but which who whom whose when where while whereas both between among "
    "during after before such can could may might will would should must more most less least very "
    "study studies found show shows showed shown suggest suggests suggesting results result data "
    "evidence findings using used use we our there these those however other others each only "
    "significantly significant associated association research reports report".split()
)
