#!/usr/bin/env python3
"""A traced program killed at any moment of its start leaves the beginning of its story.

SQLite's start runs in one thread, so it touches the same functions in the same order each
time.  It is killed as soon as its trace file counts so and so many touches: then what is in
the database must be the beginning of the whole story, and no shorter than what was counted
before the kill.
"""

import contextlib
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import time

import harness
from harness import claim, require

SECONDS = 60
ATTEMPTS = 10
IMAGE = "sqlite3.dll"
# Touches to wait for, and whom to kill then.
MOMENTS = [(1, "program"), (20, "collector and program"), (90, "program"),
           (200, "collector and program"), (300, "program"), (420, "program"),
           (470, "collector and program")]
# Of a trace file's header: the bytes that it begins with, and where the count stands.
MAGIC, NEXT = b"APTRACE1", 24


def story(database):
    with sqlite3.connect(database) as connection:
        return [row[0] for row in connection.execute(
            "SELECT rva FROM v_first_touch WHERE image = ? ORDER BY seq", (IMAGE,))]


def counted(folder):
    """Touches in the trace file of the one image that has probes."""
    try:
        for path in folder.glob("t.db.traces-*/*.aptrace"):
            with open(path, "rb") as file:
                head = file.read(64)
            if head[:8] == MAGIC:
                return struct.unpack_from("<I", head, NEXT)[0]
    except FileNotFoundError:
        pass    # the collector is through and has removed it
    return 0


def processes(session):
    """The processes of a session that run the program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry.name.isdigit() and os.getsid(int(entry.name)) == session
                    and b"sqlite.exe" in (entry / "cmdline").read_bytes()
                    and int(entry.name) != session):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def run_until(case, folder, touches, victims):
    """Starts the program, kills at that moment; what the trace file counted before, or None
    when the program was faster."""
    collector = subprocess.Popen(
        [harness.tool_path("appulse-profile"), "run", "--quiet", "--db", "t.db", "--",
         "wine", case.exe, "start"], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=harness.wine_environment(), start_new_session=True)
    try:
        end = time.monotonic() + SECONDS
        while (count := counted(folder)) < touches:
            require(time.monotonic() < end, f"{count} touches after {SECONDS} s")
            if collector.poll() is not None:
                return None
        if "collector" in victims:
            collector.kill()
        for pid in processes(collector.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        collector.wait(SECONDS)
    finally:
        try:
            os.killpg(collector.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        collector.wait()
    return count


def killed(case, where, whole, touches, victims):
    for attempt in range(ATTEMPTS):
        folder = stage(case, where / str(attempt))
        before = run_until(case, folder, touches, victims)
        if before is not None:
            break
    else:
        raise harness.Failure(f"{ATTEMPTS} times the program was faster")
    harness.tool("appulse-profile", "import", "--quiet", "--db", folder / "t.db",
                 cwd=folder)
    found = story(folder / "t.db")
    harness.note(f"{before} touches counted before the kill, {len(found)} in the database")
    require(len(found) >= before, f"{before} were counted, {len(found)} are there")
    require(found == whole[:len(found)], "not the beginning of the whole story")


def stage(case, where):
    folder = case.stage(where)
    original = case.stage(where / "original")
    harness.instrument(original / IMAGE, folder / IMAGE, folder / "t.db")
    return folder


def complete(case, where):
    stories = []
    for name in ("one", "two"):
        folder = stage(case, where / name)
        harness.tool("appulse-profile", "run", "--quiet", "--db", folder / "t.db", "--",
                     "wine", case.exe, "start", cwd=folder)
        stories.append(story(folder / "t.db"))
    require(stories[0] == stories[1], "two runs tell different stories")
    require(len(stories[0]) > MOMENTS[-1][0], f"only {len(stories[0])} touches")
    return stories[0]


def main():
    harness.prepare_wine()
    case = harness.sqlite_case("sqlite-gcc")
    with harness.work_folder() as where:
        whole = None
        with claim("two whole runs are alike"):
            whole = complete(case, where)
        for touches, victims in MOMENTS if whole else ():
            with claim(f"{victims} killed after {touches} touches"):
                killed(case, where / str(touches), whole, touches, victims)
    harness.finish()


if __name__ == "__main__":
    main()
