"""The examples at the end of each command's help."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["EXAMPLES"]

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "": (
            "locus-memory demo",
            "locus-memory --url sqlite:./agent.db threads",
            "locus-memory show second-wind@12 --last 4",
        ),
        "demo": ("locus-memory demo", "locus-memory demo ./tried"),
        "doctor": ("locus-memory doctor", "locus-memory doctor --url redis:localhost:6379"),
        "verify": (
            "locus-memory verify",
            """locus-memory verify --after '["thread","trip"]' --json""",
        ),
        "chat": (
            "locus-memory chat --user ada",
            "locus-memory chat trip --user ada --model gpt-4o-mini",
            "echo 'Where do I live?' | locus-memory chat --user ada --scripted",
        ),
        "mcp": (
            "locus-memory mcp --user ada",
            "locus-memory mcp --http --port 8765 --tokens tokens.toml",
            "locus-memory mcp --tools knowledge-graph",
        ),
        "mcp import": ("locus-memory mcp import memory.jsonl --user ada",),
        "serve": (
            "locus-memory serve",
            "locus-memory serve --read-only --port 0 --url sqlite:./agent.db",
        ),
        "ui": (
            "locus-memory ui --url sqlite:./agent.db",
            "locus-memory ui --read-only --port 0 --url sqlite:./agent.db",
        ),
        "plug": (
            "locus-memory plug claude-code",
            "locus-memory plug codex --project --model openai:gpt-5-mini",
            "locus-memory plug gemini --remove",
        ),
        "presets": ("locus-memory presets --json",),
        "memories": (
            "locus-memory memories --user ada --sources",
            "locus-memory memories --all-users --query 'walnuts nuts'",
        ),
        "remember": (
            "locus-memory remember 'Ada is a vegetarian.' --user ada",
            "locus-memory remember 'Answer in French.' --type feedback --key language",
        ),
        "history": ("locus-memory history home --user noor",),
        "undo": ("locus-memory undo home --user noor",),
        "forget": (
            "locus-memory forget home --user noor",
            "locus-memory forget --query 'blood test' --user noor --threads --dry-run",
            "locus-memory forget --user noor --yes",
        ),
        "identity": (
            "locus-memory identity --user ada",
            "locus-memory identity add 'Always answer in English.' --user ada",
        ),
        "identity add": ("locus-memory identity add 'Call me Captain.' --user ada",),
        "identity remove": ("locus-memory identity remove 1f3a --user ada",),
        "notes": ("locus-memory notes --user ada --limit 5",),
        "episodes": ("locus-memory episodes --user ada --limit 5",),
        "recall": ("locus-memory recall 'how do we deploy?' --user ada",),
        "why": ("locus-memory why trip", "locus-memory why trip --limit 5 --json"),
        "ingest": (
            "locus-memory ingest conversations.json --user ada",
            "locus-memory ingest 'WhatsApp Chat with Bo.txt' --me Ada --user ada",
            "locus-memory ingest march.jsonl --memories --user noor --date 2026-03-01",
            "locus-memory ingest one.jsonl --threads --thread trip --embedder local",
            "locus-memory ingest facts.jsonl --format facts --user ada",
            "locus-memory ingest --format langgraph --from sqlite:old.db",
            "locus-memory ingest all.json --format mem0 --from history.db",
            "locus-memory ingest everything.zip",
        ),
        "consolidate": (
            "locus-memory consolidate --dry-run",
            "locus-memory consolidate --user ada --retention-days 90",
        ),
        "threads": (
            "locus-memory threads --prefix noor-",
            "locus-memory threads --after noor-trip --limit 20",
            "locus-memory threads rm what-if",
        ),
        "threads rm": (
            "locus-memory threads rm what-if --dry-run",
            "locus-memory threads rm what-if noor-trip --yes",
        ),
        "checkpoints": (
            "locus-memory checkpoints second-wind --limit 5",
            """locus-memory checkpoints second-wind --filter '{"turn": {"$gt": 50}}'""",
        ),
        "show": (
            "locus-memory show second-wind",
            "locus-memory show second-wind@12 --last 4",
            "locus-memory show second-wind@-2",
        ),
        "diff": (
            "locus-memory diff second-wind@10 second-wind@12",
            "locus-memory diff second-wind second-wind-by-scilly",
        ),
        "fork": ("locus-memory fork second-wind@40 what-if",),
        "prune": (
            "locus-memory prune what-if --keep-last 5 --dry-run",
            "locus-memory prune what-if --keep-last 5 --older-than 30d",
        ),
        "vacuum": (
            "locus-memory vacuum --older-than-days 90 --dry-run",
            "locus-memory vacuum --older-than-days 90 --yes",
        ),
        "stats": (
            "locus-memory stats",
            "locus-memory stats second-wind --deep",
            "locus-memory stats second-wind --plot growth.svg",
        ),
        "import": (
            "locus-memory import chats.json",
            "locus-memory export trip | locus-memory import - --thread copy --threads",
        ),
        "export": (
            "locus-memory export second-wind > second-wind.json",
            "locus-memory export second-wind@12 --format jsonl --bare",
            "locus-memory export --facts --user ada > facts.jsonl",
            "locus-memory export --format archive --output everything.zip --force",
        ),
        "ls": (
            "locus-memory ls",
            "locus-memory ls turns/second-wind --limit 20",
            "locus-memory ls turns/second-wind --after 000020",
        ),
        "get": ("locus-memory get turns/second-wind 000015",),
        "put": (
            """locus-memory put users/ada boat '{"name": "Petrel"}'""",
            "locus-memory put users/ada note 'Bring the charts.' --ttl 86400",
            "locus-memory put users/ada photo - < photo.json",
        ),
        "rm": (
            "locus-memory rm users/ada boat",
            "locus-memory rm users/ada --recursive --yes",
        ),
        "search": (
            "locus-memory search 'departure date'",
            "locus-memory search 'what am I allergic to' --user tess",
            "locus-memory search planks -n turns/second-wind --explain",
            """locus-memory search tides --filter '{"speaker": "Wren"}' --embedder local""",
        ),
        "migrate": (
            "locus-memory migrate --from sqlite:./locus.db --to postgresql://localhost/memory",
            "locus-memory migrate --from sqlite:./locus.db --to sqlite:./copy.db --verify",
        ),
        "backup": ("locus-memory backup ./locus-backup.db --force",),
        "restore": ("locus-memory restore ./locus-backup.db --url sqlite:./restored.db --force",),
        "reembed": ("locus-memory reembed turns/second-wind --embedder local --include-unmarked",),
        "docs": (
            "locus-memory docs",
            "locus-memory docs add ./handbook --prune",
            "locus-memory docs search 'How is an invoice paid?'",
        ),
        "docs add": (
            "locus-memory docs add ./handbook --prune",
            "locus-memory docs add guide.pdf --embedder local",
        ),
        "docs search": (
            "locus-memory docs search 'How is an invoice paid?' --min-score 0.3",
            """locus-memory docs search holidays --filter '{"team":"support"}' --json""",
        ),
        "docs ls": ("locus-memory docs ls --limit 20",),
        "docs rm": ("locus-memory docs rm guide.pdf", "locus-memory docs rm --all --yes"),
        "tree": ("locus-memory tree --user noor", "locus-memory tree --user noor --depth 4"),
        "cat": (
            "locus-memory cat memory://notes/boat",
            "locus-memory cat memory://notes --level overview",
        ),
        "find": (
            "locus-memory find 'allergic to walnuts' --user noor",
            "locus-memory find Berlin --user noor --under memory://memories --limit 3",
        ),
        "compact": ("locus-memory compact", "locus-memory compact --url sqlite:./agent.db --json"),
        "audit-deletion": ("locus-memory audit-deletion xylophonist --json",),
        "retain": (
            "locus-memory retain --namespace 'users/*/events' --keep-last 100 --dry-run",
            "locus-memory retain --threads --keep-last 50 --older-than 30d --dry-run",
        ),
        "rotate": (
            "locus-memory rotate --dry-run",
            "locus-memory rotate --accept-plain --url sqlite:./agent.db",
        ),
        "models": (
            "locus-memory models",
            "locus-memory models fetch local",
            "locus-memory models path local",
        ),
        "models list": ("locus-memory models list --json",),
        "models fetch": ("locus-memory models fetch local", "locus-memory models fetch all"),
        "models path": ("locus-memory models path cross-encoder",),
        "eval": (
            "locus-memory eval",
            "locus-memory eval locomo10.json --embedder local --plot recall.svg",
        ),
    }
)
