"""Negation pairs: a claim that is asserted against the same claim denied."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.claims import Claim, claims, present, queries, surroundings
from coder_ir.datasets.diagnostics.passages import Passage, content_words
from coder_ir.datasets.diagnostics.sheet import OPEN, Pair

_REGULAR = (
    "increase decrease reduce lower improve enhance inhibit induce prevent protect affect promote "
    "suppress stimulate activate attenuate alter cause contain contribute correlate differ predict "
    "produce provide require result influence modify delay impair slow raise block support appear "
    "change decline persist develop respond lead tolerate exceed elevate worsen "
    "stabilize trigger benefit interact accumulate abolish augment restore reverse ameliorate "
    "diminish accelerate mediate regulate confer explain account exert possess eliminate "
    "inactivate vary occur deplete relax dilate shorten prolong aggravate"
)
_IRREGULAR = {
    "lead": "led", "have": "had", "bind": "bound", "rise": "rose", "fall": "fell", "grow": "grew",
    "show": "showed", "give": "gave", "make": "made",
}  # fmt: skip
_DOUBLED = frozenset(("occur", "confer", "permit", "drop", "stop"))
_AUXILIARY = r"is|are|was|were|can|could|may|might|will|would|should"
_PERFECT = r"(?:has|have|had)(?= (?:\w+ly )?been\b)"
_ADVERB = r"(?:\w+ly )?"
_BE = re.compile(rf"\b({_AUXILIARY}|{_PERFECT})\b(?! (?:also|only|still|not|no|then|both|thus)\b)")
_UNDONE = re.compile(rf"\b({_AUXILIARY}|has|have|had) not (?=\w)")
_DO_NOT = re.compile(rf"\b(did|does|do) not ({_ADVERB})([a-z]+)\b")
_FAILED = re.compile(rf"\b(failed|fails|fail) to ({_ADVERB})([a-z]+)\b")
_NO_NOUN = re.compile(
    r"\b(No|no) ((?:\w+ly )?(?:significant |clear |consistent |overall |adverse |beneficial )?)"
    r"(association|effect|difference|correlation|relation|relationship|increase|decrease|change"
    r"|reduction|improvement|benefit|interaction|evidence|link|trend|influence|impact)\b"
)
_ANY_DENIAL = re.compile(
    r"\b(?:no|not|never|without|neither|nor|none|cannot|fail\w*|lack\w*|unable|hardly|little|few"
    r"|absence|absent|unlikely|rarely|unless|except|non\w*|un(?:known|clear|changed|affected)|any"
    r"|less likely|seldom|scarce\w*|limited|remains?|need\w*|should|must|will)\b",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"\b(?:many|most|all|every|each|several|various|or|estimated|about|approximately|median|average"
    r"|aged|one of|due|even|almost|goal|groups?|questionnaires?|hypothesis|possible|objective"
    r"|times|twice|strongest|first|majority|participants|controls|partly|usually|rapidly|slightly|widely|commonly|generally"
    r"|primarily|mainly|largely|in (?:one|two|three|four|five|six|\d+)|lowest|highest|currently"
    r"|well known|research|mean|scores?)\b|\d{3}",
    re.IGNORECASE,
)
_RELATION = frozenset(  # what a finding says or denies of its subject after a helping verb
    "associated related correlated linked affected effective reduced increased decreased improved "
    "detected observed found seen inhibited induced prevented enhanced attenuated suppressed "
    "caused mediated higher lower required necessary sufficient safe toxic carcinogenic harmful "
    "beneficial protective able contributing increasing declining elevated impaired dependent "
    "different significant present tolerated recommended absorbed predictive responsible involved "
    "attributed explained altered influenced modified changed similar greater mutagenic genotoxic "
    "useful active susceptible resistant proportional superior inferior equivalent comparable "
    "excreted destroyed retained lowered raised worsened stronger "
    "abolished reversed restored triggered protected contaminated deficient "
    "important common rich adequate suitable capable source cause".split()
)
_LIGHT = frozenset(("have", "provide", "show", "give", "make", "exert", "possess", "contain"))
_SUBSTANCE = re.compile(
    r"\b(?:effects?|levels?|rates?|activit\w+|propert\w+|higher|lower|benefits?|protection|risk"
    r"|impact|influence|role|reductions?|increases?|improvements?|concentrations?)\b"
)
_ALSO_NOUNS = frozenset(
    "changes increases decreases results causes supports benefits influences declines delays "
    "blocks raises produces accounts".split()
)
_OBJECT = re.compile(
    r" (?:the|an?|in (?:an?|the)|risk|both|blood|serum|plasma|cell|insulin|oxidative|bone|energy"
    r"|body|mortality|inflammation|weight|LDL|HDL|total|cholesterol|for)\b"
)
_PARTICIPLE = re.compile(r"\b(?:ha[sd]|have|been|being)\b")
_SUBJECT = re.compile(r"^(?:(?!\b(?:that|which|who|where|when|and)\b)[^,;:]){3,90}$")


@dataclass(frozen=True, slots=True)
class Turn:
    """A claim said the other way."""

    text: str
    word: str  # the verb or noun that is denied or asserted
    denies: bool  # the new text is the negated one


def negation_candidates(passages: Sequence[Passage], seed: int) -> Iterator[Candidate]:
    """Every claim that can be turned between asserted and negated, in the order of the passages."""
    for passage in passages:
        for claim in claims(passage):
            turn = turned(claim.text) if claim.end == len(claim.sentence) - 1 else None
            candidate = _candidate(claim, turn, seed) if turn else None
            if candidate:
                yield candidate


def turned(text: str) -> Turn | None:
    """The claim negated, or asserted where it is negated; None where that is not plain to do."""
    if _UNFIT.search(text):
        return None
    if not _ANY_DENIAL.search(text):
        return _negated(text)
    asserted = _asserted(text)
    return None if asserted is None or _ANY_DENIAL.search(asserted.text) else asserted


def _negated(text: str) -> Turn | None:
    helpers = list(_BE.finditer(text))
    verbs = [m for m in re.finditer(r"[a-z]+", text) if m[0] in _VERB_OF]
    if len(helpers) == 1 and _SUBJECT.match(text[: helpers[0].start()].rstrip()):
        helper = helpers[0]
        denied = "cannot" if helper[1] == "can" else f"{helper[1]} not"
        rest = text[helper.end() :]
        word = _denied_word(rest)
        known = word in _RELATION or word in _BASES
        changed = text[: helper.start()] + denied + rest
        return Turn(changed, word, denies=True) if known else None
    if helpers or len(verbs) != 1 or not _SUBJECT.match(text[: verbs[0].start()].rstrip()):
        return None
    return _with_do(text, verbs[0])


def _with_do(text: str, found: re.Match[str]) -> Turn | None:
    """`reduced` becomes `did not reduce`, an adverb before it goes between."""
    base, helper = _VERB_OF[found[0]]
    before, after = text[: found.start()], text[found.end() :]
    if re.search(r"\b(?:to|the|an?|of|in|by|with|and|or|for|on|from) (?:\w+ly )?$", before):
        return None
    adverb = re.search(r"\b(\w+ly) $", before)
    if adverb:
        before = before[: adverb.start()]
    said = f"{helper} not {adverb[1] + ' ' if adverb else ''}{base}"
    light = base in _LIGHT and not _SUBSTANCE.search(after)
    light = (
        light
        or after.startswith((" by ", " from "))
        or (found[0] in _ALSO_NOUNS and not _OBJECT.match(after))
    )
    if light or not before.strip() or not after.strip() or _PARTICIPLE.search(before):
        return None
    return Turn(before + said + after, base, denies=True)


def _asserted(text: str) -> Turn | None:
    if found := _DO_NOT.search(text) or _FAILED.search(text):
        past = found[1] in ("did", "failed")
        forms = {base: (present, simple) for base, present, simple in _FORMS}
        if found[3] not in forms:
            return None
        plural = found[1] in ("do", "fail")
        verb = found[3] if plural else forms[found[3]][1 if past else 0]
        return Turn(_put(text, found, found[2] + verb), found[3], denies=False)
    if found := _UNDONE.search(text):
        word = _denied_word(text[found.end() :])
        known = word in _RELATION or word in _BASES
        return Turn(_put(text, found, f"{found[1]} "), word, denies=False) if known else None
    if found := _NO_NOUN.search(text):
        article = "a" if (found[2] or found[3])[0] not in "aeiou" else "an"
        article = "" if found[3] == "evidence" else f"{article} "
        said = article + found[2] + found[3]
        said = said[0].upper() + said[1:] if found[1] == "No" else said
        return Turn(_put(text, found, said), found[3], denies=False)
    return None


def _put(text: str, found: re.Match[str], said: str) -> str:
    return text[: found.start()] + said + text[found.end() :]


def _denied_word(rest: str) -> str:
    """The first word after the helping verb that says something."""
    words = [w for w in re.findall(r"[a-z]+", rest) if not w.endswith("ly")]
    light = ("be", "been", "a", "an", "the", "and", "well", "major", "important", "significant")
    return next((word for word in words if word not in light), "")


def _candidate(claim: Claim, turn: Turn, seed: int) -> Candidate | None:
    topic = content_words(claim.text)
    stem = re.compile(rf"\b{turn.word[:6]}", re.IGNORECASE)
    around = surroundings(
        claim, lambda s: not (stem.search(s) and len(topic & content_words(s)) > 1)
    )
    if around is None:
        return None
    said, other = queries(claim, turn.text, seed)
    ours, theirs = (around.documents(key) for key in (claim.sentence, claim.changed(turn.text)))
    if not turn.denies:  # side a is the one that asserts
        said, other, ours, theirs = other, said, theirs, ours
    origin = "asserts" if turn.denies else "denies"
    pair = Pair(
        *("", "negation", claim.passage.doc_id, f"{turn.word}: the source {origin} it", OPEN, ""),
        *(said, other, *ours, *theirs, "", ""),
    )
    return Candidate(pair, turn.word, frozenset(topic), most=4)


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + verb[-1] + "ed" if verb in _DOUBLED else verb.removesuffix("e") + "ed"


_FORMS = tuple(
    (verb, present(verb), _past(verb)) for verb in dict.fromkeys([*_REGULAR.split(), *_IRREGULAR])
)
_BASES = frozenset(base for base, _, _ in _FORMS)
_VERB_OF = {  # a form to its base and to the form of "do" that takes its place
    form: (base, helper)
    for base, present, past in _FORMS
    for form, helper in ((present, "does"), (past, "did"))
}
