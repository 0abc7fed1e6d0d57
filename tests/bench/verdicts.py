#!/usr/bin/env python3
"""How often appulse-profile compare is right, of a DLL against itself and of slower copies.

    verdicts.py [--tries N] [--runs N] [--json FILE]

The program loads page_steps.dll and calls two of its functions.  Compared are, each with
seeds 1, 2, ...: the DLL against itself, and against a copy whose entry sleeps five
milliseconds.  Printed is how often each verdict came, by metric, and how often a comparison
failed, since a run did.  On a machine that others use, run it in front of them, with
`chrt -f 10`: five milliseconds are less than a process may have to wait for a processor.
"""

import argparse
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
import paired  # noqa: E402

FIXTURES = harness.BUILD / "fixtures"
DLL, EXE = "page_steps.dll", "page_walker.exe"
OTHERS = {"itself": DLL, "sleeps 5 ms": "page_steps_sleeps_5.dll"}
METRICS = ["run phase", "wall time", "working set"]
VERDICTS = {"same": "no-difference-seen", "less": "less", "more": "more"}
COLUMNS = [*(paired.Column(key, key, 6, "count") for key in [*VERDICTS, "failed"]),
           paired.Column("a_ms", "A, ms", 9, "ms"), paired.Column("b_ms", "B, ms", 9, "ms"),
           paired.Column("ratio", "ratio", 22, "ratio", True),
           paired.Column("needed", "for 2 %", 9, "count")]
SECONDS = 1200


def compare(folder, other, seed, runs):
    result = harness.run(
        [harness.tool_path("appulse-profile"), "compare", "--json", "--times-only", "--runs",
         str(runs), "--seed", str(seed), DLL, other, "--", "wine", EXE, "walk", "20", "30"],
        cwd=folder, environment=harness.wine_environment(), seconds=SECONDS)
    if result.code:
        print(result.describe(), file=sys.stderr)
        return None
    return {metric["name"]: metric for metric in result.json()["metrics"]}


def row(name, tries):
    metrics = [metrics[name] for metrics in tries]
    values = {key: sum(m["verdict"] == verdict for m in metrics)
              for key, verdict in VERDICTS.items()}
    values["ratio"] = paired.spread(m["ratio"] for m in metrics)
    values["needed"] = paired.spread(m["runs_for_2_percent"] for m in metrics)
    if metrics[0]["unit"] == "seconds":
        for side in "ab":
            values[f"{side}_ms"] = paired.spread(m[side]["median"] * 1000 for m in metrics)
    return values


def benchmark(arguments):
    report = paired.Report("verdicts", 36, COLUMNS)
    harness.prepare_wine()
    with paired.work_folder() as name:
        folder = pathlib.Path(name)
        for file in {DLL, EXE, *OTHERS.values()}:
            shutil.copy(FIXTURES / file, folder)
        for what, other in OTHERS.items():
            tries = [compare(folder, other, seed, arguments.runs)
                     for seed in range(1, arguments.tries + 1)]
            whole = [one for one in tries if one]
            if not whole:
                raise paired.Failure("no comparison came to its end")
            for metric in METRICS:
                report.add(what, metric, failed=len(tries) - len(whole), **row(metric, whole))
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20, help="of each image in a try")
    return paired.run_main(benchmark, parser)


if __name__ == "__main__":
    sys.exit(main())
