#!/usr/bin/env python3
"""Wine's own DLLs and programs, by mingw GCC.

    wine_dlls.py statistics      every one relinked in random order and verified; how much of
                                 them may move
    wine_dlls.py boot [COUNT]    a private copy of Wine whose kernelbase, user32, ole32 and
                                 msvcrt stand in COUNT random orders makes a prefix, which
                                 registers all of its classes, and works in it

The copy is a tree of links with the shape of the installed one: Wine finds its DLLs from
where its loader stands.  That the copy's are the ones that run is shown by breaking each.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
from harness import check, claim, require  # noqa: E402

import corpus  # noqa: E402

LIBRARY = pathlib.Path("usr/lib/x86_64-linux-gnu/wine")
DLLS = LIBRARY / "x86_64-windows"
SHUFFLED = ["kernelbase.dll", "user32.dll", "ole32.dll", "msvcrt.dll"]
SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
BROKEN_SECONDS = 40
JOBS = [
    ["wineboot", "-i"],
    ["wine_workload.exe"],
    ["cscript", "//nologo", "wine_script.js"],
    ["reg", "query", "HKLM\\Software\\Classes\\CLSID", "/s"],
    ["reg", "query", "HKLM\\Software\\Classes\\Interface", "/s"],
    ["cmd", "/c", "for /l %i in (1,1,9) do @echo %i & set /a %i*14 & if exist x%i echo no"],
    ["cmd", "/c", "dir /b C:\\windows & type wine_script.js | find \"key\" & ver"],
    ["no_such_program.exe"],
]
# Each export has a stub for Wine's +relay, which is found by its place.
STUBS = "position-indexed"
LEAST_FILES, LEAST_MOVABLE = 600, 0.99


# ---- statistics -------------------------------------------------------------------------

def examine(path):
    result = harness.run([harness.tool_path("appulse-reorder"), path, "--dry-run", "--order",
                          "random", "--seed", "1", "--json", "--quiet"], seconds=600)
    try:
        return path.name, result, json.loads(result.stdout)
    except ValueError:
        return path.name, result, None


def statistics():
    paths = sorted(path for path in (pathlib.Path("/") / DLLS).iterdir() if path.is_file()
                   and path.read_bytes()[:2] == b"MZ")
    totals, pins, stubs = (collections.Counter() for _ in range(3))
    refused = {}
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for name, result, report in workers.map(examine, paths):
            if result.code == 0 and report:
                for key in ("functions", "movable_functions", "bytes", "movable_bytes"):
                    totals[key] += report["image"][key]
                for pin in report["image"]["pins"]:
                    pins[pin["reason"]] += pin["functions"]
                    if pin["reason"] == STUBS:
                        for part in ("functions", "bytes"):
                            stubs[part] += pin[part]
            elif result.code == 3 and report:
                refused[name] = report["error"]["message"]
            else:
                failed.append(result.describe())
    check("Wine's files: relinked and verified, or refused", not failed,
          "\n".join(failed[:5]))
    check("Wine's files: enough of them", len(paths) >= LEAST_FILES, f"{len(paths)} files")
    harness.note(f"{len(paths)} files, {len(refused)} refused: "
                 f"{collections.Counter(refused.values())}")
    for part in ("functions", "bytes"):
        rest = totals[part] - stubs[part]
        share = totals[f"movable_{part}"] / max(rest, 1)
        harness.note(f"{totals[part]} {part}, {stubs[part]} of them in stubs, "
                     f"{share:.2%} of the rest movable")
        check(f"Wine's files: {part} that may move", share >= LEAST_MOVABLE, f"{share:.2%}")
    harness.note(f"pinned: {pins}")


# ---- a private Wine ---------------------------------------------------------------------

class PrivateWine:
    """A copy in `folder`, with its prefixes."""

    def __init__(self, folder):
        self.root, self.prefixes = folder / "root", folder
        (self.root / LIBRARY).mkdir(parents=True)
        for name in ("usr/lib/wine", LIBRARY / "x86_64-unix"):
            shutil.copytree(pathlib.Path("/") / name, self.root / name)
        (self.root / DLLS).mkdir()
        for path in (pathlib.Path("/") / DLLS).iterdir():
            (self.root / DLLS / path.name).symlink_to(path)
        (self.root / "usr/share").mkdir()
        (self.root / "usr/share/wine").symlink_to("/usr/share/wine")

    def put(self, name, make):
        """make(target) writes the DLL that stands in for Wine's."""
        target = self.root / DLLS / name
        target.unlink(missing_ok=True)
        make(target)

    def restore(self, name):
        self.put(name, lambda target: target.symlink_to(pathlib.Path("/") / DLLS / name))

    def environment(self, prefix):
        programs = self.root / "usr/lib/wine"
        return harness.wine_environment() | {
            "WINEPREFIX": str(self.prefixes / prefix), "WINELOADER": str(programs / "wine64"),
            "WINESERVER": str(programs / "wineserver64")}

    def run(self, prefix, *words, seconds=300):
        return harness.run([self.root / "usr/lib/wine/wine64", *words],
                           cwd=self.prefixes, environment=self.environment(prefix),
                           seconds=seconds)

    def end(self, prefix):
        harness.run([self.root / "usr/lib/wine/wineserver64", "-k"],
                    environment=self.environment(prefix))

    def work(self, prefix):
        """Makes a prefix and does all kinds of things in it."""
        try:
            results = [self.run(prefix, *words) for words in JOBS]
        finally:
            self.end(prefix)
        for result in results:
            result.stdout = result.stdout.replace(prefix.encode(), b"PREFIX")
            result.stderr = result.stderr.replace(prefix.encode(), b"PREFIX")
        return results

    def breaks(self, prefix, expected):
        """Whether something differs in a prefix that was made before."""
        try:
            for words, right in list(zip(JOBS, expected))[1:3]:
                found = self.run(prefix, *words, seconds=BROKEN_SECONDS)
                if (found.stdout, found.code) != (right.stdout, right.code):
                    return True
            return False
        finally:
            self.end(prefix)


def stage(folder):
    built = harness.BUILD / "fixtures" / "wine" / "gcc-O2" / "wine.exe"
    shutil.copy(built, folder / "wine_workload.exe")
    shutil.copy(SCRIPTS / "wine_script.js", folder)


def require_good(results):
    boot, workload, script, *_, missing = results
    require(boot.code == 0, boot.describe())
    require(workload.code == 0 and b"\ndone" in workload.stdout.replace(b"\r", b""),
            workload.describe())
    require(script.code == 7 and b"26.12.2021" in script.stdout, script.describe())
    require(results[3].stdout.count(b"InprocServer32") > 500, results[3].describe())
    require(missing.code not in (0, None), missing.describe())


def shuffle(wine, seed, placement):
    for name in SHUFFLED:
        wine.put(name, lambda target, name=name: harness.relink(
            corpus.path_of(f"wine/{name}"), target, "--order", "random", "--seed", seed,
            "--placement", placement))


def boot(count):
    with harness.work_folder() as folder:
        wine = PrivateWine(folder)
        stage(folder)
        expected = None
        with claim("private Wine: works as it came"):
            expected = wine.work("plain0")
            require_good(expected)
        if not expected:
            return
        for name in SHUFFLED:
            wine.put(name, lambda target, name=name: harness.break_code(
                corpus.path_of(f"wine/{name}"), target, 0.25, 0))
            check(f"private Wine: notices a broken {name}", wine.breaks("plain0", expected))
            wine.restore(name)
        for seed in harness.seeds(count):
            for placement in ("exchange", "append"):
                what = f"order random, seed {seed}, {placement}"
                with claim(f"private Wine: {', '.join(SHUFFLED)}: {what}"):
                    shuffle(wine, seed, placement)
                    harness.require_same(expected, wine.work(f"{seed}{placement}"), what)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "statistics":
        statistics()
    elif what == "boot":
        boot(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    else:
        sys.exit(__doc__)
    harness.finish()


if __name__ == "__main__":
    main()
