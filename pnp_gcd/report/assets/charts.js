// How the model was fitted: a small line for each quantity, and the settings that were tried.

const WORDS = {
  total: ['Loss in all', 'What training lowers'],
  distillation: ['Teacher loss', 'How far the student is from its teacher'],
  entropy: ['Evenness loss', 'High if few classes take all rows'],
  known: ['Label loss', 'How far labelled rows are from their classes'],
  supervised: ['Same-class loss', 'Low if labelled rows of a class are alike'],
  unsupervised: ['Two-views loss', 'Low if two views of a row are alike'],
  n_communities: ['Communities', 'Groups in the graph, before they merge'],
  n_active: ['Classes', 'What the communities stand for'],
  n_prototypes: ['Prototypes', 'Stand for classes, found or possible'],
  n_taken: ['Possible classes with rows', 'Prototypes beyond the classes found that attract rows'],
};
const FIRST = ['n_active', 'n_communities', 'n_prototypes', 'total'];

const short = (value) =>
  Number.isInteger(value) ? number.format(value) : Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);

const drawLine = (title, hint, epochs, values) => {
  const [width, height, edge] = [240, 84, 8];
  const there = values.map((value, place) => [epochs[place], value]).filter(([, value]) => typeof value === 'number');
  const lows = there.map(([, value]) => value);
  const [low, high] = [Math.min(...lows), Math.max(...lows)];
  const [start, end] = [Math.min(...epochs), Math.max(...epochs)];
  const x = (epoch) => edge + (end > start ? (epoch - start) / (end - start) : 0.5) * (width - 2 * edge);
  const y = (value) => height - edge - (high > low ? (value - low) / (high - low) : 0.5) * (height - 2 * edge);
  const path = there
    .map(([epoch, value], place) => `${place ? 'L' : 'M'}${x(epoch).toFixed(1)} ${y(value).toFixed(1)}`)
    .join('');
  const [first, last] = [there[0][1], there.at(-1)[1]];
  const told = there.length > 1 ? `${short(first)} → ${short(last)}` : short(last);
  const svg = drawn(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      class: 'line',
      role: 'img',
      'aria-label': `${title}: ${told} over ${count(there.length, 'epoch')}`,
    },
    drawn('path', { d: path, class: 'stroke' }),
    ...there.map(([epoch, value]) => {
      const dot = drawn('circle', {
        cx: x(epoch).toFixed(1),
        cy: y(value).toFixed(1),
        r: there.length > 40 ? 1.2 : 2.6,
      });
      dot.append(Object.assign(drawn('title'), { textContent: `epoch ${epoch}: ${short(value)}` }));
      return dot;
    }),
  );
  return make(
    'figure',
    { className: 'chart' },
    make(
      'figcaption',
      {},
      make('b', {}, title),
      make('span', { className: 'value' }, told),
      make('span', { className: 'small' }, hint),
    ),
    svg,
  );
};

const showHistory = () => {
  const { columns, rows: lines } = data.history;
  const column = (name) => lines.map((line) => line[columns.indexOf(name)]);
  if (!lines.length) {
    byId('history-hint').textContent = 'There were no epochs: the features were clustered as they came.';
    return;
  }
  byId('history-hint').textContent =
    `${count(lines.length, 'epoch')}, from left to right. A line that still falls or moves at the end speaks for more of them (max_iter).`;
  const epochs = columns.includes('epoch')
    ? column('epoch').map((epoch) => epoch + 1)
    : lines.map((_, place) => place + 1);
  const rest = columns.filter((name) => !['epoch', 'seconds', 'recall', ...FIRST].includes(name));
  for (const name of [...FIRST.filter((one) => columns.includes(one)), ...rest]) {
    const values = column(name);
    if (!values.some((value) => typeof value === 'number')) continue;
    const [title, hint] = WORDS[name] ?? [name.replaceAll('_', ' '), ''];
    byId('history').append(drawLine(title, hint, epochs, values));
  }
};

const TRIED = {
  whitening: 'scaling',
  n_neighbors: 'neighbours',
  similarity_threshold: 'threshold',
  resolution: 'resolution',
  is_balanced: 'balanced',
  n_communities: 'communities',
  n_classes: 'classes',
  n_hidden: 'hidden',
  known: 'known found',
  novel: 'hidden found',
  score: 'score',
  recall: 'neighbours found',
};

// The setting that was chosen is tried once more, as it is and balanced.
const SETTING = ['whitening', 'n_neighbors', 'similarity_threshold', 'resolution', 'is_balanced'];
const countSettings = ({ columns, rows: lines }) => {
  const places = columns.map((_, place) => place).filter((place) => SETTING.includes(columns[place]));
  return new Set(lines.map((line) => JSON.stringify(places.map((place) => line[place])))).size;
};

const showCalibration = () => {
  const { columns, rows: lines } = data.calibration;
  if (!lines.length) {
    byId('calibration-hint').textContent = 'None: there were too few labels to choose settings by.';
    byId('calibration').parentElement.hidden = true;
    return;
  }
  const scoreAt = columns.indexOf('score');
  const scores = lines.map((line) => (typeof line[scoreAt] === 'number' ? line[scoreAt] : -Infinity));
  const best = scoreAt < 0 ? -1 : scores.indexOf(Math.max(...scores));
  byId('calibration-hint').textContent =
    `${count(countSettings(data.calibration), 'setting')} tried. To choose, some known classes were hidden and looked ` +
    'for. “Known found” and “hidden found” are the parts of rows put right then; the best score is bold. The last ' +
    'line is the setting that was chosen, tried once more with every set of hidden classes: its score may differ.';
  const cell = (value, name) => {
    if (typeof value === 'boolean') return make('td', {}, value ? 'yes' : 'no');
    if (typeof value !== 'number') return make('td', {}, value === null ? '–' : String(value));
    return make(
      'td',
      { className: 'number' },
      ['known', 'novel', 'score'].includes(name) ? percent(value, 1) : short(value),
    );
  };
  byId('calibration').append(
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        make('th', { scope: 'col' }, make('span', { className: 'unseen' }, 'chosen or not')),
        columns.map((name, place) =>
          make(
            'th',
            { scope: 'col', className: typeof lines[0][place] === 'number' ? 'number' : '' },
            TRIED[name] ?? name.replaceAll('_', ' '),
          ),
        ),
      ),
    ),
    make(
      'tbody',
      {},
      lines.map((line, place) =>
        make(
          'tr',
          { className: `${place === best ? 'best' : ''} ${place === lines.length - 1 ? 'taken' : ''}` },
          make('td', {}, place === lines.length - 1 ? 'chosen' : ''),
          line.map((value, at) => cell(value, columns[at])),
        ),
      ),
    ),
  );
};

const startCharts = () => {
  showHistory();
  showCalibration();
};
