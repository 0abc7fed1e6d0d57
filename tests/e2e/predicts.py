#!/usr/bin/env python3
"""What `appulse-reorder simulate` predicts is what `appulse-profile pages` measures, but for
what is explained, page by page.

    predicts.py

A start of SQLite is traced, and the image relinked. For the original and for the relink
the predicted pages are compared with those that the page debugger saw. The facts that
explain a difference come from an emulator that logs every instruction that runs: it knows
neither the probes nor the debugger.

Predicted, not measured
    cold part      Touched functions reach to the page and begin on other pages, and no
                   instruction of the page ran: what of them lies there is their cold part.

Measured, not predicted
    no touch       An instruction on the page ran, in a function that the trace does not have:
                   each such function has no probe, or is explained as completeness.py does.
    data           Nothing on the page ran; an instruction that did run refers to bytes there
                   that are no instruction's, or to a pointer to such bytes (jump tables;
                   the lists of constructors that GNU ld puts behind the code).

Some functions are reached by chance: SQLite looks again at a file that another process
still holds. A page without an explanation must be there each time that it is measured.
"""

import bisect
import sqlite3
import sys

import completeness
import emulator
import harness
from harness import claim, require

PAGE = 4096
INSTRUCTION_BYTES = 15            # at most
ATTEMPTS = 4
BUILDS = ["sqlite-gcc", "sqlite-clang"]
DLL = "sqlite3.dll"
GRAPH_DUMP = harness.BUILD / "tests" / "corpus" / "graph_dump"


def pages_of(begin, size):
    return range(begin // PAGE, (begin + size - 1) // PAGE + 1)


class Graph:
    """What discovery says of an image."""

    def __init__(self, path):
        self.instructions, self.references, self.starts = set(), [], []
        result = harness.run([GRAPH_DUMP, "--instructions", path])
        require(result.code == 0, result.describe())
        for line in result.stdout.decode().splitlines():
            kind, *words = line.split()
            if kind == "instruction":
                begin, size = (int(word, 16) for word in words[:2])
                self.starts.append(begin)
                self.instructions.update(range(begin, begin + size))
            elif kind == "ref":
                self.references.append((int(words[0], 16), int(words[1], 16)))
        self.starts.sort()

    def instruction_of(self, site):
        """The instruction that the byte is part of, or None."""
        at = bisect.bisect_right(self.starts, site) - 1
        if at >= 0 and site in self.instructions and \
                site - self.starts[at] < INSTRUCTION_BYTES:
            return self.starts[at]
        return None

    def reads_data_on(self, page, executed):
        direct = {target for site, target in self.references
                  if self.instruction_of(site) in executed}
        pointed = {target for site, target in self.references if site in direct}
        return any(target // PAGE == page and target not in self.instructions
                   for target in direct | pointed)


class Layout:
    """The image in one of its forms: what is predicted, what is measured, what ran."""

    def __init__(self, name, folder, moves):
        self.name, self.folder, self.moves = name, folder, moves
        self.graph = Graph(folder / DLL)

    def backward(self, rva):
        """Where a byte of this form stood in the original."""
        for begin, to, size in self.moves:
            if to <= rva < to + size:
                return begin + rva - to
        return rva

    def forward(self, rva):
        for begin, to, size in self.moves:
            if begin <= rva < begin + size:
                return to + rva - begin
        return rva


def rows(database, query, *values):
    with sqlite3.connect(database) as db:
        return db.execute(query, values).fetchall()


def measured_pages(database, run):
    """By the page debugger: page and kind of its first access."""
    return {page // PAGE: kind for page, kind in rows(
        database, "SELECT page, kind FROM page_touches t JOIN processes p ON p.id = t.process"
        " WHERE p.run = ?", run)}


def executed_in(case, layout, arguments):
    result, addresses, bases = emulator.emulate(case, layout.folder, arguments)
    require(result.code == 0 and DLL in bases, result.describe())
    return {address - bases[DLL] for address in addresses
            if address - bases[DLL] in layout.graph.instructions}


class Explanation:
    """Tells of each page in which prediction and measurement differ why it does."""

    def __init__(self, comparison, layout, touched, executed):
        self.comparison, self.layout, self.executed = comparison, layout, executed
        self.functions = comparison.functions(DLL)
        self.touched = touched
        self.by_page = {}
        for rva in executed:
            self.by_page.setdefault(rva // PAGE, []).append(rva)
        self.starts = sorted(self.functions)
        self.begins = {layout.forward(rva) // PAGE for rva in touched}
        self.reached = {page for rva in touched for page in
                        pages_of(layout.forward(rva), self.functions[rva]["size"])}
        self.image = comparison.images[DLL]
        self.instrumented = (comparison.instrumented / DLL).read_bytes()

    def function_of(self, rva):
        """The function of the original that a byte of the layout belongs to, or None."""
        was = self.layout.backward(rva)
        at = bisect.bisect_right(self.starts, was) - 1
        if at >= 0 and was < self.starts[at] + self.functions[self.starts[at]]["size"]:
            return self.starts[at]
        return None

    def only_predicted(self, page):
        if page in self.reached - self.begins and page not in self.by_page:
            return "cold part"
        return None

    def is_untraced(self, function):
        """Whether probes cannot see the function."""
        row = self.functions.get(function)
        if row is None or row["probe"] is None:
            return True
        self.image.study({function})
        ranges = [(rva, rva + self.functions[rva]["size"]) for rva in self.touched]
        return completeness.explain_lost(self.image, row, ranges,
                                         self.instrumented) is not None

    def only_measured(self, page, kind):
        ran = self.by_page.get(page, [])
        if ran:
            strangers = {self.function_of(rva) for rva in ran}
            if strangers & self.touched or not all(map(self.is_untraced, strangers)):
                return None
            return "no touch"
        if kind != "execute" and self.layout.graph.reads_data_on(page, self.executed):
            return "data"
        return None


def compare(comparison, layout, predicted, case):
    """Measures, and explains each page that is only predicted or only measured; returns
    those that it cannot."""
    run = record_pages(comparison, case, layout.folder)
    measured = measured_pages(comparison.path, run)
    executed = executed_in(case, layout, case.runs[0])
    touched = comparison.touched(DLL, "trace") & set(comparison.functions(DLL))
    explanation = Explanation(comparison, layout, touched, executed)
    reasons, open_questions = {}, []
    for page in sorted(predicted ^ set(measured)):
        reason = (explanation.only_predicted(page) if page in predicted
                  else explanation.only_measured(page, measured[page]))
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            side = "predicted" if page in predicted else f"measured ({measured[page]})"
            open_questions.append(f"0x{page * PAGE:x}: only {side}")
    harness.note(f"{case.name} {layout.name}: {len(predicted)} pages predicted, "
                 f"{len(measured)} measured, {len(predicted & set(measured))} in both, "
                 f"{reasons}")
    # What ran is what the debugger saw run: one fact by two ways.
    open_questions += [f"0x{page * PAGE:x}: ran, not measured"
                       for page in explanation.by_page.keys() - measured.keys()]
    require(predicted & set(measured), "nothing to compare")
    return set(open_questions)


def predicted_pages(report, layout):
    found = next(row for row in report["layouts"] if row["name"] == layout)
    require(len(found["runs"]) == 1, found["runs"])
    return {page // PAGE for page in found["runs"][0]["touched_pages"]}


def record_pages(comparison, case, folder):
    report, = harness.profile(comparison.path, case, folder, "pages",
                              ["--image", folder / DLL])
    return report["run"]


def test(build):
    case = harness.sqlite_case(build)
    case.runs = [["start"]]
    with harness.work_folder() as folder:
        comparison = completeness.Comparison(case, folder)
        comparison.record_probes()
        relinked = case.stage(folder / "relinked")
        harness.relink(comparison.original / DLL, relinked / DLL, "--db", comparison.path)
        report = harness.tool(
            "appulse-reorder", "simulate", comparison.original / DLL, "--db", comparison.path,
            "--relinked", relinked / DLL, "--order", "first-touch", "--order", "original",
            "--json", "--details").json()
        with claim(f"{build}: an order is predicted as its relink"):
            by_name = {row["name"]: row for row in report["layouts"]}
            for key in ("pages", "wasted_bytes", "clusters", "moved_blocks", "runs"):
                require(by_name["first-touch"][key] == by_name["relinked"][key], key)
            require(by_name["original"]["pages"] > by_name["relinked"]["pages"], "no gain")
        moves = harness.json.loads((relinked / f"{DLL}.map.json").read_text())["moves"]
        for layout in (Layout("original", comparison.original, []),
                       Layout("relinked", relinked, moves)):
            with claim(f"{build}: pages of the {layout.name}"):
                predicted = predicted_pages(report, layout.name)
                left = compare(comparison, layout, predicted, case)
                for _ in range(1, ATTEMPTS):
                    left = left and left & compare(comparison, layout, predicted, case)
                require(not left, f"{len(left)} not explained: {sorted(left)[:20]}")


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    harness.prepare_wine()
    for build in BUILDS:
        with claim(f"{build}: the start is recorded and relinked"):
            test(build)
    harness.finish()


if __name__ == "__main__":
    main()
