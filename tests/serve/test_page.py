"""The page in a real browser, over a real server."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coder_ir import Client
from coder_ir.datasets.documents import read_documents
from coder_ir.datasets.sample import SampleQuery, load_sample
from coder_ir.policies import Auto, Sequential, Union
from coder_ir.types import Candidates, Constraint, Passage, Reading, Span
from tests.serve.live import ROOT, Server, running

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra dev")
CHROMIUM = Path("/usr/bin/chromium")
SHOTS = ROOT / ".shots"
QUERY = "a quiet hotel, nothing near nightlife"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
pytestmark = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="needs Debian's package chromium: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program that `demo --page` opens the page with notes the address."""
    return tmp_path_factory.mktemp("browser") / "address"


@pytest.fixture(scope="module")
def server(shown: Path) -> Iterator[Server]:
    program = shown.with_name("program")
    # As a browser in the terminal, it returns only when it is left.
    lines = ("#!/bin/sh", f'echo "$1" > "{shown}"', 'while [ -e "$0" ]; do sleep 1; done')
    program.write_text("\n".join(lines), encoding="utf-8")
    program.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROWSER", str(program))
        with running("coder_ir", "demo", "--page", "--port", 0) as started:
            yield started
            program.unlink()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, server: Server) -> Iterator[Open]:
    """Pages that must end without an error in the console and without a call to another host."""
    contexts: list[Any] = []
    faults: list[str] = []
    asked: list[str] = []

    def open_one(url: str = "", expected: str = "", **options: Any) -> Any:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options},
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()

        def note(message: Any) -> None:
            if message.type in ("error", "warning") and not (expected and expected in message.text):
                faults.append(message.text)

        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.asked = asked
        page.goto(url or server.url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []
    elsewhere = [url for url in asked if not re.match(r"(http://127\.0\.0\.1:\d+/|data:)", url)]
    assert elsewhere == []


def search(page: Any, query: str = QUERY) -> None:
    with page.expect_response("**/v1/pool"):
        page.fill("#query", query)
        page.press("#query", "Enter")
    page.wait_for_selector("body:not([aria-busy])")


def column(page: Any, name: str) -> list[str]:
    cards = page.locator(f"#{name} > ol > li")
    return [card.get_attribute("data-doc") for card in cards.all()]


def sample_query(text: str = QUERY) -> SampleQuery:
    return next(query for query in load_sample()[1] if query.text == text)


def test_documents_that_break_the_constraint_stand_lower_in_our_column(open_page: Open):
    page = open_page()
    search(page)
    topical, coder = column(page, "topical"), column(page, "coder")
    broken = sample_query().violating
    assert len(topical) == len(coder) == 10
    assert len(broken & set(topical[:6])) > len(broken & set(coder[:6]))
    gone = next(doc for doc in topical if doc not in coder)
    moved = page.locator(f"#topical li[data-doc={gone}] .move")
    assert moved.inner_text().startswith("now ")
    assert page.locator("#joins path").count() == len(set(topical) & set(coder))


def test_a_hit_shows_scores_risk_and_the_sentence_that_decided(open_page: Open):
    page = open_page()
    search(page, "headache tablets that don't contain caffeine")
    page.wait_for_selector("#topical li[data-doc=health-23] mark")
    card = page.locator("#topical li[data-doc=health-23]")
    assert card.locator("mark .word").inner_text() == "caffeine"
    assert card.locator("mark").inner_text().startswith("Don't take these headache tablets late")
    assert re.fullmatch(r"risk \d+%", card.locator(".risk").inner_text())
    assert card.locator(".bar").count() == 2
    words = page.inner_text("#constraint")
    assert "caffeine" in words and "stated" in words


def test_an_ordinary_query_is_said_to_state_no_constraint(open_page: Open):
    page = open_page()
    search(page, "how breakfast hours are set")
    assert "No constraint was found" in page.inner_text("#constraint")
    assert column(page, "topical") == column(page, "coder")


SLIDE = """([id, value]) => {  // in one turn, in which no answer could come
  const slider = document.getElementById(id);
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return [...document.querySelectorAll("#coder > ol > li")].map((card) => card.dataset.doc);
}"""


def test_a_slider_ranks_anew_without_asking_the_server(open_page: Open):
    page = open_page()
    search(page)
    page.wait_for_selector("#coder mark")
    page.locator("#policies input[value=seq]").check(force=True)
    before, asked = column(page, "coder"), len(page.asked)
    after = page.evaluate(SLIDE, ["tau", 0.5])
    assert not [url for url in page.asked[asked:] if url.endswith("/v1/pool")]
    assert 0 < len(after) < len(before)
    assert "is below τ 0.5" in page.locator("#filtered .why").first.text_content()
    assert page.locator("#scatter .tau").count() == 1
    page.locator("#alpha").fill("1")
    by_topic = [doc for doc in column(page, "topical") if doc in after]
    assert by_topic
    assert column(page, "coder")[: len(by_topic)] == by_topic  # later ones are past the first ten
    page.click("#reset")
    assert page.locator("#policies input[value=auto]").is_checked()


POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("auto", {}),
    ("topical", {"n": 7}),
    ("compatibility", {"n": 20}),
    ("auto", {"n": 13, "max_risk": 0.3}),
    ("seq", {"alpha": 0.2, "tau": 0.3}),
    ("seq", {"alpha": 0.7, "tau": 0.45, "n": 30, "max_risk": 0.5}),
    ("seq", {"alpha": 0.5, "tau": 0.99}),
    ("union", {"alpha": 0.3, "p": 0.1}),
    ("union", {"alpha": 0.8, "p": 0.8, "n": 25}),
    ("union", {"alpha": 0.5, "p": 0.55, "n": 3, "max_risk": 0.4}),
]
RANK = """async ([pool, name, given]) => {
  const { rank } = await import("/page/policies.js");
  const index = await (await fetch("/v1/index")).json();
  const { n = 100, max_risk = 1, ...own } = given;
  const settings = { ...index.settings.policies[name], ...own };
  const { hits, filtered } = rank(pool, name, settings, { n, max_risk });
  const told = ({ doc_id, score }) => [doc_id, score];
  return [hits.slice(0, 20).map(told), filtered.map(told)];
}"""


POOL = """async (body) => (await fetch("/v1/pool", {method: "POST",
  headers: {"content-type": "application/json"}, body: JSON.stringify(body)})).json()"""


def test_the_page_ranks_exactly_as_the_library_does(open_page: Open, server: Server):
    page = open_page()
    kinds = {"seq": Sequential, "union": Union}
    with Client(server.url) as client:
        for query in [one.text for one in load_sample()[1]] + ["how breakfast hours are set"]:
            sizes = {given.get("n", 100) for _, given in POLICIES}
            pools = {n: page.evaluate(POOL, {"query": query, "n": n}) for n in sizes}
            for name, given in POLICIES:
                own = {key: given[key] for key in ("alpha", "tau", "p") if key in given}
                rest = {key: value for key, value in given.items() if key not in own}
                policy = kinds[name](**own) if own else name
                k = min(20, given.get("n", 20))  # a pool of fewer would be widened
                ranking = client.search(query, k, policy=policy, **rest)
                pool = pools[given.get("n", 100)]
                hits, filtered = page.evaluate(RANK, [pool, name, given])
                assert hits[:k] == [[hit.doc_id, pytest.approx(hit.score)] for hit in ranking]
                gone = [[one.doc_id, pytest.approx(one.score)] for one in ranking.filtered]
                assert filtered == gone, (query, name, given)


def drawn(seed: int, probability: float) -> Candidates:
    """A pool with groups of near-duplicates, about half of it read."""
    draw = np.random.default_rng(seed)
    size = 24
    shares = draw.dirichlet((1, 1, 1), size).tolist()
    read = draw.random(size) < 0.5
    firsts, seconds = draw.permutation(size)[:12].reshape(2, 6).tolist()
    return Candidates(
        [f"d{i:02}" for i in range(size)],
        [Passage(0, Span(0, 1))] * size,
        draw.random(size).round(2),  # some are equal
        draw.random(size),
        Constraint(probability, ("noise",) if seed % 2 else ()),
        topic=draw.random(size) if seed % 3 else None,
        breach=draw.random(size) if seed % 3 else None,
        near_duplicates=(*zip(firsts, seconds, strict=True), (firsts[0], seconds[1])),
        readings=[
            Reading(*own, 0.5) if own_read else None
            for own, own_read in zip(shares, read.tolist(), strict=True)
        ],
    )


def sent(pool: Candidates) -> dict[str, Any]:
    """A pool as the server would send it."""
    assert pool.constraint is not None
    doubles: list[list[int]] = [[] for _ in range(len(pool))]
    for i, j in pool.near_duplicates:
        doubles[i].append(j)
        doubles[j].append(i)
    candidates = [
        {
            "doc_id": pool.doc_ids[i],
            "topical": float(pool.topical[i]),
            "compatibility": float(pool.compatibility[i]),
            "topic": None if pool.topic is None else float(pool.topic[i]),
            "breach": None if pool.breach is None else float(pool.breach[i]),
            "risk": None,
            "unread_risk": None,
            "reading": asdict(reading) if (reading := pool.readings[i]) else None,
            "near_duplicates": doubles[i],
        }
        for i in range(len(pool))
    ]
    constraint = {
        "probability": pool.constraint.probability,
        "excluded": list(pool.constraint.excluded),
        "required": [],
    }
    return {"candidates": candidates, "constraint": constraint}


@pytest.mark.parametrize("probability", [0.0, 0.7, 1.0])
def test_the_page_makes_of_readings_and_near_duplicates_what_auto_makes(
    open_page: Open, probability: float
):
    page = open_page()
    for seed in range(12):
        pool = drawn(seed, probability)
        hits, _ = page.evaluate(RANK, [sent(pool), "auto", {}])
        order = [(pool.doc_ids[v.position], v.score) for v in Auto().order(pool).kept]
        assert hits == [[doc_id, pytest.approx(score)] for doc_id, score in order[:20]], seed


def test_the_page_reads_nothing_for_a_policy_that_uses_no_readings(open_page: Open):
    pool = sent(drawn(1, 1.0))
    for i, one in enumerate(pool["candidates"]):
        one |= {"risk": 0.9 if i else 0.1, "unread_risk": 0.1 if i else 0.9}
    page = open_page()
    for name, gone in (("union", ["d00"]), ("auto", [f"d{i:02}" for i in range(1, 24)])):
        given = {"max_risk": 0.5} | ({"p": 0} if name == "union" else {})
        _, filtered = page.evaluate(RANK, [pool, name, given])
        assert sorted(doc_id for doc_id, _ in filtered) == gone


def test_a_pool_of_another_size_is_asked_for(open_page: Open):
    page = open_page()
    search(page)
    with page.expect_response("**/v1/pool") as asked:
        page.locator("#n").fill("12")
    assert json.loads(asked.value.request.post_data)["n"] == 12


def test_pointing_at_a_candidate_shows_its_text(open_page: Open):
    page = open_page()
    search(page)
    dot = page.locator("#scatter .dot[data-doc=travel-02]")
    dot.scroll_into_view_if_needed()
    dot.hover()
    assert "step out of the lobby" in page.inner_text("#tip")
    assert page.locator("#scatter .dot").count() == 100


@pytest.mark.parametrize("language", ["python", "curl"])
@pytest.mark.parametrize("policy", ["auto", "seq", "union"])
def test_copied_code_runs_and_gives_what_the_page_shows(
    open_page: Open, policy: str, language: str
):
    page = open_page()
    page.locator("#more summary").click()
    page.fill("#exclude", "karaoke; it's loud")
    page.fill("#where", "domain=travel")
    search(page, 'a hotel that\'s "quiet", nothing near nightlife')
    page.locator(f"#policies input[value={policy}]").check(force=True)
    if policy != "auto":
        page.locator("#alpha").fill("0.65")
        page.locator("#tau" if policy == "seq" else "#p").fill("0.35")
    with page.expect_response("**/v1/pool"):
        page.locator("#n").fill("12")
    page.wait_for_selector("body:not([aria-busy])")
    page.click(f"#{language}")
    code = page.evaluate("navigator.clipboard.readText()")
    assert code == page.locator("#code").text_content()
    command = [sys.executable if language == "python" else "sh", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    if language == "python":
        found = [line.split()[1] for line in done.stdout.splitlines() if line[0].isdecimal()]
    else:
        found = [hit["doc_id"] for hit in json.loads(done.stdout)["hits"]]
    assert found == column(page, "coder")


FILES = {
    "two.jsonl": '{"_id": "kiln-1", "text": "Pottery kilns of the valley fire at dusk."}\n'
    '{"text": "Glazes without lead are mixed in the kiln yard."}\n',
    "table.csv": 'id,title,text,stars\n7,Kiln tour,"A tour of the kiln, '
    'with ""hands-on"" glazing",4\n8,Closed kiln,The kiln is closed in winter,2\n',
    "notes.txt": "The kiln keeper speaks of wood ash and salt.",
}


def test_files_become_documents_that_can_be_found(open_page: Open, tmp_path: Path):
    page = open_page()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    page.set_input_files("#files", [str(tmp_path / name) for name in FILES])
    page.wait_for_selector("#upload-words:has-text('5 documents indexed')")
    assert page.locator("#uploaded").evaluate("bar => bar.value") == 1
    search(page, "pottery kiln")
    found = set(column(page, "topical")[:5])
    assert found == {"kiln-1", "two.jsonl:2", "7", "8", "notes.txt"}
    text = page.locator("#topical li[data-doc='7'] .text").inner_text()
    assert text == 'A tour of the kiln, with "hands-on" glazing'
    page.locator("#more summary").click()
    page.fill("#where", "stars>3; stars<5")
    search(page, "pottery kiln tour")
    assert column(page, "topical")[0] == "7"


def test_a_table_gives_the_documents_that_the_command_gives(
    open_page: Open, server: Server, tmp_path: Path
):
    page = open_page()
    path = tmp_path / "cells.csv"
    path.write_text(
        "id,text,isbn,open,none,pad,odd,far\n"
        "cells-1,An almanac of tides.,9007199254740993,true,null, 4 ,04,1e999\n",
        encoding="utf-8",
    )
    page.set_input_files("#files", str(path))
    page.wait_for_selector("#upload-words:has-text('1 documents indexed')")
    (expected,) = read_documents([str(path)])
    with Client(server.url) as client:
        assert client.get("cells-1") == expected


def test_a_line_without_an_id_keeps_its_long_numbers(
    open_page: Open, server: Server, tmp_path: Path
):
    page = open_page()
    path = tmp_path / "long.jsonl"
    path.write_text('{"text": "A ledger.", "isbn": 9007199254740993}\n', encoding="utf-8")
    page.set_input_files("#files", str(path))
    page.wait_for_selector("#upload-words:has-text('1 documents indexed')")
    with Client(server.url) as client:
        assert client.get("long.jsonl:1").metadata == {"isbn": 9007199254740993}


def test_a_text_that_is_not_utf8_is_refused(open_page: Open, tmp_path: Path):
    page = open_page()
    (tmp_path / "old.txt").write_bytes(b"caf\xe9")
    page.set_input_files("#files", str(tmp_path / "old.txt"))
    page.wait_for_selector("#message:visible")
    assert "old.txt is not UTF-8" in page.inner_text("#message")


def test_a_search_that_is_refused_leaves_what_is_shown_and_its_code(open_page: Open):
    page = open_page(expected="422")
    search(page)
    page.wait_for_selector("#coder mark")
    page.click("#curl")
    before = page.locator("#code").text_content()
    page.locator("#more summary").click()
    page.fill("#where", "stars")
    search(page, "another query")
    page.wait_for_selector("#message:visible")
    page.click("#curl")
    assert page.locator("#code").text_content() == before


def test_the_demo_answers_while_the_browser_it_opened_is_open(server: Server, shown: Path):
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    assert shown.read_text(encoding="utf-8").strip() == f"{server.url}/"


def test_a_server_that_allows_fewer_hits_is_asked_for_fewer(open_page: Open, tmp_path: Path):
    documents = tmp_path / "docs.jsonl"
    rows = [{"_id": f"h{i}", "text": f"Hotel {i} by the sea."} for i in range(8)]
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = ("coder_ir", "serve", tmp_path / "index", "--port", 0, "--limit", "k=5")
    with running(*command) as small:
        page = open_page(small.url)
        page.set_input_files("#files", str(documents))
        page.wait_for_selector("#upload-words:has-text('8 documents indexed')")
        search(page, "a hotel, not inland")
        page.wait_for_selector("#coder mark")
        assert len(column(page, "coder")) == 5
        assert page.locator("#message").is_hidden()


def test_a_dropped_file_is_indexed(open_page: Open):
    page = open_page()
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["Bellows of the forge, oiled in spring."], "forge.md"));
          for (const kind of ["dragover", "drop"]) {
            document.body.dispatchEvent(
              new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
          }
        }"""
    )
    page.wait_for_selector("#upload-words:has-text('1 documents indexed')")
    search(page, "forge bellows")
    assert column(page, "topical")[0] == "forge.md"
    assert page.locator("#drop").is_hidden()


def test_a_bad_line_is_named_and_the_lines_before_it_stay(open_page: Open, tmp_path: Path):
    page = open_page(expected="422")
    lines = [f'{{"_id": "loom-{i}", "text": "A loom with {i} pedals."}}' for i in range(40)]
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines, "no JSON"]), encoding="utf-8")
    page.set_input_files("#files", str(tmp_path / "bad.jsonl"))
    page.wait_for_selector("#message:visible")
    assert "bad.jsonl, near line 41" in page.inner_text("#message")
    assert "40 documents indexed" in page.inner_text("#upload-words")
    search(page, "a loom with pedals")
    assert column(page, "topical")[0].startswith("loom-")


def test_markup_in_documents_and_queries_is_text(open_page: Open, tmp_path: Path):
    page = open_page()
    evil = '<img src="x" onerror="window.hacked=1"><script>window.hacked=2</script> <b>zebra</b>'
    row = {"_id": 'z"><script>window.hacked=3</script>', "text": evil, "title": "<i>stripes</i>"}
    (tmp_path / "evil.jsonl").write_text(json.dumps(row), encoding="utf-8")
    page.set_input_files("#files", str(tmp_path / "evil.jsonl"))
    page.wait_for_selector("#upload-words:has-text('1 documents indexed')")
    query = "zebra stripes, no <script>window.hacked=4</script><img src=y onerror=alert(1)>"
    search(page, query)
    assert column(page, "topical")[0] == row["_id"]
    card = page.locator("#topical li").first
    assert card.locator(".text").inner_text() == evil
    assert card.locator(".name").inner_text() == "<i>stripes</i>"
    page.click("#curl")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#results img, #results script, #constraint img, #code img").count() == 0


def test_everything_can_be_done_from_the_keyboard(open_page: Open):
    page = open_page()
    page.wait_for_selector("#examples button")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#coder mark")
    before = column(page, "coder")
    tab_to(page, "document.activeElement.name === 'policy'")
    page.keyboard.press("ArrowRight")  # auto to seq
    assert page.locator("#policies input[value=seq]").is_checked()
    tab_to(page, "document.activeElement.id === 'tau'")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    assert column(page, "coder") != before
    tab_to(page, "document.activeElement.classList.contains('name')")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    tab_to(page, "document.activeElement.classList.contains('dot')")
    first = page.inner_text("#tip")
    page.keyboard.press("ArrowLeft")  # from the least topical round to the most
    assert page.inner_text("#tip") not in ("", first)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('li').dataset.doc") in before
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"


def tab_to(page: Any, reached: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(reached):
            return
    raise AssertionError(f"sixty times Tab, and never: {reached}")


def brightness(page: Any) -> int:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_light_and_dark_follow_the_system_and_the_button(open_page: Open):
    light, dark = open_page(color_scheme="light"), open_page(color_scheme="dark")
    assert brightness(light) > 600
    assert brightness(dark) < 150
    for page, name in ((light, "light"), (dark, "dark")):
        search(page)
        page.wait_for_selector("#coder mark")
        shoot(page, name)
    light.click("#theme")
    light.click("#theme")
    assert brightness(light) < 150
    light.reload()
    assert brightness(light) < 150


def test_a_phone_sees_one_column_at_a_time_and_scrolls_only_down(open_page: Open):
    page = open_page(viewport={"width": 375, "height": 720}, has_touch=True, is_mobile=True)
    search(page)
    page.wait_for_selector("#coder mark")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.locator("#coder").is_visible() and page.locator("#topical").is_hidden()
    page.tap("#tabs [data-tab=topical]")
    assert page.locator("#coder").is_hidden() and page.locator("#topical").is_visible()
    shoot(page, "phone")


def test_a_link_shows_the_same_query_and_settings(open_page: Open, server: Server):
    page = open_page()
    search(page)
    page.locator("#policies input[value=union]").check(force=True)
    page.locator("#p").fill("0.4")
    again = open_page(page.url)
    again.wait_for_selector("#coder li")
    assert again.input_value("#query") == QUERY
    assert column(again, "coder") == column(page, "coder")


def test_a_server_with_tokens_is_asked_with_one(open_page: Open, tmp_path: Path):
    tokens = tmp_path / "tokens"
    tokens.write_text("read=abcdefgh12345678\nwrite=stuvwxyz12345678\n", encoding="utf-8")
    command = ("coder_ir", "serve", tmp_path / "index", "--port", 0, "--token-file", tokens)
    with running(*command) as guarded:
        page = open_page(guarded.url, expected="Failed to load resource")
        page.wait_for_selector("#ask[open]")
        page.fill("#token", "abcdefgh12345678")
        page.keyboard.press("Enter")
        page.wait_for_selector("#index:has-text('0 documents')")
        (tmp_path / "one.txt").write_text("A lighthouse.", encoding="utf-8")
        page.set_input_files("#files", str(tmp_path / "one.txt"))
        page.wait_for_selector("#ask[open]")  # that one only reads
        page.fill("#token", "stuvwxyz12345678")
        page.keyboard.press("Enter")
        page.wait_for_selector("#upload-words:has-text('1 documents indexed')")
        search(page, "a lighthouse, not a tower")
        assert column(page, "coder") == ["one.txt"]
        page.click("#python")
        assert "stuvwxyz" not in page.locator("#code").text_content()


def shoot(page: Any, name: str) -> None:
    """Pictures for people, outside of git."""
    SHOTS.mkdir(exist_ok=True)
    path = SHOTS / f"{name}.png"
    page.screenshot(path=str(path), full_page=True)
    assert path.stat().st_size > 10_000
