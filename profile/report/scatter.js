/* Touches over time against their address, before and after: two canvases that zoom
 * together, and a strip below whose brush chooses a stretch of time. */
'use strict';

const MARGIN = { left: 76, right: 10, top: 8, bottom: 30 };
const SCATTER_HEIGHT = 320;

class Scatter {
  constructor(holder, strip, detail) {
    this.strip = d3.select(strip);
    this.detail = detail;
    this.transform = d3.zoomIdentity;
    this.panels = ['before', 'after'].map(() => {
      const caption = make('figcaption');
      const canvas = make('canvas', { tabindex: '0', role: 'img' });
      const figure = make('figure', {}, caption, canvas);
      holder.append(figure);
      return { figure, caption, canvas };
    });
    this.zoom = d3.zoom().scaleExtent([1, 5000]).on('zoom', () => this.zoomed());
    for (const panel of this.panels) {
      const canvas = d3.select(panel.canvas).call(this.zoom);
      canvas.on('mousemove.tip', () => this.hover(panel, d3.event));
      canvas.on('mouseleave.tip', () => tip.hide());
      panel.canvas.addEventListener('keydown', (e) => this.key(e));
    }
    this.brush = d3.brushX().on('brush end', () => this.brushed());
  }

  /* `colour` has the place of each touch in the list of colours. */
  show(image, standings, touches, names, colour) {
    Object.assign(this, { image, touches, colour });
    const end = touches.ms.reduce((most, ms) => Math.max(most, ms), 0);
    this.time = [0, end || 1];
    let low = Infinity;
    let high = 0;
    for (const standing of standings) {
      for (let f = 0; f < image.count; f++) {
        low = Math.min(low, standing.rva[f]);
        high = Math.max(high, standing.rva[f] + image.size[f]);
      }
    }
    this.address = low < high ? [low, high] : [0, 1];
    this.panels.forEach((panel, i) => {
      panel.rva = standings[i] && standings[i].rva;
      panel.figure.hidden = !panel.rva;
      panel.caption.textContent = names[i];
      panel.canvas.setAttribute('aria-label', `${names[i]}: ${count(touches.count)} touches over ` +
        `${milliseconds(end)}, by address. Plus and minus zoom, arrow keys move, 0 shows all.`);
    });
    this.transform = d3.zoomIdentity;
    this.draw();
    this.drawStrip();
  }

  scales(width) {
    const x = d3.scaleLinear().domain(this.time).range([MARGIN.left, width - MARGIN.right]);
    const y = d3.scaleLinear().domain(this.address)
      .range([MARGIN.top, SCATTER_HEIGHT - MARGIN.bottom]);
    return { x: this.transform.rescaleX(x), y: this.transform.rescaleY(y), whole: x };
  }

  draw() {
    for (const panel of this.panels) if (panel.rva) this.drawPanel(panel);
  }

  drawPanel(panel) {
    const c = colours();
    const { context, width, height } = fitCanvas(panel.canvas, SCATTER_HEIGHT);
    const { x, y } = this.scales(width);
    context.clearRect(0, 0, width, height);
    this.drawAxes(context, x, y, width, height, c);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right,
      height - MARGIN.top - MARGIN.bottom);
    context.clip();
    const side = this.touches.count > 20000 ? 1.6 : this.touches.count > 3000 ? 2.2 : 3;
    const places = this.places(panel, x, y);
    /* By colour, so that the canvas changes its state a few times only. */
    this.palette().forEach((colour, k, list) => {
      context.fillStyle = colour;
      for (let i = 0; i < this.touches.count; i++) {
        if (this.colour[i] % list.length !== k) continue;
        const px = places.x[i];
        const py = places.y[i];
        if (px > 0 && px < width && py > 0 && py < height) {
          context.fillRect(px - side / 2, py - side / 2, side, side);
        }
      }
    });
    context.restore();
  }

  /* Where each touch lies on a panel.  The scales are linear: two points of each tell all,
   * at a fraction of the cost of asking them for each touch. */
  places(panel, x, y) {
    const line = (scale) => [scale(1) - scale(0), scale(0)];
    const [ax, bx] = line(x);
    const [ay, by] = line(y);
    const { ms, f } = this.touches;
    return { x: ms.map((v) => ax * v + bx),
      y: Float64Array.from(f, (one) => ay * panel.rva[one] + by) };
  }

  drawAxes(context, x, y, width, height, c) {
    const bottom = height - MARGIN.bottom;
    context.font = '12px system-ui, sans-serif';
    context.strokeStyle = c.line;
    context.fillStyle = c.dim;
    context.lineWidth = 1;
    context.textAlign = 'center';
    context.textBaseline = 'top';
    for (const tick of x.ticks(Math.max(2, Math.floor(width / 90)))) {
      const px = Math.round(x(tick)) + 0.5;
      context.beginPath();
      context.moveTo(px, MARGIN.top);
      context.lineTo(px, bottom);
      context.stroke();
      context.fillText(`${+tick.toFixed(6)} ms`, px, bottom + 6);
    }
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const tick of Scatter.roundAddresses(y.domain())) {
      const py = Math.round(y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(MARGIN.left, py);
      context.lineTo(width - MARGIN.right, py);
      context.stroke();
      context.fillText(hex(tick), MARGIN.left - 6, py);
    }
  }

  /* Some six addresses that are round in hexadecimal. */
  static roundAddresses([low, high]) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2((high - low) / 8)));
    return d3.range(Math.max(0, Math.ceil(low / step) * step), high, step);
  }

  palette() {
    return d3.schemeTableau10;
  }

  /* ---- the strip ---- */

  drawStrip() {
    const c = colours();
    const width = Math.max(this.strip.node().parentElement.clientWidth, 200);
    const height = 66;
    const bins = 200;
    const counts = new Uint32Array(bins);
    for (const ms of this.touches.ms) {
      counts[Math.min(bins - 1, Math.floor(ms / this.time[1] * bins))]++;
    }
    const x = d3.scaleLinear().domain(this.time).range([MARGIN.left, width - MARGIN.right]);
    const y = d3.scaleSqrt().domain([0, d3.max(counts) || 1]).range([44, 4]);
    this.stripX = x;
    this.strip.selectAll('*').remove();
    this.strip.attr('viewBox', `0 0 ${width} ${height}`);
    const bar = Math.max(1, (width - MARGIN.left - MARGIN.right) / bins - 0.5);
    this.strip.append('path').attr('fill', c.accent).attr('d', Array.from(counts, (n, i) =>
      `M${x(this.time[1] * i / bins)},44V${y(n)}h${bar}V44Z`).join(''));
    this.strip.append('g').attr('transform', 'translate(0,46)')
      .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 110))).tickFormat((d) => `${d} ms`));
    this.brush.extent([[MARGIN.left, 0], [width - MARGIN.right, 45]]);
    this.strip.append('g').attr('class', 'brush').call(this.brush);
    this.moveBrush();
  }

  brushed() {
    if (!d3.event.sourceEvent) return;
    const chosen = d3.event.selection;
    const [left, right] = this.stripX.range();
    if (!chosen) {
      this.setTransform(d3.zoomIdentity);
      return;
    }
    const k = Math.max(1, (right - left) / Math.max(1, chosen[1] - chosen[0]));
    /* The panels are narrower than the strip: the share of time counts. */
    const [from] = chosen.map((p) => (p - left) / (right - left));
    const panel = this.panels[0].canvas.clientWidth - MARGIN.left - MARGIN.right;
    this.setTransform(d3.zoomIdentity.translate(MARGIN.left - k * (MARGIN.left + from * panel),
      this.transform.y).scale(k), true);
  }

  moveBrush() {
    const { x } = this.scales(this.panels[0].canvas.clientWidth);
    const domain = x.domain().map((t) => this.stripX(Math.min(Math.max(t, 0), this.time[1])));
    this.strip.select('.brush').call(this.brush.move, this.transform.k > 1 ? domain : null);
  }

  /* ---- zoom ---- */

  zoomed() {
    const event = d3.event;
    if (event.sourceEvent) this.setTransform(event.transform);
  }

  /* `inTime` keeps all addresses in sight: a stretch of time was chosen. */
  setTransform(transform, inTime = false) {
    if (inTime) {
      const middle = SCATTER_HEIGHT / 2;
      transform = d3.zoomIdentity.translate(transform.x, middle * (1 - transform.k))
        .scale(transform.k);
    }
    this.transform = transform;
    for (const panel of this.panels) panel.canvas.__zoom = transform;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.draw();
      if (!inTime) this.moveBrush();
    });
  }

  by(factor) {
    const width = this.panels[0].canvas.clientWidth / 2;
    const middle = SCATTER_HEIGHT / 2;
    const k = Math.max(1, Math.min(5000, this.transform.k * factor));
    const f = k / this.transform.k;
    this.setTransform(k === 1 ? d3.zoomIdentity : d3.zoomIdentity
      .translate(width - (width - this.transform.x) * f, middle - (middle - this.transform.y) * f)
      .scale(k));
  }

  reset() { this.setTransform(d3.zoomIdentity); }

  key(event) {
    const move = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.key === '+' || event.key === '=') this.by(2);
    else if (event.key === '-') this.by(0.5);
    else if (event.key === '0') this.reset();
    else if (event.key in move) {
      const t = this.transform;
      const [dx, dy] = move[event.key];
      this.setTransform(d3.zoomIdentity.translate(t.x + dx, t.y + dy).scale(t.k));
    } else return;
    event.preventDefault();
  }

  /* ---- hover ---- */

  hover(panel, event) {
    const box = panel.canvas.getBoundingClientRect();
    const { x, y } = this.scales(box.width);
    const mx = event.clientX - box.left;
    const my = event.clientY - box.top;
    const places = this.places(panel, x, y);
    let best = -1;
    let least = 144;
    for (let i = 0; i < this.touches.count; i++) {
      const dx = places.x[i] - mx;
      const dy = places.y[i] - my;
      const distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    if (best < 0) {
      tip.hide();
      return;
    }
    const text = this.told(panel, best);
    tip.show(event, text);
    this.detail.textContent = text;
  }

  /* What is known of touch `i`. */
  told(panel, i) {
    const { touches, image } = this;
    const f = touches.f[i];
    const [process, thread] = Data.threadOf(touches, i);
    return `${Data.nameOf(image, f)} at ${hex(panel.rva[f])}, ${count(image.size[f])} bytes: ` +
      `${milliseconds(touches.ms[i])} in ${touches.runs[touches.run[i]].label}, ` +
      `process ${process}, thread ${thread}`;
  }
}
