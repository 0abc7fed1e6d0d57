#!/usr/bin/env python3
"""The closing line of a test run, and its exit code.

usage: summary_counts.py SUMMARY

A mistake here would let a failure pass, so each way to fail has a log of its own.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = sys.argv.pop(1)


def record(name, result, stdout=""):
    return {"name": name, "result": result, "stdout": stdout}


class Closing(unittest.TestCase):
    def run_summary(self, *runs):
        """For runs, each a list of records or None."""
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for number, records in enumerate(runs):
                names.append(str(number))
                logs = pathlib.Path(folder, names[-1], "meson-logs")
                logs.mkdir(parents=True)
                if records is not None:
                    (logs / "testlog.json").write_text(
                        "".join(json.dumps(r) + "\n" for r in records))
            return subprocess.run([sys.executable, SUMMARY, *names], cwd=folder, text=True,
                                  stdout=subprocess.PIPE)

    def close(self, *runs):
        """The last line and the exit code."""
        done = self.run_summary(*runs)
        return done.stdout.splitlines()[-1], done.returncode

    def test_all_is_well(self):
        self.assertEqual(self.close([record("a", "OK"), record("b", "OK", "noise\n")],
                                    [record("c", "OK", "ok 1 - x\nok 2 - y\n1..2\n")]),
                         ("4 passed, 0 failed", 0))

    def test_a_program_fails(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT"):
            self.assertEqual(self.close([record("a", "OK"), record("b", result)]),
                             ("1 passed, 1 failed", 1))

    def test_a_result_fails(self):
        self.assertEqual(
            self.close([record("a", "ERROR", "ok 1 - x\nnot ok 2 - y\n# ok, not\n1..2\n")]),
            ("1 passed, 1 failed", 1))

    def test_good_results_of_a_failed_program(self):
        self.assertEqual(self.close([record("a", "ERROR", "ok 1 - x\n")]),
                         ("1 passed, 1 failed", 1))
        self.assertEqual(self.close([record("a", "TIMEOUT", "ok 1 - x\n")]),
                         ("1 passed, 1 failed", 1))

    def test_a_skip_is_a_failure(self):
        self.assertEqual(self.close([record("a", "OK"), record("b", "SKIP")]),
                         ("1 passed, 0 failed, 1 skipped", 1))
        self.assertEqual(
            self.close([record("a", "OK", "ok 1 - x\nok 2 - y # SKIP no such thing\n")]),
            ("1 passed, 0 failed, 1 skipped", 1))

    def test_failures_tell_why(self):
        tap = "# before\nok 1 - x\nnot ok 2 - y\n# why\n# and where\nok 3 - z\n1..3\n"
        self.assertEqual(self.run_summary([record("a", "ERROR", tap)]).stdout.splitlines(),
                         ["0: failed: a (1)", "not ok 2 - y", "# why", "# and where",
                          "2 passed, 1 failed"])

    def test_a_limit_is_told(self):
        self.assertEqual(self.run_summary([record("a", "TIMEOUT")]).stdout.splitlines(),
                         ["0: failed: a (1, out of time)", "0 passed, 1 failed"])

    def test_nothing_ran(self):
        self.assertEqual(self.close([]), ("0 passed, 0 failed", 1))
        self.assertEqual(self.close([record("a", "OK")], None), ("1 passed, 1 failed", 1))


if __name__ == "__main__":
    unittest.main()
