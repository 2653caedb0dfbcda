// Rows worth a label next, and files of comma-separated values.

// A spreadsheet would run text that begins like a formula: a quote in front keeps it text.
const csvCell = (value) => {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const toCsv = (header, lines) =>
  `\ufeff${[header, ...lines].map((line) => line.map(csvCell).join(',')).join('\r\n')}\r\n`;

const rounded = (value) => Number(value.toFixed(4));
const assignmentOf = (row) => {
  const code = rows.code[row];
  const isThere = code >= 0;
  const second = rows.second[row];
  const line = [
    row,
    hasItem(row) && !items.isNumbered ? oneLine(row) : '',
    isThere ? classes[code].label : '',
    isThere ? (givenName(code) ?? '') : '',
    isThere ? (classes[code].isKnown ? 'known' : 'novel') : '',
    isThere ? rounded(part(rows.p[row])) : '',
    second >= 0 ? classes[second].label : '',
    second >= 0 ? rounded(part(rows.p2[row])) : '',
    isThere ? rounded(part(rows.typicality[row])) : '',
  ];
  return [...line, ...(given ? [isGiven(row) ? 'yes' : ''] : []), ...(data.truth ? [truthOf(row) ?? ''] : [])];
};
const HEADER = [
  'row',
  'item',
  'class',
  'given_name',
  'kind',
  'probability',
  'second_class',
  'second_probability',
  'typicality',
  ...(given ? ['labelled'] : []),
  ...(data.truth ? ['truth'] : []),
];

const N_AT_FIRST = 15;

const showNext = (nShown) => {
  const chosen = data.doubtful.slice(0, nShown);
  const line = (row) =>
    make(
      'tr',
      {},
      make(
        'td',
        { className: 'number' },
        make(
          'button',
          {
            type: 'button',
            className: 'quiet tiny',
            'aria-label': `Show row ${row} on the map`,
            onclick: () => tell('row', row),
          },
          String(row),
        ),
      ),
      make('td', { className: 'item' }, make('div', { className: 'item-row' }, pictureOf(row), showItem(row))),
      make('td', {}, classButton(rows.code[row])),
      make('td', { className: 'number' }, percent(part(rows.p[row]))),
      make('td', {}, rows.second[row] >= 0 ? classButton(rows.second[row]) : '–'),
      make('td', { className: 'number' }, rows.second[row] >= 0 ? percent(part(rows.p2[row])) : '–'),
    );
  const heads = [
    ['Row', 'number'],
    ['Item', ''],
    ['Class', ''],
    ['Sure', 'number'],
    ['Or else', ''],
    ['Sure', 'number'],
  ];
  byId('next-table').replaceChildren(
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        heads.map(([text, className]) => make('th', { scope: 'col', className }, text)),
      ),
    ),
    make('tbody', {}, chosen.map(line)),
  );
  byId('next-more').hidden = chosen.length === data.doubtful.length;
  byId('next-more').textContent = `Show all ${data.doubtful.length}`;
  byId('next-table').parentElement.hidden = chosen.length === 0;
};

const startTables = () => {
  let nShown = N_AT_FIRST;
  byId('next-hint').textContent = data.doubtful.length
    ? 'If you can label a few more rows, these are a good choice: their second class comes closest to the first. They ' +
      'are taken one by one; each makes others of its class, and others much like it, count less, so that they come ' +
      `from many classes and no two tell the same. Rows surer than 95 %${given ? ', and rows that had a label,' : ''} are ` +
      'left out. Rows are counted from 0.'
    : `The model is more than 95 % sure of every row${given ? ' without a label' : ''}: none stands out as worth a label.`;
  byId('save-doubtful').disabled = data.doubtful.length === 0;
  byId('next-more').addEventListener('click', () => {
    nShown = data.doubtful.length;
    showNext(nShown);
  });
  byId('save-doubtful').addEventListener('click', () =>
    save(
      'label_next.csv',
      'text/csv',
      toCsv(
        [...HEADER, 'your_label'],
        data.doubtful.map((row) => [...assignmentOf(row), '']),
      ),
    ),
  );
  byId('save-all').addEventListener('click', () =>
    save(
      'assignments.csv',
      'text/csv',
      toCsv(
        HEADER,
        Array.from({ length: nRows }, (_, row) => assignmentOf(row)),
      ),
    ),
  );
  on('names', () => showNext(nShown));
  showNext(nShown);
};
