"""Short claims inside the sentences of an abstract, and the sub-documents around them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coder_ir.datasets.diagnostics.candidate import pick
from coder_ir.datasets.diagnostics.passages import (
    LONGEST,
    MOST_SENTENCES,
    SHORTEST,
    Passage,
    content_words,
    fits,
    is_leaning,
    joined,
    without_connective,
)

FRAMES = (
    "{C}",
    "Evidence that {c}",
    "Studies in which {c}",
    "Papers reporting that {c}",
    "Which studies found that {c}?",
    "Research showing that {c}",
)
_SHORTEST, _LONGEST = 6, 16  # words of a claim
_SAME = 0.5  # share of a claim's content words with which another sentence says it again

_LEAD = re.compile(
    r"^[^;:()]{0,90}?\b(?:show(?:s|ed|n)?|found|find|suggest(?:s|ed)?|demonstrate[sd]?|indicate[sd]?"
    r"|report(?:s|ed)?|reveal(?:s|ed)?|conclude[sd]?|observed?|confirm(?:s|ed)?|evidence) that "
)
_INTRO = re.compile(
    r"^(?:In|After|During|Among|At|For|With|By|Using|Following|Upon|On|Within|Under|Compared)\b"
    r"[^,;:]{3,80}, (?=[a-z])"
)
_END = re.compile(
    r",|;|:| [-–—] | (?:which|who|whose|because|since|when|if|through|via|thereby|leading|resulting"
    r"|suggesting|indicating|independent(?:ly)? of|regardless|as (?:well|measured|assessed"
    r"|determined|compared|shown)|and (?=(?:was|were|is|are|did|does|has|have|had|may|can|could"
    r"|\w+ed|\w+es|that|to)\b)|by \w+ing)\b"
)
_SAFE_AFTER = re.compile(r"\.?$|,? (?:through|via|by \w+ing|when|if|as (?:measured|assessed)) ")
_OPENING = re.compile(
    r"(?:we|our|it|its|they|their|this|these|there|those|such|both|he|she|that|if|when|to|what|how"
    r"|one|some|each|here|as|not|no|neither|only|although|of|and|or|also|all|most|either|another"
    r"|several|the (?:results?|findings?|effects?|same|latter|former|two|three|present|current"
    r"|association|authors?|data|study|aim|difference|most|following))\b",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"\b(?:this|these|those|such|our|we|it|they|them|their|its|he|she|his|her|here|also|that|other"
    r"|than expected|both|only|some|all|either|further|previous(?:ly)?|same|still)\b",
    re.IGNORECASE,
)
_MUDDLED = re.compile(
    r"%|\bfold\b|-fold|\b[Pp] ?[<=>]|respectively|\b(?:but|whereas|although|though|while|despite"
    r"|however|not only|rather|whether|hypothes|aim(?:ed|s)?\b|investigate|examined|assess|unless"
    r"|either|unlike|instead|determine|conversely|contrast|odds ratio|hazard ratio|relative risk"
    r"|versus|vs|from \d|outcome measures?|primary outcome|end ?points?|randomly|protocol"
    r"|baseline)\b|\d\.\d|\d/\d|±|≥|≤|\?"
)
_CONCLUDING = re.compile(
    r"\b(?:thus|therefore|hence|conclu\w+|also|similarly|likewise|consistent with|in agreement"
    r"|confirm\w*|(?:our|these|the|present|current) (?:results|findings|data|observations|effects?)"
    r"|in summary|overall|consequently|accordingly|neither|not|no|nor|however|contrast|contrary)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A clause of a passage's sentence, as positions in it."""

    passage: Passage
    place: int  # of the sentence in the passage
    start: int
    end: int

    @property
    def sentence(self) -> str:
        """The sentence it is in."""
        return self.passage.sentences[self.place]

    @property
    def text(self) -> str:
        """The clause alone."""
        return self.sentence[self.start : self.end]

    def changed(self, text: str) -> str:
        """The sentence with another clause in its place."""
        head = self.sentence[: self.start]
        return head + (text if head else text[0].upper() + text[1:]) + self.sentence[self.end :]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands before a key sentence in one sub-document and after it in the other."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def documents(self, key: str) -> tuple[str, str]:
        """Both sub-documents around a wording of the key sentence."""
        return joined([*self.before, key]), joined([key, *self.after])


def claims(passage: Passage) -> Iterator[Claim]:
    """Main clauses, one a sentence at most, short enough to ask for and plain enough to turn."""
    for place, sentence in enumerate(passage.sentences):
        if _MUDDLED.search(sentence) or is_leaning(without_connective(sentence)):
            continue
        start = _start(sentence)
        found = _END.search(sentence, start)
        end = found.start() if found else len(sentence) - 1
        text = bare(sentence[start:end])
        whole = _SAFE_AFTER.match(sentence, end) is not None
        short = _SHORTEST <= len(text.split()) <= _LONGEST
        if whole and short and not (_OPENING.match(text) or _POINTING.search(text)):
            yield Claim(passage, place, start, end)


def _start(sentence: str) -> int:
    """Where the clause begins: past "We found that" and "In old mice,"."""
    start = len(sentence) - len(without_connective(sentence))
    if lead := _LEAD.match(sentence):
        return lead.end()
    intro = _INTRO.match(sentence, start) if not start else None
    return intro.end() if intro else start


def surroundings(claim: Claim, usable: Callable[[str], bool]) -> Surroundings | None:
    """Sentences to put before and after the key sentence; None where there are too few.

    None of them says the claim again, draws a conclusion from it or points back at it.
    """
    own = content_words(claim.text)

    def taken(sentence: str) -> bool:
        again = len(own & content_words(sentence)) >= _SAME * len(own)
        apart = not (_CONCLUDING.search(sentence) or is_leaning(without_connective(sentence)))
        return apart and not again and usable(sentence)

    sentences, place = claim.passage.sentences, claim.place
    before = _gathered(claim, [s for s in reversed(sentences[:place]) if taken(s)])
    after = _gathered(claim, [s for s in sentences[place + 1 :] if taken(s)])
    if not (before and after):
        return None
    return Surroundings(tuple(reversed(before)), tuple(after))


def _gathered(claim: Claim, near: list[str]) -> list[str]:
    """The nearest sentences that make a sub-document with the key sentence; none if they cannot."""
    kept: list[str] = []
    for sentence in near:
        length = sum(len(s.split()) for s in (claim.sentence, *kept))
        if length >= SHORTEST + 10 or len(kept) + 1 == MOST_SENTENCES:
            break
        if length + len(sentence.split()) <= LONGEST:
            kept.append(sentence)
    return kept if fits([claim.sentence, *kept]) else []


def bare(text: str) -> str:
    """A clause without what it says in brackets."""
    return " ".join(re.sub(r"\s*\([^()]*\)", "", text).split())


def queries(claim: Claim, other: str, seed: int) -> tuple[str, str]:
    """The claim and its opposite in the same frame."""
    frame = pick(FRAMES, seed, claim.passage.doc_id)
    one, two = (_framed(frame, bare(text), claim) for text in (claim.text, other))
    return one, two


def _framed(frame: str, text: str, claim: Claim) -> str:
    return frame.format(C=text[0].upper() + text[1:], c=_lowered(text, claim))


def _lowered(text: str, claim: Claim) -> str:
    """The text as it stands inside a sentence: a name or an abbreviation keeps its capital."""
    first = re.split(r"[\s,]", text, maxsplit=1)[0]
    elsewhere = " ".join(claim.passage.sentences)
    named = re.search(rf"[\w,] {re.escape(first)}\b", elsewhere) is not None
    plain = first[1:].islower() and first.isalpha() and not named
    return text[0].lower() + text[1:] if plain or first in ("A", "An", "The", "In") else text


def present(verb: str) -> str:
    """The form that follows *it*."""
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
