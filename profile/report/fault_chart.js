/* Curves of cumulative faults, and their figures in a table. */
'use strict';

const FaultChart = {
  draw(image, runIndex, cluster) {
    const curves = image.curves.filter((k) => k.run === runIndex && k.cluster === cluster);
    const c = colours();
    const svg = d3.select('#fault-chart');
    const width = Math.max(svg.node().parentElement.clientWidth, 240);
    const height = 320;
    const margin = { left: 56, right: 16, top: 12, bottom: 40 };
    const x = d3.scaleLinear().domain([0, d3.max(curves, (k) => k.touches) || 1])
      .range([margin.left, width - margin.right]);
    const y = d3.scaleLinear().domain([0, d3.max(curves, (k) => k.faults) || 1]).nice()
      .range([height - margin.bottom, margin.top]);
    svg.selectAll('*').remove();
    svg.attr('viewBox', `0 0 ${width} ${height}`);
    svg.append('g').attr('transform', `translate(0,${height - margin.bottom})`)
      .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 110))));
    svg.append('g').attr('transform', `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).ticks(6));
    svg.append('text').attr('x', (margin.left + width - margin.right) / 2).attr('y', height - 4)
      .attr('text-anchor', 'middle').text('functions touched so far');
    svg.append('text').attr('transform', `translate(13,${height / 2 - 14}) rotate(-90)`)
      .attr('text-anchor', 'middle').text('hard faults so far');
    const dashes = ['', '7 3', '2 3', '9 3 2 3'];
    curves.forEach((curve, i) => {
      svg.append('path').attr('fill', 'none').attr('stroke', FaultChart.colour(i, c))
        .attr('stroke-width', 2).attr('stroke-dasharray', dashes[curve.standing % dashes.length])
        .attr('class', 'curve').attr('d', FaultChart.path(curve, x, y))
        .append('title').text(`${image.standings[curve.standing].name}: ${curve.faults} faults`);
    });
    FaultChart.legend(image, curves, c);
    FaultChart.table(image, runIndex, cluster);
  },

  colour(i, c) {
    return i === 0 ? c.ink : d3.schemeTableau10[(i - 1) % 10];
  },

  /* Steps: up at each fault, on to the last touch. */
  path(curve, x, y) {
    let d = `M${x(0)},${y(0)}`;
    curve.at.forEach((touch, i) => { d += `H${x(touch + 1).toFixed(1)}V${y(i + 1).toFixed(1)}`; });
    return `${d}H${x(curve.touches)}`;
  },

  legend(image, curves, c) {
    element('fault-legend').replaceChildren(...curves.map((curve, i) => {
      const mark = make('i');
      mark.style.background = FaultChart.colour(i, c);
      return make('span', {}, mark, image.standings[curve.standing].name);
    }));
  },

  /* The figures of --json. */
  table(image, runIndex, cluster) {
    const run = image.own[runIndex];
    const rows = run ? image.figures.predictions
      .filter((p) => p.run === run.run && p.cluster === cluster) : [];
    const table = element('fault-table');
    table.caption.textContent = run
      ? `Faults of ${run.label}, when a fault reads ${cluster === 1 ? 'its page only'
        : `${cluster} pages`}` : 'No run';
    table.tBodies[0].replaceChildren(...rows.map((p, i) => make('tr', {},
      make('th', { scope: 'row' }, image.standings[i].name),
      make('td', { class: 'n' }, count(p.pages)), make('td', { class: 'n' }, count(p.faults)),
      make('td', { class: 'n' }, p.area.toFixed(1)),
      make('td', { class: 'n' }, i ? change(rows[0].faults, p.faults) : '-'))));
  },
};
