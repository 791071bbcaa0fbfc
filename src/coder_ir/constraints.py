"""Query text to the constraint it states: which words say so, what is excluded, what required."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coder_ir.calibration import Logistic
from coder_ir.errors import InvalidFile
from coder_ir.mentions import EMPTY_WORDS, words_of
from coder_ir.types import Constraint, Floats

_MENTION = (
    r"(?:mention|includ|involv|cover|discuss|consider|featur|contain|refer|touch|talk)"
    r"(?:e|ing|ring)?(?: to| on| about)?"
)
_NOT = (
    r"(?:(?:do|does|did|is|are|was|were|has|have|had|wo|ca|should|would|could)n['’]t|"
    r"(?:do|does|did|should|would|could|will|must|can|is|are|was|were|has|have|had) not|cannot|"
    r"not|never)"
)
_AFTER: dict[str, str] = {
    # family: words that the excluded part follows
    "exception": (
        r"with the exception of|except(?:ing)?(?: for)?|exclud(?:ing|es|e)|exclusive of|"
        r"other than|apart from|aside from|besides|save for|barring|outside of|in addition to|"
        r"not counting|(?:anything|everything|all|anywhere|anyone) but|leaving aside|"
        r"(?:sett?|leav|putt?)(?:ing|e)? (?:aside|to one side)|regardless of|irrespective of|"
        r"unrelated to|separate from|independent of|different (?:from|to|than)|beyond|"
        r"(?<=, )bar(?= (?-i:[A-Z]))|(?<=\w )(?<!to )save(?= (?-i:[A-Z])| the)|"
        r"else(?:where)? than|over and above|"
        r"(?:to the exclusion|with the omission) of|discounting|exempting|dismissing|"
        r"(?:look|get)(?:ing)? past|alternatives? to"
    ),
    "omission": (
        rf"without(?: even)?(?: {_MENTION})?|not to mention|{_NOT} {_MENTION}|no mention of|"
        r"leav(?:e|es|ing) out|omit(?:s|ting)?|skip(?:s|ping)?|ignor(?:e|es|ing)|"
        r"disregard(?:s|ing)?|minus|sans|spar(?:e|ing)(?: me| us)?|cut out|hold the|drop(?= the)|"
        r"(?:pass|gloss)(?:ing)? over|rul(?:e|ing) out|refrain(?:ing)? from(?: \w+ing)?|"
        r"forget(?: about)?|say nothing of|keep quiet about|subtracts?|take away|"
        r"(?:read|heard|know) (?:enough|plenty|all) about"
    ),
    "preference": (
        r"instead of|rather than|as opposed to|as against|unlike|in (?:place|lieu) of|"
        r"avoid(?:s|ing)?|"
        rf"{_NOT} (?:want|need|like|eat|use|care)(?: to)?(?: use)?(?: about)?|can['’]?t stand|"
        r"hates?|tired of|sick of|fed up with|allergic to|intolerant (?:to|of)|nowhere near|"
        r"already (?:know|have|own|read|seen|tried)(?: about)?|far from|"
        r"(?:stay|steer|keep)(?:ing)? (?:well )?(?:clear|away) (?:of|from)"
    ),
    "lack": (
        r"free (?:of|from)|devoid of|lack(?:s|ing)?(?: of| in)?|fail(?:s|ed|ing)? to|absence of|"
        r"refus(?:e|es|ed|ing) to|unable to|nothing (?:about|on|with|near|to do with|from|made)|"
        r"none of|neither|no longer|no"
    ),
    "negation": rf"but not|{_NOT}|won['’]t|can['’]t",
}
_INSIDE: dict[str, str] = {
    # family: words that hold the excluded part
    "aside": (
        r"(?:leav|keep|put|sett?|tak)(?:e|ing|ting)? (?P<x>[^,;:.!?]{2,40}?) "
        r"(?:out|aside|off|apart|to one side)"
    ),
    "excepted": (
        r"(?:(?<=, )|(?<=^))(?P<x>[^,;:.!?]{2,50}?) (?:be?ing )?(?:left |set |obviously )*"
        r"(?:excepted|excluded|aside|apart|notwithstanding|discounted|left out|the exception)"
    ),
    "else": r"(?:what|which|who|where|how|any|anything|anyone) (?:else|others?)",
    "free": r"(?P<x>[a-z]{2,})[- ]free(?! (?:of|from|to|trial|shipping))",
    "non": r"(?-i:[nN]on-(?=\w)|non(?=[a-z]{3}))(?!e\b)(?P<x>\w{2,})",
    "less": r"(?P<x>[a-z]{3,})less",
    "un": r"un(?P<x>[a-z]{3,}ed)",
}
_PATTERNS: dict[str, re.Pattern[str]] = {
    **{
        name: re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)
        for name, words in _AFTER.items()
    },
    **{name: re.compile(rf"\b{words}\b", re.IGNORECASE) for name, words in _INSIDE.items()},
}
FAMILIES = tuple(_PATTERNS)
# A cue word inside one of these states nothing.
_SILENT = re.compile(
    r"(?:\bnot|\bnever|n['’]t|\bcannot) (?:\w+ )?(?:leav\w+ out|skip\w*|omit\w*|without|exclud\w+|"
    r"forget\w*|ignor\w+|miss\w*|mind|avoid\w*|(?:leav|keep)\w* .{2,40}? out)\b|"
    r"\b(?:whether )?or not\b|\bif not\b|\bwhy not\b|\bnot (?:found|only|guilty|working)\b|"
    r"\bno such\b|\bno\.? ?\d+|\bis not (?:an? (?:object|function)|defined|equal)\b|"
    r"\bis not (?:subscriptable|callable|recognized)\b|"
    r"\bnot[- ]for[- ]profit\b|\bno contest\b|\bno[- ]fault\b|\bno one\b|\bneedless\b|\bunless\b|"
    r"\bnon[- ]?(?:sense|profit|compete|sequitur|proliferation|aligned|etheless)\b|"
    r"\bregardless(?! of)\b|\b(?:nonethe|neverthe|doubt|use|home|end|price|wire|count)less\b|"
    r"\bunited\b|\bundefined\b|"
    r"\b(?:for|is|are|get|be|set|feel|break|the|a|and|or|with)[- ]free\b",
    re.IGNORECASE,
)
_END = re.compile(
    r"[,;:.!?()\[\]{}]|\s[-–—]\s|\b(?:with|that|which|who|whom|whose|where|when|while|because|"
    r"since|but|please|for|so|then|if|though|although|as|tell|what|how|is|are|was|were|"
    r"also|in|from|near|despite|needed|required)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    # "the role of tourism", "his part in the war": what is ruled out is the tourism, the war
    r"(?:(?:the|its|their|his|her|any|all)\s+)?(?:later\s+|early\s+|earlier\s+)?"
    r"(?:roles?|part|uses?|impact|effects?|influence|contributions?|portrayal|discussions?|"
    r"involvement|participation|success|advance(?:ment)?s|importance)\s+"
    r"(?:of|on|in|about|to)\s+|"
    r"(?:discussing|referencing|any|all|information|info|details?|mention|references?|on|about|"
    r"regarding|concerning|related|talking|going into|to|of|into|anything|things?|stuff|be|been|"
    r"being|have|has|includ(?:e|ing)|mention(?:ing)?)\s+",
    re.IGNORECASE,
)
_HANGING = re.compile(
    r"(?:[\s,]+(?:and|or|nor|but|with|in|of|at|to|for|that|which|who|are|is|please))+$", re.I
)
_ASKING = frozenset("who what which when where why how i we you me us please".split())
_READ = 1000  # characters of a query that are looked at
_AND = re.compile(r",\s+(?:(?:and|or|nor)\s+)?|\s+(?:and|or|nor|&)\s+", re.IGNORECASE)
_OPENED = re.compile(r"[(\[]\s*(?:but\s+|and\s+)?$")
_TITLE_STARTS = ("no", "never", "without", "neither", "don't", "can't", "skip", "everything but")
_WHY = re.compile(r"\s*(?:why|how come)\b", re.IGNORECASE)
_QUOTED = re.compile(r"\s*[\"“‘«](?P<inside>[^\"”’»]{2,}?)[\"”’»]")
_REQUIRED = re.compile(r"(?P<x>[^,;:.!?]+?)\s+(?:instead of|rather than|as opposed to)\s", re.I)
_QUESTION = re.compile(
    r"(?:who|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should)\b", re.I
)
_REQUEST = re.compile(
    r"(?:please\s+|could you\s+|can you\s+)*(?:tell|give|provide|list|describe|explain|"
    r"introduce|show|find|name|recommend|suggest|write|summari[sz]e|outline|talk|"
    r"discuss|present|share|help|let|look|search|get|"
    r"i want|i need|i['’]?d like|i would like|i['’]m looking|we want|we need)\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"[^?]*[a-z]\.\s*")
# A verb with a subject before it that is nobody who asks, in no clause that describes a noun.
_VERB = re.compile(
    r"(?:(?!\b(?:that|which|who|whom|whose|where|when|what|how|if|i|we|you|one)\b)[^;:?])+?"
    r"(?<=\w )(?<!\bto )(?:(?:is|are|was|were|has|have|had|do|does|did|could|would|should|can|ca|"
    r"wo)(?:n['’]t)?|may|might|will|shall|must|cannot)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cue:
    """Words of a query that announce an exclusion."""

    family: str
    words: str
    excluded: str  # what they rule out; "" where it could not be told
    start: int  # character position of the words
    end: int  # past the words and what they exclude


def find_cues(query: str) -> list[Cue]:
    """Every cue of a query, in order, none inside another; reads the first thousand characters."""
    query = query if len(query) <= _READ else query[:_READ].rpartition(" ")[0]
    taken = [match.span() for match in _SILENT.finditer(query)]
    asks_why = _WHY.match(query) is not None
    found: list[tuple[str, re.Match[str]]] = []
    for family, pattern in _PATTERNS.items():
        if asks_why and family in ("negation", "lack", "preference"):
            continue
        for match in pattern.finditer(query):
            start, end = match.span()
            if any(start < b and a < end for a, b in taken) or _is_name(query, start, end):
                continue
            taken.append((start, end))
            found.append((family, match))
    found = _outermost(sorted(found, key=lambda pair: pair[1].start()), query)
    ends = [match.start() for _, match in found[1:]] + [len(query)]
    return [_cue(query, *pair, upto) for pair, upto in zip(found, ends, strict=False)]


def _outermost(
    found: list[tuple[str, re.Match[str]]], query: str
) -> list[tuple[str, re.Match[str]]]:
    """The cues less those that only begin what the one before rules out: no *gluten-free* flour."""
    kept: list[tuple[str, re.Match[str]]] = []
    for family, match in found:
        if family in _INSIDE and kept and kept[-1][0] in _AFTER:
            between = query[kept[-1][1].end() : match.start()].split()
            if all(word.lower() in EMPTY_WORDS for word in between):
                continue
        kept.append((family, match))
    return kept


def _cue(query: str, family: str, match: re.Match[str], upto: int) -> Cue:
    """What a match rules out: a part of it, or the phrase between it and the next cue."""
    start, end = match.span()
    if family == "else":
        return Cue(family, match[0], "", start, end)  # what follows is asked for
    if family in _INSIDE:
        return Cue(family, match[0], match["x"].strip(), start, end)
    # "(excluding his part in the war)" ends with its bracket; "(not Apple, under 900)" before it.
    aside = family in ("exception", "omission") and _OPENED.search(query, 0, start) is not None
    excluded = _excluded(query[end:upto], aside=aside)
    after = query.find(excluded, end) + len(excluded) if excluded else end
    return Cue(family, match[0], excluded, start, after)


def _is_name(query: str, start: int, end: int) -> bool:
    """Whether the cue is part of a title, such as Doctors Without Borders or No Man's Sky."""
    if not query[start].isupper() or (query[start:end].isupper() and end - start > 1):
        return False
    follows = re.match(r"\s+(?:an?\s|the\s|but\s)?(?P<next>\w)", query[end:])
    before = query[:start].rstrip()
    opens = query[start:end].lower() in _TITLE_STARTS and "," not in query[end:]
    titled = before[-1].isalnum() if before else opens
    return titled and follows is not None and follows["next"].isupper()


def _excluded(rest: str, *, aside: bool) -> str:
    """The phrase that follows a cue, without words that only lead up to it."""
    while (lead := _LEAD.match(rest.lstrip())) is not None:
        rest = rest.lstrip()[lead.end() :]
    if (quoted := _QUOTED.match(rest)) is not None:
        return quoted["inside"].strip()
    rest = rest.lstrip()
    end = re.search(r"[)\]]", rest) if aside else _END.search(rest, 1)
    phrase = rest[: end.start()] if end else rest
    return _HANGING.sub("", phrase.strip(" \"'“”‘’"))


def required_words(query: str) -> str:
    """What is asked for in place of something else: `tabs` of "tabs instead of spaces"."""
    match = _REQUIRED.match(query)
    return match["x"].split()[-1] if match else ""


def shape(query: str) -> Floats:
    """What the trained part reads beside the vector: cue families, form of the sentence."""
    return _shape(query, find_cues(query))


def _shape(query: str, cues: Sequence[Cue]) -> Floats:
    found = {cue.family for cue in cues}
    words = query.split()
    asks, requests, states = _asks(query), bool(_REQUEST.match(query)), _states(query)
    claims = not asks and not requests and _VERB.match(query) is not None
    weak = found <= {"negation", "lack", "un", "non", "less", "free", "else"}
    form = (
        bool(found),
        bool(found) and not weak,
        asks,
        requests,
        states,
        bool(found) and states,
        bool(found) and states and weak,
        bool(found) and asks and weak,
        bool(found) and requests,
        claims,
        bool(found) and claims,
        bool(found) and claims and not weak,
        len(words) <= 4,
        len(words) >= 12,
    )
    return np.array([*(name in found for name in FAMILIES), *form], dtype=np.float32)


def _asks(query: str) -> bool:
    return bool(_QUESTION.match(query)) or query.rstrip().endswith("?")


def _states(query: str) -> bool:
    """Whether a query is a claim rather than a wish."""
    wishes = _asks(query) or _REQUEST.match(query)
    return not wishes and _STATEMENT.fullmatch(query) is not None


def detect(query: str, vector: Floats, detector: Logistic | None) -> Constraint:
    """What a query states; `vector` is its topical one, read by the trained part."""
    return replace(read(query), probability=probability(query, vector, detector))


def probability(query: str, vector: Floats, detector: Logistic | None) -> float:
    """That a query states a constraint at all.

    Without a trained part, a cue word in anything but a plain statement decides.
    """
    cues = find_cues(query)
    if detector is None:
        return 0.0 if not cues else 0.2 if _states(query) else 1.0
    features = np.concatenate([_shape(query, cues), vector])
    if features.size != len(detector.weights):
        raise InvalidFile(
            f"the model's calibration reads {len(detector.weights)} numbers of a query, this "
            f"version gives {features.size}; make it anew with: coder-ir train calibrate"
        )
    return float(detector.probability(features[None])[0])


def read(query: str) -> Constraint:
    """What the words of a query state, taken for a constraint without any doubt."""
    cues = find_cues(query)
    # "Which king was never crowned?" turns a fact round; it names nothing to keep away from.
    turns = _asks(query) or _states(query)
    naming = [cue for cue in cues if not (turns and cue.family in ("negation", "lack"))]
    return Constraint(
        probability=1.0,
        cues=tuple(cue.words for cue in cues),
        excluded=tuple(
            part.strip() for cue in naming for part in _AND.split(cue.excluded) if part.strip()
        ),
        required=tuple(filter(None, (required_words(query),))),
        topic=without_exclusions(query, naming),
    )


def without_exclusions(query: str, cues: Sequence[Cue]) -> str:
    """The query less its cues and what they rule out; "" where too little would be left."""
    kept, at = "", 0
    for cue in cues:
        if cue.excluded:
            kept += query[at : cue.start]
            at = max(at, cue.end)
    rest = re.sub(r"[(\[]\s*[)\]]", " ", re.sub(r"[\"“”]", " ", kept + query[at:]))
    rest = re.sub(r"\s+(?=[,.?!])|,\s*(?=[.?!])|(?<=[(\[])\s*,\s*", "", re.sub(r"\s+", " ", rest))
    rest = _HANGING.sub("", re.sub(r",(?:\s*,)+", ",", rest).strip(" ,;."))
    left = [word for word in words_of(rest) if word not in EMPTY_WORDS | _ASKING]
    return rest if at and left else ""
