#!/usr/bin/env python3
"""Profiles of one build, used for the next.

    stale_profiles.py [BEFORE AFTER]

For releases of SQLite, by two compilers and without names: the profile of the one is found
again in the other, the relink works, and touches hardly more pages than a relink by a
profile of its own.  With names of images (corpus.py): only these two."""

import hashlib
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import corpus  # noqa: E402
import harness  # noqa: E402
from harness import claim, require  # noqa: E402

DLL = "sqlite3.dll"
PAIRS = [(f"sqlite-{compiler}{before}", f"sqlite-{compiler}-3.51.1{kind}")
         for compiler in ("gcc", "clang")
         for before, kind in (("", ""), ("-stripped", "-stripped"))]
MATCHED_SHARE = 0.95       # of the touched bytes
PAGES_SHARE = 1.05         # of what a profile of its own brings
RIGHT_SHARE = 0.98         # of the functions that are found again without names
START = 0                  # the way of the program that is a start-up


def recorded(case, folder):
    """A database with the profile of the start."""
    original = case.stage(folder / "original")
    traced = case.stage(folder / "traced")
    database = folder / "t.db"
    harness.instrument(original / DLL, traced / DLL, database)
    harness.profile_way(database, case, traced, START)
    return database


def start_pages(image, database, relinked):
    """Code pages that the recorded start touches on the relink, and in the best order."""
    layouts = harness.tool("appulse-reorder", "simulate", image, "--db", database, "--json",
                           "--order", "first-touch", "--relinked", relinked
                           ).json()["layouts"]
    pages = {layout["name"]: layout["pages"] for layout in layouts}
    return pages.pop("first-touch"), pages.popitem()[1]


def follow(before, after, folder):
    """From one build to the next; the database with the first one's profile."""
    old, new = harness.sqlite_case(before), harness.sqlite_case(after)
    database = recorded(old, folder / "before")
    fresh = recorded(new, folder / "after")
    original, staged = folder / "after" / "original", new.stage(folder / "relinked")
    report = harness.relink(original / DLL, staged / DLL, "--db", database)
    match = report["order"]["match"]
    share = match["matched_bytes"] / match["touched_bytes"]
    own, stale = start_pages(original / DLL, fresh, staged / DLL)
    harness.note(f"{before} to {after}: {match['matched_functions']} of "
                 f"{match['touched_functions']} functions, {100 * share:.1f} % of the bytes, "
                 f"by name {match['name']}, content {match['content']}, neighbours "
                 f"{match['neighbour']}; {stale} pages, {own} by its own profile")
    require(share >= MATCHED_SHARE, match)
    require(stale <= PAGES_SHARE * own, f"{stale} pages touched, {own} by its own profile")
    harness.require_same(new.outcome(original), new.outcome(staged), "behaves differently")
    return database


def names_of(build):
    """By RVA, from the symbols of the same code; what compilers append is cut off."""
    path = corpus.path_of(build)
    header = path.read_bytes()[:4096]
    optional = struct.unpack_from("<I", header, 0x3c)[0] + 24
    base = struct.unpack_from("<Q", header, optional + 24)[0]
    result = harness.run(["x86_64-w64-mingw32-nm", path])
    require(result.code == 0, result.describe())
    names = {}
    for line in result.stdout.decode().splitlines():
        address, kind, name = (line.split() + [""] * 3)[:3]
        if kind in ("t", "T"):
            names.setdefault(int(address, 16) - base, set()).add(name.split(".")[0])
    return names


def is_right(compiler, folder):
    """Functions found again without names bear the same name in the builds that have them."""
    builds = [f"sqlite-{compiler}", f"sqlite-{compiler}-3.51.1"]
    hashes, database = [], folder / "both.db"
    for build in builds:
        path = corpus.path_of(f"{build}-stripped")
        harness.instrument(path, folder / "traced.dll", database)
        hashes.append(hashlib.sha256(path.read_bytes()).hexdigest()[:12])
    before, after = (names_of(build) for build in builds)
    ways = {}
    for row in harness.tool("appulse-profile", "diff", "--db", database, "--json", *hashes
                            ).json()["functions"]:
        if row["before"] and row["after"]:
            old, new = before.get(row["before"]["rva"]), after.get(row["after"]["rva"])
            if old and new:
                ways.setdefault(row["way"], []).append(bool(old & new))
    harness.note(f"{compiler}: " + ", ".join(
        f"by {way} {sum(right)} of {len(right)} right" for way, right in sorted(ways.items())))
    right = sum(ways.values(), [])
    require(len(right) > 1500 and sum(right) >= RIGHT_SHARE * len(right),
            f"{sum(right)} of {len(right)} right")


def is_refused(database, folder):
    """The profile of SQLite for another library: nothing is written."""
    result = harness.tool("appulse-reorder", corpus.path_of("zlib1.dll"), "--db", database,
                          "--profile-of", DLL, "-o", folder / "out.dll", "--json", expect=4)
    require(result.json()["status"] == "stale-profile", result.describe())
    require(not (folder / "out.dll").exists(), "an output is there")


def main():
    harness.prepare_wine()
    for before, after in [tuple(sys.argv[1:3])] if sys.argv[1:] else PAIRS:
        with harness.work_folder() as folder:
            database = None
            with claim(f"{before} to {after}: the profile is found again"):
                database = follow(before, after, folder)
            if database:
                with claim(f"{before}: its profile is refused for another library"):
                    is_refused(database, folder)
    for compiler in ("gcc", "clang") if not sys.argv[1:] else ():
        with harness.work_folder() as folder:
            with claim(f"{compiler}: without names, the right functions are found again"):
                is_right(compiler, folder)
    harness.finish()


if __name__ == "__main__":
    main()
