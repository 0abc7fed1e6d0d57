"""Comparing two commands on a machine that others use too.

Two commands run in turn, A B, B A, A B, ..., and each pair gives one ratio; the median over
the pairs is the figure.  What disturbs the machine for longer than a pair disturbs both of
it, and what disturbs one run only makes an outlier.  Times passed are what a user waits
for; processor times stand beside them, because a busy machine changes them less.

No figure is a failure here: only a command that fails ends a benchmark.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

from figures import Figures, Spread, spread

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


def ratio(pairs, value):
    """How many times the first's the second's value is."""
    return spread(value(b) / value(a) for a, b in pairs)


def milliseconds(costs, value=lambda cost: cost.wall):
    return spread(value(cost) * 1000 for cost in costs)


@dataclasses.dataclass
class Column:
    """A figure of each row; `extremes` are shown beside the median."""
    key: str
    heading: str
    width: int
    unit: str           # of figures.UNITS; "" for words, which are no figure
    extremes: bool = False

    def text(self, value):
        if isinstance(value, Spread) and self.extremes:
            return str(value)
        value = value.median if isinstance(value, Spread) else value
        if self.unit == "share":
            return f"{value:.2%}"
        return f"{value:.1f}" if isinstance(value, float) else str(value)


class Report:
    """A table for people, and the same figures as JSON with --json FILE."""

    def __init__(self, name, width, columns):
        self.figures = Figures(name.replace(" ", "_"))
        self.width = width       # of the words before the figures
        self.columns = columns
        print(f"{name}, {len(os.sched_getaffinity(0))} processors, "
              f"load {os.getloadavg()[0]:.1f}")
        self.print_row("", {column.key: column.heading for column in columns})

    def print_row(self, words, texts):
        cells = [f"{texts.get(column.key, ''):>{column.width}}" for column in self.columns]
        print("  ".join([f"{words:<{self.width}}", *cells]).rstrip(), flush=True)

    def add(self, image, what, **row):
        """What was measured of an image (None: without any), a value for each column."""
        self.print_row(": ".join(word for word in (image, what) if word),
                       {c.key: c.text(row[c.key]) for c in self.columns if c.key in row})
        for column in self.columns:
            if column.unit and column.key in row:
                name = "/".join(word for word in (what, column.key) if word)
                self.figures.add(name, image, column.unit, row[column.key])


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
        report.figures.write(arguments.json)
    return 0
