"""Comparing two commands on a machine that others use too.

Two commands run in turn, A B, B A, A B, ..., and each pair gives one ratio; the median over
the pairs is the figure.  What disturbs the machine for longer than a pair disturbs both of
it, and what disturbs one run only makes an outlier.  Times passed are what a user waits
for; processor times stand beside them, because a busy machine changes them less.

No figure is a failure here: only a command that fails ends a benchmark.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("APPULSE_BUILD", "build")).resolve()
MEASURED_RUN = BUILD / "tests" / "bench" / "measured_run"
PAIRS = 7
SECONDS_LIMIT = 300


class Failure(Exception):
    pass


@dataclasses.dataclass
class Cost:
    wall: float      # seconds
    cpu: float       # seconds, user and system; of waited-for children too
    peak: int        # bytes resident
    stdout: bytes
    stderr: bytes


def measure(command, cwd=None, environment=None):
    """Runs a command and gives its cost; raises Failure when its exit code is not 0."""
    command = [str(word) for word in command]
    with tempfile.NamedTemporaryFile("r", dir=work_parent()) as report, \
            tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run([MEASURED_RUN, report.name, *command], cwd=cwd,
                              env=environment, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=err, timeout=SECONDS_LIMIT)
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read(), err.read()
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: exit code {done.returncode}\n"
                          f"{stderr.decode(errors='replace')}")
        wall, user, system, peak = report.read().split()
    return Cost(float(wall), float(user) + float(system), int(peak) * 1024, stdout, stderr)


def work_parent():
    """On the disk that the build is on: what is written there counts."""
    folder = BUILD / "bench"
    folder.mkdir(exist_ok=True)
    return folder


def work_folder():
    return tempfile.TemporaryDirectory(dir=work_parent())


def run_pairs(first, second, pairs=PAIRS):
    """Costs of two functions that measure, in pairs, after one run of each to warm up."""
    first(), second()
    done = []
    for number in range(pairs):
        if number % 2:
            b, a = second(), first()
        else:
            a, b = first(), second()
        done.append((a, b))
    return done


@dataclasses.dataclass
class Spread:
    """Median and extremes."""
    median: float
    low: float
    high: float

    def __str__(self):
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def spread(values):
    values = list(values)
    return Spread(statistics.median(values), min(values), max(values))


def ratio(pairs, value):
    """How many times the first's the second's value is."""
    return spread(value(b) / value(a) for a, b in pairs)


def milliseconds(costs, value=lambda cost: cost.wall):
    return statistics.median(value(cost) for cost in costs) * 1000


class Report:
    """A table for people, and the same rows as JSON with --json FILE."""

    def __init__(self, name, columns):
        self.name = name
        self.columns = columns   # (key, heading, width)
        self.rows = []
        print(f"{name}, {len(os.sched_getaffinity(0))} processors, "
              f"load {os.getloadavg()[0]:.1f}")
        print("  ".join(f"{heading:{'<' if i == 0 else '>'}{width}}"
                        for i, (_, heading, width) in enumerate(columns)), flush=True)

    def add(self, **row):
        self.rows.append(row)
        words = []
        for i, (key, _, width) in enumerate(self.columns):
            value = row.get(key, "")
            text = f"{value:.1f}" if isinstance(value, float) else str(value)
            words.append(f"{text:{'<' if i == 0 else '>'}{width}}")
        print("  ".join(words).rstrip(), flush=True)

    def write_json(self, path):
        rows = [{key: dataclasses.asdict(value) if isinstance(value, Spread) else value
                 for key, value in row.items()} for row in self.rows]
        document = {"format": 1, "benchmark": self.name, "rows": rows}
        pathlib.Path(path).write_text(json.dumps(document, indent=2) + "\n")


def run_main(benchmark, parser):
    """Parses the command line and runs the benchmark; the exit code is 1 only when a
    command failed."""
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_intermixed_args()
    try:
        report = benchmark(arguments)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    if arguments.json:
        report.write_json(arguments.json)
    return 0
