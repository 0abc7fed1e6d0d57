#!/usr/bin/env python3
"""Programs that nobody here wrote do their work on images that were transformed.

    real_programs.py NAME... [--seeds COUNT] [--only STEP,...]

For each program, in this order, every step against the output, errors, exit codes and files
of the plain program:

    plain        runs alike twice, and what it says is right
    notices      fails when a quarter of an image's code is int3: else it proves nothing
    traced       instrumented, behaves the same; its trace has every function that breakpoints
                 see, each difference explained (completeness.py)
    identity     --order original
    random       COUNT seeds (2) in each placement; they begin with $APPULSE_SEED (1)
    first-touch  by the trace of the step "traced", in each placement
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
from harness import claim, require  # noqa: E402

import archives  # noqa: E402
import completeness  # noqa: E402
import node_programs  # noqa: E402
import workloads  # noqa: E402

BROKEN_SECONDS = 45   # a broken program may well hang, which is a way of noticing
PLACEMENTS = ("exchange", "append")
PROGRAMS = {
    "7za": archives.Archives,
    "duckdb": node_programs.DuckDB,
    "duckdb-addon": node_programs.duckdb_addon,
    "lightningcss": node_programs.lightningcss,
    "node": node_programs.node,
    "node-20": lambda: node_programs.node("node-20.exe"),
    "node-22": lambda: node_programs.node("node-22.exe"),
    "node-and-addons": node_programs.together,
    "node-pty": node_programs.node_pty,
    "rollup": node_programs.rollup,
    "sharp": node_programs.sharp,
    "swc": node_programs.swc,
    "winpty-agent": node_programs.WinptyAgent,
}


class Trial:
    """A program, staged, and what it does unchanged."""

    def __init__(self, case, where, seeds):
        self.case, self.where, self.seeds = case, where, seeds
        self.original = case.stage(where / "original")
        self.other = case.stage(where / "other")
        self.expected = None

    def relinked(self, what, *arguments):
        with claim(f"{self.case.name}: {what}"):
            reports = harness.relink_all(self.case, self.original, self.other, *arguments)
            harness.require_same(self.expected, self.case.outcome(self.other), what)
            return reports

    def plain(self):
        with claim(f"{self.case.name}: plain"):
            workloads.runs_alike(self.case, self.other)
            self.expected = self.case.outcome(self.original)
            self.case.expect(self.original, self.expected)

    def notices(self):
        usual, self.case.seconds = self.case.seconds, BROKEN_SECONDS
        with claim(f"{self.case.name}: notices broken code"):
            workloads.notices(self.case, self.other, self.original, self.expected)
        self.case.seconds = usual

    def traced(self):
        with claim(f"{self.case.name}: traced"):
            (self.where / "traced").mkdir()
            Traced(self.case, self.where / "traced", self.expected).compare()

    def identity(self):
        reports = self.relinked("order original", "--order", "original")
        with claim(f"{self.case.name}: order original moves nothing"):
            require(reports and not any(r["output"]["moved_blocks"] for r in reports),
                    f"{reports}")

    def random(self):
        for seed in self.seeds:
            for placement in PLACEMENTS:
                self.relinked(f"order random, seed {seed}, {placement}", "--order", "random",
                              "--seed", seed, "--placement", placement)

    def first_touch(self):
        for placement in PLACEMENTS:
            self.relinked(f"order first-touch, {placement}", "--db",
                          self.where / "traced" / "t.db", "--placement", placement)


class Traced(completeness.Comparison):
    """The traced run must behave, too."""

    def __init__(self, case, where, expected):
        super().__init__(case, where)
        self.expected = expected

    def record_probes(self):
        traces = self.where / "traces"
        traces.mkdir()
        found = self.case.outcome(self.instrumented, {"APPULSE_TRACE_DIR": str(traces)})
        harness.require_same(self.expected, found, "instrumented")
        harness.tool("appulse-profile", "import", "--db", self.path, traces)
        harness.shutil.rmtree(traces)


STEPS = ["plain", "notices", "traced", "identity", "random", "first-touch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=PROGRAMS)
    parser.add_argument("--seeds", type=int, default=2, metavar="COUNT")
    parser.add_argument("--only", default=",".join(STEPS), metavar="STEP,...")
    options = parser.parse_args()
    steps = options.only.split(",")
    if set(steps) - set(STEPS):
        parser.error(f"steps are {', '.join(STEPS)}")
    harness.prepare_wine()
    for name in options.names:
        with harness.work_folder() as where:
            trial = Trial(PROGRAMS[name](), where, harness.seeds(options.seeds))
            trial.plain()
            for step in steps:
                if step != "plain" and trial.expected:
                    getattr(trial, step.replace("-", "_"))()
    harness.finish()


if __name__ == "__main__":
    main()
