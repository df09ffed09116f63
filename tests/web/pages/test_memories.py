"""The pages of memories: lists, one memory, its changes, the layers, and erasure."""

from __future__ import annotations

import html
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import Agent, LLMMemoryManager, ScriptedModel
from locus_memory.backends.base import ComposedBackend
from locus_memory.memory import Memory, MemoryChange
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.scope import Scope
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.web import Settings
from locus_memory.web.pages.frame.wording import compare_words
from locus_memory.web.pages.memories import lists
from tests.memory.sessions.conftest import Distiller

DIET = {"user": "ada", "type": "user", "key": "diet"}
SCRIPT = "<script>alert('x')</script>"


async def remember(browser, content, **fields):
    answer = await browser.post("/memories/remember", content=content, **fields)
    return await browser.follow(answer)


def field(page, name):
    """The value of a hidden field of a page."""
    return html.unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1])


def words(page):
    """What a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


async def test_an_empty_database_says_what_to_do(browser):
    page = await browser.page("/memories")
    assert "Nothing is remembered yet" in page
    assert "locus-memory remember" in page
    assert "Nothing is remembered here yet" in await browser.page("/memories/list", user="ada")
    for layer, said in (
        ("identity", "No sentence is fixed"),
        ("episodes", "There are no notes"),
        ("transcript", "No turns were recorded"),
    ):
        assert said in await browser.page(f"/memories/{layer}", user="ada")


async def test_a_person_vouches_for_a_memory(backend, browser):
    page = Memory("user", "diet", "Ada is vegan.", {"origin": "import"})
    await LLMMemoryManager(backend).for_user("ada").save(page)
    shown = await browser.page("/memories/memory", **DIET)
    assert "origin: import" in shown
    assert "Vouch for it" in shown
    shown = await browser.follow(await browser.post("/memories/trust", **DIET))
    assert "origin: person" in shown
    assert "Vouch for it" not in shown
    assert len(await LLMMemoryManager(backend).for_user("ada").history("diet")) == 2


async def test_a_memory_is_saved_edited_undone_and_retired(browser):
    page = await remember(browser, "Ada is a vegetarian.", key="diet", user="ada")
    assert "Saved." in page
    tag = field(page, "tag")
    answer = await browser.post("/memories/edit", content="Ada is vegan.", tag=tag, **DIET)
    page = await browser.follow(answer)
    assert "<del>" in page
    assert "<ins>" in page
    assert "replaced" in page
    page = await browser.follow(await browser.post("/memories/undo", **DIET))
    assert "Taken back." in page
    assert "Ada is a vegetarian.</p>" in page
    page = await browser.follow(await browser.post("/memories/retire", **DIET))
    assert "not current" in page
    assert "Save as a new version" not in page
    assert "Ada is a vegetarian." in page
    assert "retired already" in await browser.follow(await browser.post("/memories/retire", **DIET))
    assert (await browser.get("/memories/memory", **{**DIET, "key": "x"})).status_code == 404


async def test_the_loser_of_a_race_sees_both_and_can_save_over(browser):
    tag = field(await remember(browser, "old", key="diet", user="ada"), "tag")
    won = await browser.post("/memories/edit", content="first", tag=tag, **DIET)
    lost = await browser.post("/memories/edit", content="second <b>", tag=tag, **DIET)
    assert (won.status_code, lost.status_code) == (303, 412)
    assert '<p class="text" data-stored>first</p>' in lost.text
    assert '<p class="text" data-yours>second &lt;b&gt;</p>' in lost.text
    again = await browser.post(
        "/memories/edit", content="both", tag=field(lost.text, "tag"), **DIET
    )
    page = await browser.follow(again)
    assert [text in page for text in ("both", "first", "old")] == [True] * 3
    assert "second" not in page


async def test_a_memory_that_was_retired_meanwhile_is_not_lost(browser):
    tag = field(await remember(browser, "old", key="diet", user="ada"), "tag")
    await browser.post("/memories/retire", **DIET)
    lost = await browser.post("/memories/edit", content="mine", tag=tag, **DIET)
    assert lost.status_code == 412
    assert "Save yours as a new memory" in lost.text
    assert "data-yours>mine</p>" in lost.text
    assert "mine" in await remember(browser, "mine", **DIET)


async def test_an_edit_without_a_version_is_refused(browser):
    await remember(browser, "old", key="diet", user="ada")
    answer = await browser.post("/memories/edit", content="new", **DIET)
    assert answer.status_code == 400
    assert "old" in await browser.page("/memories/memory", **DIET)


async def test_the_list_the_search_and_the_past(browser):
    for place in range(5):
        await remember(browser, f"Ada likes tea {place}.", key=f"k{place}", user="ada")
    page = await browser.page("/memories/list", user="ada", limit=2)
    assert page.count("data-row") == 2
    following = html.unescape(re.search(r'class="button" href="([^"]+)"', page)[1])
    assert "k2" in await browser.page(following)
    page = await browser.page("/memories/list", user="ada", order="newest", limit=1)
    assert "Ada likes tea 4." in page
    hits = await browser.page("/memories/list", user="ada", query="tea")
    assert "Relevance" in hits
    assert "text" in hits
    assert "No memory has these words" in await browser.page(
        "/memories/list", user="ada", query="zebra"
    )
    past = await browser.page("/memories/list", user="ada", at="2020-01-01T00:00")
    assert "No such memories" in past
    assert "No such memories" in await browser.page("/memories/list", user="ada", type="project")
    users = await browser.page("/memories", find="AD")
    assert "user=ada" in users
    assert "No user has this name" in await browser.page("/memories", find="bob")


async def test_other_namespaces_have_memories_too(browser, backend):
    manager = LLMMemoryManager(backend.store, namespace_prefix=("team", "blue"))
    await manager.save([Memory("user", "mascot", "The mascot is a heron.")])
    await manager.for_user("bo").save([Memory("user", "home", "Bo lives in Graz.")])
    page = await browser.page("/memories")
    assert "team/blue" in page
    where = {"namespace": ["team", "blue"]}
    page = await browser.page("/memories", **where)
    assert "No user" in page
    assert "user=bo" in page
    page = await browser.page("/memories/memory", type="user", key="mascot", **where)
    tag = field(page, "tag")
    fields = {"type": "user", "key": "mascot", "content": "It is a stork.", "tag": tag}
    page = await browser.follow(await browser.post("/memories/edit", **where, **fields))
    assert "stork" in page
    assert "stork" in await browser.page("/memories/list", **where)
    assert "stork" not in await browser.page("/memories/list")
    tried = await browser.page("/try", text="Where does Bo live?", gate="off", user="bo", **where)
    assert "Graz" in tried


async def test_forgetting_begins_with_a_preview(browser):
    await remember(browser, "Ada is allergic to walnuts.", key="diet", user="ada")
    await remember(browser, "Ada keeps bees.", key="bees", user="ada")
    page = await browser.page("/memories/forget", **DIET)
    assert "nothing is erased yet" in page
    assert "walnuts" in page
    assert "walnuts" in await browser.page("/memories/memory", **DIET)
    assert "walnuts" in await browser.page("/memories/forget", user="ada", query="walnuts")
    page = await browser.follow(await browser.post("/memories/forget", **DIET))
    assert "Erased: 1 memory and 0 other items." in page
    assert (await browser.get("/memories/memory", **DIET)).status_code == 404
    assert "bees" in await browser.page("/memories/list", user="ada")
    assert "nothing to forget" in await browser.page("/memories/forget", user="ada", query="x")
    for answer in (
        await browser.get("/memories/forget", user="ada"),
        await browser.post("/memories/forget", user="ada"),
        await browser.post("/memories/forget", user="ada", confirm="ada"),
    ):
        assert answer.status_code == 400
    assert "bees" in await browser.page("/memories/list", user="ada")


async def test_the_layers_of_a_memory_that_tends_itself(browser, backend):
    fact = MemoryChange(
        op="add", type="user", key="allergy", content="No walnuts for Ada.", sources=(2,)
    )
    notes = (NoteDraft("Ada told of her allergy."),)
    model = Distiller(Distillate(changes=[fact], notes=notes))
    memory = LLMMemoryManager(backend.store, extract_fn=model, extract_mode="session_end")
    async with Agent(
        ScriptedModel(), checkpointer=backend.checkpointer, memory_manager=memory
    ) as agent:
        await agent.run("My name is Ada and I live in Graz, by the river Mur.", "t", user_id="ada")
        await agent.run("I am allergic to walnuts, and I work as a pilot.", "t", user_id="ada")
        await memory.sync_now()
    page = await browser.page("/memories/list", user="ada")
    assert "walnuts" in page
    where = html.unescape(re.search(r'<a href="(/memories/memory[^"]+)"', page)[1])
    page = await browser.page(where)
    assert re.search(r'href="/threads/at\?thread=t&amp;place=\d#m\d"', page)
    assert "#m1" in await browser.page("/memories/episodes", user="ada")
    assert "thread=t" in await browser.page("/memories/transcript", user="ada")
    assert "by the river Mur" in await browser.page("/memories/transcript", user="ada", thread="t")
    answer = await browser.post("/memories/identity/add", user="ada", text="Answer in German.")
    page = await browser.follow(answer)
    assert "Answer in German." in page
    name = field(page, "id")
    answer = await browser.post("/memories/identity/remove", user="ada", id=name)
    assert "No sentence is fixed" in await browser.follow(answer)


async def test_nothing_that_is_stored_becomes_markup(browser):
    fields = {"key": SCRIPT, "user": SCRIPT}
    await remember(browser, f"She said {SCRIPT}.", **fields)
    pages = [
        await browser.page("/memories"),
        await browser.page("/memories/list", user=SCRIPT),
        await browser.page("/memories/list", user=SCRIPT, query="said"),
        await browser.page("/memories/memory", type="user", **fields),
        await browser.page("/memories/forget", type="user", **fields),
        await browser.page("/try", user=SCRIPT, text=f"What was said? {SCRIPT}", gate="off"),
        await browser.page("/memories/list", user="ada", namespace=[SCRIPT, "a/b"]),
    ]
    for page in pages:
        assert SCRIPT not in page
        assert "alert(" in page


async def test_a_read_only_server_shows_no_form(plain, browsing):
    await (
        LLMMemoryManager(plain.store)
        .for_user("ada")
        .save([Memory("user", "diet", "Ada is vegan.")])
    )
    async with browsing(plain, Settings(read_only=True)) as browser:
        for path in ("/memories/memory", "/memories/list", "/memories/identity"):
            page = await browser.page(path, **DIET)
            assert 'method="post"' not in page
        assert "Forget for good" not in await browser.page("/memories/forget", **DIET)


async def test_what_the_model_would_see_of_a_message(browser):
    assert "Try a message" in await browser.page("/saw", user="ada")
    await remember(browser, "Ada is allergic to walnuts.", key="diet", user="ada")
    page = await browser.page("/try", user="ada", text="Am I allergic to anything?")
    said = words(page)
    assert "At the end of the system prompt" in said
    assert "- Ada is allergic to walnuts." in said
    page = await browser.page("/try", user="bob", text="What are walnuts?")
    assert "this message costs no tokens" in page
    assert "costs" not in await browser.page("/try")


async def test_what_the_model_saw(browser, backend):
    memory = LLMMemoryManager(backend.store)
    ada = memory.for_user("ada")
    thread = f"t {SCRIPT}"
    async with memory, Agent(ScriptedModel(), memory_manager=memory) as agent:
        await ada.save([Memory("user", "diet", f"Ada is allergic to {SCRIPT}.")])
        await agent.run(f"Am I allergic to {SCRIPT}?", thread, user_id="ada")
        await memory.drain()
        page = await browser.page("/saw", user="ada", thread=thread)
        assert SCRIPT not in page
        assert page.count("alert(") > 2
        await ada.forget("diet")
        await ada.save([Memory("user", "diet", "Ada is allergic to walnuts.")])
        await agent.run("What am I allergic to?", "u", user_id="ada")
        await agent.run("My password is hunter2-Xy9!q.", "u", user_id="ada")
        await memory.drain()
    page = await browser.page("/saw", user="ada")
    assert "What am I allergic to?" in page
    assert "withheld" in page
    assert "hunter2" not in page
    older = re.findall(r'href="(/saw[^"]+at=[^"]+)"', page)[1]
    page = words(await browser.page(html.unescape(older)))
    assert "- Ada is allergic to walnuts." in page
    page = await browser.page("/saw", user="ada", thread="u", limit=1)
    assert "Show more" in page
    assert "What am I allergic to?" not in page
    for fields in ({"user": "bob"}, {"thread": "nothing"}, {"user": "ada", "thread": thread}):
        assert "No run is recorded here" in await browser.page("/saw", **fields)


async def test_a_run_is_a_trace_from_its_message_to_its_memories(browser, backend):
    """Equal messages are told apart, and a message leads to its run as a memory does."""
    memory = LLMMemoryManager(backend.store)
    ada = memory.for_user("ada")
    said = ("I moved.", "I moved.", "Bye.")
    async with memory, Agent(ScriptedModel(), memory_manager=memory) as agent:
        for text in said:
            await agent.run(text, "t", user_id="ada")
        await memory.drain()
    messages = [{"role": "system", "content": "Be kind."}]
    for n, text in enumerate(said):
        call = {"id": "c", "function": {"name": f"tool_{n}", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"Answer {n}.", "tool_calls": [call]},
        ]
    state = {"messages": messages, "metadata": {"user_id": "ada"}}
    await backend.checkpointer.save(state, "t", metadata={"user_id": "ada"})
    for place, content in ((1, "Ada moved to Rome."), (3, "Ada moved to Oslo.")):
        told = {"thread_id": "t", "message_ids": [f"#{place}"]}
        await ada.save([Memory("user", f"home-{place}", content, metadata=told)])
    runs = await ada.saw("t", limit=10)
    for place, answer, fact, run in ((2, 0, "Rome", runs[2]), (4, 1, "Oslo", runs[1])):
        for fields in ({"place": place}, {"place": place + 1}, {"at": run.at}):
            page = words(await browser.page("/saw", thread="t", **fields))
            assert f"Answer {answer}." in page
            assert f"tool_{answer}" in page
            assert f"Ada moved to {fact}." in page
            assert f"Answer {1 - answer}." not in page
            assert f"Message {place} of the thread" in page
    page = words(await browser.page("/saw", thread="t", place=6))
    assert "None of the newest 500 memories" in page
    assert "No run of message 1 is recorded" in await browser.page("/saw", thread="t", place=1)
    memory_page = await browser.page("/memories/memory", user="ada", type="user", key="home-3")
    link = html.unescape(re.search(r'href="(/saw[^"]*place=4)"', memory_page)[1])
    assert "Answer 1." in await browser.page(link)
    page = await browser.page("/threads/at", thread="t")
    assert page.count("/saw?thread=t&amp;place=") == 3


async def test_users_have_their_numbers_and_a_search_finds_anybodys_memories(browser):
    for user, content in (
        ("ada", "Ada grows roses."),
        ("bo", "Bo eats walnuts."),
        (None, "It rains."),
    ):
        await remember(browser, content, **({"user": user} if user else {}))
    await remember(browser, "Ada swims.", user="ada")
    page = words(await browser.page("/memories"))
    assert re.search(r"ada 2 Ada swims. 20", page)
    assert re.search(r"bo 1 Bo eats walnuts.", page)
    assert re.search(r"No user 1 It rains.", page)
    page = words(await browser.page("/memories", find="walnut"))
    assert "Bo eats walnuts." in page
    assert "Ada" not in page
    assert "It rains." in words(await browser.page("/memories", find="raining"))
    assert "no memory has these words" in await browser.page("/memories", find="zebra")
    assert "/memories/list?user=bo" in await browser.page("/memories", find="bo")


async def test_a_user_called_star_is_one_user(browser, backend):
    space = ("locus_memory", "users")
    for user in ("*", "ada"):
        for thread in ("one", "two"):
            turn = (*space, user, "transcript", f"{thread} of {user}")
            await backend.store.put(turn, "1", {"text": "Hello."})
    page = await browser.page("/memories/transcript", user="*")
    assert ("one of *" in page, "one of ada" in page) == (True, False)


@pytest.mark.parametrize("path", ["/memories/memory", "/memories/forget", "/memories/list"])
async def test_bad_parameters_are_told(browser, path):
    answer = await browser.get(path, user="ada", type="nonsense", key="k")
    assert answer.status_code == 422


TEXT = st.lists(st.sampled_from(["Ada", " ", "\n", "tea", ".", "é", "😀", "x1"]), max_size=30).map(
    "".join
)


@pytest.mark.slow
@given(TEXT | st.text(), TEXT | st.text())
def test_a_comparison_has_both_texts(old, new):
    pieces = compare_words(old, new)
    assert "".join(text for kind, text in pieces if kind != "added") == old
    assert "".join(text for kind, text in pieces if kind != "removed") == new
    assert all(text for _, text in pieces)


@pytest.mark.slow
@given(st.integers(0, 50), TEXT, TEXT)
def test_a_comparison_of_long_texts_has_both_too(place, old, new):
    long = "a b " * 3_000
    left, right = (long[:place] + middle + long[place:] for middle in (old, new))
    pieces = compare_words(left, right)
    assert "".join(text for kind, text in pieces if kind != "added") == left
    assert "".join(text for kind, text in pieces if kind != "removed") == right


def test_no_texts_take_much_longer_to_compare_than_prose():
    """The server answers nobody else meanwhile."""

    def seconds(old, new):
        begun = time.perf_counter()
        compare_words(old, new)
        return time.perf_counter() - begun

    prose = [" ".join(f"w{n * step % 307}" for n in range(1_000)) for step in (7, 11)]
    assert seconds(".," * 1_000, ",;" * 1_000) < 20 * seconds(*prose)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("गर्मी में पानी", "गर्मी में चाय", "गर्मी में "),
        ("கடல் நீர்", "கடல் மீன்", "கடல் "),
        ("שָׁלוֹם עוֹלָם", "שָׁלוֹם חָבֵר", "שָׁלוֹם "),
        ("cafe\u0301 noir", "cafe noir", " noir"),
    ],
)
def test_a_word_is_compared_with_its_vowel_signs(old, new, same):
    assert sorted(compare_words(old, new)) == sorted(
        [
            ("same", same),
            ("removed", old.removeprefix(same).removesuffix(same)),
            ("added", new.removeprefix(same).removesuffix(same)),
        ]
    )


class Blind(StoreWrapper):
    @property
    def capabilities(self):
        return replace(super().capabilities, search=False, semantic_search=False)


async def test_users_are_found_where_memories_cannot_be_searched(browsing):
    store = Blind("memory")
    await LLMMemoryManager(store).for_user("ada").save([Memory("user", "home", "In Rome.")])
    async with ComposedBackend("blind", store) as backend, browsing(backend) as browser:
        assert "user=ada" in await browser.page("/memories", find="ad")
        text = await browser.page("/memories", find="Rome")
    assert "No user has this name, and the memories of all users cannot be searched" in text


async def test_a_page_of_transcripts_reads_no_more_than_its_own(plain, browsing, monkeypatch):
    monkeypatch.setattr(lists, "LIMIT", 3)
    parent = Scope(LLMMemoryManager(plain.store).for_user("ada").namespace).transcripts
    for number in range(1_200):
        await plain.store.put((*parent, f"t{number:04}"), "1", {"content": "x"})
    asked = []
    listed = type(plain.store).list_namespaces

    async def counted(store, *arguments, **options):
        found = await listed(store, *arguments, **options)
        asked.append(len(found))
        return found

    monkeypatch.setattr(type(plain.store), "list_namespaces", counted)
    async with browsing(plain) as browser:
        text = await browser.page("/memories/transcript", user="ada")
        assert "t0002" in text
        assert "t0003" not in text
        assert sum(asked) <= 600
        [following] = re.findall(r'href="(/memories/transcript[?][^"]*cursor=[^"]*)"', text)
        text = await browser.page(following.replace("&amp;", "&"))
        assert "t0003" in text
        assert "t0002" not in text
