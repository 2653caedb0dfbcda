// What was found beside the truth: accuracies, errors by kind, and which classes were taken for which.

const truth = data.truth;
const truthCodes = truth ? unpack(truth.rowCodes) : null;
const truthOf = (row) => (truthCodes && truthCodes[row] >= 0 ? truth.classes[truthCodes[row]].label : null);

const tile = (value, title, hint, className = '') =>
  make(
    'div',
    { className: `tile ${className}` },
    make('div', { className: 'tile-value' }, value),
    make('div', { className: 'tile-title' }, title),
    hint ? make('div', { className: 'small' }, hint) : null,
  );

const showScores = () => {
  const [all, known, novel] = truth.accuracy;
  const [named, knownNamed, novelNamed] = truth.named;
  const leftOut = truth.nGiven
    ? `; ${count(truth.nGiven, 'row')} that had a label ${truth.nGiven === 1 ? 'was' : 'were'} left out`
    : '';
  return [
    make(
      'p',
      { className: 'hint' },
      `Scored on ${count(truth.nRows, 'row')} whose true class was told${leftOut}. Classes found are paired with true classes one ` +
        'to one, so that as many rows as possible agree: a novel class is right under any name.',
    ),
    make(
      'div',
      { className: 'tiles' },
      tile(percent(all, 1), 'right, of all rows', `${percent(named, 1)} with known classes under their own name`),
      tile(
        percent(known, 1),
        'right, of rows of known classes',
        knownNamed === null ? 'there are none' : `${percent(knownNamed, 1)} under their own name`,
      ),
      tile(
        percent(novel, 1),
        'right, of rows of novel classes',
        novelNamed === null ? 'there are none' : `${percent(novelNamed, 1)} in a novel class that is theirs alone`,
      ),
      tile(
        number.format(truth.classes.length),
        'true classes',
        `found: ${number.format(truth.nFound)} with rows ` +
          `(${truth.countError > 0 ? '+' : ''}${percent(truth.countError)})`,
      ),
    ),
  ];
};

const showBias = () => {
  const [falseOld, falseNew, trueOld, trueNew] = truth.bias;
  const parts = [
    ['right', truth.accuracy[0], 'right'],
    ['novel taken for known', falseOld, 'bias-0'],
    ['known taken for novel', falseNew, 'bias-1'],
    ['known taken for another known', trueOld, 'bias-2'],
    ['novel taken for another novel', trueNew, 'bias-3'],
  ];
  let left = 0;
  const bars = parts.map(([, value, className]) => {
    const bar = drawn('rect', { x: 100 * left, y: 0, width: Math.max(100 * value, 0), height: 10, class: className });
    left += value;
    return bar;
  });
  return [
    make('h3', {}, 'Where the errors went'),
    drawn(
      'svg',
      {
        viewBox: '0 0 100 10',
        preserveAspectRatio: 'none',
        class: 'stack',
        role: 'img',
        'aria-label': parts.map(([text, value]) => `${text} ${percent(value, 1)}`).join(', '),
      },
      ...bars,
    ),
    make(
      'ul',
      { className: 'keys' },
      parts.map(([text, value, className]) =>
        make('li', {}, make('span', { className: `swatch ${className}` }), `${percent(value, 1)} ${text}`),
      ),
    ),
    make(
      'p',
      { className: 'small' },
      `On average a class has ${Math.abs(truth.intraClass).toFixed(1)} rows that are not right ` +
        `(intra-class bias ${truth.intraClass.toFixed(1)}).`,
    ),
  ];
};

const showPairs = () => {
  const wrong = truth.counts
    .filter(([trueCode, found]) => truth.classes[trueCode].match !== found)
    .sort((a, b) => b[2] - a[2])
    .slice(0, 12);
  if (!wrong.length) return make('p', {}, 'No row is wrong.');
  return make(
    'div',
    { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Most confused classes' },
    make(
      'table',
      {},
      make(
        'thead',
        {},
        make(
          'tr',
          {},
          [
            ['Rows', 'number'],
            ['Truly', ''],
            ['Taken for', ''],
            ['which stands for', ''],
          ].map(([text, className]) => make('th', { scope: 'col', className }, text)),
        ),
      ),
      make(
        'tbody',
        {},
        wrong.map(([trueCode, found, n]) => {
          const partner = truth.classes.find((one) => one.match === found);
          return make(
            'tr',
            {},
            make(
              'td',
              { className: 'number' },
              `${number.format(n)} of ${number.format(truth.classes[trueCode].nRows)}`,
            ),
            make('td', {}, own(truth.classes[trueCode].label)),
            make('td', {}, classButton(found)),
            make('td', {}, partner ? own(partner.label) : 'no true class'),
          );
        }),
      ),
    ),
  );
};

// True classes as lines, classes found as columns in the order of their partners: what is right lies on the diagonal.
const startHeat = (place) => {
  const lines = truth.classes
    .map((_, code) => code)
    .sort((a, b) => truth.classes[b].isKnown - truth.classes[a].isKnown || a - b);
  const partnered = lines.map((code) => truth.classes[code].match).filter((code) => code >= 0);
  const columns = [
    ...partnered,
    ...classes.map((_, code) => code).filter((code) => classes[code].size && !partnered.includes(code)),
  ];
  const lineAt = new Map(lines.map((code, at) => [code, at]));
  const columnAt = new Map(columns.map((code, at) => [code, at]));
  const cells = new Map(
    truth.counts.map(([trueCode, found, n]) => [lineAt.get(trueCode) * columns.length + columnAt.get(found), n]),
  );
  const nKnown = lines.filter((code) => truth.classes[code].isKnown).length;
  const canvas = make('canvas', {
    className: 'heat',
    tabIndex: 0,
    role: 'img',
    'aria-label': `Confusion of ${lines.length} true classes and ${columns.length} classes found. Arrow keys move from cell to cell.`,
  });
  const said = make(
    'p',
    { className: 'heat-said', 'aria-live': 'polite' },
    'Point at a cell, or move with the arrow keys.',
  );
  const at = { line: -1, column: -1, labels: 0, cell: 1 };
  const pen = canvas.getContext('2d');
  const draw = () => {
    const room = place.clientWidth;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wanted = Math.min(room, 720);
    pen.font = '12px system-ui, sans-serif';
    const longest = Math.max(...truth.classes.map((one) => pen.measureText(flat(one.label, 24)).width)) + 12;
    at.labels = wanted / columns.length >= 16 ? Math.min(longest, room * 0.3) : 0;
    at.cell = Math.max((wanted - at.labels) / columns.length, 1);
    at.cell = Math.min(at.cell, 40);
    const width = at.labels + at.cell * columns.length;
    const height = at.cell * lines.length;
    canvas.width = Math.ceil(width * ratio);
    canvas.height = Math.ceil(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const style = getComputedStyle(document.documentElement);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style.getPropertyValue('--sunk');
    pen.fillRect(at.labels, 0, width - at.labels, height);
    for (const [key, n] of cells) {
      const line = Math.floor(key / columns.length);
      const column = key % columns.length;
      const share = n / truth.classes[lines[line]].nRows;
      pen.globalAlpha = 0.12 + 0.88 * Math.sqrt(share);
      pen.fillStyle = style.getPropertyValue(
        truth.classes[lines[line]].match === columns[column] ? '--mark-0' : '--mark-1',
      );
      pen.fillRect(
        at.labels + column * at.cell,
        line * at.cell,
        Math.max(at.cell - (at.cell > 5 ? 1 : 0), 0.8),
        Math.max(at.cell - (at.cell > 5 ? 1 : 0), 0.8),
      );
    }
    pen.globalAlpha = 1;
    pen.fillStyle = style.getPropertyValue('--ink');
    if (at.labels) {
      pen.font = '12px system-ui, sans-serif';
      pen.textAlign = 'right';
      pen.textBaseline = 'middle';
      lines.forEach((code, line) =>
        pen.fillText(flat(truth.classes[code].label, 24), at.labels - 6, (line + 0.5) * at.cell, at.labels - 8),
      );
    }
    if (nKnown && nKnown < lines.length) pen.fillRect(at.labels ? at.labels - 6 : 0, nKnown * at.cell - 1, width, 1);
    if (at.line >= 0) {
      pen.strokeStyle = style.getPropertyValue('--ink');
      pen.lineWidth = 1;
      pen.globalAlpha = 0.5;
      pen.strokeRect(at.labels, at.line * at.cell, width - at.labels, at.cell);
      pen.strokeRect(at.labels + at.column * at.cell, 0, at.cell, height);
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      pen.strokeRect(at.labels + at.column * at.cell, at.line * at.cell, at.cell, at.cell);
    }
  };
  const moveTo = (line, column) => {
    at.line = Math.min(Math.max(line, 0), lines.length - 1);
    at.column = Math.min(Math.max(column, 0), columns.length - 1);
    const one = truth.classes[lines[at.line]];
    const n = cells.get(at.line * columns.length + at.column) ?? 0;
    said.replaceChildren(
      `${number.format(n)} of ${count(one.nRows, 'row')} of `,
      own(one.label),
      ' found as ',
      own(titleOf(columns[at.column])),
      one.match === columns[at.column] ? ' (its partner).' : '.',
    );
    draw();
  };
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    moveTo(
      Math.floor((event.clientY - box.top) / at.cell),
      Math.floor((event.clientX - box.left - at.labels) / at.cell),
    );
  });
  canvas.addEventListener('keydown', (event) => {
    const [down, right] =
      { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    moveTo(at.line + down, at.column + right);
  });
  place.append(canvas, said);
  on('theme', draw);
  new ResizeObserver(draw).observe(place);
};

const startTruth = () => {
  if (!truth) return;
  byId('truth').hidden = false;
  byId('truth-link').hidden = false;
  const heat = make('div', { className: 'heat-box' });
  byId('truth-body').append(
    ...showScores(),
    ...showBias(),
    make('h3', {}, 'Classes taken for one another'),
    showPairs(),
    make('h3', {}, 'All classes'),
    make(
      'p',
      { className: 'hint' },
      'Each line is a true class, known ones above the thin line; each column a class that was found. Blue cells are ' +
        'pairs that belong together, red ones are errors; the stronger the colour, the larger the part of the line.',
    ),
    heat,
  );
  startHeat(heat);
};
