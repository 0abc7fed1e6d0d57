#!/usr/bin/env python3
"""Real images for tests: fetched by exact version and hash, built, and cached.

    corpus.py NAME...     prints the path of each
    corpus.py --all       prints the path of every one
    corpus.py --list      prints the names

Names are those of manifest.txt (files taken as they are out of Debian's and npm's packages)
and the builds of SQLite below.  Packages come through apt-get and npm as they are set up on
the machine.  A file that an installed Debian package already put on this machine is taken
from there, if its hash is right.

Everything lands in one cache folder outside the repository, so that a second run needs no
network and no half minute of compiler: $APPULSE_CACHE, else $XDG_CACHE_HOME/appulse, else
~/.cache/appulse.  A fetched file is checked against its hash each time it is asked for.  A
build's folder is named after the hash of the source, of the compiler's version and of the
commands, so nothing stale is ever found there; it appears by one rename.
"""

import concurrent.futures
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

DEFINES = ["-DSQLITE_ENABLE_FTS5", "-DSQLITE_API=__declspec(dllexport)"]
LLD = ["clang", "--target=x86_64-w64-windows-gnu", "-fuse-ld=lld",
       "-L/usr/lib/gcc/x86_64-w64-mingw32/12-posix"]
COMPILERS = {"gcc": ["x86_64-w64-mingw32-gcc"], "clang": LLD}

# name: compiler, options of the compile, options of the link, source
BUILDS = {}
for _compiler in COMPILERS:
    BUILDS[f"sqlite-{_compiler}"] = (_compiler, ["-O2"], [], "sqlite3.c")
    BUILDS[f"sqlite-{_compiler}-stripped"] = (_compiler, ["-O2"], ["-s"], "sqlite3.c")
    # The release that came next, and the patch release before.
    for _release in ("3.51.1", "3.50.2"):
        BUILDS[f"sqlite-{_compiler}-{_release}-stripped"] = (
            _compiler, ["-O2"], ["-s"], f"sqlite-{_release}/sqlite3.c")
        BUILDS[f"sqlite-{_compiler}-{_release}"] = (
            _compiler, ["-O2"], [], f"sqlite-{_release}/sqlite3.c")
    for _level in ("O0", "Os", "O2"):
        # For the tests that run them: other code from the same source.
        BUILDS[f"sqlite-{_compiler}-{_level}-sections"] = (
            _compiler, [f"-{_level}", "-ffunction-sections"], ["-Wl,-Map,sqlite3.map"], "sqlite3.c")
# With a PDB and a linker map, as sqlite-clang-codeview/sqlite3.pdb and .../sqlite3.map.
BUILDS["sqlite-clang-codeview"] = (
    "clang", ["-O2", "-ffunction-sections", "-g", "-gcodeview", "-fdebug-compilation-dir=."],
    ["-Wl,--pdb=sqlite3.pdb", "-Wl,-Xlink=-pdbaltpath:sqlite3.pdb",
     "-Wl,-Xlink=-map:sqlite3.map"], "sqlite3.c")


class CorpusError(Exception):
    pass


def cache_folder():
    folder = os.environ.get("APPULSE_CACHE")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        folder = pathlib.Path(base) / "appulse"
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Lock:
    """One process at a time makes a thing; the others wait and find it made."""

    def __init__(self, name):
        self.path = cache_folder() / f"{name}.lock"

    def __enter__(self):
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise CorpusError(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def manifest():
    entries = {}
    for line in (HERE / "manifest.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *entry = line.split()
            entries[name] = entry
    return entries


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def members_of(archive, wanted):
    """The bytes of some files of an open tar archive, by name."""
    found = {}
    for member in archive:
        name = member.name.removeprefix("./")
        if member.isfile() and name in wanted:
            found[name] = archive.extractfile(member).read()
    return found


def download(kind, package, version, members):
    """The bytes of files of a package, by the names that they have in it."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "npm":
            run(["npm", "pack", "--ignore-scripts", f"{package}@{version}"], folder)
            with tarfile.open(next(pathlib.Path(folder).glob("*.tgz"))) as archive:
                return members_of(archive, members)
        run(["apt-get", "download", f"{package}={version}"], folder)
        deb = next(pathlib.Path(folder).glob("*.deb"))
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb],
                              stdout=subprocess.PIPE) as tar:
            with tarfile.open(fileobj=tar.stdout, mode="r|") as archive:
                found = members_of(archive, members)
            tar.stdout.close()
        return found


def kept_path(name, expected):
    return cache_folder() / "fetched" / expected / name


def keep(name, data, entry):
    _, package, version, member, expected = entry
    if data is None:
        raise CorpusError(f"{package} {version}: no \"{member}\" in the package")
    if sha256(data) != expected:
        raise CorpusError(f"{package} {version}: \"{member}\": SHA-256 is "
                          f"{sha256(data)} instead of {expected}")
    kept = kept_path(name, expected)
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_name(kept.name + ".new")
    temporary.write_bytes(data)
    temporary.replace(kept)
    return kept


def installed_file(kind, member, expected):
    """What a Debian package put on this machine, if it is the very file."""
    path = pathlib.Path("/") / member
    if kind == "deb" and path.exists():
        data = path.read_bytes()
        if sha256(data) == expected:
            return data
    return None


def fetch(name):
    entries = manifest()
    kind, package, version, member, expected = entries[name]
    kept = kept_path(name, expected)
    with Lock("fetch-" + package.replace("/", "+")):
        if kept.exists() and sha256(kept.read_bytes()) == expected:
            return kept
        data = installed_file(kind, member, expected)
        if data is not None:
            return keep(name, data, entries[name])
        # All that the manifest wants of a package is taken out of one download.
        together = {n: e for n, e in entries.items() if e[:3] == [kind, package, version]}
        found = download(kind, package, version, {e[3] for e in together.values()})
        keep(name, found.get(member), entries[name])
        for other, entry in together.items():
            keep(other, found.get(entry[3]), entry)
    return kept


def cached_folder(kind, commands, inputs):
    """A folder in the cache that holds what the commands make, run in order in it."""
    version = run([commands[0][0], "--version"], "/")
    hashes = [sha256(path.read_bytes()) for path in inputs]
    key = sha256(repr((commands, version, hashes)).encode())[:24]
    folder = cache_folder() / kind / key
    with Lock(f"{kind}-{key}"):
        if not folder.exists():
            print(f"== building {kind}, kept for the next time", file=sys.stderr)
            folder.parent.mkdir(exist_ok=True)
            work = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
            try:
                for path in inputs:
                    os.symlink(path, work / path.name)
                for command in commands:
                    run(command, work)
                work.chmod(0o755)
                work.rename(folder)
            except BaseException:
                shutil.rmtree(work)
                raise
    return folder


def sqlite(name):
    """Builds with relative names only: a path would get into the image."""
    compiler, compile_options, link_options, source = BUILDS[name]
    command = COMPILERS[compiler]
    objects = cached_folder("sqlite-objects", [
        command[:2 if compiler == "clang" else 1] + compile_options + DEFINES
        + ["-c", "sqlite3.c", "-o", "sqlite3.o"]], [fetch(source)])
    return cached_folder("sqlite", [
        command + ["-shared", "-o", "sqlite3.dll", "sqlite3.o",
                   "-Wl,--no-insert-timestamp"] + link_options],
        [objects / "sqlite3.o"]) / "sqlite3.dll"


def path_of(name):
    if name in BUILDS:
        return sqlite(name)
    if name in manifest():
        return fetch(name)
    build, _, member = name.partition("/")
    if build in BUILDS and (sqlite(build).parent / member).is_file():
        return sqlite(build).parent / member
    raise CorpusError(f"no image \"{name}\": --list tells all")


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([*manifest(), *BUILDS]))
        return 0
    names = [*manifest(), *BUILDS] if sys.argv[1:] == ["--all"] else sys.argv[1:]
    try:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            for path in workers.map(path_of, names):
                print(path)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
