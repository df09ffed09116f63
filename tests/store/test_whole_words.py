"""Whole words: what an erasure by words takes, and what it leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.store.text import whole_words

CASES = [
    ("hi", "किताब", ["मेरी किताब मेज पर है", "किताबें नई हैं"], ["कल तब बात हुई", "बताना कि"]),
    ("hi", "घर", ["घर बड़ा है"], ["घरेलू काम", "घिर गया", "घूर रहा"]),
    ("hi", "लड़का", ["लड़के आए"], ["लड़ाई हुई"]),
    ("ta", "வீடு", ["என் வீடு பெரியது"], ["டவ வட", "வாடகை", "வடு"]),
    ("bn", "বাড়ি", ["আমার বাড়ি ঢাকায়"], ["বই পড়", "বড় ড", "বড়"]),
    ("bn", "মা", ["আমার মা ভালো"], ["মামা", "ম", "আমার মাথা"]),
    ("th", "แมว", ["ฉันรักแมวมาก", "แมว"], ["แม่วัว", "แมลง วัว"]),
    ("th", "มี", ["ฉันมีแมว"], ["มา", "มือ"]),
    ("th", "น้ำ", ["ดื่มน้ำชา"], ["นาทำ", "นำ"]),
    ("km", "ឆ្មា", ["ខ្ញុំមានឆ្មាមួយ"], ["ឆាម", "មឆ"]),
    ("my", "ကြောင်", ["ကျွန်တော် ကြောင်ချစ်တယ်"], ["ကရင", "ကောင်း ရင်"]),
    ("he", "שלום", ["אמר שָׁלוֹם לכולם"], ["שלומית ילדה", "של ום"]),
    ("he", "שָׁלוֹם", ["שלום לכולם"], ["של ום"]),
    ("ar", "كتاب", ["هذا كِتَابٌ جديد", "الكتاب جديد"], ["تاب", "كتب تاب"]),
    ("ar", "كِتَاب", ["هذا كتاب جديد"], ["ك تاب"]),
    ("vi", "bò", ["thịt bò ngon", "thit bo"], ["bơ", "bỏ đi", "bỏng ngô"]),
    ("vi", "bo", ["thịt bò", "bơ"], ["bánh"]),
    ("fr", "élève", ["les élèves", "ELEVE"], ["prix élevé"]),
    ("de", "Häuser", ["das Haus ist nicht groß, aber die Häuser"], ["Hausen"]),
    ("de", "Fußgänger", ["FUSSGÄNGER", "fussgänger", "ein Fußganger"], ["Füßgänger"]),
    ("de", "GRÜSSE", ["viele Grüße", "Gruße"], ["große"]),
    ("el", "οδος", ["η οδός", "ΟΔΟΣ"], ["οδηγός"]),
    ("el", "Γιώργος", ["ΓΙΩΡΓΟΣ", "γιωργος"], ["γεωργός"]),
    ("el", "Μαΐου", ["μαΐου".upper(), "μαιου"], ["μάγου"]),
    ("es", "canción", ["canciones", "cancion"], ["cansado"]),
    ("en", "cats", ["my cat sleeps", "Cats"], ["category"]),
    ("en", "the espresso machine", ["a machine for espresso"], ["espresso", "the machine"]),
    ("en", "the", ["the cat"], ["a cat"]),
    ("ko", "고양이", ["고양이를 키운다"], ["고양 이모", "들고양이"]),
    ("ko", "물", ["물 한 잔"], ["선물", "물건"]),
    ("zh", "猫咪", ["我的猫咪很可爱"], ["猫 和 咪", "咪猫"]),
    ("ja", "ガラス", ["ガラスの靴", "ｶﾞﾗｽの靴"], ["カラス"]),
    ("zh, en", "iPhone 手机", ["我的手机是iPhone"], ["手 iPhone 机", "手机"]),
]


def has(text, query):
    return whole_words(text).finder()(whole_words(query).asked())


@pytest.mark.parametrize(("language", "query", "go", "stay"), CASES)
def test_a_word_is_found_in_its_forms_and_not_in_fragments(language, query, go, stay):
    """Signs of vowels belong to the word, where text search compares the letters between them."""
    assert [text for text in go if not has(text, query)] == []
    assert [text for text in stay if has(text, query)] == []


WORDS = st.lists(st.sampled_from([text for _, query, go, _ in CASES for text in (query, *go)]))


@given(WORDS, WORDS, st.one_of(st.text(), WORDS.map(" ".join)))
def test_a_text_has_the_words_of_each_part(before, after, part):
    assert has(" ".join([*before, part, *after]), part)


@given(st.text(), st.text())
def test_any_text_is_read(text, query):
    assert has(text, query) in (True, False)
