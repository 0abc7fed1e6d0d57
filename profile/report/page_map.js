/* The page map: a cell a page, coloured by when its first function is touched. */
'use strict';

/* What a page has in place of a rank. */
const UNTOUCHED = -1;
const NO_CODE = -2;
const SHADES = 64;

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

  /* Pages with functions in their order, each with the place of its first touch. */
  show(image, standing, touches, name) {
    Object.assign(this, { image, touches, name, rva: standing.rva });
    const first = (f) => Math.floor(this.rva[f] / PAGE);
    const last = (f) => Math.floor((this.rva[f] + Math.max(image.size[f], 1) - 1) / PAGE);
    let end = 0;
    for (let f = 0; f < image.count; f++) end = Math.max(end, last(f) + 1);
    const earliest = new Int32Array(end).fill(NO_CODE);
    for (let f = 0; f < image.count; f++) {
      const rank = touches.rank[f];
      for (let page = first(f); page <= last(f); page++) {
        const old = earliest[page];
        if (old < 0) earliest[page] = Math.max(old, rank);
        else if (rank >= 0) earliest[page] = Math.min(old, rank);
      }
    }
    this.pages = Uint32Array.from(earliest.keys()).filter((page) => earliest[page] !== NO_CODE);
    this.ranks = earliest.filter((rank) => rank !== NO_CODE);
    this.touched = this.ranks.reduce((sum, rank) => sum + (rank >= 0), 0);
    this.caption.textContent =
      `${name}: ${count(this.touched)} of ${count(this.pages.length)} pages touched`;
    this.canvas.setAttribute('aria-label', `Page map, ${this.caption.textContent}. ` +
      'Arrow keys choose a page.');
    if (this.chosen >= this.pages.length) this.chosen = -1;
    this.draw();
  }

  draw() {
    const c = colours();
    const width = Math.max(this.canvas.parentElement.clientWidth, 200);
    const n = Math.max(this.pages.length, 1);
    this.side = Math.max(4, Math.min(14, Math.floor(Math.sqrt(width * 300 / n))));
    this.across = Math.max(1, Math.floor(width / this.side));
    const rows = Math.ceil(n / this.across);
    const { context } = fitCanvas(this.canvas, rows * this.side + 2);
    const gap = this.side > 6 ? 1.5 : 0.5;
    context.clearRect(0, 0, width, rows * this.side + 2);
    /* By colour, so that the canvas changes its state a few times only. */
    this.byShade().forEach((cells, shade) => {
      context.fillStyle = shade ? PageMap.ramp(c.dark)((shade - 1) / (SHADES - 1)) : c.untouched;
      for (const i of cells) {
        context.fillRect((i % this.across) * this.side, Math.floor(i / this.across) * this.side,
          this.side - gap, this.side - gap);
      }
    });
    if (this.chosen >= 0) {
      context.strokeStyle = c.focus;
      context.lineWidth = 2;
      context.strokeRect((this.chosen % this.across) * this.side,
        Math.floor(this.chosen / this.across) * this.side, this.side - gap, this.side - gap);
    }
  }

  /* The cells of each colour; the first one is of what is untouched. */
  byShade() {
    const shades = Array.from({ length: SHADES + 1 }, () => []);
    const last = Math.max(this.touches.count - 1, 1);
    for (let i = 0; i < this.ranks.length; i++) {
      const rank = this.ranks[i];
      shades[rank === UNTOUCHED ? 0 : 1 + Math.round(rank / last * (SHADES - 1))].push(i);
    }
    return shades;
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
    return x >= 0 && x < this.across && i >= 0 && i < this.pages.length ? i : -1;
  }

  /* The functions on a page, by address. */
  functionsOn(page) {
    const list = [];
    for (let f = 0; f < this.image.count; f++) {
      if (this.rva[f] < (page + 1) * PAGE
          && this.rva[f] + Math.max(this.image.size[f], 1) > page * PAGE) list.push(f);
    }
    return list.sort((a, b) => this.rva[a] - this.rva[b]);
  }

  isTouched(f) { return this.touches.rank[f] >= 0; }

  timeOf(f) { return milliseconds(this.touches.ms[this.touches.rank[f]]); }

  /* What a page holds, in one line. */
  told(i, functions) {
    const page = this.pages[i];
    const hot = functions.filter((f) => this.isTouched(f));
    const bytes = hot.reduce((sum, f) => sum + this.share(page, f), 0);
    const when = this.ranks[i] === UNTOUCHED ? 'untouched'
      : `first touched at ${milliseconds(this.touches.ms[this.ranks[i]])}`;
    return `${this.name}, page ${hex(page * PAGE)}: ${when}; ` +
      `${things(functions.length, 'function')}, ${count(hot.length)} touched, ` +
      `${count(bytes)} bytes of them on this page`;
  }

  /* How many bytes of a function lie on a page. */
  share(page, f) {
    const begin = Math.max(this.rva[f], page * PAGE);
    return Math.max(0, Math.min(this.rva[f] + this.image.size[f], (page + 1) * PAGE) - begin);
  }

  hover(event) {
    const i = this.cellAt(event);
    if (i < 0) {
      tip.hide();
      return;
    }
    const functions = this.functionsOn(this.pages[i]);
    const names = functions.filter((f) => this.isTouched(f)).slice(0, 8).map((f) =>
      `${Data.nameOf(this.image, f)} (${count(this.share(this.pages[i], f))} bytes)`);
    tip.show(event, [this.told(i, functions), ...names].join('\n'));
  }

  choose(i) {
    if (i < 0 || i >= this.pages.length) return;
    this.chosen = i;
    this.draw();
    const functions = this.functionsOn(this.pages[i]);
    const list = make('ol');
    for (const f of functions.slice(0, 60)) {
      const touched = this.isTouched(f) ? `, touched at ${this.timeOf(f)}` : ', untouched';
      list.append(make('li', {}, `${Data.nameOf(this.image, f)}: ` +
        `${count(this.share(this.pages[i], f))} bytes here${touched}`));
    }
    this.detail.replaceChildren(this.told(i, functions), list);
    if (functions.length > 60) this.detail.append(`and ${count(functions.length - 60)} more`);
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across,
      Home: -this.chosen, End: this.pages.length - 1 - this.chosen };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.chosen + steps[event.key], 0), this.pages.length - 1));
  }
}
