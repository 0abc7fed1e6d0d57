/* A table of any length: only the rows in sight exist, on paper the first ones.  Search,
 * sort and filter work on a list of row numbers. */
'use strict';

const ROW_HEIGHT = 26;
const ROWS_IN_SIGHT = 17;
const ROWS_ON_PAPER = 100;

class Grid {
  /* columns: {title, width, number, text(row), key(row), hint}; key orders, text is shown. */
  constructor(holder, label, columns) {
    this.columns = columns;
    this.rows = [];
    this.sorted = { column: -1, down: false };
    this.root = make('div', { class: 'grid', role: 'table', 'aria-label': label,
      'aria-colcount': columns.length });
    this.template = columns.map((c) => c.width).join(' ');
    this.head = make('div', { class: 'row head', role: 'row', 'aria-rowindex': '1' });
    this.head.style.gridTemplateColumns = this.template;
    columns.forEach((column, i) => {
      const button = make('button', { type: 'button', title: column.hint || `Sort by ${column.title}`,
        onclick: () => this.sortBy(i) }, column.title);
      this.head.append(make('div', { role: 'columnheader', 'aria-sort': 'none',
        class: column.number ? 'n' : '' }, button));
    });
    this.space = make('div', { class: 'space' });
    this.body = make('div', { class: 'body', role: 'rowgroup', tabindex: '0', 'aria-label': label },
      this.space);
    this.body.addEventListener('scroll', () => this.drawSoon());
    this.root.append(make('div', { role: 'rowgroup' }, this.head), this.body);
    holder.replaceChildren(this.root);
  }

  show(rows) {
    this.unsorted = rows;
    this.sort();
    this.body.scrollTop = 0;
    this.draw();
  }

  sortBy(i) {
    const again = this.sorted.column === i;
    this.sorted = { column: i, down: again ? !this.sorted.down : !!this.columns[i].downFirst };
    [...this.head.children].forEach((cell, k) => cell.setAttribute('aria-sort',
      k !== i ? 'none' : this.sorted.down ? 'descending' : 'ascending'));
    this.sort();
    this.body.scrollTop = 0;
    this.draw();
  }

  /* Keys are computed once; what has none stands at the end, ties in the first order. */
  sort() {
    const { column, down } = this.sorted;
    this.rows = this.unsorted;
    if (column < 0) return;
    const key = this.columns[column].key;
    const keyed = this.unsorted.map((row, i) => ({ row, i, key: key(row) }));
    const missing = (v) => v === null || v === undefined || v === '' || Number.isNaN(v);
    keyed.sort((a, b) => {
      const none = missing(a.key) - missing(b.key);
      if (none || missing(a.key)) return none || a.i - b.i;
      const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
      return (down ? -order : order) || a.i - b.i;
    });
    this.rows = keyed.map((k) => k.row);
  }

  drawSoon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const total = this.rows.length;
    this.root.setAttribute('aria-rowcount', total + 1);
    this.space.style.height = total * ROW_HEIGHT + 'px';
    const inSight = Math.min(Math.max(total, 2), ROWS_IN_SIGHT);
    this.body.style.height = ROW_HEIGHT * inSight + 'px';
    const first = onPaper() ? 0 : Math.max(0, Math.floor(this.body.scrollTop / ROW_HEIGHT) - 4);
    const last = Math.min(total, first + (onPaper() ? ROWS_ON_PAPER : inSight + 8));
    const parts = [this.space];
    for (let i = first; i < last; i++) parts.push(this.line(i));
    if (!total) parts.push(make('div', { class: 'empty' }, 'Nothing to show.'));
    else if (onPaper() && last < total) {
      parts.push(make('div', { class: 'empty' }, `and ${count(total - last)} more`));
    }
    this.body.replaceChildren(...parts);
  }

  line(i) {
    const row = make('div', { class: 'row', role: 'row', 'aria-rowindex': i + 2 });
    row.style.top = i * ROW_HEIGHT + 'px';
    row.style.gridTemplateColumns = this.template;
    for (const column of this.columns) {
      const text = column.text(this.rows[i]);
      const cell = make('div', { role: 'cell', class: column.number ? 'n' : '' }, text);
      if (!column.number) cell.title = text;
      row.append(cell);
    }
    return row;
  }
}
