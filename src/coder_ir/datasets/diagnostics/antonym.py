"""Antonym pairs: one word of a finding against its opposite, all else equal."""

import re
from collections.abc import Iterator, Sequence

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.claims import Claim, claims, present, queries, surroundings
from coder_ir.datasets.diagnostics.passages import Passage, content_words
from coder_ir.datasets.diagnostics.sheet import OPEN, Pair
from coder_ir.datasets.wordnet import load_antonyms

# Words whose swap reads well in a finding; WordNet says what each is swapped for.
_CHOSEN = frozenset(
    "increased decreased increase decrease high low early late dependent independent presence "
    "absence effective ineffective likely unlikely strong weak strongly weakly directly indirectly "
    "stable unstable sufficient insufficient upstream downstream mature immature reversible "
    "irreversible favorable unfavorable frequent infrequent frequently infrequently superior "
    "inferior better worse influx efflux active inactive dispensable indispensable stability "
    "instability safe dangerous urban rural rapidly slowly often rarely greater lesser "
    "sensitive insensitive efficient inefficient useful useless beneficial harmful "
    "positively negatively success failure stabilize destabilize necessary unnecessary".split()
)
# Opposites of science that WordNet lacks; a form is swapped for the same form.
_ADDED = (
    "reduce>increase enhance>reduce activate>inhibit inhibit>promote promote>inhibit "
    "suppress>promote improve>impair impair>improve attenuate>enhance upregulate>downregulate "
    "downregulate>upregulate accelerate>delay delay>accelerate prevent>cause elevate>reduce "
    "exacerbate>alleviate alleviate>exacerbate stimulate>inhibit facilitate>hinder "
    "worsen>improve shorten>prolong prolong>shorten lower>raise "
    "activation>inhibition inhibition>activation reduction>increase upregulation>downregulation "
    "downregulation>upregulation overexpression>underexpression higher>lower lower>higher "
    "highest>lowest lowest>highest longer>shorter shorter>longer smaller>larger "
    "larger>smaller older>younger younger>older faster>slower slower>faster stronger>weaker "
    "weaker>stronger earlier>later hypermethylation>hypomethylation "
    "resistant>susceptible susceptible>resistant beneficial>harmful harmful>beneficial rare>common "
    "poor>good elevated>reduced reduced>increased more>less less>more"
)
_VERBS = frozenset(
    "increase decrease reduce enhance activate inhibit promote suppress improve impair attenuate "
    "upregulate downregulate accelerate delay prevent cause elevate exacerbate alleviate protect "
    "stimulate facilitate hinder worsen shorten prolong lower raise strengthen weaken stabilize "
    "destabilize".split()
)
_NOUNS = frozenset(("increase", "decrease"))
_PREDICATES = frozenset(
    "effective likely sensitive beneficial useful necessary sufficient stable safe superior "
    "inferior dangerous harmful insufficient ineffective unlikely unnecessary "
    "resistant susceptible".split()
)
_IS_SAID = re.compile(r"\b(?:is|are|was|were|be|more|less|highly|became|being) (?:\w+ly )?$")
_PLANNED = re.compile(
    r"\b(?:should|implications?|recorded|obtained|established|drawn|measured|performed|identified"
    r"|promise|developed|investigated|simulated|analy[sz]ed|compared in|included|subject"
    r"|frameworks?|area of|help|programme|approach|issue|required for|yet another)\b"
)
# Where the word is part of a name or a method, its swap is nonsense.
_FIXED_AFTER = re.compile(
    r"[-–/]|,|['’]| (?:throughput|density|resolution|performance|molecule|molecules|intestine|bowel"
    r"|RNAs?|interfering|subunit|scale|and|or|nucleotide|hairpin|noncoding|non-coding|term|order"
    r"|income|school|blood|of function|fat\b|endosom\w+|repeat|bone|gestation|diet|number"
    r"|factor|predictor|detection|first|passage|period)\b"
)
_MORE = re.compile(
    r" (?:likely|effective|common|frequent|frequently|severe|susceptible|sensitive|resistant"
    r"|stable|efficient|efficiently|active|potent|prone|pronounced|aggressive|abundant|often"
    r"|strongly|rapidly|rapid|accurate|robust|specific|vulnerable|important|cost-effective)\b"
)
_FIXED_BEFORE = re.compile(r"\b(?:or|sufficiently|constitutively|as|so|too|most|least|more|less) $")
_OF = re.compile(" of ")
_JOINED = re.compile(" (?:associated|correlated|related|regulate)")
_FOLLOWED = {  # a word to what must come after it
    **dict.fromkeys(("more", "less"), _MORE),
    "reduction": re.compile(" (?:of|in) "),
    **dict.fromkeys(("activation", "inhibition"), _OF),
    **dict.fromkeys(("positively", "negatively"), _JOINED),
}
_DENIED = re.compile(r"\b(?:not|no|never|nor|neither|without|un(?:able|likely)|fail(?:ed|s)?)\b")


def antonym_candidates(passages: Sequence[Passage], seed: int) -> Iterator[Candidate]:
    """Every claim with a word that has one clear opposite, in the order of the passages."""
    opposites = opposite_words()
    for passage in passages:
        for claim in claims(passage):
            for found in re.finditer(r"\b[A-Za-z]+\b", claim.text):
                word = found[0].lower()
                if word in opposites and _swappable(claim, found):
                    candidate = _candidate(claim, found, opposites[word], seed)
                    if candidate:
                        yield candidate


def opposite_words() -> dict[str, str]:
    """Each form of a word to the same form of its opposite."""
    pairs = {
        one: two
        for pair in load_antonyms()
        for one, two in ((pair.word, pair.antonym), (pair.antonym, pair.word))
        if one in _CHOSEN and two in _CHOSEN
    }
    pairs |= dict(pair.split(">") for pair in _ADDED.split())
    for one, two in list(pairs.items()):
        if one in _VERBS and two in _VERBS:
            for form, other in zip(_forms(one), _forms(two), strict=True):
                pairs.setdefault(form, other)
    return pairs


def _forms(verb: str) -> tuple[str, str, str]:
    stem = verb.removesuffix("e")
    return present(verb), f"{stem}ed", f"{stem}ing"


def _swappable(claim: Claim, found: re.Match[str]) -> bool:
    """Whether the word stands free, once in its sentence, and is no part of a fixed name."""
    before, rest = claim.text[: found.start()], claim.text[found.end() :]
    if found[0][0].isupper() and before:
        return False  # part of a name
    once = len(re.findall(rf"(?i)\b{found[0]}\b", claim.sentence)) == 1
    stated = not (_DENIED.search(claim.text) or _PLANNED.search(claim.text))
    free = not (_FIXED_AFTER.match(rest) or _FIXED_BEFORE.search(before))
    return once and stated and free and _in_its_place(found[0].lower(), before, rest)


def _in_its_place(word: str, before: str, rest: str) -> bool:
    """Whether the words around it leave it the sense in which it has an opposite."""
    # "p53-dependent" turns; "dependent on" would need another preposition
    hyphened = before.endswith(("-", "–", "/")) == word.endswith("dependent")
    if word in _PREDICATES:
        return hyphened and _IS_SAID.search(before) is not None
    if word in _FOLLOWED:
        return hyphened and _FOLLOWED[word].match(rest) is not None
    if word in _VERBS and re.search(r"\b(?:an?|the|to|can|may|could) $", before):
        return word in _NOUNS and not before.endswith("to ")
    return hyphened


def _candidate(claim: Claim, found: re.Match[str], opposite: str, seed: int) -> Candidate | None:
    word = found[0]
    family = _family(word.lower(), opposite)
    if family.search(claim.text[: found.start()] + claim.text[found.end() :]):
        return None
    around = surroundings(claim, lambda sentence: family.search(sentence) is None)
    if around is None:
        return None
    other = _swapped(claim.text, found, opposite)
    query_a, query_b = queries(claim, other, seed)
    a1, a2 = around.documents(claim.sentence)
    b1, b2 = around.documents(claim.changed(other))
    pair = Pair(
        *("", "antonym", claim.passage.doc_id, f"{word.lower()} -> {opposite}", OPEN, ""),
        *(query_a, query_b, a1, a2, b1, b2, "", ""),
    )
    topic = frozenset(content_words(claim.text) - {word.lower()[:6]})
    return Candidate(pair, word.lower(), topic, refused=family)


def _family(word: str, opposite: str) -> re.Pattern[str]:
    """Any form of the word or of its opposite."""
    stems = (re.sub(r"(?:ation|ion|ing|ed|es|er|est|e|s)$", "", w) or w for w in (word, opposite))
    ends = r"(?:e|es|s|ed|er|est|ing|ion|ation|ions)?"
    return re.compile("|".join(rf"\b{re.escape(stem)}{ends}\b" for stem in stems), re.IGNORECASE)


def _swapped(text: str, found: re.Match[str], opposite: str) -> str:
    """The clause with the opposite in place, a or an before it put right."""
    before, after = text[: found.start()], text[found.end() :]
    article = re.search(r"\b([Aa])n? $", before)
    if article:
        before = before[: article.start()] + article[1] + ("n " if opposite[0] in "aeiou" else " ")
    if found[0][0].isupper():
        opposite = opposite[0].upper() + opposite[1:]
    return before + opposite + after
