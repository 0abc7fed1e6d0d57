/* What the page knows: unpacks the columns, and works out what all parts need.
 *
 * Opening must be quick, so a column is decoded and a list is made when a part asks for
 * it first, and what there is of each touch stands in typed arrays.
 *
 * Figures that --json prints are taken from there; what is worked out here is only
 * which function lies on which page and who touched it when. */
'use strict';

const PAGE = 4096;

/* A member that is worked out when it is first asked for. */
function later(object, key, work) {
  Object.defineProperty(object, key, { configurable: true, enumerable: true, get() {
    const value = work();
    Object.defineProperty(object, key, { value });
    return value;
  } });
}

const Data = {
  /* Resolves to {report, images}; columns become typed arrays and lists, when asked for. */
  async read() {
    const block = JSON.parse(document.getElementById('data').textContent);
    if (typeof DecompressionStream === 'undefined') {
      throw new Error('this browser cannot unpack the data (it lacks DecompressionStream)');
    }
    const bytes = await Data.inflate(Data.bytesOf(block.columns));
    block.columns = null;
    for (const image of block.images) {
      Data.prepare(image, block.report.images.find((f) => f.image === image.image), bytes);
    }
    return block;
  },

  bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  },

  async inflate(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Response(stream).arrayBuffer();
  },

  column(shape, buffer) {
    if (shape.kind === 'text') {
      const text = new TextDecoder().decode(new Uint8Array(buffer, shape.at, shape.bytes));
      const list = text.split('\0');
      list.length = shape.count;
      return list;
    }
    const view = new DataView(buffer, shape.at, shape.count * 4);
    const values = new Uint32Array(shape.count);
    let before = 0;
    for (let i = 0; i < shape.count; i++) {
      values[i] = view.getUint32(i * 4, true) + before;
      if (shape.kind === 'delta') before = values[i];
    }
    return values;
  },

  prepare(image, figures, buffer) {
    const decode = (object, ...keys) => {
      for (const key of keys) {
        const shape = object[key];
        later(object, key, () => Data.column(shape, buffer));
      }
    };
    image.figures = figures;
    image.count = image.rva.count;
    decode(image, 'rva', 'size', 'pin', 'names');
    for (const s of image.standings) {
      if (s.shift) decode(s, 'shift');
      later(s, 'rva', () => (s.shift ? image.rva.map((rva, f) => rva + s.shift[f]) : image.rva));
    }
    image.runs.forEach((run, i) => {
      decode(run, 'touched', 'time', 'thread');
      Object.assign(run, { figures: figures.runs[i], scenario: figures.runs[i].scenario });
      run.label = `run ${run.run}, ${run.scenario}`;
    });
    image.own = [...image.runs];
    for (const curve of image.curves) {
      curve.faults = curve.at.count;
      decode(curve, 'at');
    }
    if (image.against) Data.prepareOther(image, decode);
    image.scenarios = [...new Set(image.own.map((run) => run.scenario))];
    later(image, 'coverage', () => Data.coverage(image));
    later(image, 'touchedBy', () => image.scenarios.map((name) => Data.touchedBy(image, name)));
  },

  /* Functions of the other database that are none of ours follow ours. */
  prepareOther(image, decode) {
    decode(image.against, 'rva', 'size', 'names');
    for (const run of image.against.runs) {
      decode(run, 'touched', 'time', 'thread');
      run.label = `other database: run ${run.run}, ${run.scenario}`;
      image.runs.push(run);
    }
  },

  /* In how many runs each function is touched. */
  coverage(image) {
    const runs = new Uint16Array(image.count);
    for (const run of image.own) for (const f of run.touched) runs[f]++;
    return runs;
  },

  /* Whether any run of a scenario touches each function. */
  touchedBy(image, scenario) {
    const by = new Uint8Array(image.count);
    for (const run of image.own) {
      if (run.scenario === scenario) for (const f of run.touched) by[f] = 1;
    }
    return by;
  },

  nameOf(image, f) {
    const own = f < image.count;
    const list = own ? image.names : image.against.names;
    const at = own ? f : f - image.count;
    return list[at] || hex(own ? image.rva[at] : image.against.rva[at]);
  },

  sizeOf(image, f) {
    return f < image.count ? image.size[f] : image.against.size[f - image.count];
  },

  rvaOf(image, f) {
    return f < image.count ? image.rva[f] : image.against.rva[f - image.count];
  },

  /* The touches to show, of one run, or of all with the earliest of each function first:
   * of each touch `i` its function f[i], its time ms[i] since the first touch of its run,
   * and where that stands (runs[run[i]], thread[i]); of each function the place of its
   * touch, rank[f], or -1. */
  touches(image, one) {
    const runs = one ? [one] : image.own;
    const f = one ? one.touched : Data.anyTouched(image);
    const rank = new Int32Array(image.count).fill(-1);
    const t = { count: f.length, runs, rank, f, ms: new Float64Array(f.length).fill(Infinity),
      run: new Uint32Array(f.length), thread: new Uint32Array(f.length) };
    for (let i = 0; i < f.length; i++) rank[f[i]] = i;
    runs.forEach((run, r) => {
      for (let k = 0; k < run.touched.length; k++) {
        const i = rank[run.touched[k]];
        const ms = run.time[k] * run.unit_ns / 1e6;
        if (ms < t.ms[i]) {
          t.ms[i] = ms;
          t.run[i] = r;
          t.thread[i] = run.thread[k];
        }
      }
    });
    return one ? t : Data.byTime(t);
  },

  /* All functions that any run touches, in the order of the runs. */
  anyTouched(image) {
    const seen = new Set();
    for (const run of image.own) for (const f of run.touched) seen.add(f);
    return Uint32Array.from(seen);
  },

  byTime(t) {
    const order = Uint32Array.from(t.f.keys()).sort((a, b) => t.ms[a] - t.ms[b] || a - b);
    for (const key of ['f', 'ms', 'run', 'thread']) t[key] = t[key].map((v, i, all) => all[order[i]]);
    for (let i = 0; i < t.count; i++) t.rank[t.f[i]] = i;
    return t;
  },

  /* The process and the thread of touch `i`. */
  threadOf(touches, i) {
    return touches.runs[touches.run[i]].threads[touches.thread[i]] || ['?', '?'];
  },
};

const hex = (n) => '0x' + n.toString(16);
const count = (n) => n.toLocaleString('en-US');
const things = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
const percent = (part, whole) => (whole ? (100 * part / whole).toFixed(1) + ' %' : '-');
const milliseconds = (ms) => (ms < 10 ? ms.toFixed(3) : ms.toFixed(1)) + ' ms';
const change = (from, to) => {
  if (!from) return '-';
  const by = 100 * (to - from) / from;
  return (by > 0 ? '+' : by < 0 ? '−' : '') + Math.abs(by).toFixed(1) + ' %';
};
const element = (id) => document.getElementById(id);

/* A new element; texts are set as text, never as markup. */
function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'onclick') e.addEventListener('click', value);
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

/* Whether what is drawn is for paper, which is white and does not scroll. */
const onPaper = () => 'paper' in document.documentElement.dataset;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue('--' + name).trim();
  return {
    back: of('back'), ink: of('ink'), dim: of('dim'), line: of('line'), accent: of('accent'),
    untouched: of('untouched'), focus: of('focus'),
    dark: matchMedia('(prefers-color-scheme: dark)').matches && !onPaper(),
  };
}

/* A canvas of the size that it is shown in, sharp on every screen. */
function fitCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(canvas.parentElement.clientWidth, 200);
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

const tip = {
  show(event, text) {
    const box = element('tip');
    box.textContent = text;
    box.hidden = false;
    const x = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
    const below = event.clientY + 16;
    const y = below + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : below;
    box.style.left = Math.max(4, x) + 'px';
    box.style.top = y + 'px';
  },
  hide() { element('tip').hidden = true; },
};
