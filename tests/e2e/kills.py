#!/usr/bin/env python3
"""What was recorded before a SIGKILL is not lost: of the Windows process, of the collector,
of both."""

import os
import pathlib
import signal
import sqlite3
import subprocess
import time

import harness
from harness import claim, require

SECONDS = 60


def touched(database):
    with sqlite3.connect(database) as connection:
        return {row[0] for row in connection.execute(
            "SELECT DISTINCT function FROM v_first_touch WHERE image = 'children.dll'")}


class Hanging:
    """A collector whose program has worked and waits."""

    def __init__(self, case, folder, database):
        self.output = folder / "output"
        with open(self.output, "wb") as out:
            self.collector = subprocess.Popen(
                [harness.tool_path("appulse-profile"), "run", "--quiet", "--db", database,
                 "--", "wine", case.exe, "hang"],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=harness.wine_environment(), start_new_session=True)
        end = time.monotonic() + SECONDS
        while b"\n" not in self.output.read_bytes():
            require(time.monotonic() < end and self.collector.poll() is None,
                    f"no output: {self.output.read_bytes()}")
            time.sleep(0.05)

    def windows_process(self):
        """The one of the collector's session that runs the program."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if (os.getsid(int(entry.name)) == self.collector.pid
                        and int(entry.name) != self.collector.pid
                        and b"hang" in words):
                    return int(entry.name)
            except (OSError, ValueError):
                continue
        raise harness.Failure("the Windows process is not to be found")

    def kill_program(self):
        os.kill(self.windows_process(), signal.SIGKILL)

    def kill_collector(self):
        self.collector.kill()
        self.collector.wait()

    def end(self):
        try:
            os.killpg(self.collector.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.collector.wait()


def complete(case, folder, database):
    """What the same work touches in a run without a kill, before it begins to end."""
    harness.run([harness.tool_path("appulse-profile"), "run", "--quiet", "--db", database,
                 "--", "wine", case.exe, "0", "20"], cwd=folder,
                environment=harness.wine_environment())
    with sqlite3.connect(database) as connection:
        names = [row[0] for row in connection.execute(
            "SELECT function FROM v_first_touch WHERE image = 'children.dll' ORDER BY seq")]
    require("fibonacci" in names, f"only {names}")
    return set(names[:names.index("fibonacci") + 1])


def killed(case, folder, database, kills, expected):
    hanging = Hanging(case, folder, database)
    try:
        for kill in kills:
            getattr(hanging, kill)()
        if "kill_collector" not in kills:
            require(hanging.collector.wait(SECONDS) == 1, "the kill passed for success")
    finally:
        hanging.end()
    if "kill_collector" in kills:
        require(not touched(database), "the collector was killed too late")
        harness.tool("appulse-profile", "import", "--quiet", "--db", database, cwd=folder)
    require(touched(database) >= expected, f"missing: {expected - touched(database)}")


WAYS = {
    "the Windows process": ["kill_program"],
    "the collector": ["kill_collector"],
    "the collector, then the process": ["kill_collector", "kill_program"],
    "the process, then the collector": ["kill_program", "kill_collector"],
}


def instrumented(case, where):
    """A fresh folder and database for each way: a killed writer leaves files beside it."""
    folder, database = case.stage(where), where / "t.db"
    original = case.stage(where / "original")
    harness.instrument(original / "children.dll", folder / "children.dll", database)
    return folder, database


def main():
    harness.prepare_wine()
    case = harness.fixture_case("children", "gcc-O2")
    with harness.work_folder() as where:
        expected = None
        with claim("a run without a kill"):
            expected = complete(case, *instrumented(case, where / "complete"))
        for number, (what, kills) in enumerate(WAYS.items() if expected else ()):
            with claim(f"killed: {what}"):
                killed(case, *instrumented(case, where / str(number)), kills, expected)
    harness.finish()


if __name__ == "__main__":
    main()
