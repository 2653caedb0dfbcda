// What a person decides about classes: names, and which are the same. Kept in this browser until saved.

const decided = { names: new Map(), same: [] };
const memory = `pnp-gcd names ${data.digest}`;

const groupOf = (code) => decided.same.find((group) => group.includes(code)) ?? [code];
const givenName = (code) =>
  groupOf(code)
    .map((member) => decided.names.get(member))
    .find((name) => name) ?? null;
const nameOf = (code) => givenName(code) ?? classes[code].label;

// On its own, a number says little.
const titleOf = (code) =>
  givenName(code) ?? (classes[code].isText ? classes[code].label : `Class ${classes[code].label}`);

// A class as a link to itself: its mark and its name.
const classButton = (code, properties = {}) =>
  make(
    'button',
    { type: 'button', className: 'class-link', onclick: () => goToCard(code), ...properties },
    markOf(code),
    own(titleOf(code), { className: 'name' }),
  );

const keepDecided = () => {
  try {
    localStorage.setItem(memory, JSON.stringify({ names: [...decided.names], same: decided.same }));
  } catch {
    /* a browser may refuse to keep anything: names.json is the way that always works */
  }
};
const recallDecided = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(memory));
    const isClass = (code) => Number.isInteger(code) && code >= 0 && code < classes.length;
    if (!kept) return;
    kept.names
      .filter(([code, name]) => isClass(code) && typeof name === 'string')
      .forEach(([code, name]) => decided.names.set(code, name));
    decided.same = kept.same.filter((group) => group.length > 1 && group.every(isClass));
  } catch {
    /* nothing was kept, or nothing that can be read */
  }
};
const noteChange = () => {
  keepDecided();
  tell('names');
};

// Returns what is wrong with a name, or null if it was taken.
const giveName = (code, text) => {
  const name = text.trim();
  const group = groupOf(code);
  if (name.length > 1000) return 'A name has at most 1,000 characters.';
  const other = name ? classes.findIndex((_, place) => !group.includes(place) && nameOf(place) === name) : -1;
  if (other >= 0) return 'Another class has this name. If the two are one class, mark them as the same.';
  group.forEach((member) => decided.names.delete(member));
  if (name && name !== classes[code].label) decided.names.set(group[0], name);
  noteChange();
  return null;
};

const markSame = (code, other) => {
  const group = [...new Set([...groupOf(code), ...groupOf(other)])].sort((a, b) => a - b);
  if (group.filter((member) => classes[member].isKnown).length > 1)
    return 'Two known classes cannot be one: their labels say that they differ.';
  const name = givenName(code) ?? givenName(other);
  decided.same = decided.same.filter((one) => !one.some((member) => group.includes(member)));
  decided.same.push(group);
  group.forEach((member) => decided.names.delete(member));
  // A known class keeps its own name.
  if (name && !group.some((member) => classes[member].isKnown)) decided.names.set(group[0], name);
  noteChange();
  return null;
};

const markDifferent = (code) => {
  const name = givenName(code);
  const group = groupOf(code);
  decided.same = decided.same.filter((one) => one !== group);
  const left = group.filter((member) => member !== code);
  group.forEach((member) => decided.names.delete(member));
  if (left.length > 1) decided.same.push(left);
  if (name) decided.names.set(left[0], name);
  noteChange();
};

const forgetAll = () => {
  decided.names.clear();
  decided.same = [];
  noteChange();
};

// Labels are put in as they were written: a browser would round large integers.
const writeNames = () => {
  const pairs = [...decided.names].map(([code, name]) => `[${classes[code].key}, ${JSON.stringify(name)}]`);
  const groups = decided.same.map((group) => `[${group.map((code) => classes[code].key).join(', ')}]`);
  return `{"format": "pnp-gcd names", "version": 1, "rename": [${pairs.join(', ')}], "merge": [${groups.join(', ')}]}\n`;
};

const showDecided = () => {
  const nNames = decided.names.size;
  const nGroups = decided.same.length;
  byId('decided').hidden = nNames + nGroups === 0;
  const parts = [];
  if (nNames) parts.push(`${count(nNames, 'class', 'classes')} named`);
  if (nGroups) parts.push(`${count(nGroups, 'group')} marked as the same`);
  byId('decided-text').textContent = `${parts.join(', ')}.`;
};

const startNames = () => {
  recallDecided();
  on('names', showDecided);
  byId('save-names').addEventListener('click', () => save('names.json', 'application/json', writeNames()));
  byId('forget-names').addEventListener('click', forgetAll);
  showDecided();
};
