// All cards: sorted, filtered, searched, and the ways to them.

const SORTS = {
  size: (a, b) => classes[b].size - classes[a].size,
  confidence: (a, b) => (classes[b].confidence ?? -1) - (classes[a].confidence ?? -1),
  name: (a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }),
  doubtful: (a, b) => (classes[a].confidence ?? 2) - (classes[b].confidence ?? 2),
};

const matchesChoice = (code) => {
  const one = classes[code];
  if (choice.kind !== 'all' && (choice.kind === 'known') !== one.isKnown) return false;
  if (!choice.query) return true;
  const said = [one.label, nameOf(code), ...one.traits.map(([text]) => text)].join('\n').toLowerCase();
  return said.includes(choice.query) || choice.found.has(code);
};

const showCards = () => {
  const codes = classes
    .map((_, code) => code)
    .filter(matchesChoice)
    .sort((a, b) => SORTS[choice.sort](a, b) || a - b);
  cardOf.clear();
  const shown = codes.slice(0, choice.nShown);
  byId('cards').replaceChildren(...shown.map(showCard));
  if (codes.length > shown.length) {
    byId('cards').append(
      make(
        'button',
        {
          type: 'button',
          className: 'more-cards',
          onclick: () => {
            choice.nShown += MOST_AT_ONCE;
            showCards();
          },
        },
        `Show ${number.format(Math.min(MOST_AT_ONCE, codes.length - shown.length))} more of ${number.format(codes.length)} classes`,
      ),
    );
  }
  const nMatching = [...choice.found.values()].reduce((sum, n) => sum + n, 0);
  const words =
    codes.length === classes.length
      ? `All ${count(classes.length, 'class', 'classes')}`
      : `${number.format(codes.length)} of ${count(classes.length, 'class', 'classes')}`;
  byId('found').textContent = choice.query
    ? `${words}; ${count(nMatching, 'row')} ${nMatching === 1 ? 'matches' : 'match'}, lit on the map.`
    : `${words}.`;
  return codes;
};

// --- search ---

let folded = null;
const searchRows = (query) => {
  if (!query) return null;
  folded ??= Array.from({ length: nRows }, (_, row) =>
    rows.code[row] >= 0 && hasItem(row) ? oneLine(row).toLowerCase() : '',
  );
  const said = classes.map((one, code) => [one.label, nameOf(code)].join('\n').toLowerCase().includes(query));
  const matches = new Uint8Array(nRows);
  for (let row = 0; row < nRows; row += 1) {
    if (rows.code[row] < 0) continue;
    const inText = folded[row].includes(query);
    if (inText) choice.found.set(rows.code[row], (choice.found.get(rows.code[row]) ?? 0) + 1);
    matches[row] = inText || said[rows.code[row]] ? 1 : 0;
  }
  return matches;
};

const search = (text) => {
  choice.query = text.trim().toLowerCase();
  choice.found = new Map();
  choice.nShown = MOST_AT_ONCE;
  setMatches(searchRows(choice.query));
  showCards();
};

// --- ways to a card ---

const goToCard = (code) => {
  if (!cardOf.has(code)) {
    Object.assign(choice, { kind: 'all', query: '', found: new Map(), nShown: classes.length });
    byId('search').value = '';
    document.querySelector('input[name="kind"][value="all"]').checked = true;
    setMatches(null);
    showCards();
  }
  const card = cardOf.get(code);
  card.scrollIntoView({ block: 'center' });
  card.focus({ preventScroll: true });
};

const showEverything = () => {
  view.selected = -1;
  byId('search').value = '';
  search('');
};

const moveBetweenCards = (event) => {
  const isOnCard = event.target.classList.contains('card');
  const isOnSearch = event.target === byId('search');
  const cards = [...cardOf.values()];
  const at = cards.indexOf(event.target);
  const target = {
    ArrowDown: at + 1,
    ArrowRight: at + 1,
    ArrowUp: at - 1,
    ArrowLeft: at - 1,
    Home: 0,
    End: cards.length - 1,
  }[event.key];
  if (isOnCard && event.key === 'Enter') select(Number(event.target.dataset.code));
  else if (isOnCard && at === 0 && event.key === 'ArrowUp') byId('search').focus();
  else if (isOnCard && target !== undefined) (cards[target] ?? event.target).focus();
  else if (isOnSearch && (event.key === 'ArrowDown' || event.key === 'Enter') && cards.length) cards[0].focus();
  else return;
  event.preventDefault();
};

const startCards = () => {
  let waiting = 0;
  byId('search').addEventListener('input', (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(event.target.value), nRows > 20000 ? 250 : 80);
  });
  document.querySelectorAll('input[name="kind"]').forEach((radio) =>
    radio.addEventListener('change', () => {
      choice.kind = radio.value;
      showCards();
    }),
  );
  byId('sort').addEventListener('change', (event) => {
    choice.sort = event.target.value;
    showCards();
  });
  byId('classes').addEventListener('keydown', moveBetweenCards);
  on('view', () =>
    cardOf.forEach((card, code) => {
      card.classList.toggle('chosen', view.selected === code);
      card.querySelector('.on-map')?.setAttribute('aria-pressed', String(view.selected === code));
    }),
  );
  on('names', () => {
    const focused = document.activeElement?.closest?.('.card')?.dataset.code;
    showCards();
    if (focused !== undefined) cardOf.get(Number(focused))?.focus({ preventScroll: true });
  });
  showCards();
};
