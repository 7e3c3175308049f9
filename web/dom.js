// Elements without markup: every string becomes a text node or an attribute value, so nothing that a job carries can become an
// element. morph() makes what is on the page like a new tree and leaves alone what is the same, so that focus, selection and
// scroll stay where they are when a page is drawn anew.

const kSvg = 'http://www.w3.org/2000/svg';

function dispatch(event) {
  event.currentTarget.bideOn?.[event.type]?.(event);
}

function listen(element, on) {
  element.bideOn = on;
  for (const type of Object.keys(on)) element.addEventListener(type, dispatch);
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) element.appendChild(document.createTextNode(String(child)));
  }
}

function build(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') listen(element, value);
    else if (name === 'key') element.bideKey = value;
    else if (name === 'value') { element.value = value; element.bideValue = String(value); }
    else if (name === 'checked') { element.checked = value; element.bideChecked = Boolean(value); }
    else if (name === 'style') for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

export const h = (tag, properties, ...children) => build(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => build(document.createElementNS(kSvg, tag), properties, children);

// An element that draws itself: `draw(spec)` is called with the newest.
export function component(element, spec, draw) {
  element.bideSpec = spec;
  element.bideDraw = draw;
  draw(spec);
  return element;
}

const alike = (one, other) =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.bideKey === other.bideKey;

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // Whether something is unfolded is for whoever reads to say.
    if (!to.hasAttribute(name) && !(name === 'open' && from.nodeName === 'DETAILS')) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) === value) continue;
    // The page's policy forbids the attribute, not the property.
    if (name === 'style') from.style.cssText = value;
    else from.setAttribute(name, value);
  }
}

function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) {
    if (child.bideKey !== undefined) keyed.set(child.bideKey, child);
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let same = wanted.bideKey === undefined ? at : keyed.get(wanted.bideKey);
    if (same && !alike(same, wanted)) same = null;
    if (!same) {
      from.insertBefore(wanted, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else from.insertBefore(same, at);
    morph(same, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function morph(from, to) {
  if (!alike(from, to)) {
    from.replaceWith(to);
    return to;
  }
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return from;
  }
  if (from.bideDraw) {
    if (to.bideSpec) {
      from.bideSpec = to.bideSpec;
      from.bideDraw(to.bideSpec);
    }
    return from;
  }
  morphAttributes(from, to);
  if (to.bideOn) listen(from, to.bideOn);
  // What somebody is typing is theirs, until what the page says has changed.
  if (to.bideValue !== undefined && from.bideValue !== to.bideValue) {
    from.bideValue = to.bideValue;
    if (document.activeElement !== from) from.value = to.bideValue;
  }
  if (to.bideChecked !== undefined && from.bideChecked !== to.bideChecked) from.checked = from.bideChecked = to.bideChecked;
  morphChildren(from, to);
  return from;
}

// Drawn with strokes, 20 by 20.
const kIcons = {
  overview: 'M3 17V9M8 17V4M13 17v-6M18 17V7',
  queues: 'M3 5h14M3 10h14M3 15h9',
  jobs: 'M4 4h12v12H4zM7 8h6M7 12h4',
  dead: 'M10 3a6 6 0 0 0-3.5 10.9V17h7v-3.1A6 6 0 0 0 10 3zM8 9v.1M12 9v.1M10 12v.6',
  workers: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c.6-3 2.9-4.7 6-4.7s5.400 1.700 6 4.700',
  callbacks: 'M4 10h11M11 6l4 4-4 4M4 5v10',
  about: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 9v5M10 6.200v.1',
  plus: 'M10 4v12M4 10h12',
  sun: 'M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM10 2v2M10 16v2M2 10h2M16 10h2M4.500 4.500l1.300 1.300M14.200 14.200l1.300 1.300M4.500 15.500l1.300-1.300M14.200 5.800l1.300-1.300',
  moon: 'M16 12.500A7 7 0 0 1 7.500 4a6.500 6.500 0 1 0 8.500 8.500z',
  auto: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 3v14',
  pause: 'M7 4v12M13 4v12',
  play: 'M6 4l10 6-10 6z',
  check: 'M4 10.500l4 4 8-9',
  alert: 'M10 3.500l7.500 13h-15zM10 8.500v3.500M10 14.300v.1',
  schedules: 'M3.500 5.500h13v11h-13zM3.500 9h13M7 3.500v3.500M13 3.500v3.500',
  clock: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 6v4l3 2',
  search: 'M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10zM12.700 12.700L17 17',
  out: 'M8 4H4v12h4M8 10h9M14 7l3 3-3 3',
  keyboard: 'M2.500 5.500h15v9h-15zM5.500 8.500v.1M8.500 8.500v.1M11.500 8.500v.1M14.500 8.500v.1M6.500 11.500h7',
};

export const icon = (name) =>
  svg('svg', { class: 'icon', viewBox: '0 0 20 20', 'aria-hidden': 'true' }, svg('path', { d: kIcons[name] }));
