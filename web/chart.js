// Charts over time, as SVG: areas and lines, values on hover and by the arrow keys.
//
//   chart({ label, from, step, series: [{ name, color, values, area }], unit: (value) => text, tick: (value) => text })
//
// values: numbers, or null where there is none. color: the name of a class of style.css.

import { component, h, svg } from './dom.js';
import { clock } from './format.js';

const kHeight = 190;
const kMargin = { top: 12, right: 10, bottom: 24, left: 52 };

// 0 and up to three round numbers, the last of them not below `most`.
function ticks(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough - 1e-9);
  const all = [0];
  while (all.at(-1) < most - 1e-9) all.push(all.length * step);
  return all;
}

function path(values, x, y) {
  let text = '';
  let drawing = false;
  values.forEach((value, i) => {
    if (value === null) {
      drawing = false;
      return;
    }
    text += `${drawing ? 'L' : 'M'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    // One value alone would not be seen.
    if (!drawing && (values[i + 1] ?? null) === null) text += 'h.01';
    drawing = true;
  });
  return text;
}

export function chart(given) {
  const plot = svg('svg', { class: 'plot', height: kHeight, role: 'img', tabindex: '0' });
  const readout = h('div', { class: 'readout', hidden: true });
  const spoken = h('div', { class: 'hidden-text', 'aria-live': 'polite' });
  const figure = h('figure', { class: 'chart' }, plot, readout, spoken);
  let spec = given;
  let width = 0;
  let chosen = null;
  let geometry = null;

  function place(i) {
    const count = spec.series[0].values.length;
    chosen = i === null ? null : Math.max(0, Math.min(count - 1, i));
    plot.querySelector('.cursor')?.remove();
    readout.hidden = chosen === null;
    if (chosen === null) return;
    const { x, y } = geometry;
    const at = x(chosen);
    plot.appendChild(svg('g', { class: 'cursor' },
      svg('line', { x1: at, x2: at, y1: kMargin.top, y2: kHeight - kMargin.bottom }),
      spec.series.filter((each) => each.values[chosen] !== null).map((each) =>
        svg('circle', { class: each.color, cx: at, cy: y(each.values[chosen]), r: 3.5 }))));
    const begun = spec.from + chosen * spec.step;
    const title = `${clock(begun, spec.step >= 600_000)}${spec.step < 60_000 ? `:${String(new Date(begun).getSeconds()).padStart(2, '0')}` : ''}`;
    readout.replaceChildren(h('strong', {}, title), ...spec.series.map((each) =>
      h('span', {}, h('i', { class: `swatch ${each.color}` }), `${each.name} `, h('b', {}, each.values[chosen] === null ? '–' : spec.unit(each.values[chosen])))));
    const half = readout.offsetWidth / 2;
    readout.style.left = `${Math.max(half, Math.min(width - half, at))}px`;
  }

  function draw() {
    if (width === 0) return;
    const count = spec.series[0].values.length;
    const most = Math.max(0, ...spec.series.flatMap((each) => each.values.map((value) => value ?? 0)));
    const marks = ticks(Math.max(most, spec.least ?? 0));
    const x = (i) => kMargin.left + ((width - kMargin.left - kMargin.right) * i) / Math.max(1, count - 1);
    const y = (value) => kHeight - kMargin.bottom - ((kHeight - kMargin.top - kMargin.bottom) * value) / marks.at(-1);
    geometry = { x, y };
    const times = width < 480 ? 3 : 5;
    const shown = Array.from({ length: times }, (_, i) => Math.round(((count - 1) * i) / (times - 1)));
    plot.setAttribute('width', width);
    plot.setAttribute('viewBox', `0 0 ${width} ${kHeight}`);
    plot.setAttribute('aria-label', `${spec.label}. ${spec.series.map((each) => {
      const last = each.values.findLast((value) => value !== null) ?? null;
      return `${each.name}: ${last === null ? 'nothing' : spec.unit(last)}`;
    }).join(', ')}. Arrow keys read the values.`);
    plot.replaceChildren(
      ...marks.map((mark) => svg('g', { class: 'grid' },
        svg('line', { x1: kMargin.left, x2: width - kMargin.right, y1: y(mark), y2: y(mark) }),
        svg('text', { x: kMargin.left - 8, y: y(mark) + 4, 'text-anchor': 'end' }, mark === 0 ? '0' : (spec.tick ?? spec.unit)(mark)))),
      ...shown.map((i, place) => svg('text', {
        class: 'time', x: x(i), y: kHeight - 6,
        'text-anchor': place === 0 ? 'start' : place === times - 1 ? 'end' : 'middle',
      }, place === times - 1 ? 'now' : clock(spec.from + i * spec.step, spec.step >= 600_000))),
      ...spec.series.filter((each) => each.area).map((each) => {
        const line = each.values.map((value) => value ?? 0);
        return svg('path', { class: `area ${each.color}`, d: `${path(line, x, y)}L${x(count - 1).toFixed(1)} ${y(0)}L${x(0)} ${y(0)}Z` });
      }),
      ...spec.series.map((each) => svg('path', { class: `line ${each.color}`, d: path(each.values, x, y) })));
    if (chosen !== null) place(chosen);
  }

  plot.addEventListener('pointermove', (event) => {
    if (!geometry) return;
    const box = plot.getBoundingClientRect();
    const count = spec.series[0].values.length;
    const part = (event.clientX - box.left - kMargin.left) / (width - kMargin.left - kMargin.right);
    place(Math.round(part * (count - 1)));
  });
  plot.addEventListener('pointerleave', () => place(null));
  plot.addEventListener('blur', () => place(null));
  plot.addEventListener('keydown', (event) => {
    const count = spec.series[0].values.length;
    const from = chosen ?? count - 1;
    const to = { ArrowLeft: from - (chosen === null ? 0 : 1), ArrowRight: from + 1, Home: 0, End: count - 1 }[event.key];
    if (to === undefined || !geometry) return;
    event.preventDefault();
    place(to);
    spoken.textContent = readout.textContent;
  });
  new ResizeObserver(() => {
    const now = Math.floor(figure.clientWidth);
    if (now === width) return;
    width = now;
    draw();
  }).observe(figure);

  return component(figure, given, (newest) => {
    spec = newest;
    draw();
  });
}
