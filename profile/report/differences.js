/* What changed between two runs, of this database or of another one. */
'use strict';

const Differences = {
  /* new: touched in `to` only; gone: in `from` only; moved: in both, at another place. */
  between(from, to) {
    const rankFrom = new Map([...from.touched].map((f, i) => [f, i]));
    const rankTo = new Map([...to.touched].map((f, i) => [f, i]));
    const common = [...to.touched].filter((f) => rankFrom.has(f));
    const kept = Differences.longestRising(common.map((f) => rankFrom.get(f)));
    const rows = [];
    for (const f of to.touched) {
      if (!rankFrom.has(f)) rows.push({ what: 'new', f, from: null, to: rankTo.get(f) + 1 });
    }
    for (const f of from.touched) {
      if (!rankTo.has(f)) rows.push({ what: 'gone', f, from: rankFrom.get(f) + 1, to: null });
    }
    common.forEach((f, i) => {
      if (!kept[i]) {
        rows.push({ what: 'moved', f, from: rankFrom.get(f) + 1, to: rankTo.get(f) + 1 });
      }
    });
    return { rows, common: common.length };
  },

  /* Marks a longest rising subsequence (patience sorting). */
  longestRising(values) {
    const tails = [];
    const before = new Int32Array(values.length);
    values.forEach((v, i) => {
      let low = 0;
      let high = tails.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (values[tails[middle]] < v) low = middle + 1;
        else high = middle;
      }
      before[i] = low ? tails[low - 1] : -1;
      tails[low] = i;
    });
    const kept = new Uint8Array(values.length);
    for (let i = tails.length ? tails[tails.length - 1] : -1; i >= 0; i = before[i]) kept[i] = 1;
    return kept;
  },
};
