#!/usr/bin/env python3
"""The prefetch plan of a relinked SQLite, and the sample loader that uses it under Wine.

    prefetches.py

The plan covers the pages that are predicted for the start, and nearly no others. The loader
reads just its ranges ahead, loads the DLL and gets the original's answer from it; with a plan
of another build, or of the original, it says so and loads the DLL all the same.
"""

import json
import sys

import completeness
import harness
from harness import claim, require

PAGE = 4096
DLL = "sqlite3.dll"
LOADER = "prefetch_loader.exe"
EXPORT = "sqlite3_libversion"


def make_plan(original, database, output, *arguments):
    """Also the C header, beside it."""
    header = output.with_name("prefetch_plan.h")
    report = harness.tool("appulse-reorder", "prefetch-plan", original, "--db", database, "-o",
                          output, "--c-header", header, "--force", "--json",
                          *arguments).json()
    return json.loads(output.read_text()), report


def build_loader(folder):
    """With the header that lies in the folder."""
    command = [harness.fixtures.GCC, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
               "-municode", "-I", folder, "-o", folder / LOADER,
               harness.SOURCE / "fixtures" / "prefetch_loader.c"]
    result = harness.run(command)
    require(result.code == 0 and not result.stderr, result.describe())


def load(folder):
    result = harness.run_wine(LOADER, [DLL, EXPORT], cwd=folder)
    require(result.code == 0, result.describe())
    *said, answer = result.stdout.decode().splitlines()
    return said, answer


def pages_of(ranges):
    return {page for begin, size in ranges
            for page in range(begin // PAGE, (begin + size) // PAGE)}


def check_plan(plan, report, simulated):
    """Every page of the prediction, in the sequence of the plan's promise."""
    layout = next(row for row in simulated["layouts"] if row["name"] == "relinked")
    predicted = {page // PAGE for run in layout["runs"] for page in run["touched_pages"]}
    covered = pages_of(plan["ranges"])
    harness.note(f"{len(plan['ranges'])} ranges, {len(covered)} pages, {len(predicted)} "
                 f"predicted, of {layout['code_pages']}")
    require(predicted <= covered, f"not covered: {sorted(predicted - covered)}")
    require(len(covered) == report["pages"] == sum(s for _, s in plan["ranges"]) // PAGE,
            "ranges overlap")
    require(len(predicted) == plan["needed_pages"], plan["needed_pages"])
    # All that is read for nothing lies in gaps that were asked for.
    require(len(covered - predicted) <= plan["gap_pages"] * len(predicted), "too much")
    require(len(covered) < layout["code_pages"], "the plan is all code")
    return predicted


def check_merging(original, database, folder, relinked, predicted):
    """Without gaps there are just the predicted pages; with large ones, one range."""
    exact, _ = make_plan(original, database, folder / "exact.json", "--gap", "0",
                         "--relinked", relinked)
    require(pages_of(exact["ranges"]) == predicted, "more or less than predicted")
    rows = completeness.sqlite3.connect(database).execute(
        "SELECT t.rva FROM touches t JOIN traces f ON f.id = t.trace JOIN images i"
        " ON i.id = f.image WHERE i.name = ? ORDER BY t.seq LIMIT 1", (DLL,)).fetchall()
    moved = harness.tool("appulse-reorder", "translate", "--map", f"{relinked}.map.json",
                         "--json", hex(rows[0][0])).json()["addresses"][0]["to"]
    begin, size = exact["ranges"][0]
    require(begin <= moved < begin + size, f"0x{begin:x} comes first, not 0x{moved:x}")
    one, _ = make_plan(original, database, folder / "one.json", "--gap", "65536",
                       "--relinked", relinked)
    require(len(one["ranges"]) == 1, one["ranges"])


def test(case, folder):
    comparison = completeness.Comparison(case, folder)
    comparison.record_probes()
    original, database = comparison.original / DLL, comparison.path
    home = case.stage(folder / "relinked")
    relinked = home / DLL
    harness.relink(original, relinked, "--db", database)
    simulated = harness.tool("appulse-reorder", "simulate", original, "--db", database,
                             "--relinked", relinked, "--json", "--details").json()
    with claim("the plan covers what is predicted"):
        plan, report = make_plan(original, database, home / "plan.json", "--relinked",
                                 relinked)
        predicted = check_plan(plan, report, simulated)
    with claim("gaps are filled as asked for, the first touch comes first"):
        check_merging(original, database, folder, relinked, predicted)
    with claim("the same plan is the same bytes"):
        make_plan(original, database, folder / "again.json", "--relinked", relinked)
        require(harness.same_bytes(home / "plan.json", folder / "again.json"), "JSON differs")
        require(harness.same_bytes(home / "prefetch_plan.h", folder / "prefetch_plan.h"),
                "header differs")
    with claim("the loader reads the plan's ranges ahead and loads the DLL"):
        build_loader(home)
        said, answer = load(home)
        expected = [f"read ahead: 0x{begin:x} 0x{size:x}" for begin, size in plan["ranges"]]
        if said != expected:
            harness.note(f"the loader says: {said}")
        missing = "not read ahead: this system has no PrefetchVirtualMemory"
        require(said == expected or said[0].startswith(missing), said)
    with claim("a plan of another build is noticed"):
        harness.shutil.copy(original, relinked)
        said, plain = load(home)
        require(said[0].startswith("not read ahead: the plan was made for another build"),
                said)
        require(answer == plain and EXPORT in plain, f"{answer}, {plain}")


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    harness.prepare_wine()
    case = harness.sqlite_case("sqlite-gcc")
    case.runs = [["start"]]
    with harness.work_folder() as folder, claim("the start is recorded and relinked"):
        test(case, folder)
    harness.finish()


if __name__ == "__main__":
    main()
