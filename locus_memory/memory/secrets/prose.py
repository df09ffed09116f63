"""Passwords, PINs, codes and keys stated in prose."""

from __future__ import annotations

import re
from typing import Final

from locus_memory._internal.lazy import compiled_later

__all__ = ["find_stated", "hints_at_secret", "names_secret", "requests_secret"]

# All patterns match folded text: lower case, no accents, one space between words.

# Words for a password; those used in compounds ("wlanpasswort") need not start a word.
_NAMES: Final = (
    r"(?:(?:(?<!1)p[a4@][s5$][s5$][ -]?w[o0]rd|passwort|kennwort|wachtwoord|contrasena)s?"
    r"|passphrases?"
    r"|(?<![^\W_])(?:pass[ -](?:phrase|code)|passcode|passwd|passwds|pwd|pw|mdp|mots? de passe"
    r"|code secret|codice segreto|parola d'ordine|parola chiave|senhas?|palavra[ -]passe"
    r"|geheimzahl|zugangscode|has[lł][oa]|has[lł]em|парол[ьяюе]м?|losenord(?:et)?|passord(?:et)?"
    r"|adgangskoden?|heslo|salasana|jelszo|sifre(?:m|si)?|parola(?:m)?"
    r"|(?:seed|recovery|secret) (?:phrase|words)|mat khau|κωδικοσ|पासवर्ड|סיסמה|סיסמא))"
    r"(?![^\W_])(?!'?s?[ _-]*(?:manage|reset|polic|field|hash|generat|strength|rule|protect|expir"
    r"|length|vault|require|hint|prompt|input|screen|form|box|page|less|check|valid|encrypt|auth"
    r"|dialog|crack|shar|security|storage|best|guess))"
)
_UNSPACED: Final = compiled_later(
    re.compile,
    r"密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|كلمة السر|كلمة المرور|كلمة سر|รหัสผ่าน",
)
# Words with other meanings too: the value must look like a key, or be a number.
_PIN: Final = r"(?:pin(?:[ -]?(?:code|number|nummer|nr))?|пин(?:-?код)?)"
_CODES: Final = compiled_later(
    re.compile,
    rf"(?<![^\W_])(?:{_PIN}|cvv2?|cvc2?|otp"
    r"|combination|(?:access|door|gate|alarm|entry|security|verification|confirmation|recovery|backup|unlock"
    r"|one[ -]time|2fa|mfa|safe|locker|lock|garage|sms"
    r"|auth\w{0,12}|secret|activation|login|key ?pad"
    r"|(?<!zip )(?:the|my|our)) codes?|pin-code|codigo|codice|turcode)(?![^\W_])",
)

_IS: Final = (
    r"(?:is|are|was|were|will be|has been|would be|remains|stays|ist|lautet|war|est|es|era|fue"
    r"|sera|jest|brzmi|heet|ar|er|je|это|есть|set to|changed to)"
)
_STILL: Final = (
    r"(?:(?: (?:still|now|just|currently|simply|always|actually|literally|probably|jetzt|noch"
    r"|immer|ahora|toujours|set to|teraz|теперь))*)"
)
# The words between the name and the verb: "for the guest network", "(at home)", "we use".
_FOR_WHAT: Final = (
    r"(?:,? (?:for|to|of|on|at|in|fur|zu[mr]?|vom|im|de[lr]?|du|para|per|voor|do|для|от|i|we|you)"
    r"(?: (?!(?:is|are|was|and|but|because|so|that|then|when|which)\b)[^\s.!?;:]+){1,6}?"
    r"| ?\([^)]{1,60}\))?"
)
# What follows a name up to its value.
_LINK: Final = compiled_later(
    re.compile,
    rf"{_FOR_WHAT}(?:'s | ?(?:=+\u203a?|:|-\u203a|\u2192|\u2014|\u2013| - ) ?"
    rf"| {_IS}{_STILL}(?: ?[:=])? )",
)
_LINK_UNSPACED: Final = compiled_later(re.compile, r" ?(?:[是为為はが는은이가:=]|هي|คือ) ?")

_Link = re.Match[str] | None

# English words for credentials, and for logging in with them.
_WAYS_IN: Final = compiled_later(
    re.compile,
    r"(?<![^\W_])(?:pass[ -]?(?:words?|phrases?|codes?|keys?)|pins?|credentials?|creds|tokens?"
    r"|api[ -]?keys?|secrets? (?:is|are|was)|(?:my|our|a|the) secrets?|wi-?fi|authenticat\w*"
    r"|(?:log|sign)(?:s|ged|ging|ed|ing)?[ -]?(?:in|on)(?:s|to)?|unlock(?:s|ed|ing)?)(?![^\W_])",
)

# What is asked for besides passwords, PINs and codes: keys, cards, answers to security questions.
_ASKED: Final = compiled_later(
    re.compile,
    r"(?<![^\W_])(?:(?:api|access|private|secret|licen[cs]e|ssh|encryption|signing|master|recovery)"
    r"[ _-]?(?:key|token)s?|token|credentials|zugangsdaten|identifiants|credenciales|credenziali"
    r"|(?:api|zugangs|zugriffs)[ -]?schlussel|cle (?:api|d'acces|privee)|clave (?:api|de acceso)"
    r"|(?:(?:credit|debit|bank|gift) ?)?card (?:number|no|details|code|digits)"
    r"|(?:credit|debit|bank) ?card|(?:kredit|bank|ec-?)kart\w*|kartennummer|carta di credito"
    r"|(?:tarjeta|carte|cartao) (?:de credit\w*|bancaire|de debito)"
    r"|numero de (?:la |su |tu )?(?:tarjeta|carte)"
    r"|creditcard|iban|(?:bank )?account number|kontonummer|social security|ssn|cvv2?|cvc2?"
    r"|(?:security|secret) (?:question|answer|word)|sicherheitsfrage"
    r"|question (?:de securite|secrete)"
    r"|pregunta de seguridad|domanda di sicurezza|maiden name|madchenname\w*|nom de jeune fille"
    r"|apellido de soltera|first (?:pet|school|car|teacher)(?:'s)?|номер карты|девичья фамилия)"
    r"(?![^\W_])|卡号|卡號|密钥|密鑰|安全问题|验证码|驗證碼|カード番号|認証コード"
    r"|카드 ?번호|인증 ?번호|رقم البطاقة|رمز",
)
_ORDERS: Final = compiled_later(
    re.compile,
    r"(?<![^\W_])(?:please|enter|type|tell|give|send|provide|share|confirm|verify|submit|supply"
    r"|state|need|repeat|bitte|gib|geben|nenne|nennen|sag|schick\w*|brauche|por favor"
    r"|introdu\w+|ingres\w+|dime|digame|escrib\w+|veuillez|entrez|entre|saisi\w+|donne\w*|dites|s'il|inserisc\w+|dimmi"
    r"|fornisc\w+|digite|informe|voer|geef|vul|podaj|wpisz|введите|укажите|назовите|сообщите|lutfen)"
    r"(?![^\W_])|请|請|输入|輸入|入力|教えて|ください|입력|알려|أدخل|ادخل",
)
_SENTENCE_END: Final = compiled_later(re.compile, r"(?<=[?\u061f\u3002])|(?<=[.!;])\s+")
_QUESTION_MARKS: Final = ("?", "\u061f", ";")

_STRONG: Final = compiled_later(re.compile, _NAMES)

# Words that describe a password without telling it.
_ABOUT: Final = frozenset(
    """
    a about again all also always an and any as at bad because been being better blank broken but
    by case changed complex compromised correct correctly different difficult easy empty encrypted
    expired expiring expiry exposed fine for forgotten from getting going gone good hard hashed
    have hidden how if important in incorrect insecure invalid kept known leaked least length less
    locked long lost masked mentioned missing more necessary needed never no none not now of ok
    old on only optional or out outdated over private protected really required reset rotated safe
    salted same saved secret secure sent set shared short so something stale stored strong such
    supposed that there this to too unchanged under unknown unsafe up updated used useless valid
    very visible weak what when where which who why with without working wrong written
    falsch nicht abgelaufen sicher unsicher zu sehr lang kurz geheim weg vergessen gespeichert
    incorrect oublie pas trop perdu faux incorrecta incorrecto olvidada muy demasiado no segura
    errata sbagliata scaduta troppo errada incorreta muito fout vergeten te niet verlopen
    bledne nieprawidlowe za неверный забыт не слишком устарел
    """.split()  # noqa: SIM905 - prose reads better than 170 quoted words
)
_ABOUT_UNSPACED: Final = compiled_later(
    re.compile, r"什么|什麼|何|吗|嗎|忘|错|錯|必要|違|変|变|不|很|太|长|安全|무엇|틀|\?"
)
_ANYTHING: Final = frozenset(
    """
    it that this what which here there where who how something anything one my the our your his
    her their used good for same
    """.split()  # noqa: SIM905 - the same
)
# Technical words of letters and digits.
_TERMS: Final = frozenset(
    """
    oauth2 base64 sha256 sha512 argon2 utf8 utf-8 http2 ipv4 ipv6 web3 gpt4 gpt-4 python3 python2
    covid19 covid-19 wpa2 wpa3 1password windows10 windows11
    """.split()  # noqa: SIM905 - the same
)
_QUANTITY: Final = compiled_later(
    re.compile,
    r"[$\u20ac\u00a3]?\d[\d.,:]*(?:st|nd|rd|th|[ap]m|k|kg|km|c?m|mm|[kmgt]b|m?s|h|x|%|-\w+)?s?"
    r"|v\d[\d.]*|\d{4}-\d\d-\d\d",
)
_NUMBER: Final = compiled_later(re.compile, r"\d(?:[ -]?\d){2,11}(?!\d)")
_SPELLED_NUMBER: Final = compiled_later(
    re.compile, r"(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[ ,-]*){3}"
)
_EDGES = ".,;:!?'\"`()[]{}*\u2018\u2019\u201c\u201d\u00ab\u00bb\u2039\u203a\u300c\u300d"
_QUOTES = ('"', "`", "\u201c", "\u00ab", "\u201e", "\u300c")
_AHEAD, _WORDS = 160, 8
_MADE_UP, _KEY_LENGTH = 4, 8


def names_secret(text: str) -> bool:
    """Return whether a folded text has a word for a password, a PIN or an access code."""
    lowered = text.casefold()
    return any(word.search(lowered) for word in (_STRONG, _UNSPACED, _CODES))


def requests_secret(text: str) -> bool:
    """Return whether a sentence of a folded text asks for a secret, or the last one orders it."""
    sentences = [said for each in _SENTENCE_END.split(text.casefold()) if (said := each.strip())]
    asked = [each for each in sentences if each.endswith(_QUESTION_MARKS)]
    asked += [each for each in sentences[-1:] if each.endswith(":") or _ORDERS.search(each)]
    return any(names_secret(each) or _ASKED.search(each) for each in asked)


def hints_at_secret(text: str) -> bool:
    """Return whether a folded text has a word for a secret, or for logging in with one."""
    return names_secret(text) or _WAYS_IN.search(text.casefold()) is not None


def find_stated(text: str) -> str | None:
    """Return the kind of secret that a folded, lower-case text states, or `None`."""
    for kind, words, tells in _STATED:
        links = _LINK_UNSPACED if words is _UNSPACED else _LINK
        for found in words.finditer(text):
            value = found.groupdict().get("value")
            rest = value or text[found.end() : found.end() + _AHEAD]
            link = None if value else links.match(rest)
            if tells(rest if link is None else rest[link.end() :], link):
                return kind
    return None


def _tells_value(rest: str, link: _Link) -> bool:
    if link is not None:
        return _is_value(rest.split()[:_WORDS], frozenset())
    return rest.startswith(" ") and any(map(_is_made_up, rest.split()[:1]))


def _tells_value_unspaced(rest: str, link: _Link) -> bool:
    if link is None:
        return bool(re.match(r" ?[a-z0-9]*\d", rest))
    return bool(rest.strip(_EDGES + " ")) and not _ABOUT_UNSPACED.match(rest)


def _is_new_value(rest: str, _: _Link) -> bool:
    return _is_value(rest.split()[:_WORDS], _ANYTHING)


def _tells_number(rest: str, _: _Link) -> bool:
    return bool(_NUMBER.match(rest.lstrip()) or _SPELLED_NUMBER.match(rest.lstrip()))


def _tells_key(rest: str, link: _Link) -> bool:
    words = rest.split()[: 1 if link is None else _WORDS]
    return any(len(word.strip(_EDGES)) >= _KEY_LENGTH and _is_made_up(word) for word in words) or (
        link is not None and bool(re.match(r"[\w.@-]+ ?/ ?[^\s/]+(?!\S)", rest))
    )


_STATED: Final = (
    ("password", _STRONG, _tells_value),
    ("password", _UNSPACED, _tells_value_unspaced),
    (
        "password",
        compiled_later(
            re.compile,
            rf"\b(?:chang|set|reset|updat|ma[dk]e)\w*\b[^.!?;]{{0,60}}?{_NAMES} to |\bhas[lł]o to ",
        ),
        _is_new_value,
    ),
    (
        "password",
        compiled_later(
            re.compile,
            r"(?<!\S)(?P<value>[^\s,;]+) (?:is|was|as|for|ist|als|est|es|jest|это)"
            r" (?:(?:the|my|our|your|his|her|their|a|das|mein|unser|mon|le|mi|la|il|mijn|het)"
            rf" )?(?:[^\s.!?;]+ ){{0,2}}?{_NAMES}",
        ),
        _is_new_value,
    ),
    (
        "password",
        compiled_later(re.compile, r"(?<![^\W_])pass ?[:=] ?(?P<value>\S)"),
        lambda *_: True,
    ),
    ("pin", compiled_later(re.compile, rf"(?<![^\W_]){_PIN}(?![^\W_])"), _tells_number),
    ("code", _CODES, _tells_number),
    ("api key", compiled_later(re.compile, r"(?<![^\W_])keys?(?![^\W_])"), _tells_key),
    (
        "token",
        compiled_later(
            re.compile,
            r"(?<![^\W_])(?:secrets?|tokens?|clave|cle|schlussel|chave|chiave|klucz|ключ"
            r"|credentials?|creds|log-?in|zugangsdaten)(?![^\W_])",
        ),
        _tells_key,
    ),
)
"""The kinds of secrets, each with the words for one, and whether what follows them, after a link
such as "is" or without one, is its value; a group `value` has it instead."""


def _is_value(words: list[str], fillers: frozenset[str]) -> bool:
    first = words[0].strip(_EDGES) if words else ""
    return (bool(first) and first not in _ABOUT | fillers) or any(map(_is_made_up, words))


def _is_made_up(word: str) -> bool:
    """Return whether a word looks invented: quoted, letters with digits or signs, or a number."""
    if word.startswith(_QUOTES):
        return True
    bare = word.strip(_EDGES)
    if len(bare) < _MADE_UP or bare in _TERMS:
        return False
    if bare.isdecimal():
        return True
    name, _, end = bare.rpartition(".")
    is_address = "@" in name[1:-1] and re.fullmatch(r"\w+", end)
    if _QUANTITY.fullmatch(bare) or "://" in bare or is_address:
        return False
    return bool(re.search(r"[^\W\d]", bare) and re.search(r"[\d!@#$%^*+=~]", bare))
