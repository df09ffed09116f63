from __future__ import annotations

import re

import httpx2
import pytest

from locus_memory.cli.printing.plots import draw_bars
from locus_memory.evaluation.quality.documents import Table
from locus_memory.web import make_app
from locus_memory.web.pages import make_pages

TABLES = [
    Table("Accuracy", ["memory", ">accuracy"], [["<script>alert(1)</script>", "0.750"]]),
    Table("Runs", ["run"], [['" onload="x'], ["\x1b[31mred"]]),
]


@pytest.fixture
async def client(plain):
    pages = make_pages(TABLES, [draw_bars("By category", {"a</svg><script>": {"ours": 0.5}})])
    app = make_app(plain, pages=pages)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8484") as client,
    ):
        yield client


async def test_the_report_has_a_page_and_a_place_in_the_navigation(client):
    answer = await client.get("/answers")
    assert answer.status_code == 200
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=", answer.text)
    assert '<a href="/answers" aria-current="page">Answers</a>' in answer.text
    assert '<th scope="col" class="num">accuracy</th>' in answer.text
    assert '<td class="num">0.750</td>' in answer.text
    assert answer.text.count("<svg") == 1


async def test_what_the_journal_holds_is_escaped(client):
    text = (await client.get("/answers")).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\x1b" not in text


async def test_without_a_report_there_is_no_page(plain, browsing):
    async with browsing(plain) as browser:
        assert (await browser.get("/answers")).status_code == 404
        assert "/answers" not in await browser.page("/")
