#!/usr/bin/env python3
"""A traced program behaves as the plain one, in every way that it is traced.

    traced.py fixtures | real | ways

fixtures and real: output, errors and exit code of each program, while it records, with its
EXE, its DLLs or all of them instrumented.  ways: what the options of appulse-instrument
leave out or name otherwise, folders for traces that are no use, and relinked images.
"""

import contextlib
import hashlib
import json
import sqlite3
import sys

import harness
from harness import claim, require

AGENT = "appulse-agent.dll"


class Traced:
    """A case with some of its images instrumented."""

    def __init__(self, case, where):
        self.case, self.where = case, where
        self.original = case.stage(where / "original")
        self.expected = case.outcome(self.original)
        self.database = where / "t.db"

    def instrument(self, name, images, *options):
        folder = self.case.stage(self.where / name)
        reports = [harness.tool("appulse-instrument", self.original / image, "-o",
                                folder / image, "--db", self.database, "--force", "--json",
                                *options).json() for image in images]
        return folder, reports

    def same(self, folder, traces, what):
        """Runs in all ways, recording into the folder `traces`."""
        found = self.case.outcome(folder, {"APPULSE_TRACE_DIR": str(traces)})
        harness.require_same(self.expected, found, what)

    def touched(self, *traces):
        """Names of functions in what these folders have, by image."""
        for folder in traces:
            harness.tool("appulse-profile", "import", "--db", self.database, folder)
        with contextlib.closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("SELECT image, function FROM v_first_touch").fetchall()
        return {image: {f for i, f in rows if i == image} for image in {i for i, _ in rows}}


def mixtures(case):
    """Which of its images are instrumented together."""
    libraries = [image for image in case.images if image != case.exe]
    yield "all", case.images
    if libraries and len(libraries) < len(case.images):
        yield "only the DLLs", libraries
        yield "only the EXE", [case.exe]


def records(case, where):
    traced = Traced(case, where)
    for number, (what, images) in enumerate(mixtures(case)):
        with claim(f"{case.name}: {what} instrumented"):
            traced.database = where / f"{number}.db"
            folder, _ = traced.instrument(str(number), images)
            traces = where / f"traces{number}"
            traces.mkdir()
            traced.same(folder, traces, what)
            files = list(traces.glob("*.aptrace"))
            require(len(files) >= len(images), f"only {len(files)} trace files")
            touched = traced.touched(traces)
            require(set(touched) == set(images), f"traces of {sorted(touched)}")


def without_use(traced):
    """Folders that no trace can be made in: the program runs on."""
    folder, _ = traced.instrument("plain", traced.case.images)
    (traced.where / "a file").touch()
    for what in ("missing", "a file", "missing/deeper"):
        with claim(f"{traced.case.name}: the folder for traces is {what}"):
            traced.same(folder, traced.where / what, what)
            require(not (traced.where / "missing").exists(), "somebody made the folder")
    with claim(f"{traced.case.name}: the folder for traces has no name"):
        found = traced.case.outcome(folder, {"APPULSE_TRACE_DIR": ""})
        harness.require_same(traced.expected, found, "empty variable")


def other_agent(traced):
    with claim(f"{traced.case.name}: another name for the agent"):
        folder, reports = traced.instrument("named", traced.case.images, "--agent-name",
                                            "Other-Agent.DLL")
        require((folder / "Other-Agent.DLL").exists() and not (folder / AGENT).exists(),
                f"{sorted(path.name for path in folder.iterdir())}")
        require(all(r["output"]["agent"] == str(folder / "Other-Agent.DLL")
                    for r in reports), f"{reports}")
        traces = traced.where / "named traces"
        traces.mkdir()
        traced.same(folder, traces, "--agent-name")
        require(list(traces.glob("*.aptrace")), "no traces")
    with claim(f"{traced.case.name}: the agent is needed"):
        (folder / "Other-Agent.DLL").unlink()
        found = traced.case.outcome(folder)
        require(all(result.code not in (0, None) for result in found),
                "the program runs without its agent")


def filtered(traced, only, skip):
    """Functions of both kinds are touched in a run that leaves none out."""
    image = traced.case.images[0]
    for number, (what, options, good) in enumerate([
            ("nothing left out", [], lambda names: only in names and skip in names),
            ("--only", ["--only", only], lambda names: names == {only}),
            ("--skip", ["--skip", skip], lambda names: only in names and skip not in names),
            ("--only and --skip", ["--only", "*", "--skip", only, "--skip", skip],
             lambda names: names and not names & {only, skip})]):
        with claim(f"{traced.case.name}: {what}"):
            traced.database = traced.where / f"{number}.db"
            folder, _ = traced.instrument(f"filtered{number}", [image], *options)
            traces = traced.where / f"filtered traces{number}"
            traces.mkdir()
            traced.same(folder, traces, what)
            names = traced.touched(traces)[image]
            require(good(names), f"touched: {sorted(map(str, names))}")


def back(map_path):
    """Translates RVAs of a relinked image into those of its original."""
    moves = json.loads(map_path.read_text())["moves"]

    def translate(rva):
        for old, new, size in moves:
            if new <= rva < new + size:
                return old + rva - new
        return rva
    return translate


def relinked(case, where, placement):
    """The probes of an image whose functions stand in random order see the same ones."""
    folder, database = case.stage(where / placement), where / f"{placement}.db"
    image, = case.images
    expected = case.outcome(where / "original")
    mixed = where / f"{placement}.dll"
    harness.relink(where / "original" / image, mixed, "--order", "random", "--seed", 5,
                   "--placement", placement)
    stories = {}
    for name, source in (("original", where / "original" / image), ("mixed", mixed)):
        harness.instrument(source, folder / image, database)
        traces = where / f"{placement} {name}"
        traces.mkdir()
        found = case.outcome(folder, {"APPULSE_TRACE_DIR": str(traces)})
        harness.require_same(expected, found, name)
        harness.tool("appulse-profile", "import", "--db", database, traces)
        with contextlib.closing(sqlite3.connect(database)) as connection:
            stories[name] = [row[0] for row in connection.execute(
                "SELECT rva FROM v_first_touch WHERE sha256 = ? ORDER BY run, seq",
                (hashlib.sha256(source.read_bytes()).hexdigest(),))]
    translate = back(where / f"{placement}.dll.map.json")
    found = [translate(rva) for rva in stories["mixed"]]
    require(found and found == stories["original"],
            f"{set(found) ^ set(stories['original'])}, or another order")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    harness.prepare_wine()
    if what == "ways":
        with harness.work_folder() as where:
            without_use(Traced(harness.fixture_case("cxx_exceptions", "gcc-O2"), where))
        with harness.work_folder() as where:
            other_agent(Traced(harness.fixture_case("exports", "clang-O2"), where))
        with harness.work_folder() as where:
            filtered(Traced(harness.fixture_case("function_pointers", "gcc-O2"), where),
                     "plus", "apply")
        for case in (harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang"),
                     harness.zlib_case()):
            case.runs = case.runs[:1]
            with harness.work_folder() as where:
                case.stage(where / "original")
                for placement in ("exchange", "append"):
                    with claim(f"{case.name}: relinked by {placement}, then instrumented"):
                        relinked(case, where, placement)
    elif what in ("fixtures", "real"):
        for case in harness.fixture_cases() if what == "fixtures" else harness.real_cases():
            with harness.work_folder() as where:
                records(case, where)
    else:
        sys.exit(__doc__)
    harness.finish()


if __name__ == "__main__":
    main()
