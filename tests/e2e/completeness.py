#!/usr/bin/env python3
"""The probes see every function that breakpoints see.

    completeness.py fixtures | real | planted

Each program runs twice: instrumented, and unchanged under a debugger with a breakpoint
on the start of every function, which shares nothing with the probes.  The two sets of
functions in the database must be one, but for what is explained here, function by
function, from objdump's disassembly of the original:

    short jump     a jump of two bytes leads there from a function that was reached, or from
                   another part of it: a thunk is out of its reach
    falls in       the code before it runs on into it
    part           a chained row of the function table that a jump table leads to: all branches
                   to it that have the reach lead to its thunk
    funclet        a part of a function of MSVC's that only exception data names: the runtime
                   calls it, and its function is touched at that time
    address        the image has no base relocations, and a word may be its address: the word
                   stays as it is
    no breakpoint  the debugger left the start alone: it begins with int3, or the function
                   is not code beyond doubt

What is left may depend on time: programs with threads, a compiler at run time or a garbage
collector reach some functions by chance.  So the instrumented program then runs under the
debugger, with breakpoints on the starts that the thunks lead to.  In one process there is
no chance: each function that a breakpoint sees has its record there, or one of the
explanations above.  All runs are made again until each function that is left is one of

    another time   the other side saw it as well, in one of its runs
    by chance      only some of the equal runs of the side that saw it did, the other side
                   none; and all branches to it that have the reach, and all pointers, lead
                   to its thunk in the instrumented image

`planted` takes the record of some functions away and wants to be told.
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
PLANTED = 3                       # calls that lead past their thunks
CHAINED = 0x20                    # in the first byte of unwind information
CALL = 0xe8                       # and four bytes of displacement
ROW_BYTES = 12                    # of the function table
DOUBTS = {"unknown-bytes", "undecoded", "overlapping-code", "read-as-data",
          "position-indexed", "user"}
LOST = "no record where a breakpoint saw it"   # in one process: more runs help nothing
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
        self.roots, self.parts = self.families()
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
        return harness.may_hold_address(self.data, self.base + rva)

    def families(self):
        """For each row of the function table the first part of its function, and for that
        the ranges of all parts."""
        sections = list(harness.sections(self.data))   # once: there may be 100,000 rows
        rows = {row[0]: row for row in (struct.unpack("<3I", row) for row in self.rows)}
        above = {begin: self.chained_to(unwind, sections) for begin, _, unwind in rows.values()}
        roots, parts = {}, {}
        for begin, end, _ in rows.values():
            root = begin
            while above[root] in rows:
                root = above[root]
            roots[begin] = root
            parts.setdefault(root, []).append((begin, end))
        return roots, parts

    def chained_to(self, unwind, sections):
        """The function whose row stands in this unwind information, or None.  (Microsoft
        Learn, "x64 exception handling": UNW_FLAG_CHAININFO.)"""
        at = next(raw + unwind - begin for begin, _, raw, raw_size, _ in sections
                  if begin <= unwind < begin + raw_size)
        if not self.data[at] & CHAINED:
            return None
        return struct.unpack_from("<I", self.data, at + 4 + (self.data[at + 2] + 1) // 2 * 4)[0]

    def is_part(self, rva):
        """Of a function, but not its beginning: its jump tables may lead there."""
        return self.roots.get(rva, rva) != rva

    def extents(self, rva, size):
        """The ranges of all parts of the function that holds a part."""
        return self.parts[self.roots[rva]] if rva in self.roots else [(rva, rva + size)]

    def table_names(self, rva):
        """Whether a word is this RVA as in a jump table of MSVC's, other than in rows."""
        word = rva.to_bytes(4, "little")
        at = self.data.find(word)
        while at >= 0:
            rows = {self.data[at:at + ROW_BYTES], self.data[at - 4:at - 4 + ROW_BYTES]}
            if at % 4 == 0 and not rows & self.rows:
                return True
            at = self.data.find(word, at + 1)
        return False

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


def branches_lead_to_thunk(image, instrumented, rva):
    """Whether no branch to it was left as it was, but for those of two bytes.  Functions do
    not move, so each branch stands where it stood."""
    for at, code in image.branches[rva]:
        if len(code) < 4:
            continue
        offset = harness.file_offset(instrumented, at)
        found = instrumented[offset:offset + len(code)]
        to = at + len(code) + int.from_bytes(found[-4:], "little", signed=True)
        if len(code) < 5 or found[:-4] != code[:-4] or to == rva:
            return False
    return True


def all_lead_to_thunk(image, instrumented, rva):
    """Neither a branch nor a pointer nor an RVA was left as it was."""
    kept = instrumented[:harness.added_from(instrumented)]
    pointer = (image.base + rva).to_bytes(8, "little")
    return branches_lead_to_thunk(image, instrumented, rva) and pointer not in kept and \
        not image.data_names(rva, kept)


def explain_lost(image, function, touched, instrumented):
    """Why breakpoints saw a function and the probes did not, or None.  `touched` are the
    ranges of the functions that were reached."""
    rva = function["rva"]
    if any(len(code) < 4 and any(begin <= at < end for begin, end in touched)
           for at, code in image.branches[rva]):
        return "short jump"
    if image.runs_on_into(rva):
        return "falls in"
    if image.is_part(rva) and image.table_names(rva) and \
            branches_lead_to_thunk(image, instrumented, rva):
        return "part"
    if not image.branches[rva] and image.data_names(rva):
        return "funclet"
    if image.may_hold_address(rva) and branches_lead_to_thunk(image, instrumented, rva):
        return "address"
    return None


def explain_extra(image, function):
    """Why the probes saw a function and breakpoints did not, or None."""
    pins = set((function["pins"] or "").split(","))
    if pins & DOUBTS or image.first_byte.get(function["rva"]) in (0xcc, None):
        return "no breakpoint"
    return None


def varies(runs, rva):
    """Whether equal runs differ in reaching it."""
    return len({rva in reached for reached in runs}) == 2


class Seen:
    """The functions of one image that were reached, a set for each run of all ways of the
    program, or for each process that was watched by both sides."""

    def __init__(self):
        self.probes, self.breakpoints, self.both = [], [], []

    def by_probes(self):
        return set().union(*self.probes, *(probes for probes, _ in self.both))

    def by_breakpoints(self):
        return set().union(*self.breakpoints, *(reached for _, reached in self.both))

    def differing(self):
        return set().union(set().union(*self.probes) ^ set().union(*self.breakpoints),
                           *(probes ^ reached for probes, reached in self.both))


class Comparison:
    """What probes and breakpoints see in one case."""

    def __init__(self, case, folder):
        self.case, self.where = case, folder
        self.original = case.stage(folder / "original")
        self.instrumented = case.stage(folder / "instrumented")
        self.path, self.both_path = folder / "t.db", folder / "both.db"
        self.images = {name: Image(self.original / name) for name in case.images}
        self.seen = {name: Seen() for name in case.images}
        for image in case.images:
            harness.instrument(self.original / image, self.instrumented / image, self.path)

    # ---- runs ----

    def record_probes(self):
        harness.profile(self.path, self.case, self.instrumented)

    def record_breakpoints(self):
        harness.profile(self.path, self.case, self.original, "breakpoints",
                        self.image_options(self.original))

    def image_options(self, folder):
        return [word for name in self.case.images for word in ("--image", folder / name)]

    def record_both(self):
        """The instrumented images under breakpoints, in a database that knows each of them
        as an image with its original's functions: they have not moved."""
        self.both_path.unlink(missing_ok=True)
        with sqlite3.connect(self.path) as source, sqlite3.connect(self.both_path) as copy:
            source.backup(copy)
            copy.execute("PRAGMA foreign_keys = ON")
            copy.execute("DELETE FROM runs")   # and all that belongs to them
            for name in self.case.images:
                self.know_instrumented(copy, name)
        traces = self.where / "both-traces"
        for number in range(len(self.case.runs)):
            traces.mkdir()
            harness.profile_way(self.both_path, self.case, self.instrumented, number,
                                "breakpoints", self.image_options(self.instrumented),
                                {"APPULSE_TRACE_DIR": str(traces)})
            harness.tool("appulse-profile", "import", "--db", self.both_path, "--scenario",
                         f"way{number}", traces)
            harness.shutil.rmtree(traces)

    def know_instrumented(self, database, name):
        data = (self.instrumented / name).read_bytes()
        original = harness.corpus.sha256(self.images[name].data)
        image = database.execute(
            "INSERT INTO images(sha256, name, size) VALUES (?, ?, ?)",
            (harness.corpus.sha256(data), pathlib.PurePath(name).name, len(data))).lastrowid
        database.execute(
            "INSERT INTO functions(image, rva, size, name, movable, pins, probe)"
            " SELECT ?, f.rva, f.size, f.name, f.movable, f.pins, f.probe FROM functions f"
            " JOIN images i ON i.id = f.image WHERE i.sha256 = ?", (image, original))

    # ---- what they saw ----

    def rows(self, query, *values, path=None):
        database = sqlite3.connect(path or self.path)
        database.row_factory = sqlite3.Row
        with database:
            return database.execute(query, values).fetchall()

    def last_run(self):
        return self.rows("SELECT coalesce(max(id), 0) AS last FROM runs")[0]["last"]

    def touched(self, image, kind, after=0):
        """In all runs of that kind after one."""
        return {row["rva"] for row in self.rows(
            "SELECT DISTINCT t.rva FROM touches t JOIN traces f ON f.id = t.trace"
            " JOIN images i ON i.id = f.image JOIN processes p ON p.id = f.process"
            " JOIN runs r ON r.id = p.run WHERE i.name = ? AND r.kind = ? AND r.id > ?",
            pathlib.PurePath(image).name, kind, after)}

    def touched_by_process(self, image, kind):
        """The same of the runs that both watched, for each way and process."""
        found = {}
        for row in self.rows(
                "SELECT r.scenario, p.pid, t.rva FROM touches t JOIN traces f ON f.id = t.trace"
                " JOIN images i ON i.id = f.image JOIN processes p ON p.id = f.process"
                " JOIN runs r ON r.id = p.run WHERE i.name = ? AND r.kind = ?",
                pathlib.PurePath(image).name, kind, path=self.both_path):
            found.setdefault((row["scenario"], row["pid"]), set()).add(row["rva"])
        return found

    def functions(self, image):
        return {row["rva"]: row for row in self.rows(
            "SELECT f.* FROM functions f JOIN images i ON i.id = f.image WHERE i.name = ?",
            pathlib.PurePath(image).name)}

    def run_apart(self):
        for record, kind in ((self.record_probes, "trace"),
                             (self.record_breakpoints, "breakpoints")):
            before = self.last_run()
            record()
            for image, seen in self.seen.items():
                runs = seen.probes if kind == "trace" else seen.breakpoints
                runs.append(self.touched(image, kind, before))

    def run_together(self):
        self.record_both()
        for image, seen in self.seen.items():
            probes = self.touched_by_process(image, "trace")
            reached = self.touched_by_process(image, "breakpoints")
            seen.both += [(probes.get(process, set()), reached.get(process, set()))
                          for process in probes.keys() | reached.keys()]

    # ---- what that means ----

    def differences(self, image):
        """What is not explained, and a count of what is, by reason."""
        questions, reasons = [], {}
        if self.seen[image].differing():
            judge = Judge(self, image)
            for rva in sorted(self.seen[image].differing()):
                reason, question = judge.explain(rva)
                if reason:
                    reasons[reason] = reasons.get(reason, 0) + 1
                else:
                    questions.append(f"0x{rva:x} {judge.name(rva)}: {question}")
        return questions, reasons

    def compare(self):
        for attempt in range(self.case.attempts or ATTEMPTS):
            self.run_apart()
            results = {image: self.differences(image) for image in self.case.images}
            if any(questions for questions, _ in results.values()):
                self.run_together()
                results = {image: self.differences(image) for image in self.case.images}
            open_questions = [question for questions, _ in results.values()
                              for question in questions]
            if not open_questions or any(q.endswith(LOST) for q in open_questions):
                break
        for image, (questions, reasons) in results.items():
            self.tell(image, reasons, attempt + 1)
            require(not questions,
                    f"{image}: {len(questions)} not explained: {questions[:40]}")

    def tell(self, image, reasons, attempts):
        seen = self.seen[image]
        probes, breakpoints = (set().union(*runs) for runs in (seen.probes, seen.breakpoints))
        together = sum(len(reached) for _, reached in seen.both)
        harness.note(f"{self.case.name} {image}: {len(probes)} by probes, {len(breakpoints)} "
                     f"by breakpoints, {together} by both in {len(seen.both)} processes, "
                     f"{attempts} attempts {reasons or ''}")
        require(breakpoints, f"{image}: breakpoints saw nothing")


class Judge:
    """Explains what one side alone saw of an image, or not."""

    def __init__(self, comparison, image):
        self.image, self.seen = comparison.images[image], comparison.seen[image]
        self.functions = comparison.functions(image)
        self.instrumented = (comparison.instrumented / image).read_bytes()
        self.image.study(self.seen.differing())
        self.apart = self.ranges(set().union(*self.seen.breakpoints))
        self.together = [self.ranges(reached) for _, reached in self.seen.both]

    def name(self, rva):
        return rva in self.functions and self.functions[rva]["name"]

    def ranges(self, reached):
        return {extent for rva in reached if rva in self.functions
                for extent in self.image.extents(rva, self.functions[rva]["size"])}

    def explain(self, rva):
        """The reason, or None and the open question."""
        function = self.functions.get(rva)
        if not function:
            return None, "no function"
        reason = None
        for (probes, reached), ranges in zip(self.seen.both, self.together):
            if rva in reached and rva not in probes:
                reason = explain_lost(self.image, function, ranges, self.instrumented)
                if not reason:
                    return None, LOST
        by_probes, by_breakpoints = self.seen.by_probes(), self.seen.by_breakpoints()
        if rva in by_probes and rva in by_breakpoints:
            return "another time", None
        if rva in by_probes:
            return self.only_probes(function), "only probes"
        return reason or self.only_breakpoints(function), "only breakpoints"

    def only_probes(self, function):
        reason = explain_extra(self.image, function)
        if not reason and varies(self.seen.probes, function["rva"]):
            reason = "by chance"
        return reason

    def only_breakpoints(self, function):
        reason = explain_lost(self.image, function, self.apart, self.instrumented)
        if not reason and varies(self.seen.breakpoints, function["rva"]) and \
                all_lead_to_thunk(self.image, self.instrumented, function["rva"]):
            reason = "by chance"
        return reason


def single_calls(comparison, image):
    """Functions that probes saw and that one call alone leads to, with its place."""
    reached, studied = set().union(*comparison.seen[image].probes), comparison.images[image]
    studied.study(reached)
    for rva in sorted(reached):
        branches = studied.branches[rva]
        if len(branches) == 1 and branches[0][1][0] == CALL and \
                not studied.runs_on_into(rva) and not studied.data_names(rva):
            yield rva, branches[0][0]


def planted(case, folder):
    """Calls of an instrumented image are led past their thunks, as if they were missed."""
    comparison = Comparison(case, folder)
    comparison.compare()
    image = case.images[0]
    chosen = list(single_calls(comparison, image))[:PLANTED]
    require(len(chosen) == PLANTED, f"{len(chosen)} functions have one call alone")
    path = comparison.instrumented / image
    data = bytearray(path.read_bytes())
    for _, call in chosen:
        at, old = (harness.file_offset(bytes_, call)
                   for bytes_ in (data, comparison.images[image].data))
        data[at + 1:at + 5] = comparison.images[image].data[old + 1:old + 5]
    path.write_bytes(data)
    again = Comparison(case, folder / "again")
    harness.shutil.copy(path, again.instrumented / image)
    try:
        again.compare()
    except harness.Failure as failure:
        for rva, _ in chosen:
            told = f"0x{rva:x} {again.functions(image)[rva]['name']}: {LOST}"
            require(told in str(failure), f"no '{told}': {failure}")
    else:
        require(False, f"nobody missed {[hex(rva) for rva, _ in chosen]}")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "fixtures":
        cases = harness.fixture_cases()
    elif what == "real":
        cases = [harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang"),
                 harness.libstdcxx_case(), harness.zlib_case()]
    elif what == "planted":
        cases = [harness.fixture_case("itself", "gcc-O2")]
    else:
        sys.exit(__doc__)
    harness.prepare_wine()
    for case in cases:
        with harness.work_folder() as folder, claim(f"{case.name}: {what}"):
            if what == "planted":
                planted(case, folder)
            else:
                Comparison(case, folder).compare()
    harness.finish()


if __name__ == "__main__":
    main()
