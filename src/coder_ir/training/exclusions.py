"""Exclusion triplets made by rule from Wikipedia paragraphs: a topic without a name, a set but one.

A paragraph about a topic has sentences that mention some other name and sentences that do not;
two paragraphs of a kind ("villages in Z") each are what the set without the other one holds.
Every query has a mirror that asks for what it forbids, so a passage alone tells nothing.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Triplet

_LICENCE = "CC BY-SA"
_LONGEST = 110  # words of a passage
_NAMES_EACH = 2  # names taken of one paragraph

WITHOUT = (
    "{t} without {y}",
    "{t}, but not {y}",
    "{t} apart from {y}",
    "{t} except for {y}",
    "{t} excluding {y}",
    "{t} minus {y}",
    "{t}, no {y}",
    "{t} (not {y})",
    "{t} NOT {y}",
    "{t} other than what involves {y}",
    "{t} leaving {y} aside",
    "{t}: everything except {y}",
    "{t}, nothing about {y} please",
    "About {t}, but leave {y} out.",
    "Tell me about {t}, not the part about {y}.",
    "Tell me about {t} without mentioning {y}.",
    "I want to read about {t}, but I don't care about {y}.",
    "Please find something on {t} that does not bring up {y}.",
    "Give me facts on {t} that have nothing to do with {y}.",
    "I already know about {y}. What else is there on {t}?",
    "Anything on {t} that isn't about {y}?",
    "What can you tell me about {t} besides {y}?",
    "What is known of {t}, {y} aside?",
    "What do we know about {t} other than {y}?",
    "Who or what is {t}? Skip {y}.",
    "How would you describe {t} if {y} is left out?",
    "Which passage is on {t} but never names {y}?",
    "Leaving out {y}, what is there to say on {t}?",
    "Apart from {y}, what should I know about {t}?",
    "Excluding {y}: {t}",
    "Not {y}, just {t}.",
    "Looking for background on {t}; avoid {y}.",
    "Ignore {y} and summarise {t}.",
    "{t} background, skip {y}",
    "a text on {t} in which {y} is not mentioned",
    "passages about {t} that omit {y}",
)
WITH = (
    "{t} and {y}",
    "{t} {y}",
    "{t} with {y}",
    "{t}, including {y}",
    "{t}: {y}",
    "{t} in relation to {y}",
    "What links {t} to {y}?",
    "How is {y} connected with {t}?",
    "What does {y} have to do with {t}?",
    "Where does {y} come into the story of {t}?",
    "Tell me about {t}, especially {y}.",
    "Please find something on {t} that mentions {y}.",
    "I want to read about {t}, but only the part about {y}.",
    "Nothing on {t} but what concerns {y}.",
    "Don't leave out {y}: {t}",
    "About {t}, and do not skip {y}.",
    "{t}, not without {y}",
    "Which passage on {t} names {y}?",
    "{y}'s place in the story of {t}",
    "passages about {t} that bring up {y}",
)
OTHERS = (
    "{k} other than {x}",
    "{k}, but not {x}",
    "{k} apart from {x}",
    "{k} except {x}",
    "{k} excluding {x}",
    "{k} minus {x}",
    "{k}, no {x}",
    "{k} that are not {x}",
    "Any {k} besides {x}?",
    "Which {k} are there, not counting {x}?",
    "What {k} can you name without {x}?",
    "Show me {k}, leaving {x} out.",
    "I already know {x}. What other {k} are there?",
    "Not {x}, but another of the {k}.",
    "I am looking for {k}; please do not give me {x}.",
    "Leave out {x} and list {k}.",
)
ITSELF = (
    "{k}: {x}",
    "{x}, one of the {k}",
    "Only {x}, no other {k}.",
    "Tell me about {x}, not about other {k}.",
    "Of all the {k}, which one is {x}?",
    "Among {k}, I only want {x}.",
    "Which of the {k} is {x}?",
    "Not just any of the {k}, but {x}.",
    "Nothing but {x}, please, of the {k}.",
)

_MONTHS = "January February March April May June July August September October November December"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Christmas Easter"
_ROLES = (
    "Director President Minister Board Chairman Chairwoman Governor Bishop Archbishop Professor "
    "Senator Secretary Chief Officer General King Queen Prince Princess Duke Duchess Count Earl "
    "Lord Lady Baron Captain Emperor Empress Pope Judge Mayor Member Best Award Sir Professor "
    "Actor Actress Film Major Minor First Second Third English Internet Church Congress"
)
_NOT_NAMES = frozenset(f"{_MONTHS} {_DAYS} He She It They We You His Her Its The This In".split())
_NO_LAST = frozenset(_ROLES.split())
_DEMONYM = re.compile(
    r"(?:ese|ish|ian|ean|nch|ch|ic|man|rin|tch|ndi|mil|ugu|lam|can|ali|ari|eek|rdu|Jew|Latin"
    r"|Thai|i)s?$"
)
_PLACING = frozenset("in at by with from near against to".split())
_AFTER = frozenset(
    "and in at on for from to with by as who which where when was is were are had has or but "
    "until after before during since while that because under about into did starring".split()
)
_UPPER = "".join(letter for letter in map(chr, range(0x250)) if letter.isupper())
_WORD = rf"(?:[{_UPPER}]\.|[{_UPPER}][\w’'–-]+)"
_SMALL = r"(?:of the|of|de la|de|von|van|da|di|la|le|du|del|der|al|ibn|bin)"
_NAME = re.compile(rf"(?<![\w.’'–-])({_WORD}(?: (?:{_SMALL} )?{_WORD})*)")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|St|Ste|Jr|Sr|No|Nos|vs|Lt|Col|Gen|Sgt|Rev|Prof|Hon|Capt|Maj|Inc"
    r"|Ltd|Co|Op|ca?|b|d|r|m|Mt|Ft|Vol|pp?|v|lit|Bros|Ph\.D|Adm|Brig|Gov|Sen|Rep|Fr|a\.k\.a))\.$"
)

_ALIAS = re.compile(
    r"\b(?:as|born|called|named|née|titled|entitled|or|alias|nicknamed|title)(?: the)?[ (:]*$"
)
_GOES_ON = re.compile(r"(?:The|These|This|That|Those|They|Their|Both|Such) ")
_GOES_ON_QUOTED = re.compile(rf"{_GOES_ON.pattern}|Its? ")
_PERSON = (
    "actor|actress|footballer|film director|politician|cricketer|composer|singer|songwriter|painter"
    "|poet|novelist|writer|author|journalist|screenwriter|lawyer|historian|mathematician|physicist"
    "|chemist|boxer|swimmer|cyclist|wrestler|sculptor|architect|economist|philosopher|film producer"
    "|film editor|cinematographer|rugby player|tennis player|football player|basketball player"
    "|ice hockey player|baseball player|rower|sprinter|long-distance runner|diplomat|musician"
)
_PLACE = "village|town|city|river|municipality|commune|lake|mountain|suburb|island|township|parish"
_PROPER = rf"{_WORD}(?: {_WORD})*"
_MAKER = rf"(?:(?:[A-Z][a-z-]+ )?(?:[a-z-]+ )+)?({_PROPER})(?=[,.;]| and | from | for )"
_KINDS = tuple(  # what a first sentence says its topic is, and the set that makes it a member of
    (re.compile(pattern), template)
    for pattern, template in (
        (
            rf"\bis an? [^.]*?\bfilm\b[^.]*?\bdirected by ({_PROPER})(?=[,.;]| and )",
            "films directed by {0}",
        ),
        (rf"\bis an? ({_PLACE}) (?:located )?in ({_PROPER}(?:, {_PROPER})*)", "{0}s in {1}"),
        (rf"\bis an? (song|album|novel) (?:recorded |written )?by {_MAKER}", "{0}s by {1}"),
        (
            r"\b(?:is|was) an? (?:former |retired )?([A-Z][a-z]+(?:[ -][A-Z][a-z]+)?) (?:[a-z]+ )?"
            rf"({_PERSON})(?![\w-])",
            "{0} {1}s",
        ),
        (
            r"\bis an? (\d{4}) ([A-Z][a-z]+(?:-[A-Z][a-z]+)?) ((?:[a-z-]+ ){0,3}film)\b",
            "{0} {1} {2}s",
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A Wikipedia paragraph in ordinary spacing."""

    title: str  # unique in its corpus
    topic: str  # the title without what tells it from others of its name
    sentences: tuple[str, ...]


def pick(options: Sequence[str], key: str) -> str:
    """The option that the key's hash chooses: the same in every run."""
    return options[int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) % len(options)]


def read_exclusions(folder: Path) -> Iterator[Triplet]:
    """A paragraph's sentences without a name against those with it, and the reverse."""
    paragraphs = read_paragraphs(folder)
    groups = _groups(paragraphs)
    for paragraph in paragraphs:
        for name, without, with_it in _divisions(paragraph):
            for templates, good, bad in ((WITHOUT, without, with_it), (WITH, with_it, without)):
                template = pick(templates, f"{paragraph.title} {name}")
                query = template.format(t=paragraph.topic, y=name)
                group = groups[paragraph.title]
                yield Triplet(query, good, bad, group, "Wikipedia exclusions", _LICENCE)


def read_sets(folder: Path) -> Iterator[Triplet]:
    """Two paragraphs of a kind: all but the one asks for the other, and its name for itself."""
    paragraphs = read_paragraphs(folder)
    groups = _groups(paragraphs)
    for kind, *pair in _pairs(paragraphs):
        for one, other in (pair, pair[::-1]):
            for templates, good, bad in ((OTHERS, other, one), (ITSELF, one, other)):
                query = pick(templates, f"{kind} {one.title}").format(k=kind, x=one.topic)
                texts = (_passage(good, good.sentences), _passage(bad, bad.sentences))
                yield Triplet(query, *texts, groups[one.title], "Wikipedia sets", _LICENCE)


def read_paragraphs(folder: Path) -> list[Paragraph]:
    """The corpus in its own order."""
    path = folder / "2wikimultihopqa_corpus.json"
    if not path.is_file():
        raise NotFound(f"no file {path}; the folder should hold the source as published")
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [_paragraph(row["title"], row["text"]) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidFile(f"{path} is not a list of title and text: {error!r}") from error


def _paragraph(title: str, text: str) -> Paragraph:
    topic = re.sub(r"\s*\([^)]*\)$", "", title)
    return Paragraph(title, topic, tuple(_sentences(_respaced(text))))


def _respaced(text: str) -> str:
    """The corpus glues brackets, quotation marks and hyphens to the word before; undo that."""
    text = " ".join(text.split())
    text = re.sub(r"(?<=[\w.])\( ?", " (", text).replace("( ", "(").replace("(, ", "(")
    text = re.sub(r"(?<=\w)- (?!and\b|or\b|to\b)(?=\w)", "-", text)
    return re.sub(r" (?=['’]s\b)", "", _requoted(text)).strip()


def _requoted(text: str) -> str:
    """Quotation marks that hug what they quote; none at all where they do not come in pairs."""
    pieces = text.split('"')
    if len(pieces) % 2 == 0:
        return text.replace('"', "")
    for i in range(1, len(pieces), 2):
        pieces[i] = f'"{pieces[i].strip()}"'
        before, after = pieces[i - 1].rstrip(), pieces[i + 1].lstrip()
        pieces[i - 1] = before + " " if before and before[-1] not in "([" else before
        pieces[i + 1] = after if after[:1] in (*",.;:)]'’!?-", "") else " " + after
    return "".join(pieces)


def _sentences(text: str) -> Iterator[str]:
    whole = ""
    for piece in re.split(r'(?:(?<=[.!?])|(?<=[.!?]["”)]))\s+(?=["“(]?[^\W\d_a-z])', text):
        whole = f"{whole} {piece}".strip()
        if not _ABBREVIATION.search(whole):
            yield whole
            whole = ""
    if whole:
        yield whole


def _divisions(paragraph: Paragraph) -> Iterator[tuple[str, str, str]]:
    """Names with the passages that leave them out and that mention them, a few a paragraph."""
    named = {
        name: None for sentence in paragraph.sentences for name in _names(sentence, paragraph.title)
    }
    taken: set[str] = set()
    for name in sorted(named, key=lambda name: " " not in name):  # else in order of appearance
        full = re.compile(rf"(?<!\w)(the )?{re.escape(name)}(?!\w)")
        with_it = [sentence for sentence in paragraph.sentences if full.search(sentence)]
        without = _clear_of(name, paragraph.sentences)
        good, bad = _passage(paragraph, without), _passage(paragraph, with_it)
        article = full.search(bad)
        if _length(without) < 10 or _length(with_it) < 6 or bad in taken or not article:
            continue
        taken.add(bad)
        yield (article[1] or "") + name, good, bad
        if len(taken) == _NAMES_EACH:
            return


def _clear_of(name: str, sentences: Sequence[str]) -> list[str]:
    """Sentences with no word of the name, nor one that may go on about it ("The album ...")."""
    parts = {word for word in _tokens(name) if len(word) > 2} or set(_tokens(name))
    opening = _GOES_ON_QUOTED if any(f'"{name}"' in s for s in sentences) else _GOES_ON
    kept, mentioned = [], False
    for sentence in sentences:
        if parts & set(_tokens(sentence)):
            mentioned = True
        elif not (mentioned and opening.match(sentence)):
            kept.append(sentence)
            mentioned = False
    return kept


def _names(sentence: str, title: str) -> Iterator[str]:
    """Names inside a sentence that are no part of the title, no date, nationality or office."""
    own = set(_tokens(title))
    for match in re.finditer(r'(?<=\w )"([^"]{3,50})"', sentence):
        other = match[1][0].isupper() and not own & set(_tokens(match[1]))
        if other and len(match[1].split()) < 7 and not _ALIAS.search(sentence[: match.start()]):
            yield match[1].rstrip(",.")
    bare = re.sub(r'"[^"]*"', lambda quoted: '"' * len(quoted[0]), sentence)
    for match in _NAME.finditer(bare):
        name = re.sub(r"['’]s?$", "", match[1])
        words, before = name.split(), bare[: match.start()].split()
        alias = _ALIAS.search(bare[: match.start()])
        if before and not alias and not own & set(_tokens(name)) and _is_name(words):
            after = re.match(r"[\w’']* ([\w’'-]+)", bare[match.end() :])
            follows_on = after is None or after[1] in _AFTER
            if follows_on and (len(words) > 1 or before[-1] in _PLACING):
                yield name


def _is_name(words: Sequence[str]) -> bool:
    last = words[-1]
    if len(words) > 5 or len(last) < 3 or last.isupper() or last in _NO_LAST:
        return False
    office = len(words) > 1 and words[0] in _NO_LAST and words[1] == "of"
    return not (office or _NOT_NAMES & set(words) or _DEMONYM.search(last))


def _groups(paragraphs: Sequence[Paragraph]) -> dict[str, str]:
    """Title to group: a paragraph's own, or that of the first of its pair."""
    groups = {paragraph.title: f"wiki-{paragraph.title}" for paragraph in paragraphs}
    for _, one, other in _pairs(paragraphs):
        groups[other.title] = groups[one.title]
    return groups


def _pairs(paragraphs: Sequence[Paragraph]) -> Iterator[tuple[str, Paragraph, Paragraph]]:
    """A kind and two paragraphs of it that do not name each other; a paragraph is in one pair."""
    paired: set[str] = set()
    for pattern, template in _KINDS:
        members: dict[str, list[Paragraph]] = defaultdict(list)
        for paragraph in paragraphs:
            found = pattern.search(paragraph.sentences[0]) if paragraph.sentences else None
            if found and paragraph.title not in paired:
                members[_plural(template.format(*found.groups()))].append(paragraph)
        for kind, those in members.items():
            for one, other in zip(those[::2], those[1::2], strict=False):
                if not _name_each_other(one, other):
                    paired |= {one.title, other.title}
                    yield kind, one, other


def _plural(kind: str) -> str:
    return (
        kind.replace("ys in ", "ies in ")
        .replace("actresss", "actresses")
        .replace("rishs", "rishes")
    )


def _name_each_other(one: Paragraph, other: Paragraph) -> bool:
    return any(
        a.topic.lower() in " ".join(b.sentences).lower() for a, b in ((one, other), (other, one))
    )


def _passage(paragraph: Paragraph, sentences: Sequence[str]) -> str:
    """The first sentences up to a length, with the topic in front where they do not name it."""
    kept: list[str] = []
    for sentence in sentences:
        if kept and _length([*kept, sentence]) > _LONGEST:
            break
        kept.append(sentence)
    text = " ".join(" ".join(kept).split()[:_LONGEST])
    own = {word for word in re.findall(r"\w{3,}", paragraph.topic) if word[0].isupper()} - {"The"}
    return text if own & set(re.findall(r"\w+", text)) else f"{paragraph.topic}: {text}"


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _length(sentences: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)
