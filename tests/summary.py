#!/usr/bin/env python3
"""Adds up test logs: one closing line over all runs.

    summary.py BUILD-FOLDER...

A program that speaks TAP counts each of its results, any other counts as one.  A program
that failed though all its results were good, or gave none, is one failure.  A skipped test
is named, counted, and a failure: nothing that these tests need may be missing.  What a
failed result says of itself is repeated, which the runner's own output leaves out.
"""

import json
import pathlib
import re
import sys

RESULT = re.compile(r"^(not )?ok\b[^#\n]*(# *skip)?", re.IGNORECASE | re.MULTILINE)
FAILED = re.compile(r"^not ok\b(?!.*# *skip).*\n(?:#.*\n)*", re.IGNORECASE | re.MULTILINE)


def count(record):
    """(passed, failed, skipped) of one test program."""
    results = RESULT.findall(record["stdout"])
    skipped = sum(1 for _, skip in results if skip)
    failed = sum(1 for bad, skip in results if bad and not skip)
    passed = len(results) - skipped - failed
    good = record["result"] in ("OK", "EXPECTEDFAIL")
    if record["result"] == "SKIP":
        return passed, failed, max(skipped, 1)
    if not results:
        return int(good), int(not good), 0
    return passed, failed + int(not good and not failed), skipped


def main():
    total = [0, 0, 0]
    for folder in sys.argv[1:]:
        log = pathlib.Path(folder) / "meson-logs" / "testlog.json"
        if not log.exists():
            print(f"{folder}: no test ran")
            total[1] += 1
            continue
        for line in log.read_text().splitlines():
            record = json.loads(line)
            record.setdefault("stdout", "")
            counts = count(record)
            total = [a + b for a, b in zip(total, counts)]
            for word, number in zip(("failed", "skipped"), counts[1:]):
                if number:
                    why = ", out of time" if record["result"] == "TIMEOUT" else ""
                    print(f"{folder}: {word}: {record['name']} ({number}{why})")
            for failure in FAILED.findall(record["stdout"]):
                print(failure, end="")
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return int(failed > 0 or skipped > 0 or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
