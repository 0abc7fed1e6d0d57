/* What the page knows: unpacks the columns, and works out what all parts need.
 *
 * Figures that --json prints are taken from there; what is worked out here is only
 * which function lies on which page and who touched it when. */
'use strict';

const PAGE = 4096;

const Data = {
  /* Resolves to {report, images}; columns have become typed arrays and lists. */
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
    const get = (shape) => Data.column(shape, buffer);
    image.figures = figures;
    for (const key of ['rva', 'size', 'pin', 'names']) image[key] = get(image[key]);
    image.count = image.rva.length;
    for (const s of image.standings) {
      s.rva = image.rva;
      if (s.shift) {
        const shift = get(s.shift);
        s.rva = image.rva.map((rva, f) => rva + shift[f]);
      }
    }
    image.runs.forEach((run, i) => {
      Data.prepareRun(run, get);
      Object.assign(run, { figures: figures.runs[i], scenario: figures.runs[i].scenario });
      run.label = `run ${run.run}, ${run.scenario}`;
    });
    for (const curve of image.curves) curve.at = get(curve.at);
    if (image.against) Data.prepareOther(image, get);
    image.runs.push(...(image.against ? image.against.runs : []));
    image.own = image.runs.filter((run) => !run.other);
    Data.count(image);
  },

  prepareRun(run, get) {
    for (const key of ['touched', 'time', 'thread']) run[key] = get(run[key]);
  },

  /* Functions of the other database that are none of ours follow ours. */
  prepareOther(image, get) {
    const other = image.against;
    for (const key of ['rva', 'size', 'names']) other[key] = get(other[key]);
    for (const run of other.runs) {
      Data.prepareRun(run, get);
      run.other = true;
      run.label = `other database: run ${run.run}, ${run.scenario}`;
    }
  },

  /* In how many runs each function is touched, and by which scenarios. */
  count(image) {
    image.coverage = new Uint16Array(image.count);
    image.scenarios = [...new Set(image.own.map((run) => run.scenario))];
    image.touchedBy = image.scenarios.map(() => new Uint8Array(image.count));
    for (const run of image.own) {
      const by = image.touchedBy[image.scenarios.indexOf(run.scenario)];
      for (const f of run.touched) {
        image.coverage[f]++;
        by[f] = 1;
      }
    }
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

  /* The touches to show: of one run, or of all with the earliest of each function first.
   * ms is since the first touch of its run. */
  touches(image, run) {
    const runs = run ? [run] : image.own;
    const first = new Map();
    for (const r of runs) {
      for (let i = 0; i < r.touched.length; i++) {
        const ms = r.time[i] * r.unit_ns / 1e6;
        const old = first.get(r.touched[i]);
        if (!old || ms < old.ms) {
          first.set(r.touched[i], { f: r.touched[i], ms, run: r, thread: r.thread[i] });
        }
      }
    }
    const list = [...first.values()];
    if (!run && runs.length > 1) list.sort((a, b) => a.ms - b.ms);
    return list;
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

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue('--' + name).trim();
  return {
    back: of('back'), ink: of('ink'), dim: of('dim'), line: of('line'), accent: of('accent'),
    untouched: of('untouched'), focus: of('focus'),
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
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
