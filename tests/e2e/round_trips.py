#!/usr/bin/env python3
"""Instrument, profile, reorder: every step's program behaves as the original.

    round_trips.py fixtures | real
"""

import sqlite3
import sys

import harness
from harness import claim, require

PROFILE_RUNS = 3
GROWTH = 1.01


class Trip:
    def __init__(self, case, folder):
        self.case = case
        self.folder = folder
        self.original = case.stage(folder / "original")
        self.instrumented = case.stage(folder / "instrumented")
        self.relinked = case.stage(folder / "relinked")
        self.database = folder / "t.db"
        self.expected = case.outcome(self.original)

    def same(self, folder, what):
        harness.require_same(self.expected, self.case.outcome(folder), what)


def instrument(trip):
    for image in trip.case.images:
        harness.instrument(trip.original / image, trip.instrumented / image, trip.database)
    trip.same(trip.instrumented, "instrumented, without a trace")


def profile(trip):
    for _ in range(PROFILE_RUNS):
        reports = harness.profile(trip.database, trip.case, trip.instrumented)
        for report, expected in zip(reports, trip.expected):
            require(report["command_exit"]["code"] == expected.code,
                    f"instrumented: {report['command_exit']}, plain: {expected.code}")
    with sqlite3.connect(trip.database) as database:
        touched = dict(database.execute(
            "SELECT image, count(DISTINCT rva) FROM v_first_touch GROUP BY image"))
    for image in trip.case.images:
        require(touched.get(image), f"\"{image}\": nothing touched: {touched}")


def reorder(trip):
    for image in trip.case.images:
        report = harness.relink(trip.original / image, trip.relinked / image,
                                "--db", trip.database)
        require(report["output"]["moved_blocks"] > 0, f"nothing moved: {report}")
        require(report["output"]["size"] <= report["image"]["size"] * GROWTH + 4096,
                f"grew: {report}")
    trip.same(trip.relinked, "order first-touch")


def pages_of(trip, folder, image):
    """Code pages that the program touches, in each of its ways."""
    reports = harness.profile(trip.folder / "pages.db", trip.case, folder, "pages",
                              ["--image", folder / image])
    return [report["images"][0]["touched_pages"] for report in reports]


def pages(trip):
    for image in trip.case.images:
        before = pages_of(trip, trip.original, image)
        after = pages_of(trip, trip.relinked, image)
        harness.note(f"{trip.case.name} {image}: pages {before} before, {after} after")
        require(sum(after) <= sum(before), f"{image}: {before} before, {after} after")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "fixtures":
        cases = harness.fixture_cases()
    elif what == "real":
        cases = [*(harness.sqlite_case(build) for build in harness.SQLITE),
                 harness.libstdcxx_case(), harness.zlib_case()]
    else:
        sys.exit(__doc__)
    harness.prepare_wine()
    for case in cases:
        with harness.work_folder() as folder:
            trip = Trip(case, folder)
            with claim(f"{case.name}: round trip"):
                instrument(trip)
                profile(trip)
                reorder(trip)
                if what == "real":
                    pages(trip)
    harness.finish()


if __name__ == "__main__":
    main()
