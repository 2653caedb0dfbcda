// The head of the page, its colours and its keys; then everything starts.

const sayInterval = () => {
  const [low, high] = data.interval;
  const n = classes.length;
  if (data.nAsked === n) return 'as many as were asked for';
  if (data.nAsked !== null) return `${number.format(data.nAsked)} were asked for`;
  if (low === high) return 'no labels could tell how sure that number is';
  const outside = n < low || n > high ? ' (this number lies outside)' : '';
  return `the evidence allows ${number.format(low)} to ${number.format(high)}, nine times in ten${outside}`;
};

const startHead = () => {
  const counts = { known: 0, novel: 0, given: 0, unsure: 0, far: 0, skipped: 0 };
  for (let row = 0; row < nRows; row += 1) {
    const code = rows.code[row];
    if (code < 0) counts.skipped += 1;
    else {
      counts[classes[code].isKnown ? 'known' : 'novel'] += 1;
      if (isGiven(row)) counts.given += 1;
      if (isUnsure(row)) counts.unsure += 1;
      if (isFar(row)) counts.far += 1;
    }
  }
  const nKnown = classes.filter((one) => one.isKnown).length;
  const nNovel = classes.length - nKnown;
  const far = counts.far
    ? `; ${number.format(counts.far)} ${counts.far === 1 ? 'row is' : 'rows are'} far from every class`
    : '';
  const areOrIs = (n) => (n === 1 ? 'is' : 'are');
  const skipped = counts.skipped
    ? `${count(counts.skipped, 'picture')} could not be read and ${areOrIs(counts.skipped)} left out`
    : 'all of them on the map';
  const labelled = counts.given
    ? `; ${number.format(counts.given)} had a label and ${areOrIs(counts.given)} shown under it`
    : '';
  const share = (n) => (nRows ? percent(n / nRows) : '–');
  const sorted = `${count(nRows, 'row')} ${nRows === 1 ? 'was' : 'were'} sorted into ${count(classes.length, 'class', 'classes')}`;
  if (!nNovel) byId('lead').textContent = `${sorted}, all known beforehand: nothing new was discovered.`;
  else if (!nKnown) byId('lead').textContent = `${sorted}, all of them discovered: none was known beforehand.`;
  else
    byId('lead').textContent =
      `${sorted}: ${number.format(nKnown)} known beforehand, ${number.format(nNovel)} discovered.`;
  byId('tiles').append(
    tile(
      number.format(nRows),
      nRows === 1 ? 'row' : 'rows',
      skipped + labelled,
    ),
    tile(
      number.format(counts.known),
      'in known classes',
      `${share(counts.known)} of all rows, in ${count(nKnown, 'class', 'classes')}`,
    ),
    tile(
      number.format(counts.novel),
      'in novel classes',
      `${share(counts.novel)} of all rows, in ${count(nNovel, 'class', 'classes')}`,
    ),
    tile(number.format(counts.unsure), 'unsure', `their class is less than 50 % likely${far}`),
    tile(number.format(classes.length), classes.length === 1 ? 'class' : 'classes', sayInterval()),
  );
  const notes = [];
  if (items.kind !== 'ids' && items.all === null)
    notes.push('; items are shown on cards only, since those of all rows would make it too large');
  else if (items.all && items.length && items.length < 300)
    notes.push(`; items off the cards are cut at ${items.length} characters`);
  if (pictures && pictures.nTiles < nRows)
    notes.push(`; the map shows pictures of ${number.format(pictures.nTiles)} rows`);
  byId('note').textContent = notes.join('');
};

const startTheme = () => {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const button = byId('theme');
  let chosen = null;
  const apply = () => {
    const isDark = chosen === null ? dark.matches : chosen === 'dark';
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    button.textContent = isDark ? 'Light' : 'Dark';
    tell('theme');
  };
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    apply();
  });
  dark.addEventListener('change', apply);
  apply();
};

const startKeys = () => {
  document.addEventListener('keydown', (event) => {
    const isWriting = event.target.matches?.('input:not([type="radio"]):not([type="checkbox"]), select, textarea');
    if (event.key === '/' && !isWriting && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      byId('search').scrollIntoView({ block: 'center' });
      byId('search').focus({ preventScroll: true });
    } else if (event.key === 'Escape') {
      if (event.target === byId('search') && byId('search').value === '') byId('search').blur();
      showEverything();
    }
  });
};

startNames();
startTheme();
startHead();
startMap();
startLegend();
startCards();
startTables();
startTruth();
startCharts();
startKeys();
document.documentElement.dataset.ready = 'yes';
