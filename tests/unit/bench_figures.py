#!/usr/bin/env python3
"""The benchmarks' figures as JSON: the format that docs/benchmarks.md describes.

usage: bench_figures.py SOURCE
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SOURCE / "tests" / "bench"))

import figures  # noqa: E402
import hard_faults  # noqa: E402
import paired  # noqa: E402

COLUMNS = [paired.Column("ours_ms", "ours", 7, "ms"),
           paired.Column("ratio", "ratio", 22, "ratio", True),
           paired.Column("moved", "moved", 8, "share"),
           paired.Column("pins", "pins", 0, "")]
ROWS = [("a.dll", "relink", {"ours_ms": figures.spread([3.0, 1.0, 2.5]),
                             "ratio": figures.Spread(2.0, 1.5, 4.0), "moved": 0.98765,
                             "pins": "joined 3"}),
        (None, "tool --version", {"ours_ms": 4.0})]


def benchmark(arguments):
    report = paired.Report("made up", 20, COLUMNS)
    for image, what, values in ROWS:
        report.add(image, what, **values)
    return report


class Cases(unittest.TestCase):
    def run_benchmark(self, folder, name):
        """What it prints, and the file that it writes."""
        sys.argv[1:] = ["--json", str(folder / name)]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(paired.run_main(benchmark, argparse.ArgumentParser()), 0)
        return printed.getvalue(), (folder / name).read_text()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.printed, self.text = self.run_benchmark(self.folder, "one.json")
        self.told = json.loads(self.text)

    def test_figures(self):
        self.assertEqual(self.told["figures"], [
            {"name": "relink/ours_ms", "image": "a.dll", "unit": "ms", "median": 2.5,
             "low": 1.0, "high": 3.0},
            {"name": "relink/ratio", "image": "a.dll", "unit": "ratio", "median": 2.0,
             "low": 1.5, "high": 4.0},
            {"name": "relink/moved", "image": "a.dll", "unit": "share", "median": 0.98765,
             "low": 0.98765, "high": 0.98765},
            {"name": "tool --version/ours_ms", "image": None, "unit": "ms", "median": 4.0,
             "low": 4.0, "high": 4.0}])

    def test_what_people_see(self):
        lines = self.printed.splitlines()
        self.assertEqual(lines[2].split(), ["a.dll:", "relink", "2.5", "2.00", "(1.50", "to",
                                            "4.00)", "98.77%", "joined", "3"])
        self.assertEqual(lines[3].split(), ["tool", "--version", "4.0"])

    def test_where_it_was_measured(self):
        self.assertEqual((self.told["format"], self.told["benchmark"]), (1, "made_up"))
        self.assertEqual(self.told["machine"]["processors"], len(os.sched_getaffinity(0)))
        self.assertGreater(self.told["machine"]["memory_bytes"], 1 << 20)
        self.assertEqual(self.told["machine"]["kernel"], f"Linux {os.uname().release}")
        git = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], text=True,
                             capture_output=True)
        if git.returncode == 0:
            self.assertEqual(self.told["commit"], git.stdout.strip())
            self.assertIn(self.told["changed"], (True, False))
        else:
            self.assertEqual((self.told["commit"], self.told["changed"]), (None, None))

    def test_same_figures_same_bytes(self):
        self.assertEqual(self.run_benchmark(self.folder, "two.json")[1], self.text)

    def test_what_is_no_figure(self):
        made = figures.Figures("made up")
        made.add("time", "a.dll", "ms", 1)
        made.add("time", "b.dll", "ms", 1)
        self.assertRaises(ValueError, made.add, "time", "a.dll", "ms", 2)
        self.assertRaises(ValueError, made.add, "speed", "a.dll", "furlongs", 2)

    def test_hard_faults(self):
        hard_faults.write_json([{"image": "a.dll", "before": 12, "after": 5, "how": "loop"}],
                               self.folder / "faults.json")
        told = json.loads((self.folder / "faults.json").read_text())
        self.assertEqual([(f["name"], f["image"], f["unit"], f["median"])
                          for f in told["figures"]],
                         [("before", "a.dll", "pages", 12), ("after", "a.dll", "pages", 5)])

    def test_all_is_documented(self):
        text = (SOURCE / "docs" / "benchmarks.md").read_text()
        keys = [*self.told, *self.told["machine"], *self.told["figures"][0], *figures.UNITS]
        self.assertEqual([key for key in keys if f"`{key}`" not in text], [])


if __name__ == "__main__":
    unittest.main()
