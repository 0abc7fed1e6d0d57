#!/usr/bin/env python3
"""Names from PDBs and linker maps, against what LLVM reads in them.

usage: name_truth.py GRAPH-DUMP

    named        of all functions at least 99 of a hundred have a name
    names        the name of each function is one that llvm-pdbutil (or the map's text) has
                 for that address: a public one where there is one
    addresses    llvm-symbolizer, asked for each of these addresses in the image, says one of
                 these names too
    contradicts  no name contradicts the code

of node-pty's images, which MSVC made, and of an SQLite that clang and lld made.  Images and
PDBs are read by LLVM's tools and by Python, without any code of ours.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import corpus
from msvc_truth import FOLDER, IMAGES, Image, say
from tap import finish, result
from tap import finish, result

PUBLIC, PRIVATE = 0, 1
SQLITE = "sqlite-clang-codeview"


def names_in_pdb(image, pdb):
    """RVA: (public names, names of procedures and labels)."""
    found = {}

    def add(kind, name, segment, offset):
        if 0 < int(segment) <= len(image.sections):
            rva = image.sections[int(segment) - 1][1] + int(offset)
            found.setdefault(rva, (set(), set()))[kind].add(name)

    text = say("llvm-pdbutil", "dump", "--publics", pdb)
    for name, segment, offset in re.findall(
            r"S_PUB32 \[size = \d+\] `(.*)`\n\s+flags = .*?addr = (\d+):(\d+)", text):
        add(PUBLIC, name, segment, offset)
    text = say("llvm-pdbutil", "dump", "--symbols", pdb)
    for name, segment, offset in re.findall(
            r"S_(?:[GL]PROC32|LABEL32|THUNK32) \[size = \d+\] `(.*)`(?:\n|.)*?"
            r"addr = (\d+):(\d+)", text):
        add(PRIVATE, name, segment, offset)
    return found


def names_in_map(image, path):
    found = {}
    for name, address in re.findall(r"^ [0-9a-f]{4}:[0-9a-f]{8}\s+(\S+)\s+([0-9a-f]{16}) ",
                                    path.read_text(), re.MULTILINE):
        found.setdefault(int(address, 16) - image.base, (set(), set()))[PUBLIC].add(name)
    return found


def functions(graph_dump, image, *files):
    """RVA: name or None, of functions without their further parts, and what graph_dump says
    of names that contradict the code."""
    text = say(graph_dump, *files, image.path)
    found = {int(rva, 16): None if name == "-" else name for rva, kind, name in re.findall(
        r"^function (\w+) \w+ (\w+) \S+ (.*)$", text, re.MULTILINE)
        if kind not in ("chained", "bytes")}
    return found, re.findall(r"^conflict .*$", text, re.MULTILINE)


def check_names(what, image, named, own, truth):
    """`own` are the names that the image has without the file."""
    added = {rva: name for rva, name in named.items() if name and not own[rva]}
    wrong = []
    for rva, name in added.items():
        public, private = truth.get(rva, (set(), set()))
        if name not in (public or private):
            wrong.append(f"0x{rva:x}: '{name}' is not in {public or private}")
    share = sum(name is not None for name in named.values()) / len(named)
    result(f"{what}: named", share >= 0.99, f"{100 * share:.2f} % of {len(named)}")
    result(f"{what}: names", added and not wrong, f"{len(added)} names", *wrong[:10])


def check_symbolizer(what, image, pdb, named, truth):
    """llvm-symbolizer finds the PDB by the name that the image has for it, in this folder."""
    asked = [rva for rva, name in named.items() if name and rva in truth]
    path = re.search(r"PDBFileName: (.*)", say("llvm-readobj", "--coff-debug-directory",
                                               image.path)).group(1)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / path).symlink_to(pdb)
        text = subprocess.run(
            ["llvm-symbolizer", "--no-demangle", "--relative-address", "--functions=linkage", "--no-inlines",
             f"--obj={image.path}"], cwd=folder, check=True, text=True,
            stdout=subprocess.PIPE, input="".join(f"0x{rva:x}\n" for rva in asked)).stdout
    theirs = [answer.splitlines()[0] for answer in text.strip().split("\n\n")]
    wrong = [f"0x{rva:x}: '{name}', not '{named[rva]}'" for rva, name in zip(asked, theirs)
             if name not in truth[rva][PUBLIC] | truth[rva][PRIVATE]]
    result(f"{what}: addresses", len(theirs) == len(asked) and not wrong,
           f"{len(theirs)} answers for {len(asked)} addresses", *wrong[:10])


def check(graph_dump, what, image, option, path, truth):
    own, _ = functions(graph_dump, image)
    named, conflicts = functions(graph_dump, image, option, path)
    check_names(what, image, named, own, truth)
    if option == "--pdb":
        check_symbolizer(what, image, path, named, truth)
    result(f"{what}: contradicts", not conflicts, *conflicts[:10])


def main():
    graph_dump, = sys.argv[1:]
    for name, pdb in IMAGES.items():
        image = Image(corpus.path_of(f"{FOLDER}/{name}"))
        path = corpus.path_of(f"{FOLDER}/{pdb}")
        check(graph_dump, name, image, "--pdb", path, names_in_pdb(image, path))
    image = Image(corpus.path_of(SQLITE))
    path = corpus.path_of(f"{SQLITE}/sqlite3.pdb")
    check(graph_dump, "sqlite's PDB", image, "--pdb", path, names_in_pdb(image, path))
    path = corpus.path_of(f"{SQLITE}/sqlite3.map")
    check(graph_dump, "sqlite's map", image, "--linker-map", path, names_in_map(image, path))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
