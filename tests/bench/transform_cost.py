#!/usr/bin/env python3
"""What appulse-instrument and appulse-reorder cost, against a plain Zydis pass.

Each is a whole process, from its start to its end, with all that it writes.  Columns:

    zydis      milliseconds of the pass with operands
    ours       milliseconds of the tool
    ratio      ours to zydis, median of the pairs with the extremes
    cpu        the same of processor time
    short      ours to the pass without operands, median
    peak       MB resident at most
    of file    peak to the size of the file
    more       the same without what the tool needs at its start

The rows "--version" are the tools' own: what the loading of its libraries costs.
"""

import argparse
import os
import pathlib
import random
import shutil
import sqlite3
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "corpus"))

import corpus  # noqa: E402
import paired  # noqa: E402

INSTRUMENT = paired.BUILD / "instrument" / "appulse-instrument"
REORDER = paired.BUILD / "reorder" / "appulse-reorder"
ZYDIS_PASS = paired.BUILD / "tests" / "bench" / "zydis_pass"
IMAGES = ["sqlite-gcc", "sqlite-clang", "libstdc++-6.dll", "libgfortran-5.dll"]
TOUCHED_SHARE = 0.1
COLUMNS = [paired.Column("zydis_ms", "zydis", 7, "ms"),
           paired.Column("ours_ms", "ours", 7, "ms"),
           paired.Column("ratio", "ratio", 22, "ratio", True),
           paired.Column("cpu_ratio", "cpu", 22, "ratio", True),
           paired.Column("short_ratio", "short", 7, "ratio"),
           paired.Column("peak_mb", "peak", 7, "MB"),
           paired.Column("of_file", "of file", 8, "ratio"),
           paired.Column("more_of_file", "more", 6, "ratio")]


def add_made_run(database):
    """A run that touched a tenth of the functions, in no order: the profile that the relink
    by first touch works on.  Columns: docs/database.md."""
    with sqlite3.connect(database) as db:
        image, = db.execute("SELECT id FROM images").fetchone()
        rvas = [rva for rva, in db.execute("SELECT rva FROM functions ORDER BY rva")]
        touched = random.Random(1).sample(rvas, int(len(rvas) * TOUCHED_SHARE))
        run = db.execute("INSERT INTO runs(identity, kind, scenario, weight, started_ns, exit)"
                         " VALUES('made', 'trace', 'default', 1, 0, 'exited')").lastrowid
        process = db.execute("INSERT INTO processes(run, pid, started_ns)"
                             " VALUES(?, 1, 0)", [run]).lastrowid
        trace = db.execute("INSERT INTO traces(identity, process, image, records, incomplete)"
                           " VALUES('made', ?, ?, ?, 0)",
                           [process, image, len(touched)]).lastrowid
        db.executemany("INSERT INTO touches(trace, seq, rva, thread, time_ns)"
                       " VALUES(?, ?, ?, 1, ?)",
                       [(trace, seq, rva, seq) for seq, rva in enumerate(touched, 1)])
    db.close()


class Image:
    """An image, and the jobs that are measured on it, each in a fresh state."""

    def __init__(self, name, folder):
        self.name = name
        self.path = corpus.path_of(name)
        self.size = self.path.stat().st_size
        self.folder = pathlib.Path(folder)
        self.database = self.folder / "t.db"
        self.profile = self.folder / "profile.db"

    def zydis(self):
        return paired.measure([ZYDIS_PASS, self.path])

    def zydis_short(self):
        return paired.measure([ZYDIS_PASS, "--no-operands", self.path])

    def instrument(self):
        self.database.unlink(missing_ok=True)
        return paired.measure([INSTRUMENT, self.path, "-o", self.folder / "instrumented.dll",
                               "--db", self.database, "--force"])

    def reorder(self, *arguments):
        return paired.measure([REORDER, self.path, "-o", self.folder / "relinked.dll",
                               "--force", *arguments])

    def reorder_first_touch(self):
        shutil.copy(self.profile, self.database)
        return self.reorder("--db", self.database)

    def reorder_random(self):
        return self.reorder("--order", "random")

    def prepare(self):
        self.instrument()
        os.replace(self.database, self.profile)
        add_made_run(self.profile)


def start_row(tool):
    costs = [paired.measure([tool, "--version"]) for _ in range(paired.PAIRS)]
    return {"what": f"{tool.name} --version", "ours_ms": paired.milliseconds(costs),
            "peak_mb": max(cost.peak for cost in costs) / 1e6}


def row(image, job, pairs, short, start_mb):
    ours = [b for _, b in pairs]
    peak = max(cost.peak for cost in ours) / 1e6
    size = image.size / 1e6
    return {
        "what": job.__name__.replace("_", " "),
        "zydis_ms": paired.milliseconds(a for a, _ in pairs),
        "ours_ms": paired.milliseconds(ours),
        "ratio": paired.ratio(pairs, lambda cost: cost.wall),
        "cpu_ratio": paired.ratio(pairs, lambda cost: cost.cpu),
        "short_ratio": paired.milliseconds(ours).median / short,
        "peak_mb": peak, "of_file": peak / size, "more_of_file": (peak - start_mb) / size,
    }


def benchmark(arguments):
    report = paired.Report("transform_cost", 40, COLUMNS)
    starts = [start_row(tool) for tool in (INSTRUMENT, REORDER)]
    for start in starts:
        report.add(None, **start)
    start_mb = max(start["peak_mb"] for start in starts)
    for name in arguments.images:
        with paired.work_folder() as folder:
            image = Image(name, folder)
            image.prepare()
            short = paired.milliseconds(
                image.zydis_short() for _ in range(arguments.pairs)).median
            for job in (image.instrument, image.reorder_first_touch, image.reorder_random):
                pairs = paired.run_pairs(image.zydis, job, arguments.pairs)
                report.add(image.name, **row(image, job, pairs, short, start_mb))
    return report


def main(measure=benchmark, images=IMAGES, description=__doc__):
    """The command line of what measures images."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="*", default=images, help="names of corpus.py")
    try:
        return paired.run_main(measure, parser)
    except corpus.CorpusError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
