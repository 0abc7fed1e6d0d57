/* The page map: a cell a page, coloured by when its first function is touched. */
'use strict';

class PageMap {
  constructor(figure, detail) {
    this.detail = detail;
    this.caption = make('figcaption');
    this.canvas = make('canvas', { tabindex: '0', role: 'img' });
    figure.append(this.caption, this.canvas);
    this.chosen = -1;
    this.canvas.addEventListener('mousemove', (e) => this.hover(e));
    this.canvas.addEventListener('mouseleave', () => tip.hide());
    this.canvas.addEventListener('click', (e) => this.choose(this.cellAt(e)));
    this.canvas.addEventListener('keydown', (e) => this.key(e));
    this.canvas.addEventListener('focus', () => this.choose(Math.max(this.chosen, 0)));
  }

  /* Pages in their order, with the rank of their first touch. */
  show(image, standing, touches, name) {
    this.image = image;
    this.rva = standing.rva;
    this.name = name;
    const rank = new Int32Array(image.count).fill(-1);
    touches.forEach((t, i) => { rank[t.f] = i; });
    this.touches = touches;
    this.rank = rank;
    const pages = new Map();
    for (let f = 0; f < image.count; f++) {
      const first = Math.floor(this.rva[f] / PAGE);
      const last = Math.floor((this.rva[f] + Math.max(image.size[f], 1) - 1) / PAGE);
      for (let page = first; page <= last; page++) {
        let cell = pages.get(page);
        if (!cell) pages.set(page, cell = { page, rank: -1, functions: [] });
        cell.functions.push(f);
        if (rank[f] >= 0 && (cell.rank < 0 || rank[f] < cell.rank)) cell.rank = rank[f];
      }
    }
    this.cells = [...pages.values()].sort((a, b) => a.page - b.page);
    for (const cell of this.cells) cell.functions.sort((a, b) => this.rva[a] - this.rva[b]);
    this.touched = this.cells.filter((cell) => cell.rank >= 0).length;
    this.caption.textContent =
      `${name}: ${count(this.touched)} of ${count(this.cells.length)} pages touched`;
    this.canvas.setAttribute('aria-label', `Page map, ${this.caption.textContent}. ` +
      'Arrow keys choose a page.');
    if (this.chosen >= this.cells.length) this.chosen = -1;
    this.draw();
  }

  draw() {
    const c = colours();
    const width = Math.max(this.canvas.parentElement.clientWidth, 200);
    const n = Math.max(this.cells.length, 1);
    this.side = Math.max(4, Math.min(14, Math.floor(Math.sqrt(width * 300 / n))));
    this.across = Math.max(1, Math.floor(width / this.side));
    const rows = Math.ceil(n / this.across);
    const { context } = fitCanvas(this.canvas, rows * this.side + 2);
    const gap = this.side > 6 ? 1.5 : 0.5;
    const ramp = PageMap.ramp(c.dark);
    const last = Math.max(this.touches.length - 1, 1);
    context.clearRect(0, 0, width, rows * this.side + 2);
    this.cells.forEach((cell, i) => {
      context.fillStyle = cell.rank < 0 ? c.untouched : ramp(cell.rank / last);
      context.fillRect((i % this.across) * this.side, Math.floor(i / this.across) * this.side,
        this.side - gap, this.side - gap);
    });
    if (this.chosen >= 0) {
      context.strokeStyle = c.focus;
      context.lineWidth = 2;
      context.strokeRect((this.chosen % this.across) * this.side,
        Math.floor(this.chosen / this.across) * this.side, this.side - gap, this.side - gap);
    }
  }

  /* From the first touch to the last; both ends stand out from untouched cells. */
  static ramp(dark) {
    return dark ? (t) => d3.interpolatePlasma(0.95 - 0.6 * t)
      : (t) => d3.interpolateViridis(0.05 + 0.85 * t);
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left) / this.side);
    const y = Math.floor((event.clientY - box.top) / this.side);
    const i = y * this.across + x;
    return x >= 0 && x < this.across && i >= 0 && i < this.cells.length ? i : -1;
  }

  /* What a page holds, in one line. */
  told(cell) {
    const hot = cell.functions.filter((f) => this.rank[f] >= 0);
    const when = cell.rank < 0 ? 'untouched'
      : `first touched at ${milliseconds(this.touches[cell.rank].ms)}`;
    return `${this.name}, page ${hex(cell.page * PAGE)}: ${when}; ` +
      `${things(cell.functions.length, 'function')}, ${count(hot.length)} touched, ` +
      `${count(this.bytesOn(cell, hot))} bytes of them on this page`;
  }

  bytesOn(cell, functions) {
    let bytes = 0;
    for (const f of functions) bytes += this.share(cell, f);
    return bytes;
  }

  share(cell, f) {
    const begin = Math.max(this.rva[f], cell.page * PAGE);
    return Math.max(0, Math.min(this.rva[f] + this.image.size[f], (cell.page + 1) * PAGE) - begin);
  }

  hover(event) {
    const i = this.cellAt(event);
    if (i < 0) {
      tip.hide();
      return;
    }
    const cell = this.cells[i];
    const names = cell.functions.filter((f) => this.rank[f] >= 0).slice(0, 8)
      .map((f) => `${Data.nameOf(this.image, f)} (${count(this.share(cell, f))} bytes)`);
    tip.show(event, [this.told(cell), ...names].join('\n'));
  }

  choose(i) {
    if (i < 0 || i >= this.cells.length) return;
    this.chosen = i;
    this.draw();
    const cell = this.cells[i];
    const list = make('ol');
    for (const f of cell.functions.slice(0, 60)) {
      const touched = this.rank[f] >= 0
        ? `, touched at ${milliseconds(this.touches[this.rank[f]].ms)}` : ', untouched';
      list.append(make('li', {}, `${Data.nameOf(this.image, f)}: ${count(this.share(cell, f))} ` +
        `bytes here${touched}`));
    }
    this.detail.replaceChildren(this.told(cell), list);
    if (cell.functions.length > 60) {
      this.detail.append(`and ${count(cell.functions.length - 60)} more`);
    }
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across,
      Home: -this.chosen, End: this.cells.length - 1 - this.chosen };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.chosen + steps[event.key], 0), this.cells.length - 1));
  }
}
