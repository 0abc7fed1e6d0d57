#!/usr/bin/env python3
"""Hard faults of real images as linked and relinked: predicted, and measured.

    hard_faults.py [--json FILE] [NAME...]

For each program: the image with FileAlignment 4096 and nothing moved, and relinked by first
touch of one traced run.  Predicted by `appulse-reorder simulate` with clusters of one page,
measured by `appulse-profile faults --cold` with no read-ahead, which says how it measured:
on a loop device when this is root, else by the preloaded library.  Counted are pages of code.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "corpus")]

import archives  # noqa: E402
import figures as tracked  # noqa: E402
import harness  # noqa: E402
import node_programs  # noqa: E402

SECONDS = 600
LINE = "addon_rollup_line"


@dataclasses.dataclass
class Program:
    case: harness.Case
    image: str          # path in the case's folder
    arguments: list
    before: object = None   # makes input in the folder
    made: str = ""          # what a run makes, and another one would find

    def name(self):
        return pathlib.PurePath(self.image).name


def programs():
    rollup = node_programs.Node("rollup", [LINE], [node_programs.ROLLUP_IMAGE],
                                node_programs.rollup_files())
    return {
        "sqlite": Program(harness.sqlite_case("sqlite-gcc"), "sqlite3.dll", ["start"]),
        "7za": Program(archives.Archives(), "7za.exe",
                       ["a", "-t7z", "made.7z", "./input/*"],
                       lambda folder: archives.make_input(folder / "input"), "made.7z"),
        "rollup": Program(rollup, node_programs.ROLLUP_IMAGE, [f"{LINE}.js"]),
    }


def environment():
    """A prefix of its own: a Wine server that runs already keeps loop devices out."""
    return harness.wine_environment() | {"WINEPREFIX": str(harness.BUILD / "bench" / "wine")}


def make_prefix():
    prefix = pathlib.Path(environment()["WINEPREFIX"])
    if not prefix.exists():
        prefix.parent.mkdir(exist_ok=True)
        harness.prepare_wine()
        harness.run(["wineserver", "-w"], environment=harness.wine_environment(), seconds=120)
        shutil.copytree(harness.BUILD / "wine", prefix, symlinks=True)
        (prefix / "wineserver").unlink(missing_ok=True)  # names the other's server


def tool(name, *words, cwd=None):
    result = harness.run([harness.tool_path(name), *words], cwd=cwd, seconds=SECONDS,
                         environment=environment())
    harness.require(result.code == 0, result.describe())
    return json.loads(result.stdout)


def stage(program, folder):
    program.case.stage(folder)
    if program.before:
        program.before(folder)
    return folder


def command(program):
    return ["--", "wine", program.case.exe, *program.arguments]


def repeated(program):
    """The command for several runs, each of which begins as the first."""
    words = command(program)
    if not program.made:
        return words
    return ["--", "sh", "-c", f'rm -f {program.made}; exec "$@"', "sh", *words[1:]]


def predicted(image, database, orders):
    words = [word for order in orders for word in ("--order", order)]
    told = tool("appulse-reorder", "simulate", image, "--db", database, "--clusters", "1",
                "--json", *words)
    return [round(layout["clusters"][0]["faults"]) for layout in told["layouts"]], \
        told["runs"][0]["floor_pages"]


def measured(program, folder, database):
    """Pages of code with a hard fault, and how that was found out."""
    harness.run(["wineserver", "-w"], environment=environment(), seconds=120)
    told = tool("appulse-profile", "faults", "--db", database, "--image", program.image,
                "--cold", "--json", *command(program), cwd=folder)
    harness.require(told["lost_events"] == 0, "events were lost")
    return told["images"][0], f"{told['method']}, {told['counter']}"


def relinked(program, folder):
    """Folders with the image as linked and relinked, each with FileAlignment 4096; the
    database is beside them."""
    plain, base, traced, after = (stage(program, folder / name)
                                  for name in ("plain", "base", "traced", "after"))
    database, image = folder / "t.db", program.image
    tool("appulse-reorder", plain / image, "-o", base / image, "--order", "original",
         "--file-alignment", "4096", "--force", "--json")
    tool("appulse-instrument", plain / image, "-o", traced / image, "--db", database,
         "--force", "--json")
    tool("appulse-profile", "run", "--db", database, "--json", *command(program), cwd=traced)
    tool("appulse-reorder", plain / image, "--db", database, "-o", after / image,
         "--file-alignment", "4096", "--force", "--json")
    return base, after


def figures(program, folder):
    base, after = relinked(program, folder)
    database = folder / "t.db"
    (old, new), floor = predicted(folder / "plain" / program.image, database,
                                  ("original", "first-touch"))
    before, how = measured(program, base, database)
    behind, _ = measured(program, after, database)
    return {"image": program.name(), "code_pages": before["code_pages"],
            "predicted_before": old, "predicted_after": new, "floor": floor,
            "before": before["hard_code_pages"], "after": behind["hard_code_pages"],
            "all_before": before["hard_pages"], "all_after": behind["hard_pages"],
            "how": how}


HEADER = ("| image | code pages | predicted before | after | floor | measured before | after "
          "| change | all pages before | after | how |\n|---|" + "---:|" * 9 + "---|")


def row(f):
    change = 100 * (f["after"] - f["before"]) / f["before"]
    return (f"| {f['image']} | {f['code_pages']} | {f['predicted_before']} | "
            f"{f['predicted_after']} | {f['floor']} | {f['before']} | {f['after']} | "
            f"{change:.0f} % | {f['all_before']} | {f['all_after']} | {f['how']} |")


def write_json(rows, path):
    document = tracked.Figures("hard_faults")
    for one in rows:
        for name, value in one.items():
            if isinstance(value, int):
                document.add(name, one["image"], "pages", value)
    document.write(path)


def main():
    known = programs()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(known), metavar="NAME")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    make_prefix()
    print(HEADER, flush=True)
    all_figures = []
    for name in options.names:
        with harness.work_folder() as folder:
            all_figures.append(figures(known[name], folder))
        print(row(all_figures[-1]), flush=True)
    if options.json:
        write_json(all_figures, options.json)


if __name__ == "__main__":
    main()
