/* Builds the page from the data, and keeps its parts in step.
 *
 * A part is drawn when it comes into sight: a report of 100,000 functions opens as
 * quickly as a small one.  What a choice changes is stale until it is drawn again. */
'use strict';

const NEAR_SIGHT = '200px'; /* parts so near to what is seen are drawn too */

const App = {
  /* What draws each part, by the name of its section. */
  parts: {
    summary: () => App.drawSummary(),
    map: () => App.drawMaps(),
    touches: () => App.drawTouches(),
    faults: () => App.drawFaults(),
    functions: () => App.filter(),
    runs: () => App.drawRuns(),
    differences: () => App.drawDifferences(),
  },
  stale: new Set(),
  inSight: new Set(),

  async start() {
    try {
      App.block = await Data.read();
      App.build();
      App.chooseImage(0);
      App.watch();
      document.documentElement.dataset.ready = 'yes';
    } catch (error) {
      element('failure').textContent = `The report cannot be shown: ${error.message}`;
      element('failure').hidden = false;
      throw error;
    }
  },

  /* What stands for all images. */
  build() {
    const { images } = App.block;
    const choice = element('image');
    images.forEach((image, i) => choice.append(make('option', { value: i },
      `${image.figures.name} (${image.figures.sha256.slice(0, 12)})`)));
    element('image-choice').hidden = images.length < 2;
    choice.addEventListener('change', () => App.chooseImage(Number(choice.value)));
    element('run').addEventListener('change', () => App.update());
    element('relink').addEventListener('change', () => App.update());
    element('cluster').addEventListener('change', () => App.drawFaults());
    element('colour-by').addEventListener('change', () => App.drawTouches());
    element('search').addEventListener('input', () => App.filterSoon());
    element('filter').addEventListener('change', () => App.filter());
    element('diff-from').addEventListener('change', () => App.drawDifferences());
    element('diff-to').addEventListener('change', () => App.drawDifferences());
    App.maps = ['before', 'after'].map(() => {
      const figure = make('figure');
      element('maps').append(figure);
      return { figure, map: new PageMap(figure, element('page-detail')) };
    });
    App.scatter = new Scatter(element('scatters'), element('strip'), element('touch-detail'));
    element('zoom-in').addEventListener('click', () => App.scatter.by(2));
    element('zoom-out').addEventListener('click', () => App.scatter.by(0.5));
    element('zoom-reset').addEventListener('click', () => App.scatter.reset());
    addEventListener('resize', () => App.redrawSoon());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => App.redrawSoon());
    element('footer').textContent = `${App.block.report.tool} ${App.block.report.version}. ` +
      `Charts are drawn with D3 ${d3.version}, whose licence stands in this file's source.`;
  },

  /* Sections come into sight, or are printed. */
  watch() {
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) App.inSight.add(target.id);
        else App.inSight.delete(target.id);
      }
      App.drawStale();
    }, { rootMargin: NEAR_SIGHT });
    for (const name of Object.keys(App.parts)) observer.observe(element(name));
    addEventListener('beforeprint', () => App.turn(true));
    addEventListener('afterprint', () => App.turn(false));
  },

  /* To paper, or back to the screen. */
  turn(paper) {
    document.documentElement.toggleAttribute('data-paper', paper);
    App.stale = new Set(Object.keys(App.parts));
    App.drawStale(paper ? Object.keys(App.parts) : App.inSight);
  },

  drawStale(names = App.inSight) {
    for (const name of names) {
      if (App.stale.delete(name)) {
        App.parts[name]();
        element(name).dataset.drawn = 'yes';
      }
    }
  },

  redrawSoon() {
    clearTimeout(App.redraw);
    App.redraw = setTimeout(() => App.update(), 120);
  },

  chooseImage(i) {
    const image = App.block.images[i];
    if (!image) throw new Error('it has no images');
    App.image = image;
    element('image-name').textContent = image.figures.name;
    document.title = `Appulse report: ${image.figures.name}`;
    const options = (list) => list.map(([value, text]) => make('option', { value }, text));
    element('run').replaceChildren(...options([
      ...(image.own.length > 1 ? [['all', 'all runs']] : []),
      ...image.own.map((run, k) => [k, run.label])]));
    if (image.own.length) element('run').value = image.own.length - 1;
    element('relink').replaceChildren(...options(image.standings.length > 1
      ? image.standings.slice(1).map((s, k) => [k + 1, s.name]) : [[0, 'none']]));
    element('relink').value = image.standings.length - 1;
    element('cluster').replaceChildren(...options(
      [...new Set(image.curves.map((c) => c.cluster))].map((c) => [c, c])));
    element('cluster').value = '8';
    const runs = image.runs.map((run, k) => [k, run.label]);
    element('diff-from').replaceChildren(...options(runs));
    element('diff-to').replaceChildren(...options(runs));
    const last = image.own.length - 1;
    element('diff-from').value = App.runBefore(image, last);
    element('diff-to').value = Math.max(last, 0);
    element('search').value = '';
    App.buildFilter();
    App.buildGrid();
    App.update();
  },

  /* Where differences begin: at the run that was asked for, else at the newest one of the
   * other database, or the one before the last. */
  runBefore(image, last) {
    const other = image.against && image.against.runs.length;
    const first = image.against ? image.own.length : 0;
    const asked = image.runs.findIndex((run, k) => k >= first && run.run === image.from_run);
    if (asked >= 0) return asked;
    return other ? image.runs.length - 1 : Math.max(last - 1, 0);
  },

  /* All that depends on the run and the relink. */
  update() {
    const choice = element('run').value;
    App.runIndex = choice === 'all' || choice === '' ? -1 : Number(choice);
    App.run = App.image.own[App.runIndex] || null;
    App.standing = App.image.standings[Number(element('relink').value)];
    later(App, 'touches', () => Data.touches(App.image, App.run));
    App.stale = new Set(Object.keys(App.parts));
    App.drawStale();
  },

  shown() {
    const first = App.image.standings[0];
    return App.standing && App.standing !== first ? [first, App.standing] : [first];
  },

  /* ---- summary ---- */

  drawSummary() {
    const s = App.image.figures;
    const tile = (value, text) => make('div', { class: 'tile' }, make('b', {}, value),
      make('span', {}, text));
    element('tiles').replaceChildren(
      tile(count(s.functions), `functions, ${count(s.function_bytes)} bytes`),
      tile(count(s.functions_touched),
        `touched (${percent(s.functions_touched, s.functions)}), ${count(s.bytes_touched)} bytes`),
      tile(count(s.functions_never_touched), 'never touched'),
      tile(count(s.movable_functions), `may move (${percent(s.movable_functions, s.functions)})`),
      tile(count(s.runs.length), `runs of ${things(App.image.scenarios.length, 'scenario')}`));
    App.drawSummaryTable(s);
    element('pins-table').tBodies[0].replaceChildren(...s.pins.map((pin) => make('tr', {},
      make('th', { scope: 'row' }, pin.reason), make('td', { class: 'n' }, count(pin.functions)),
      make('td', { class: 'n' }, count(pin.bytes)))));
  },

  drawSummaryTable(s) {
    const table = element('summary-table');
    const at = App.image.standings.indexOf(App.standing);
    const relink = at > 0 ? s.relinks[at - 1] : null;
    const rows = [['pages of touched functions', s.linked_pages, relink && relink.linked_pages,
      s.floor_pages]];
    if (s.executed_pages !== null || (relink && relink.executed_pages !== null)) {
      rows.push(['code pages executed, measured', s.executed_pages, relink && relink.executed_pages,
        s.floor_pages]);
    }
    if (s.size) rows.push(['bytes of the file', s.size, relink && relink.size, null]);
    const cell = (v) => make('td', { class: 'n' }, v === null || v === undefined ? '-' : count(v));
    table.tHead.replaceChildren(make('tr', {}, make('th', { scope: 'col' }, ''),
      ...['before', 'after', 'change', 'floor'].map((t) => make('th', { scope: 'col', class: 'n' }, t))));
    table.tBodies[0].replaceChildren(...rows.map(([name, before, after, floor]) => {
      const both = before !== null && after !== null && after !== undefined;
      const by = make('td', { class: `n ${both ? after < before ? 'good' : after > before ? 'bad' : ''
        : ''}` }, both ? change(before, after) : '-');
      return make('tr', {}, make('th', { scope: 'row' }, name), cell(before), cell(after), by,
        cell(floor));
    }));
  },

  /* ---- maps, touches, faults ---- */

  drawMaps() {
    const shown = App.shown();
    App.maps.forEach(({ figure, map }, i) => {
      figure.hidden = !shown[i];
      if (shown[i]) map.show(App.image, shown[i], App.touches, shown[i].name);
    });
    const c = colours();
    const ramp = PageMap.ramp(c.dark);
    const untouched = make('i');
    untouched.style.background = c.untouched;
    const scale = make('i', { class: 'ramp' });
    scale.style.background =
      `linear-gradient(90deg, ${d3.range(0, 1.01, 0.1).map((t) => ramp(t)).join(',')})`;
    element('map-legend').replaceChildren(make('span', {}, untouched, 'untouched'),
      make('span', {}, scale, 'touched: first to last'));
  },

  drawTouches() {
    const byProcess = element('colour-by').value === 'process';
    const { touches } = App;
    const places = new Map(); /* of names in the list of colours */
    const known = touches.runs.map(() => []);
    const colour = new Uint32Array(touches.count);
    for (let i = 0; i < touches.count; i++) {
      const ofRun = known[touches.run[i]];
      if (ofRun[touches.thread[i]] === undefined) {
        const [process, thread] = Data.threadOf(touches, i);
        const name = byProcess ? `process ${process}` : `process ${process}, thread ${thread}`;
        if (!places.has(name)) places.set(name, places.size);
        ofRun[touches.thread[i]] = places.get(name);
      }
      colour[i] = ofRun[touches.thread[i]];
    }
    const shown = App.shown();
    App.scatter.show(App.image, shown, App.touches, shown.map((s) => s.name), colour);
    const palette = App.scatter.palette();
    const entries = [...places].slice(0, 12).map(([name, i]) => {
      const mark = make('i');
      mark.style.background = palette[i % palette.length];
      return make('span', {}, mark, name);
    });
    if (places.size > 12) entries.push(make('span', {}, `and ${places.size - 12} more`));
    element('touch-legend').replaceChildren(...entries);
  },

  drawFaults() {
    const run = App.runIndex < 0 ? App.image.own.length - 1 : App.runIndex;
    FaultChart.draw(App.image, run, Number(element('cluster').value));
  },

  /* ---- functions ---- */

  buildFilter() {
    const { scenarios } = App.image;
    const options = [['all', 'all functions'], ['touched', 'touched'], ['never', 'never touched'],
      ['moved', 'moved by the relink'], ['pinned', 'pinned']];
    if (scenarios.length > 1) {
      scenarios.forEach((name, i) => options.push([`only ${i}`, `only in scenario ${name}`]));
    }
    element('filter').replaceChildren(...options.map(([value, text]) =>
      make('option', { value }, text)));
  },

  buildGrid() {
    const { image } = App;
    const time = (f) => (App.touches.rank[f] < 0 ? null : App.touches.ms[App.touches.rank[f]]);
    const moved = (f) => {
      const to = App.standing ? App.standing.rva[f] : image.rva[f];
      return to === image.rva[f] ? null : to;
    };
    const threadOf = (f) => (time(f) === null ? ''
      : Data.threadOf(App.touches, App.touches.rank[f]).join(' / '));
    App.grid = new Grid(element('function-table'), 'Functions', [
      { title: 'Function', width: 'minmax(180px, 3fr)', text: (f) => Data.nameOf(image, f),
        key: (f) => Data.nameOf(image, f).toLowerCase() },
      { title: 'RVA', width: '90px', number: true, text: (f) => hex(image.rva[f]),
        key: (f) => image.rva[f] },
      { title: 'Size', width: '76px', number: true, downFirst: true, text: (f) => count(image.size[f]),
        key: (f) => image.size[f] },
      { title: 'First touch', width: '104px', number: true,
        text: (f) => (time(f) === null ? '-' : milliseconds(time(f))), key: time },
      { title: 'Thread', width: '104px', text: (f) => threadOf(f) || '-',
        key: threadOf, hint: 'Process and thread of the first touch' },
      { title: 'Runs', width: '70px', number: true, downFirst: true,
        text: (f) => `${image.coverage[f]} of ${image.own.length}`, key: (f) => image.coverage[f] },
      { title: 'Moved to', width: '90px', number: true,
        text: (f) => (moved(f) === null ? '-' : hex(moved(f))), key: (f) => moved(f) },
      { title: 'Pinned by', width: 'minmax(110px, 1fr)', text: (f) => image.pin_sets[image.pin[f]] || '-',
        key: (f) => image.pin_sets[image.pin[f]] },
    ]);
    image.search = null;
  },

  filterSoon() {
    clearTimeout(App.filterTimer);
    App.filterTimer = setTimeout(() => App.filter(), 80);
  },

  filter() {
    const { image } = App;
    const words = element('search').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = App.wanted(element('filter').value);
    if (words.length && !image.search) {
      image.search = image.names.map((name, f) =>
        `${name.toLowerCase()} ${hex(image.rva[f])} ${image.pin_sets[image.pin[f]]}`);
    }
    const rows = [];
    for (let f = 0; f < image.count; f++) {
      if (wanted(f) && words.every((word) => image.search[f].includes(word))) rows.push(f);
    }
    App.grid.show(rows);
    element('function-count').textContent = `${count(rows.length)} of ${things(image.count, 'function')}`;
  },

  wanted(choice) {
    const { image } = App;
    if (choice === 'touched') return (f) => image.coverage[f] > 0;
    if (choice === 'never') return (f) => image.coverage[f] === 0;
    if (choice === 'moved') return (f) => App.standing && App.standing.rva[f] !== image.rva[f];
    if (choice === 'pinned') return (f) => image.pin[f] !== 0;
    if (choice.startsWith('only ')) return (f) => App.onlyIn(Number(choice.slice(5)), f);
    return () => true;
  },

  onlyIn(scenario, f) {
    return App.image.touchedBy.every((by, i) => !!by[f] === (i === scenario));
  },

  goToFilter(value) {
    element('filter').value = value;
    element('search').value = '';
    App.filter();
    element('functions').scrollIntoView();
    element('filter').focus({ preventScroll: true });
  },

  /* ---- runs ---- */

  drawRuns() {
    const { figures } = App.image;
    const columns = [['run', 'Run', 1], ['scenario', 'Scenario'], ['weight', 'Weight', 1],
      ['functions_touched', 'Functions', 1], ['bytes_touched', 'Bytes', 1],
      ['linked_pages', 'Pages as linked', 1], ['floor_pages', 'Floor', 1],
      ['processes', 'Processes', 1], ['threads', 'Threads', 1]];
    const table = element('run-table');
    table.tHead.replaceChildren(make('tr', {}, ...columns.map(([, title, n]) =>
      make('th', { scope: 'col', class: n ? 'n' : '' }, title))));
    table.tBodies[0].replaceChildren(...figures.runs.map((run) => make('tr', {},
      ...columns.map(([key, , n], i) => make(i ? 'td' : 'th', i ? { class: n ? 'n' : '' }
        : { scope: 'row', class: 'n' }, n ? count(run[key]) : run[key])))));
    App.drawScenarios();
    element('never').replaceChildren(
      `${count(figures.functions_never_touched)} functions were never touched. `,
      make('button', { class: 'link', type: 'button', onclick: () => App.goToFilter('never') },
        'Show them'));
  },

  drawScenarios() {
    const { image } = App;
    const names = image.scenarios;
    const countIf = (wanted) => {
      let n = 0;
      for (let f = 0; f < image.count; f++) if (wanted(f)) n++;
      return n;
    };
    const shared = image.touchedBy.map((a) => image.touchedBy.map((b) => countIf((f) => a[f] & b[f])));
    const total = shared.map((row, i) => row[i]);
    const only = names.map((name, i) => countIf((f) => App.onlyIn(i, f)));
    const table = element('overlap-table');
    table.tHead.replaceChildren(make('tr', {}, make('th', { scope: 'col' }, 'Scenario'),
      ...names.map((name) => make('th', { scope: 'col', class: 'n' }, name))));
    table.tBodies[0].replaceChildren(...names.map((name, i) => make('tr', {},
      make('th', { scope: 'row' }, name),
      ...shared[i].map((n) => make('td', { class: 'n' }, count(n))))));
    element('scenario-table').tBodies[0].replaceChildren(...names.map((name, i) => make('tr', {},
      make('th', { scope: 'row' }, name), make('td', { class: 'n' }, count(total[i])),
      make('td', { class: 'n' }, count(only[i])),
      make('td', {}, names.length > 1 ? make('button', { class: 'link', type: 'button',
        onclick: () => App.goToFilter(`only ${i}`) }, 'Show') : ''))));
  },

  /* ---- differences ---- */

  drawDifferences() {
    const { image } = App;
    const from = image.runs[Number(element('diff-from').value)];
    const to = image.runs[Number(element('diff-to').value)];
    if (!from || !to) return;
    App.differences = Differences.between(from, to);
    const { rows, common } = App.differences;
    const of = (what) => rows.filter((row) => row.what === what).length;
    const tile = (id, value, text) => make('div', { class: 'tile' }, make('b', { id }, count(value)),
      make('span', {}, text));
    element('diff-tiles').replaceChildren(tile('diff-new', of('new'), 'new'),
      tile('diff-gone', of('gone'), 'gone'), tile('diff-moved', of('moved'), 'moved'),
      tile('diff-common', common, 'in both'));
    const place = (n) => (n === null ? '-' : count(n));
    const grid = new Grid(element('diff-table'), 'Differences', [
      { title: 'What', width: '70px', text: (r) => r.what, key: (r) => r.what },
      { title: 'Function', width: 'minmax(200px, 3fr)', text: (r) => Data.nameOf(image, r.f),
        key: (r) => Data.nameOf(image, r.f).toLowerCase() },
      { title: 'RVA', width: '110px', number: true, text: (r) => hex(Data.rvaOf(image, r.f)),
        key: (r) => Data.rvaOf(image, r.f) },
      { title: 'Size', width: '90px', number: true, downFirst: true,
        text: (r) => count(Data.sizeOf(image, r.f)), key: (r) => Data.sizeOf(image, r.f) },
      { title: 'Place before', width: '120px', number: true, text: (r) => place(r.from),
        key: (r) => r.from },
      { title: 'Place after', width: '120px', number: true, text: (r) => place(r.to),
        key: (r) => r.to },
    ]);
    grid.show(rows);
  },
};

App.start();
