#!/usr/bin/env python3
"""Profiles of one build, used for the next.

    stale_profiles.py [BEFORE AFTER]

For releases of SQLite, by two compilers and without names: the profile of the one is found
again in the other, the relink works, and touches hardly more pages than a relink by a
profile of its own.  With names of images (corpus.py): only these two."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
from harness import claim, require  # noqa: E402

DLL = "sqlite3.dll"
PAIRS = [(f"sqlite-{compiler}{before}", f"sqlite-{compiler}-3.51.1{kind}")
         for compiler in ("gcc", "clang")
         for before, kind in (("", ""), ("-stripped", "-stripped"))]
MATCHED_SHARE = 0.95       # of the touched bytes
PAGES_SHARE = 1.05         # of what a profile of its own brings
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
    """From one build to the next; what was matched."""
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
    return database, match


def is_refused(after, database, folder):
    """More is asked for than there is: nothing is written."""
    new = harness.sqlite_case(after)
    image = new.stage(folder / "refused") / DLL
    result = harness.tool("appulse-reorder", image, "--db", database, "-o",
                          folder / "out.dll", "--min-match", "100", expect=4)
    require(b"stale-profile" not in result.stdout and b"found again" in result.stderr,
            result.describe())
    require(not (folder / "out.dll").exists(), "an output is there")


def main():
    harness.prepare_wine()
    for before, after in [tuple(sys.argv[1:3])] if sys.argv[1:] else PAIRS:
        with harness.work_folder() as folder:
            found = None
            with claim(f"{before} to {after}: the profile is found again"):
                found = follow(before, after, folder)
            if found and found[1]["matched_bytes"] < found[1]["touched_bytes"]:
                with claim(f"{before} to {after}: --min-match 100 is refused"):
                    is_refused(after, found[0], folder)
    harness.finish()


if __name__ == "__main__":
    main()
