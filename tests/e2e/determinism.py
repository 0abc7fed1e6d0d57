#!/usr/bin/env python3
"""Each tool run twice on one input gives the same bytes: images, maps, and what it writes
into the database about the image.  The second run has other folders, another moment,
another locale and time zone, another umask, and names files by other paths."""

import contextlib
import os
import pathlib
import sqlite3

import harness
from harness import claim, require

RELINKS = {
    "original": ["--order", "original"],
    "random, exchange": ["--order", "random", "--seed", "7"],
    "random, append": ["--order", "random", "--seed", "7", "--placement", "append"],
    "aligned": ["--order", "random", "--seed", "7", "--file-alignment", "4096"],
}


def functions(database):
    with sqlite3.connect(database) as connection:
        return connection.execute(
            "SELECT i.sha256, f.rva, f.size, f.name, f.movable, f.pins FROM functions f"
            " JOIN images i ON f.image = i.id ORDER BY 1, 2").fetchall()


def folders(case, where):
    return [case.stage(where / name) for name in ("one", "the other")]


@contextlib.contextmanager
def elsewhere(folder):
    """As another user on another machine would have it."""
    saved = dict(os.environ), os.getcwd(), os.umask(0o077)
    os.environ |= {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu",
                   "HOME": str(folder), "USER": "somebody", "COLUMNS": "40"}
    os.chdir(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= saved[0]
        os.chdir(saved[1])
        os.umask(saved[2])


def twice(pair, job):
    """Does a job in both folders, in the second one as from elsewhere; it gets the folder's
    name."""
    job(pair[0])
    with elsewhere(pair[1]):
        job(pathlib.Path("."))


def same_files(first, second, names):
    for name in names:
        require(harness.same_bytes(first / name, second / name), f"\"{name}\" differs")


def instruments(case, where):
    def job(folder):
        for image in case.images:
            harness.instrument(where / "original" / image, folder / image,
                               folder / "t.db")

    pair = folders(case, where)
    twice(pair, job)
    same_files(*pair, [path.name for path in pair[0].iterdir()
                       if path.suffix in (".dll", ".exe")])
    found = [functions(folder / "t.db") for folder in pair]
    require(found[0] and found[0] == found[1], "the databases tell different functions")
    return pair[0]


def relinks(case, where, arguments):
    pair = folders(case, where)
    twice(pair, lambda folder: harness.relink_all(case, where / "original", folder,
                                                  *arguments))
    same_files(*pair, [*case.images, *(f"{image}.map.json" for image in case.images)])


def first_touch(case, where, instrumented):
    """From one profile: threads may touch in another order in the next one."""
    harness.profile(instrumented / "t.db", case, instrumented)
    relinks(case, where, ["--db", instrumented / "t.db"])


def main():
    harness.prepare_wine()
    cases = [harness.fixture_case(name, "gcc-O2") for name in
             ("cxx_exceptions", "exports", "itself", "jump_tables", "tls_callbacks")]
    cases += [harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang"),
              harness.libstdcxx_case(), harness.zlib_case()]
    for case in cases:
        with harness.work_folder() as where:
            case.stage(where / "original")
            for what, arguments in RELINKS.items():
                with claim(f"{case.name}: {what}"):
                    relinks(case, where, arguments)
            with claim(f"{case.name}: instrumented, first touch"):
                first_touch(case, where, instruments(case, where))
    harness.finish()


if __name__ == "__main__":
    main()
