"""The benchmarks' figures as one JSON format, so that they can be kept and compared from
commit to commit (docs/benchmarks.md, "The figures as JSON").

Nothing of the day gets in: the same commit, machine and figures give the same bytes.
"""

import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess

FORMAT = 1
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
UNITS = ("ms", "MB", "ratio", "share", "count", "pages", "bytes")


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


def git(*words):
    """What git says of the source, or None: an unpacked archive has no history."""
    try:
        done = subprocess.run(["git", "-C", SOURCE, *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit():
    """The commit that was measured, and whether files have been changed since."""
    name = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": name, "changed": bool(changes) if changes is not None else None}


def field(path, name):
    """The first value of NAME in a file of lines such as "name : value" or NAME="value"."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.replace("=", ":", 1).partition(":")
        if key.strip() == name:
            return value.strip().strip('"')
    return None


def machine():
    memory = field("/proc/meminfo", "MemTotal")
    return {"processor": field("/proc/cpuinfo", "model name"),
            "processors": len(os.sched_getaffinity(0)),
            "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
            "kernel": f"{platform.system()} {platform.release()}",
            "system": field("/etc/os-release", "PRETTY_NAME")}


class Figures:
    """What one benchmark measured.  A figure is known by its name and image."""

    def __init__(self, benchmark):
        self.benchmark = benchmark
        self.figures = []

    def add(self, name, image, unit, value):
        """`value` is a number or a Spread; `image` is None for what needs none."""
        if unit not in UNITS:
            raise ValueError(f"unit '{unit}' of '{name}' is not documented")
        if any((f["name"], f["image"]) == (name, image) for f in self.figures):
            raise ValueError(f"'{name}' of '{image}' is there already")
        if not isinstance(value, Spread):
            value = Spread(value, value, value)
        self.figures.append({"name": name, "image": image, "unit": unit}
                            | dataclasses.asdict(value))

    def document(self):
        return {"format": FORMAT, "benchmark": self.benchmark, **commit(),
                "machine": machine(), "figures": self.figures}

    def write(self, path):
        pathlib.Path(path).write_text(json.dumps(self.document(), indent=2) + "\n")
