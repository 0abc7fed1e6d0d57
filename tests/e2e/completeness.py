#!/usr/bin/env python3
"""The probes see every function that breakpoints see.

    completeness.py fixtures | real

Each program runs twice: instrumented, and unchanged under a debugger with a breakpoint
on the start of every function, which shares nothing with the probes.  The two sets of
functions in the database must be one, but for what is explained here, function by
function, from objdump's disassembly of the original:

    short jump     a jump of two bytes leads there from a function that was reached: a thunk
                   is out of its reach
    falls in       the code before it runs on into it
    no breakpoint  the debugger left the start alone: it begins with int3, or the function
                   is not code beyond doubt

Functions that only one of two equal runs reaches (a lock that was contended) are told from
the others by more runs.
"""

import bisect
import re
import sqlite3
import subprocess
import sys

import harness
from harness import claim, require

ATTEMPTS = 4
DOUBTS = {"unknown-bytes", "undecoded", "overlapping-code", "read-as-data"}
OBJDUMP = "x86_64-w64-mingw32-objdump"
PADDING = re.compile(r"(nop|xchg\s+%ax,%ax|data16|cs nop)")


class Image:
    """An original and what objdump says about it."""

    def __init__(self, path):
        self.path = path
        self.base = int(re.search(r"ImageBase\s+([0-9a-f]+)", self.say("-p"))[1], 16)
        self.lines = self.branches = None

    def say(self, *options):
        return subprocess.run([OBJDUMP, *options, self.path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def code_sections(self):
        """RVA and size of the sections that hold code."""
        found = re.findall(r"^ *\d+ \S+ +([0-9a-f]{8})  ([0-9a-f]{16}) .*\n.*\bCODE\b",
                           self.say("-h"), re.MULTILINE)
        return [(int(address, 16) - self.base, int(size, 16)) for size, address in found]

    def disassemble(self):
        """Fills `lines`, triples of RVA, bytes and text, ascending, and `branches`: for
        each place the direct branches and calls to it."""
        if self.lines is not None:
            return
        self.lines, self.branches = [], {}
        for line in self.say("-d", "--wide", "--insn-width=15").splitlines():
            found = re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+)\t?(.*)", line)
            if not found:
                continue
            at, code = int(found[1], 16) - self.base, bytes.fromhex(found[2])
            self.lines.append((at, code, found[3]))
            to = re.match(r"(?:call|j\w+|loop\w*)\s+(?:0x)?([0-9a-f]+)\b", found[3])
            if to:
                self.branches.setdefault(int(to[1], 16) - self.base, []).append((at, code))

    def branches_to(self, rva):
        """Where direct branches and calls to a place stand, with their bytes."""
        self.disassemble()
        return self.branches.get(rva, [])

    def index_of(self, rva):
        """Of the first line at or behind a place."""
        self.disassemble()
        return bisect.bisect_left(self.lines, (rva,))

    def runs_on_into(self, rva):
        """Whether control goes on from the code before, over padding."""
        at = self.index_of(rva) - 1
        while at >= 0 and PADDING.match(self.lines[at][2]):
            at -= 1
        return at >= 0 and not re.match(r"(jmp|ret|int3|ud2|hlt)", self.lines[at][2])

    def first_byte(self, rva):
        at = self.index_of(rva)
        return self.lines[at][1][0] if self.lines[at][0] == rva else None


def explain_lost(image, function, touched):
    """Why breakpoints saw a function and the probes did not, or None.  `touched` are the
    ranges of the functions that were reached."""
    branches = image.branches_to(function["rva"])
    if any(len(code) < 4 and any(begin <= at < end for begin, end in touched)
           for at, code in branches):
        return "short jump"
    if image.runs_on_into(function["rva"]):
        return "falls in"
    return None


def explain_extra(image, function):
    """Why the probes saw a function and breakpoints did not, or None."""
    pins = set((function["pins"] or "").split(","))
    if pins & DOUBTS or image.first_byte(function["rva"]) in (0xcc, None):
        return "no breakpoint"
    return None


class Comparison:
    def __init__(self, case, folder):
        self.case = case
        self.original = case.stage(folder / "original")
        self.instrumented = case.stage(folder / "instrumented")
        self.path = folder / "t.db"
        self.images = {name: Image(self.original / name) for name in case.images}
        for image in case.images:
            harness.instrument(self.original / image, self.instrumented / image, self.path)

    def record(self):
        harness.profile(self.path, self.case, self.instrumented)
        images = [word for name in self.case.images
                  for word in ("--image", self.original / name)]
        harness.profile(self.path, self.case, self.original, "breakpoints", images)

    def rows(self, query, *values):
        database = sqlite3.connect(self.path)
        database.row_factory = sqlite3.Row
        with database:
            return database.execute(query, values).fetchall()

    def touched(self, image, kind):
        return {row["rva"] for row in self.rows(
            "SELECT DISTINCT t.rva FROM touches t JOIN traces f ON f.id = t.trace"
            " JOIN images i ON i.id = f.image JOIN processes p ON p.id = f.process"
            " JOIN runs r ON r.id = p.run WHERE i.name = ? AND r.kind = ?", image, kind)}

    def functions(self, image):
        return {row["rva"]: row for row in self.rows(
            "SELECT f.* FROM functions f JOIN images i ON i.id = f.image WHERE i.name = ?",
            image)}

    def differences(self, image):
        """What is not explained, and a count of what is."""
        functions = self.functions(image)
        probes = self.touched(image, "trace")
        breakpoints = self.touched(image, "breakpoints")
        open_questions, reasons = [], {}
        ranges = [(rva, rva + functions[rva]["size"]) for rva in breakpoints
                  if rva in functions]
        for rva in sorted(probes ^ breakpoints):
            function, reason = functions.get(rva), None
            if function and rva in probes:
                reason = explain_extra(self.images[image], function)
            elif function:
                reason = explain_lost(self.images[image], function, ranges)
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            else:
                side = "probes" if rva in probes else "breakpoints"
                open_questions.append(f"0x{rva:x} {function and function['name']}: "
                                      f"only {side}")
        return open_questions, f"{len(probes)} by probes, {len(breakpoints)} by " \
                               f"breakpoints {reasons or ''}", len(breakpoints)


def compare(case, folder):
    comparison = Comparison(case, folder)
    for _ in range(ATTEMPTS):
        comparison.record()
        results = {image: comparison.differences(image) for image in case.images}
        if not any(questions for questions, _, _ in results.values()):
            break
    for image, (questions, summary, count) in results.items():
        harness.note(f"{case.name} {image}: {summary}")
        require(count > 0, f"{image}: breakpoints saw nothing")
        require(not questions, f"{image}: {len(questions)} not explained: {questions[:40]}")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "fixtures":
        cases = harness.fixture_cases()
    elif what == "real":
        cases = [harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang"),
                 harness.libstdcxx_case(), harness.zlib_case()]
    else:
        sys.exit(__doc__)
    harness.prepare_wine()
    for case in cases:
        with harness.work_folder() as folder, claim(f"{case.name}: probes and breakpoints"):
            compare(case, folder)
    harness.finish()


if __name__ == "__main__":
    main()
