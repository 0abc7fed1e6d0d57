#!/usr/bin/env python3
"""What tracing costs the program that is traced, under Wine, against the plain program.

    run_cost.py steady     time of one round of the SQLite workload "broad", repeated
    run_cost.py tracers    time of whole runs, by probes, breakpoints and page guards

Steady: every function that is touched has been recorded after the first round, so what is
left is one indirect jump for each call of a probed function.  "untraced" is the instrumented
image without a recorder.  Column "cpu" has the processor time of the whole run over all its
rounds, of which start and end are a hundredth.

Tracers: a whole command with all that it stores, "plain" being the program alone.  The
server of Wine is up before.
"""

import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
import paired  # noqa: E402

PROFILE = harness.tool_path("appulse-profile")
BUILDS = ["sqlite-gcc", "sqlite-clang"]
DLL = "sqlite3.dll"
WALL_COLUMNS = [paired.Column("plain_ms", "plain ms", 9, "ms"),
                paired.Column("other_ms", "ms", 9, "ms"),
                paired.Column("ratio", "ratio", 22, "ratio", True)]
COLUMNS = {"steady": [*WALL_COLUMNS, paired.Column("cpu_ratio", "cpu", 22, "ratio", True)],
           "tracers": WALL_COLUMNS}
ROUNDS = re.compile(rb"(\d+) rounds in [\d.]+ s, ([\d.]+) ms each")


class Program:
    """The SQLite workload with one build of the DLL, plain and instrumented."""

    def __init__(self, build, folder):
        case = harness.sqlite_case(build)
        folder = pathlib.Path(folder)
        self.plain = case.stage(folder / "plain")
        self.instrumented = case.stage(folder / "instrumented")
        self.database = folder / "t.db"
        self.command = ["wine", case.exe]
        paired.measure([harness.tool_path("appulse-instrument"), self.plain / DLL, "-o",
                        self.instrumented / DLL, "--db", self.database, "--force"])

    def run(self, folder, arguments, front=()):
        return paired.measure([*front, *self.command, *arguments], cwd=folder,
                              environment=harness.wine_environment())

    def run_plain(self, arguments):
        return self.run(self.plain, arguments)

    def run_untraced(self, arguments):
        return self.run(self.instrumented, arguments)

    def front(self, subcommand, *options):
        return [PROFILE, subcommand, "--db", self.database, "--quiet", *options, "--"]

    def run_traced(self, arguments):
        return self.run(self.instrumented, arguments, self.front("run"))

    def run_breakpoints(self, arguments):
        return self.run(self.plain, arguments, self.front("breakpoints", "--image", DLL))

    def run_pages(self, arguments):
        return self.run(self.plain, arguments, self.front("pages", "--image", DLL))


def round_time(cost):
    """Milliseconds that the program says."""
    found = ROUNDS.search(cost.stderr)
    if not found:
        raise paired.Failure(f"the program tells no time of a round: {cost.stderr}")
    return float(found[2])


def round_cpu(cost):
    """Seconds; the program does one round before those that it counts."""
    return cost.cpu / (int(ROUNDS.search(cost.stderr)[1]) + 1)


def compare(report, build, what, pairs, value, **more):
    report.add(build, what, plain_ms=paired.spread(value(a) for a, _ in pairs),
               other_ms=paired.spread(value(b) for _, b in pairs),
               ratio=paired.ratio(pairs, value), **more)


def steady(program, build, report, arguments):
    job = ["broad", "--seconds", str(arguments.seconds)]
    for name, other in (("untraced", program.run_untraced), ("traced", program.run_traced)):
        pairs = paired.run_pairs(lambda: program.run_plain(job), lambda: other(job),
                                 arguments.pairs)
        compare(report, build, f"broad, one round, {name}", pairs, round_time,
                cpu_ratio=paired.ratio(pairs, round_cpu))


def tracers(program, build, report, arguments):
    for job in (["start"], ["broad"]):
        for name, other in (("probes", program.run_traced),
                            ("breakpoints", program.run_breakpoints),
                            ("page guards", program.run_pages)):
            pairs = paired.run_pairs(lambda: program.run_plain(job), lambda: other(job),
                                     arguments.pairs)
            compare(report, build, f"{job[0]}, whole run, {name}", pairs,
                    lambda cost: cost.wall * 1000)


def benchmark(arguments):
    report = paired.Report(f"run_cost {arguments.what}", 50, COLUMNS[arguments.what])
    harness.prepare_wine()
    for build in arguments.builds:
        with paired.work_folder() as folder:
            program = Program(build, folder)
            {"steady": steady, "tracers": tracers}[arguments.what](program, build, report,
                                                                  arguments)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steady", "tracers"])
    parser.add_argument("builds", nargs="*", default=BUILDS, help="names of corpus.py")
    parser.add_argument("--seconds", type=float, default=2, help="of each steady run")
    try:
        return paired.run_main(benchmark, parser)
    except harness.corpus.CorpusError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
