#!/usr/bin/env python3
"""Which blocks of a random order break a program: halves the set of moved ones until one, or
a set that only breaks together, is left.

    bisect_order.py PROGRAM SEED [--placement exchange|append] [--image NAME]

PROGRAM is a name of real_programs.py.  Each try relinks by an order file that names the blocks
of the set in the order that the seed gives (with --placement append all others stay); then it
runs the program and compares.  A relink that the verifier turns down counts as broken, so that
the block which it dislikes is found the same way.  Prints the blocks that are left, with the
names of their functions where the image has any, and whether all others together work.
"""

import argparse
import json
import sqlite3

import real_programs  # also finds harness.py
import harness
from harness import require

VERIFICATION_FAILED = 4


class Bisection:
    def __init__(self, case, where, seed, placement="append", image=None):
        self.case, self.seed, self.placement = case, seed, placement
        self.tried = {}   # whether it broke, by the set of blocks
        self.image = image or case.images[0]
        self.where = where
        self.original = case.stage(where / "original")
        self.other = case.stage(where / "other")
        self.order = where / "order.txt"
        self.expected = case.outcome(self.original)

    def relink(self, *arguments):
        """Whether the verifier agrees."""
        result = harness.run([
            harness.tool_path("appulse-reorder"), self.original / self.image, "-o",
            self.other / self.image, "--force", "--quiet", "--placement", self.placement,
            *arguments])
        require(result.code in (0, VERIFICATION_FAILED), result.describe())
        return result.code == 0

    def moved(self):
        """(RVA, new RVA, bytes) of each block that the last relink moved."""
        return json.loads((self.other / f"{self.image}.map.json").read_text())["moves"]

    def moved_blocks(self):
        """Begins of the blocks that the random order moves, in its order."""
        self.relink("--order", "random", "--seed", self.seed, "--no-verify")
        return [old for old, new, _ in sorted(self.moved(), key=lambda move: move[1])]

    def breaks(self, blocks):
        tried = frozenset(blocks)
        if tried not in self.tried:
            self.tried[tried] = self.try_out(blocks)
        return self.tried[tried]

    def try_out(self, blocks):
        self.order.write_text("".join(f"0x{rva:x}\n" for rva in blocks))
        verified = self.relink("--order", "file", "--order-file", self.order)
        bad = not verified or any(
            (e.stdout, e.stderr, e.code) != (f.stdout, f.stderr, f.code)
            for e, f in zip(self.expected, self.case.outcome(self.other)))
        harness.note(f"{len(blocks)} blocks: {'breaks' if bad else 'works'}"
                     f"{'' if verified else ', says the verifier'}")
        return bad

    def smallest(self, blocks):
        """A set that breaks, and no half of which does (delta debugging, by halves and then
        by ever smaller pieces taken out)."""
        pieces = 2
        while len(blocks) > 1:
            size = -(-len(blocks) // pieces)
            parts = [blocks[at:at + size] for at in range(0, len(blocks), size)]
            rests = [[b for b in blocks if b not in set(part)] for part in parts]
            for smaller in parts + (rests if pieces > 2 else []):
                if smaller and len(smaller) < len(blocks) and self.breaks(smaller):
                    blocks, pieces = smaller, max(2, pieces - 1 if smaller in rests else 2)
                    break
            else:
                if size == 1:
                    break
                pieces = min(pieces * 2, len(blocks))
        return blocks

    def names(self):
        """Of functions, by RVA."""
        database = self.where / "names.db"
        harness.instrument(self.original / self.image, self.where / "named", database)
        with sqlite3.connect(database) as opened:
            return dict(opened.execute("SELECT rva, name FROM functions WHERE name NOTNULL"))

    def report(self):
        """Looks for the blocks; gives lines for people."""
        blocks = self.moved_blocks()
        if not self.breaks(blocks):
            yield "the blocks of this seed, moved by an order file, break nothing"
            return
        found, names = self.smallest(blocks), self.names()
        for rva in found:
            yield f"0x{rva:x} {names.get(rva, '')}".rstrip()
        others = [rva for rva in blocks if rva not in found]
        if others:
            yield f"all others together {'break, too' if self.breaks(others) else 'work'}"
        yield f"{len(self.tried)} tries for {len(blocks)} blocks"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=real_programs.PROGRAMS)
    parser.add_argument("seed", type=int)
    parser.add_argument("--placement", default="append", choices=real_programs.PLACEMENTS)
    parser.add_argument("--image", help="of the program's, when it has several")
    arguments = parser.parse_args()
    harness.prepare_wine()
    with harness.work_folder() as where:
        bisection = Bisection(real_programs.PROGRAMS[arguments.program](), where,
                              arguments.seed, arguments.placement, arguments.image)
        for line in bisection.report():
            print(line, flush=True)


if __name__ == "__main__":
    main()
