from __future__ import annotations

import re
import sqlite3
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from locus_memory.store.text import (
    STOP_WORDS,
    index_text,
    query_meanings,
    query_words,
    searchable,
    segment,
    stem,
    tokens,
)
from locus_memory.store.words.variants import stemmed

TOKENIZER = "porter unicode61 remove_diacritics 2"

# The examples of the paper, a step a line.
PAPER = """
caresses:caress ponies:poni ties:ti caress:caress cats:cat
feed:feed agreed:agre plastered:plaster bled:bled motoring:motor sing:sing
conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss
fizzed:fizz failing:fail filing:file
happy:happi sky:sky
relational:relat conditional:condit rational:ration valenci:valenc hesitanci:hesit digitizer:digit
conformabli:conform radicalli:radic differentli:differ vileli:vile analogousli:analog
vietnamization:vietnam predication:predic operator:oper feudalism:feudal decisiveness:decis
hopefulness:hope callousness:callous formaliti:formal sensitiviti:sensit sensibiliti:sensibl
triplicate:triplic formative:form formalize:formal electriciti:electr electrical:electr
hopeful:hope goodness:good
revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop
adjustable:adjust defensible:defens irritant:irrit replacement:replac adjustment:adjust
dependent:depend adoption:adopt homologou:homolog communism:commun activate:activ
angulariti:angular homologous:homolog effective:effect bowdlerize:bowdler
probate:probat rate:rate cease:ceas controll:control roll:roll
"""

SUFFIXES = """
s es ies sses ed ing eed y ational tional izer bli alli ization ation ator iveness biliti logi icate
ative ical ful ness ement ance ible ment sion tion ion ism ate iti ous ive e ll
"""


@pytest.fixture(scope="module")
def fts():
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, tokenize='{TOKENIZER}')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(t, 'instance')")
    yield connection
    connection.close()


@pytest.mark.parametrize("pair", PAPER.split())
def test_the_examples_of_the_paper(pair):
    word, stemmed = pair.split(":")
    assert stem(word) == stemmed


@pytest.mark.parametrize("word", ["", "a", "is", "ss", "x" * 65 + "s"])
def test_short_and_long_words_are_left_alone(word):
    assert stem(word) == word


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    head=st.text("aeiouyslndtgbwxzcmrphv", min_size=1, max_size=6),
    tail=st.sampled_from(SUFFIXES.split()),
)
def test_stems_are_those_of_sqlite(fts, head, tail):
    assume(regular(head + tail))
    assert terms(fts, head + tail) == [stem(head + tail)]


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.text("aeiouystnlrdgAEÀéüñçÖİ\u0301 -'_.,9+\n日カ", max_size=24))
def test_text_is_split_and_folded_as_by_sqlite(fts, text):
    assume(all(map(regular, query_words(text))))
    assert terms(fts, searchable(text, None)) == tokens(text)


# SQLite takes these few letters of New Tai Lue and Vedic for marks.
ANY = st.text(
    st.characters(exclude_characters="\u1cf2\u1cf3", exclude_categories=["Cs"])
    | (st.sampled_from("ÀéßŒøİıſДйЁΆώςأهُשּׁԱաᲐაꭰᎠ𞤀𞤢ⅷ①ｱｶﾞがㄱ한ᄒ\u0301\u0345\u3099ﬁ🦊_ .")),
    max_size=24,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(ANY)
def test_any_text_is_split_and_folded_as_by_sqlite(fts, text):
    assume(not set(map(ord, text)) & set(range(0x19B0, 0x19CA)))
    assume(not any(map(mixed, query_words(text))))
    assert terms(fts, searchable(text, None)) == tokens(text)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(ANY)
@example("0:I:SUO")
def test_folding_again_changes_nothing(text):
    """Only variants may be added; which words are stop words depends on the others."""
    assert set(tokens(text)) <= set(tokens(searchable(text, None)))
    words = query_words(text)
    assert set(map(stem, words)) <= set(tokens(" ".join(words)))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@settings(deadline=None, max_examples=100)
@given(text=ANY)
@example(text="\u0414\uff9e")
@example(text="\ufd99")
def test_the_forms_of_a_text_meet(form, text):
    assert tokens(unicodedata.normalize(form, text)) == tokens(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ΆΛΦΑ", "αλφα"),
        ("ὀδυσσεύς", "ΟΔΥΣΣΕΥΣ"),
        ("Ёлка й", "елка и"),
        ("пиши\u0301", "пиши"),
        ("Łódź", "łodz"),
        ("Straße", "STRASSE"),
        ("ᲥᲐᲠᲗᲣᲚᲘ", "ქართული"),
        ("ᏣᎳᎩ", "ꮳꮃꭹ"),
        ("𞤀𞤁𞤂", "𞤢𞤣𞤤"),
        ("שָׁלוֹם", "שלום"),
        ("كَتَبَ", "كتب"),
        ("\uff46\uff4f\uff58 ﬁn", "FOX fin"),
        ("ｶﾞ", "ガ"),
        ("한국", unicodedata.normalize("NFD", "한국")),
    ],
)
def test_words_that_meet(fts, one, other):
    assert tokens(one) == tokens(other)
    assert terms(fts, searchable(one, None)) == terms(fts, searchable(other, None)) != []


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.text(st.characters(max_codepoint=127)))
@example("".join(map(chr, range(128))))
def test_words_of_ascii_are_runs_of_letters_and_digits_and_their_beginnings(text):
    words = re.findall("[a-z0-9]+", text.lower())
    found = tokens(text)
    assert found[: len(words)] == list(map(stem, words))
    assert set(found[len(words) :]) <= {stem(word[:5]) for word in words if len(word) > 5}
    assert query_words(text) == list(dict.fromkeys(words)) or STOP_WORDS & set(words)


def test_marks_that_spell_a_word_are_kept():
    assert tokens("が") != tokens("か")
    assert tokens("กิน") != tokens("กน")


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=30))
def test_a_text_holds_the_tokens_of_its_own_query(text):
    assert {stem(word) for word in query_words(text)} <= set(tokens(text))


ALL_SUFFIXES = re.compile(f"({'|'.join(SUFFIXES.split())}|s)+")


def regular(word):
    """Whether SQLite stems as the paper does: not what is all suffixes, nor a double y."""
    return not ALL_SUFFIXES.fullmatch(word) and "yy" not in word


def mixed(word):
    """Whether an English suffix hangs on a word of another script, which nobody stems alike."""
    return not word.isascii() and any("a" <= each <= "z" for each in word)


def terms(fts, text):
    fts.execute("DELETE FROM t")
    fts.execute("INSERT INTO t VALUES (?)", (text,))
    return [term for (term,) in fts.execute('SELECT term FROM terms ORDER BY "offset"')]


def test_index_text_takes_the_strings_in_order():
    value = {"b": "one", "a": ["two", {"key": "three", "n": 4, "t": True, "x": None}], "c": 1.5}
    assert index_text(value) == "one\ntwo\nthree"
    assert index_text("a\x00b") == "a b"
    assert index_text(42) == ""


def test_searchable_prefers_the_text_given():
    assert searchable({"a": "value"}, None) == "value"
    assert searchable({"a": "value"}, "text") == "text"
    assert searchable({"a": "value"}, "") == ""
    assert searchable("x", "a\x00b") == "a b"
    assert searchable("Mixed, CASE", None) == "Mixed, CASE"
    assert searchable(["Ü-Eier", "日\x00本"], None).split() == ["u", "eier", "日", "本"]


def test_segment_isolates_han_and_kana_only():
    assert segment("plain é Привет 한국어") == "plain é Привет 한국어"
    assert segment("東京タワ").split() == ["東", "東京", "京", "京タ", "タ", "タワ", "ワ"]
    assert segment("a漢b").split() == ["a", "漢", "b"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", []),
        ('"', []),
        ("__", []),
        ("c++", ["c"]),
        ("what's up?", ["up"]),
        ("foo-bar foo_baz", ["foo", "bar", "baz"]),
        ("Where did Café Ölüdeniz go?", ["cafe", "oludeniz", "go"]),
        ("the THE The", ["the"]),
        ("the who", ["the", "who"]),
        ("fox Fox FOX", ["fox"]),
        ("e\u0301te\u0301", ["ete"]),
        ("Straße ΦΉΛΞ", ["strasse", "φηλξ"]),
        ("мой Йод", ["мои", "иод", "мо"]),
        ("東京 tower", ["東", "東京", "京", "tower"]),
        ("NEAR(a b, 2)", ["near", "b", "2"]),
    ],
)
def test_query_words(query, words):
    assert query_words(query) == words


def test_stop_words_are_folded_words():
    assert all(query_words(word) == [word] for word in STOP_WORDS)
    assert {"what", "who", "when", "where", "which", "how", "did", "does", "the"} <= STOP_WORDS


def test_tokens_keep_repeats():
    assert tokens("The Runner and I, a runner") == ["the", "runner", "and", "i", "a", "runner"]


@pytest.mark.parametrize(
    ("query", "meanings"),
    [
        ("The foxes were running", [("fox",), ("run",)]),
        ("running foxes", [("run", "runni"), ("fox",)]),
        ("Wo sind meine Schlüssel und Katzen?", [("schlussel",), ("katzen", "katz")]),
        ("你喜欢东京的电影吗", [("喜",), ("欢",), ("东",), ("京",), ("电",), ("影",)]),
        ("the", [("the",)]),
        ("?", []),
    ],
)
def test_words_of_one_meaning_are_one(query, meanings):
    assert query_meanings(query) == meanings


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("Wir haben zwei Katzen und einen Hund", "Wo ist die Katze?"),
        ("Nous avons acheté des chevaux et les maisons", "Où est la maison que nous avons ?"),
        ("Mis hermanos viven en Lima", "¿Dónde vive mi hermano?"),
        ("मेरी किताबें मेज़ पर हैं", "मेरी किताब कहाँ है?"),
        ("الكتاب على الطاولة", "أين كتابي؟"),
        ("Мы купили новые книги", "Где моя книга?"),
        ("Anahtarlar komşuda duruyor", "Bizim anahtarlara ne oldu?"),
        ("Avaimet ovat naapurissa", "Missä naapurin avain on?"),
        ("გასაღები მეზობელთანაა", "ვის აქვს გასაღებები?"),
        ("সভাটি কলকাতায় হবে", "কলকাতার সভা কবে?"),
        ("다음 회의는 부산에서 열린다", "회의를 어디서 해?"),
        ("วันครบรอบแต่งงาน", "แต่งงานเมื่อไหร่"),
        ("ຂ້ອຍແພ້ຖົ່ວດິນ", "ແພ້ຫຍັງ"),
        ("ဓာတ်မတည့်ဘူး", "ဘာနဲ့ဓာတ်မတည့်"),
    ],
)
def test_stems_of_other_languages_meet(fts, document, query):
    wanted = query_words(query, beginnings=True)
    shared = set(tokens(document)) & set(map(stem, wanted))
    assert any(len(word) > 2 or not word.isascii() for word in shared)
    assert shared <= set(terms(fts, searchable(document, None)))


@pytest.mark.parametrize(
    "text",
    [
        "The Gulf war and the hat of a man",
        "Los Angeles has AI, MIT and UN offices",
        "Did he die in Las Vegas?",
        "pour me a ton of tea, son",
    ],
)
def test_english_gains_no_words(text):
    assert tokens(text) == [stem(word) for word in re.findall("[a-z0-9]+", text.lower())]
    assert searchable(text, None) == text


@pytest.mark.parametrize("query", ["Gulf war", "MIT", "son", "AI tools", "vitamin e", "comment"])
def test_english_words_are_no_stop_words_of_others(query):
    assert query_words(query) == query.lower().split()


def test_threads_do_not_mix_the_stems_of_their_words():
    words = ["verantwortungen", "gesellschaften", "möglichkeiten", "freundlichen", "arbeitete"]

    def stems(_=None):
        return [stemmed(word, "german", str) for word in words]

    alone, interval = stems(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(found == alone for found in threads.map(stems, range(200)))
    finally:
        sys.setswitchinterval(interval)
