#!/usr/bin/env python3
"""appulse-profile compare on real programs: relinked against as linked, and against itself.

    real_comparisons.py [--runs N] [--times-only] [--json FILE] [NAME...]

The programs, their work and both images are those of hard_faults.py: A has FileAlignment
4096 and nothing moved, B is relinked by the first touches of one traced run.  All runs are
cold.  To time on a machine that others use, put it in front of them and leave faults out:
`taskset -c 1 chrt -f 10 ... --times-only`.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
import figures as tracked  # noqa: E402
import hard_faults  # noqa: E402
import harness  # noqa: E402

NAMES = ["sqlite", "7za"]
SCALES = {"seconds": (1000, " ms", 1), "bytes": (1 / (1 << 20), " MiB", 1),
          "pages": (1, "", 0), "faults": (1, "", 0)}
HEADER = "| program | B is | metric | A, median | B | B against A | runs for 2 % |\n" \
         "|---|---|---|---:|---:|---|---:|"


def compare(program, folder, other, options):
    """All that the tool says of the image in `folder` against `other`."""
    # A server of an earlier mount namespace would keep loop devices out.
    harness.run(["wineserver", "-w"], environment=hard_faults.environment(), seconds=120)
    words = ["--times-only"] if options.times_only else []
    return hard_faults.tool("appulse-profile", "compare", "--json", "--cold", "--runs",
                            str(options.runs), *words, program.image, other,
                            *hard_faults.repeated(program), cwd=folder)


def value(metric, side):
    scale, unit, digits = SCALES[metric["unit"]]
    return f"{metric[side]['median'] * scale:.{digits}f}{unit}"


def verdict(metric):
    if metric["ratio"] is None:
        return metric["verdict"]
    word = {"less": "less", "more": "more"}.get(metric["verdict"], "no difference seen")
    low, high = (100 * (metric[key] - 1) for key in ("ratio_low", "ratio_high"))
    if metric["verdict"] in ("less", "more"):
        word += f": {100 * (metric['ratio'] - 1):+.1f} %"
    return f"{word} ({low:+.1f} to {high:+.1f} %)"


def rows(name, what, told):
    for number, metric in enumerate(told["metrics"]):
        head = f"| {name} | {what} |" if number == 0 else "| | |"
        yield (f"{head} {metric['name']} | {value(metric, 'a')} | {value(metric, 'b')} | "
               f"{verdict(metric)} | {metric['runs_for_2_percent'] or ''} |")


def add_figures(document, name, what, told):
    for metric in told["metrics"]:
        if metric["ratio"] is not None:
            document.add(f"{metric['name']}, B to A", f"{name}, {what}", "ratio",
                         tracked.Spread(metric["ratio"], metric["ratio_low"],
                                        metric["ratio_high"]))


def main():
    known = hard_faults.programs()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--times-only", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    document = tracked.Figures("real_comparisons")
    hard_faults.make_prefix()
    print(HEADER, flush=True)
    for name in options.names:
        with harness.work_folder() as folder:
            program = known[name]
            base, after = hard_faults.relinked(program, folder)
            for what, other in (("A itself", base), ("relinked", after)):
                told = compare(program, base, other / program.image, options)
                print(*rows(program.name(), what, told), sep="\n", flush=True)
                add_figures(document, program.name(), what, told)
    print("load averages at the end:", *(f"{load:.1f}" for load in os.getloadavg()),
          file=sys.stderr)
    if options.json:
        document.write(options.json)


if __name__ == "__main__":
    main()
