#!/usr/bin/env python3
"""Relinked images behave as the originals.

    relinks.py identity          --order original: everything taken apart and put together
    relinks.py fixtures          random orders of the fixtures' images, both placements
    relinks.py NAME [COUNT]      COUNT random orders in each placement of a real image:
                                 sqlite, sqlite-more, libstdc++, zlib; fixed: some of these
                                 without base relocations

The seeds are 1, 2, ..., or begin with $APPULSE_SEED.
"""

import sys

import harness
from harness import claim, require

PLACEMENTS = ("exchange", "append")


class Subject:
    """A case, staged, and what it does unchanged."""

    def __init__(self, case, folder):
        self.case = case
        self.original = case.stage(folder / "original")
        self.relinked = case.stage(folder / "relinked")
        self.expected = case.outcome(self.original)

    def behaves(self, what, *arguments):
        reports = harness.relink_all(self.case, self.original, self.relinked, *arguments)
        harness.require_same(self.expected, self.case.outcome(self.relinked), what)
        return reports


def identity(subject):
    with claim(f"{subject.case.name}: order original"):
        for report in subject.behaves("order original", "--order", "original"):
            require(report["output"]["moved_blocks"] == 0, f"moved: {report}")


def shuffle(subject, placement, seed):
    with claim(f"{subject.case.name}: order random, seed {seed}, {placement}"):
        reports = subject.behaves(f"seed {seed}, {placement}", "--order", "random",
                                  "--seed", seed, "--placement", placement)
        require(any(r["output"]["moved_blocks"] for r in reports), "nothing moved")


# libgcc is small, and two of its functions are pinned by numbers that look like addresses.
# Of SQLite at -Os, one function alone is 4 %: its interpreter, with a jump not understood.
MOVABLE = {"libgcc_s_seh-1.dll": 0.985, "sqlite-gcc-Os-sections": 0.95}
MOVABLE_USUALLY = 0.99
LOW_BASE = 0x10000000


def movable(subject):
    """On real images, nearly all functions and bytes may move."""
    for image in subject.case.images:
        with claim(f"{subject.case.name}: \"{image}\": movable share"):
            report = harness.tool("appulse-reorder", subject.original / image, "--dry-run",
                                  "--order", "original", "--json").json()["image"]
            for part in ("functions", "bytes"):
                share = report[f"movable_{part}"] / report[part]
                harness.note(f"{image}: {share:.2%} of {report[part]} {part}")
                least = MOVABLE.get(image, MOVABLE.get(subject.case.name, MOVABLE_USUALLY))
                require(share >= least,
                        f"{share:.2%} of {part}: {report['pins']}")


def cases_of(what):
    if what == "identity":
        return harness.fixture_cases() + harness.real_cases()
    if what == "fixtures":
        return harness.fixture_cases()
    if what == "sqlite":
        return [harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang")]
    if what == "sqlite-more":
        return [harness.sqlite_case(build) for build in
                harness.SQLITE[1::2] + harness.SQLITE_MORE]
    if what == "libstdc++":
        return [harness.libstdcxx_case()]
    if what == "zlib":
        return [harness.zlib_case()]
    if what == "fixed":
        return [harness.fixed(harness.sqlite_case("sqlite-gcc")),
                harness.fixed(harness.sqlite_case("sqlite-clang"), LOW_BASE),
                harness.fixed(harness.libstdcxx_case()),
                harness.fixed(harness.zlib_case(), LOW_BASE)]
    sys.exit(__doc__)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cases = cases_of(what)
    harness.prepare_wine()
    for case in cases:
        with harness.work_folder() as folder:
            subject = Subject(case, folder)
            if what == "identity":
                identity(subject)
                continue
            for seed in harness.seeds(count):
                for placement in PLACEMENTS:
                    shuffle(subject, placement, seed)
            if what not in ("fixtures", "fixed"):
                movable(subject)
    harness.finish()


if __name__ == "__main__":
    main()
