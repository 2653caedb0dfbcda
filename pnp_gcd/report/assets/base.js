// What everything else builds on: the data, elements made of text alone, and who is told of changes.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

const unpack = ({ type, data: text }) => {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const Kind = { u1: Uint8Array, u2: Uint16Array, i2: Int16Array, i4: Int32Array }[type];
  return new Kind(bytes.buffer);
};

const rows = Object.fromEntries(Object.entries(data.rows).map(([name, packed]) => [name, unpack(packed)]));
const nRows = data.nRows;
const classes = data.classes;
const STEPS = 65535;
const part = (steps) => steps / STEPS;
// Rows that had a label: nothing about their class is in doubt.
const given = data.given ? unpack(data.given) : null;
const isGiven = (row) => given !== null && given[row] === 1;
const isUnsure = (row) => rows.code[row] >= 0 && !isGiven(row) && part(rows.p[row]) < data.limits.unsure;
const isFar = (row) => rows.code[row] >= 0 && part(rows.typicality[row]) < data.limits.far;

// --- words ---

const number = new Intl.NumberFormat('en');
const count = (n, one, many = `${one}s`) => `${number.format(n)} ${n === 1 ? one : many}`;
const percent = (value, digits = 0) =>
  value === null || value === undefined ? '–' : `${(100 * value).toFixed(digits)} %`;

// Where markup cannot keep a text apart (attributes, options), characters that turn its direction go.
const TURNING = /[\u200e\u200f\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const flat = (text, length = 120) => {
  const plain = String(text).replace(TURNING, '\ufffd');
  return plain.length > length ? `${plain.slice(0, length - 1)}…` : plain;
};

// --- elements ---

// Strings become text, never markup. Keys with a dash, "role" and the like are attributes, others properties.
const fill = (element, properties, children) => {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name.includes('-') || name === 'role' || name === 'scope') element.setAttribute(name, value);
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else element[name] = value;
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
};
const make = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
const drawn = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
// Text of a user: kept apart from the text around it, whatever direction it has.
const own = (text, properties = {}) => make('bdi', properties, String(text));

// --- what others want to know of ---

const listeners = {};
const on = (name, listener) => (listeners[name] ??= []).push(listener);
const tell = (name, detail) => (listeners[name] ?? []).forEach((listener) => listener(detail));

// The class shown alone, and the rows that a search found: null for all.
const view = { selected: -1, matches: null };
const select = (code) => {
  view.selected = code === view.selected ? -1 : code;
  tell('view');
};
const setMatches = (matches) => {
  view.matches = matches;
  tell('view');
};
const isLit = (row) =>
  rows.code[row] >= 0 &&
  (view.selected < 0 || rows.code[row] === view.selected) &&
  (view.matches === null || view.matches[row] === 1);

// --- items ---

const CELL_MARK = '\u001f';
const items = data.items;
const itemText = (row) => {
  if (items.isNumbered) return `row ${row}`;
  return items.shown[row] ?? (items.all ? items.all[row] : `row ${row}`);
};
const hasItem = (row) => items.isNumbered || items.all !== null || row in items.shown;
const cellsOf = (row) => (items.kind === 'table' && hasItem(row) ? itemText(row).split(CELL_MARK) : null);
const oneLine = (row) => {
  const cells = cellsOf(row);
  return cells ? cells.map((cell, place) => `${items.columns[place]}: ${cell}`).join(' · ') : itemText(row);
};

const pictures = data.pictures;
const tilePlace = new Map();
if (pictures) unpack(pictures.rows).forEach((row, place) => tilePlace.set(row, place));

// A picture of a row: its own, or its place on a sheet; null where the page has none.
const pictureOf = (row) => {
  if (!pictures) return null;
  const address = pictures.thumbnails[row];
  if (address)
    return make('img', {
      src: address,
      alt: flat(itemText(row)),
      className: 'picture',
      draggable: false,
      loading: 'lazy',
    });
  const place = tilePlace.get(row);
  const nOnSheet = pictures.across ** 2;
  const sheet = place === undefined ? undefined : pictures.sheets[Math.floor(place / nOnSheet)];
  if (sheet === undefined) return null;
  const { tile, across } = pictures;
  const zoom = 80 / tile;
  const onSheet = place % nOnSheet;
  const box = make('span', { className: 'picture sheet', role: 'img', 'aria-label': flat(itemText(row)) });
  box.style.backgroundImage = `url("${sheet}")`;
  box.style.backgroundSize = `${across * tile * zoom}px auto`;
  box.style.backgroundPosition = `${-(onSheet % across) * tile * zoom}px ${-Math.floor(onSheet / across) * tile * zoom}px`;
  return box;
};

// What a row is, as a person knows it.
const showItem = (row) => {
  const cells = cellsOf(row);
  if (cells) {
    const more = items.nColumns - cells.length;
    return make(
      'dl',
      { className: 'cells' },
      cells.map((cell, place) => [make('dt', {}, own(items.columns[place])), make('dd', {}, own(cell))]),
      more > 0 ? make('dd', { className: 'more' }, `and ${count(more, 'more column')}`) : null,
    );
  }
  return own(itemText(row), { className: 'item-text' });
};

// --- marks of classes ---

const SHAPES = { known: 'M4.4 0A4.4 4.4 0 1 1-4.4 0 4.4 4.4 0 1 1 4.4 0Z', novel: 'M0-5 5 4H-5Z' };
const markOf = (code) =>
  drawn(
    'svg',
    { class: `mark colour-${classes[code].colour}`, viewBox: '-6 -6 12 12', 'aria-hidden': 'true' },
    drawn('path', { d: SHAPES[classes[code].isKnown ? 'known' : 'novel'] }),
  );

// --- files ---

const save = (name, type, text) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
