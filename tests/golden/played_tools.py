#!/usr/bin/env python3
"""Plays the tools that `appulse optimize` runs, on files that are no images.

It is appulse-instrument, appulse-profile or appulse-reorder, as the arguments tell.  What
it makes of a file is that file with a line in front, "instrumented" or "relinked".

PLAY_FAIL="instrument STATUS", "pages STATUS" or "reorder STATUS" makes that tool fail with
the status; PLAY_MUTE=reorder makes it print nothing.  What it is told by --pin and --wait
goes to the file that PLAY_LOG names.
"""

import json
import os
import pathlib
import subprocess
import sys

CODES = {"ok": 0, "command-failed": 1, "not-found": 1, "no-relocations": 3,
         "verification-failed": 4}


def options(arguments):
    """Options with a value each, and the image in front of them, if there is one."""
    values = {"--image": []}
    image = arguments.pop(0) if not arguments[0].startswith("--") else None
    while arguments:
        name = arguments.pop(0)
        if name in ("--json", "--quiet"):
            continue
        value = arguments.pop(0)
        if name in ("--pin", "--wait") and "PLAY_LOG" in os.environ:
            with open(os.environ["PLAY_LOG"], "a", encoding="utf-8") as log:
                print(pathlib.Path(image).name if image else "run", name, value, file=log)
        if name == "--image":
            values[name].append(value)
        else:
            values[name] = value
    return image, values


def end(status="ok", message=None, **members):
    answer = {"status": status, "warnings": ["played"] if os.environ.get("PLAY_WARN") else []}
    if status != "ok":
        answer["error"] = {"message": message}
    print(json.dumps(answer | members))
    sys.exit(CODES[status])


def fail_if_told(name):
    failing, _, status = os.environ.get("PLAY_FAIL", "").partition(" ")
    if failing == name:
        end(status, "played failure")


def mark(source, target, word):
    data = pathlib.Path(source).read_bytes()
    if data.startswith((b"instrumented\n", b"relinked\n")):
        end("not-found", f"'{source}' is not the original")
    pathlib.Path(target).write_bytes(word + b"\n" + data)


def instrument(image, values):
    fail_if_told("instrument")
    target = pathlib.Path(values["--output"])
    agent = target.parent / "agent.dll"
    agent.write_bytes(b"the agent\n")
    pathlib.Path(values["--db"]).write_bytes(b"")
    mark(image, target, b"instrumented")
    end(output={"agent": str(agent)})


def run(kind, values, command):
    fail_if_told(kind)
    with open(values["--stdout"], "wb") as out:
        try:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out).returncode
        except OSError as error:
            end("command-failed", f"cannot start '{command[0]}': {error.strerror}")
    ended = {"class": "exited", "code": code}
    how = f"ended with exit code {code}"
    if code < 0:
        ended = {"class": "signaled", "code": -code}
        how = f"was ended by signal {-code}"
    pages = {"loads": 1, "code_pages": 1234, "touched_pages": 1000}
    if any("relinked" in image for image in values["--image"]):
        pages["touched_pages"] = 500
    images = [pages for _ in values["--image"]]
    if not code:
        end(images=images, command_exit=ended)
    print("appulse-profile: said twice", file=sys.stderr)
    end("command-failed", f"'{command[0]}' {how}", images=images, command_exit=ended)


def reorder(image, values):
    if os.environ.get("PLAY_MUTE") == "reorder":
        sys.exit(0)
    fail_if_told("reorder")
    target = pathlib.Path(values["--output"])
    mark(image, target, b"relinked")
    target.with_name(target.name + ".map.json").write_text("{}\n")
    pins = [{"reason": "unknown-bytes", "functions": 2, "bytes": 48},
            {"reason": "hidden-reference", "functions": 2 if "more" in image else 1,
             "bytes": 20}]
    end(image={"functions": 2000, "movable_functions": 1997, "bytes": 900000,
               "movable_bytes": 899932, "size": 1000000, "pins": pins},
        order={"runs": 1 if "my.db" in values["--db"] else 7, "touched_functions": 400,
               "touched_bytes": 499 * 4096 + 1},
        output={"size": 1002000})


def main():
    arguments = sys.argv[1:]
    command = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
    if arguments[0] in ("run", "pages"):
        kind = arguments.pop(0)
        run(kind, options(arguments)[1], command)
    image, values = options(arguments)
    if "--placement" in values:
        reorder(image, values)
    instrument(image, values)


main()
