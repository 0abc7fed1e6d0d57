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
    funclet        a part of a function of MSVC's that only exception data names: the runtime
                   calls it, and its function is touched at that time
    address        the image has no base relocations, and a word may be its address: the word
                   stays as it is
    no breakpoint  the debugger left the start alone: it begins with int3, or the function
                   is not code beyond doubt

    part           a chained row of the function table that no branch leads to, only a jump table
                   of its function's
    another time   all branches to it that have the reach, and all pointers, lead to its thunk in
                   the instrumented image: a program with threads, a compiler at run time or a
                   garbage collector reaches some functions by chance.  For few functions only

Functions that only one of two equal runs reaches are first told from the others by more runs.
"""

import pathlib
import re
import sqlite3
import struct
import subprocess
import sys

import harness
from harness import claim, require

ATTEMPTS = 4
ROW_BYTES = 12                    # of the function table
CHANCE = 10                       # functions at most that were reached another time
DOUBTS = {"unknown-bytes", "undecoded", "overlapping-code", "read-as-data",
          "position-indexed", "user"}
OBJDUMP = "x86_64-w64-mingw32-objdump"
PADDING = re.compile(r"(nop|xchg\s+%ax,%ax|data16|cs nop)")


class Image:
    """An original and what objdump says about it."""

    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        begin, end = harness.function_table(self.data)
        self.rows = {self.data[at:at + ROW_BYTES] for at in range(begin, end, ROW_BYTES)}
        self.base = int(re.search(r"ImageBase\s+([0-9a-f]+)", self.say("-p"))[1], 16)
        self.studied = set()
        self.branches, self.first_byte, self.text_before = {}, {}, {}

    def say(self, *options):
        return subprocess.run([OBJDUMP, *options, self.path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def code_sections(self):
        """RVA and size of the sections that hold code."""
        found = re.findall(r"^ *\d+ \S+ +([0-9a-f]{8})  ([0-9a-f]{16}) .*\n.*\bCODE\b",
                           self.say("-h"), re.MULTILINE)
        return [(int(address, 16) - self.base, int(size, 16)) for size, address in found]

    def instructions(self):
        """RVA, bytes and text of each; a big image has millions."""
        command = [OBJDUMP, "-d", "--wide", "--insn-width=15", self.path]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                parts = line.split("\t")
                if len(parts) == 3:
                    yield (int(parts[0].rstrip(" :"), 16) - self.base,
                           bytes.fromhex(parts[1]), parts[2].rstrip())
        require(process.returncode == 0, f"{command}: exit code {process.returncode}")

    def study(self, rvas):
        """Learns for these places which direct branches and calls lead there, where they
        stand and their bytes; the first byte; and the instruction before, over padding."""
        if rvas <= self.studied:
            return
        self.studied |= rvas
        self.branches = {rva: [] for rva in self.studied}
        before = None
        for at, code, text in self.instructions():
            if at in self.studied:
                self.first_byte[at], self.text_before[at] = code[0], before
            if text[0] in "cjl":
                to = re.match(r"(?:call|j\w+|loop\w*)\s+(?:0x)?([0-9a-f]+)\b", text)
                target = int(to[1], 16) - self.base if to else None
                if target in self.studied:
                    self.branches[target].append((at, code))
            if not PADDING.match(text):
                before = text

    def runs_on_into(self, rva):
        """Whether control goes on from the code before.  A call at a function's end does
        not return."""
        before = self.text_before.get(rva)
        return before is not None and not re.match(r"(jmp|ret|int3|ud2|hlt|call)", before)

    def may_hold_address(self, rva):
        """Whether the image has no base relocations and a word that equals the address."""
        header = int.from_bytes(self.data[60:64], "little")
        flags, = struct.unpack_from("<H", self.data, header + 22)
        address = self.base + rva
        return bool(flags & 1) and (
            address.to_bytes(8, "little") in self.data
            or address < 1 << 32 and address.to_bytes(4, "little") in self.data)

    def data_names(self, rva, data=None):
        """Whether a word outside the code is this RVA, other than in rows of the function
        table and their copies in chained unwind information.  `data`: of this image, or of
        its instrumented form without what that adds."""
        data = data or self.data
        word = rva.to_bytes(4, "little")
        code = harness.code_ranges(data)
        at = data.find(word)
        while at >= 0:
            rows = {data[at:at + ROW_BYTES], data[at - 4:at - 4 + ROW_BYTES]}  # begin, end
            if not any(begin <= at < end for begin, end in code) and not rows & self.rows:
                return True
            at = data.find(word, at + 1)
        return False


def is_part(image, rva):
    """Whether its row of the function table is chained to another: a part of a function, which
    the function's jump tables may lead to."""
    begin, end = harness.function_table(image.data)
    for at in range(begin, end, ROW_BYTES):
        first, _, unwind = struct.unpack_from("<3I", image.data, at)
        if first == rva:
            return bool(image.data[harness.file_offset(image.data, unwind)] & 0x20)
    return False


def all_lead_to_thunks(image, instrumented, rva):
    """Whether no branch to it was left as it was, but for those of two bytes, nor any pointer
    or RVA.  Functions do not move, so each branch stands where it stood."""
    for at, code in image.branches[rva]:
        if len(code) < 4:
            continue
        offset = harness.file_offset(instrumented, at)
        found = instrumented[offset:offset + len(code)]
        to = at + len(code) + int.from_bytes(found[-4:], "little", signed=True)
        if len(code) < 5 or found[:-4] != code[:-4] or to == rva:
            return False
    kept = instrumented[:harness.added_from(instrumented)]
    pointer = (image.base + rva).to_bytes(8, "little")
    return pointer not in kept and not image.data_names(rva, kept)


def explain_lost(image, function, touched):
    """Why breakpoints saw a function and the probes did not, or None.  `touched` are the
    ranges of the functions that were reached."""
    rva = function["rva"]
    if any(len(code) < 4 and any(begin <= at < end for begin, end in touched)
           for at, code in image.branches[rva]):
        return "short jump"
    if image.runs_on_into(rva):
        return "falls in"
    if not image.branches[rva] and is_part(image, rva):
        return "part"
    if not image.branches[rva] and image.data_names(rva):
        return "funclet"
    if image.may_hold_address(rva):
        return "address"
    return None


def explain_extra(image, function):
    """Why the probes saw a function and breakpoints did not, or None."""
    pins = set((function["pins"] or "").split(","))
    if pins & DOUBTS or image.first_byte.get(function["rva"]) in (0xcc, None):
        return "no breakpoint"
    return None


class Comparison:
    """What probes and breakpoints see in one case."""

    def __init__(self, case, folder):
        self.case, self.where = case, folder
        self.original = case.stage(folder / "original")
        self.instrumented = case.stage(folder / "instrumented")
        self.path = folder / "t.db"
        self.may_be_chance = False   # whether "another time" may be an explanation
        self.images = {name: Image(self.original / name) for name in case.images}
        for image in case.images:
            harness.instrument(self.original / image, self.instrumented / image, self.path)

    def record_probes(self):
        harness.profile(self.path, self.case, self.instrumented)

    def record_breakpoints(self):
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
            " JOIN runs r ON r.id = p.run WHERE i.name = ? AND r.kind = ?",
            pathlib.PurePath(image).name, kind)}

    def functions(self, image):
        return {row["rva"]: row for row in self.rows(
            "SELECT f.* FROM functions f JOIN images i ON i.id = f.image WHERE i.name = ?",
            pathlib.PurePath(image).name)}

    def differences(self, image):
        """What is not explained, and a count of what is."""
        functions = self.functions(image)
        probes = self.touched(image, "trace")
        breakpoints = self.touched(image, "breakpoints")
        open_questions, reasons = [], {}
        ranges = [(rva, rva + functions[rva]["size"]) for rva in breakpoints
                  if rva in functions]
        instrumented, by_chance = None, 0
        chances = CHANCE if self.may_be_chance else 0
        if probes != breakpoints:
            self.images[image].study(probes ^ breakpoints)
            instrumented = (self.instrumented / image).read_bytes()
        for rva in sorted(probes ^ breakpoints):
            function, reason = functions.get(rva), None
            if function and rva in probes:
                reason = explain_extra(self.images[image], function)
            elif function:
                reason = explain_lost(self.images[image], function, ranges)
            if function and not reason and by_chance < chances and (
                    rva in probes or all_lead_to_thunks(self.images[image], instrumented, rva)):
                reason, by_chance = "another time", by_chance + 1
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            else:
                side = "probes" if rva in probes else "breakpoints"
                open_questions.append(f"0x{rva:x} {function and function['name']}: "
                                      f"only {side}")
        return open_questions, f"{len(probes)} by probes, {len(breakpoints)} by " \
                               f"breakpoints {reasons or ''}", len(breakpoints)

    def compare(self):
        for attempt in range(self.case.attempts or ATTEMPTS):
            self.may_be_chance = attempt > 0
            self.record_probes()
            self.record_breakpoints()
            results = {image: self.differences(image) for image in self.case.images}
            if not any(questions for questions, _, _ in results.values()):
                break
        for image, (questions, summary, count) in results.items():
            harness.note(f"{self.case.name} {image}: {summary}")
            require(count > 0, f"{image}: breakpoints saw nothing")
            require(not questions,
                    f"{image}: {len(questions)} not explained: {questions[:40]}")


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
            Comparison(case, folder).compare()
    harness.finish()


if __name__ == "__main__":
    main()
