from __future__ import annotations

import uuid
from datetime import datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus_memory.memory.secrets.detection import (
    find_secret,
    mentions_secret,
)
from locus_memory.memory.secrets.numbers import passes_luhn

SECRETS = {
    "password": [
        "My password is hunter2",
        "my password is swordfish.",
        "pwd: x",
        "The wifi passphrase is purple horse battery staple",
        "The Wi-Fi password for the guest network is bluefish",
        "password (the one at home) is bluefish",
        "the password we use is bluefish",
        "I changed my password to bluefish yesterday",
        "swordfish is my email password",
        "Please use hunter2 as the password",
        "DB_PASSWORD=s3cr",
        "password hunter2",
        "My password is still hunter2",
        'the password is not "a", it is "b"',
        "user: ada pass: bluefish",
        "my passcode\u2019s bluefish",
        "My p@ssw0rd is bluefish",
        "The seed phrase is apple banana cherry",
        "Mein Passwort ist Sommer",
        "Das WLAN-Kennwort lautet Kartoffel",
        "mon mot de passe est soleil",
        "Mi contrase\u00f1a es girasol",
        "mi contrasen\u0303a es girasol",
        "La mia password \u00e8 girasole",
        "A minha senha \u00e9 girassol",
        "mijn wachtwoord is zonnebloem",
        "Moje has\u0142o to s\u0142onecznik",
        "твой новый пароль - ромашка",
        "Мой пароль: котик",
        "пароль — котик",
        "我的密码是向日葵",
        "密碼\uff1aabc",
        "パスワードはひまわりです",
        "내 비밀번호는 해바라기",
        "postgresql://ada:hunter2@db.example.com/app",
        "Authorization: Basic YWRhOmh1bnRlcjI=",
        "My \uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44 is hunter",
        "my pass\u200bword is hunter",
        "my pass\nword is hunter",
        "my password\nis\nhunter",
        "my p\u0332a\u0332ssword is hunter",
        "my p\u0430ssw\u043erd is hunter",
        "\U0001d429\U0001d41a\U0001d42c\U0001d42c\U0001d430\U0001d428\U0001d42b\U0001d41d: hunter",
    ],
    "pin": [
        "My PIN is 4711",
        "the pin code for my card is 0000",
        "PIN 4711",
        "my pin is one two three four",
        "мой пин-код: 4711",
        "my PIN is \u0664\u0667\u0661\u0661",
    ],
    "code": ["The alarm code is 4711", "the combination is 12-34-56", "my code is 471199"],
    "api key": [
        "sk-" + "abcDEF0123456789abcd",
        "use sk-ant-" + "api03-abcdefghij0123456789",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "key AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
        "my api key is qwertz1234",
        "access_key: wJalrXUt2nFEMI",
        "the signing-key is ab12cd34ef",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "the API key is d41d8cd98f00b204e9800998ecf8427e",
        "sk-\u200babcDEF0123456789abcd",
        "sk-abcDEF01\n23456789abcd",
        "\uff53\uff4b-abcDEF0123456789abcd",
    ],
    "token": [
        "ghp_" + "abcdefghijklmnopqrst0123456789abcdef",
        "github_pat_" + "11ABCDEFG0abcdefghijklmnop",
        "glpat-" + "abcdefghij0123456789",
        "xoxb-" + "1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "Bearer abcdefghijklmnop1234",
        "https://example.com/x?access_token=abcdef123",
        "https://hooks.slack.com/services/T000/B000/abcdef",
        "login is admin / hunter2x",
        "MY_SECRET_TOKEN=ab12cd34ef",
        "8f3kd9x0q2lz7m1v5c6b",
    ],
    "private key": [
        "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE",
        "-----BEGIN " + "PRIVATE KEY-----",
    ],
    "card number": [
        "4111 1111 1111 1111",
        "My card is 4111-1111-1111-1111, 12/27 123",
        "4111111111111111",
        "378282246310005",
        "4\u200b111111111111111",
        "4111\n1111\n1111\n1111",
        "\uff14\uff11\uff11\uff11 1111 1111 1111",
        "\u0664\u0661\u0661\u0661 \u0661\u0661\u0661\u0661 1111 1111",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    ],
    "bank account": [
        "My IBAN is DE89 3704 0044 0532 0130 00 at the bank",
        "gb29nwbk60161331926819",
    ],
    "social security number": ["my SSN is 078-05-1120", "078 05 1120"],
}

HARMLESS = [
    "My name is Ada and I live in Berlin.",
    "I forgot my password manager's name",
    "My password manager is 1Password",
    "I forgot my password and now everything is broken",
    "my password is too hard to remember",
    "the password is wrong",
    "What is my password?",
    "I need to reset the password to my account",
    "I put my password on a sticky note",
    "We are building a password reset flow with OAuth2",
    "The password field must have 8 characters",
    "Mein Passwort ist abgelaufen",
    "La password e il nome utente",
    "我忘了密码",
    "密码是什么\uff1f",
    "パスワードを忘れました",
    "Please pin the message",
    "Pin it to the wall, number 4",
    "The secret is patience",
    "The key is under the mat",
    "The key date is 2026-01-05",
    "my zip code is 90210",
    "the error code is 404",
    "The token limit is 8192 tokens",
    "Max tokens: 4096",
    "Call me at +49 1512 3456789 or 030 1234567",
    "+44 20 7946 0958",
    "(555) 123-4567",
    "Order number 112-3456789-1234567",
    "The invoice is 2026-0001234",
    "2026-11-22T13:45:10.123456+00:00",
    "from 2024-05-06 to 2024-05-07",
    "commit 2f29f48a9d6c1e0b7f3a8d5c4b2e1f0a9d8c7b6a",
    "d41d8cd98f00b204e9800998ecf8427e",
    "123e4567-e89b-12d3-a456-426614174000",
    "The docs are at https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2/edit",
    "https://example.com/search?q=hello&page=2",
    "src/locus_memory/memory/extract_messages.py",
    "Users/Ada/Documents2024/Report-Final.pdf",
    "AbstractSingletonProxyFactoryBean2026",
    "supercalifragilisticexpialidocious",
    "----------------------------------------",
    "ISBN 978-3-16-148410-0",
    "Bearer of good news",
    "1764000000000",
    "Password-less login is what we want",
    "密码 is required",
    "비밀번호 is wrong",
    "パスワード is optional",
    "password は必須項目です",
    "パスワード — forgotten",
    "비밀번호 for work is unknown",
    "turkey is ab12cd34ef",
    "",
]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts]
)
def test_a_secret_is_found_and_named(kind, text):
    assert find_secret(text) == kind
    assert find_secret(f"Oh well.\n{text}\n\nThanks!") is not None


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret(text):
    assert find_secret(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My Passwort is long", True),
        ("I log in at nine", True),
        ("The secret is swordfish", True),
        ("their credentials", True),
        ("Fo\u200brget the PIN", True),
        ("I pinned it to the login\u00adpage", False),
        ("The keys are under the mat", False),
    ],
)
def test_a_word_for_a_secret(text, expected):
    assert mentions_secret(text) is expected


def luhn_number(body: str) -> str:
    return next(f"{body}{digit}" for digit in range(10) if passes_luhn(f"{body}{digit}"))


CARDS = st.from_regex(
    r"[2-6][0-9]{11,17}", fullmatch=True, alphabet=st.characters(max_codepoint=127)
)


@pytest.mark.slow
@given(
    CARDS.map(luhn_number), st.sampled_from(["", " ", "-", "\u2011", "\u200b", "\n", "\u00a0", "."])
)
@settings(deadline=None, max_examples=100)
def test_cards_are_found_however_they_are_grouped(number, separator):
    groups = [number[start : start + 4] for start in range(0, len(number), 4)]
    assert find_secret(f"It is {separator.join(groups)} ok") is not None
    assert find_secret(separator.join(number)) is not None


@pytest.mark.slow
@given(CARDS.map(luhn_number))
@settings(deadline=None, max_examples=50)
def test_a_wrong_check_digit_is_no_card(number):
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert not passes_luhn(wrong)
    assert find_secret(wrong) != "card number"


@pytest.mark.slow
@given(st.uuids(), st.datetimes())
@example(uuid.UUID("74a9fa7c-ae07-e637-43b1-a84f9dfaec79"), datetime(2000, 1, 1))  # noqa: DTZ001
@example(uuid.UUID("ae07e637-43b1-a84f-9dfa-ec7974a9fa7c"), datetime(2000, 1, 1))  # noqa: DTZ001
@settings(deadline=None, max_examples=100)
def test_ids_and_moments_are_no_secrets(identifier, moment):
    assert find_secret(f"run {identifier} at {moment.isoformat()}") is None
    assert find_secret(uuid.UUID(int=identifier.int).hex) is None


@pytest.mark.slow
@given(st.text(max_size=200))
@settings(deadline=None, max_examples=100)
def test_any_text_is_judged(text):
    assert find_secret(text) in {None, *SECRETS}


@pytest.mark.slow
def test_both_ends_of_a_long_text_are_looked_at():
    for text in ("hello " * 3000, "\u00fc " * 100_000, "_" * 300_000):
        assert find_secret(text) is None
        assert find_secret(f"My password is hunter2. {text}") == "password"
        assert find_secret(f"{text} My password is hunter2.") == "password"


def test_a_card_among_thousands_of_numbers():
    numbers = "1234 " * 3000
    assert find_secret(numbers) is None
    assert find_secret(f"{numbers}4111 1111 1111 1111") == "card number"
