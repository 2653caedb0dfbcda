// One card: what a class is like, and what a person says of it.

const MOST_AT_ONCE = window.innerWidth < 640 ? 8 : 24;
const cardOf = new Map();
const drafts = new Map(); // names that are being written
const choice = { kind: 'all', sort: 'size', query: '', nShown: MOST_AT_ONCE, found: new Map() };

const showThing = (row, note) =>
  make(
    'li',
    {},
    make(
      'button',
      {
        type: 'button',
        className: 'thing',
        title: `${flat(oneLine(row), 300)} – show on the map`,
        onclick: () => tell('row', row),
      },
      pictureOf(row) ?? (items.kind === 'images' ? make('span', { className: 'picture none' }, 'no picture') : null),
      make('span', { className: items.kind === 'images' ? 'unseen' : 'words' }, showItem(row)),
      note ? make('span', { className: 'small note' }, note) : null,
    ),
  );

// Rows of a table side by side, a line for each column.
const showCells = (list, isDoubtful) => {
  const head = (text) => make('th', { scope: 'row' }, own(text));
  const button = (row) =>
    make(
      'button',
      { type: 'button', className: 'quiet tiny', title: 'Show on the map', onclick: () => tell('row', row) },
      `${row}`,
    );
  const line = (title, valueOf) =>
    make(
      'tr',
      {},
      head(title),
      list.map((row) => make('td', {}, valueOf(row))),
    );
  const second = (row) =>
    rows.second[row] < 0 ? '–' : [markOf(rows.second[row]), ' ', own(flat(nameOf(rows.second[row]), 12))];
  return make(
    'table',
    { className: 'side-by-side' },
    make(
      'tbody',
      {},
      line('row', button),
      isDoubtful ? [line('sure', (row) => percent(part(rows.p[row]))), line('or', second)] : null,
      items.columns.map((name, place) => line(name, (row) => own(cellsOf(row)?.[place] ?? ''))),
    ),
  );
};

const showThings = (title, list, noteOf) => {
  if (list.length === 0) return null;
  if (items.kind === 'table') {
    const more = items.nColumns - items.columns.length;
    return make(
      'div',
      { className: 'things' },
      make('h4', {}, title),
      showCells(list, Boolean(noteOf(list[0]))),
      more > 0 ? make('p', { className: 'small' }, `and ${count(more, 'more column')}`) : null,
    );
  }
  return make(
    'div',
    { className: `things things-${items.kind}${noteOf(list[0]) ? ' noted' : ''}` },
    make('h4', {}, title),
    make(
      'ul',
      {},
      list.map((row) => showThing(row, noteOf(row))),
    ),
  );
};

const doubtNote = (row) => [
  `${percent(part(rows.p[row]))} sure, or `,
  rows.second[row] < 0
    ? 'nothing else'
    : make('span', { className: 'or' }, markOf(rows.second[row]), ' ', own(flat(titleOf(rows.second[row]), 40))),
  rows.second[row] < 0 ? null : ` ${percent(part(rows.p2[row]))}`,
];

const HOW_NEAR =
  'Shared: the part of the rows of both classes that belong to the other one, by their probabilities. ' +
  'Cosine: how alike the directions of the two classes are, 1 for the same.';

const showNear = (code) => {
  const { near } = classes[code];
  if (!near.length) return null;
  const say = ([other, overlap, cosine]) => {
    const shared = percent(overlap, overlap < 0.1 ? 1 : 0);
    const bothKnown = classes[code].isKnown && classes[other].isKnown;
    if (overlap < data.limits.same || bothKnown) {
      return make(
        'li',
        { className: 'near-one' },
        classButton(other),
        make('span', { className: 'small', title: HOW_NEAR }, `${shared} shared, cosine ${cosine.toFixed(2)}`),
      );
    }
    return make(
      'li',
      { className: 'same' },
      make('div', {}, 'Could be the same as ', classButton(other)),
      make(
        'div',
        { className: 'small', title: HOW_NEAR },
        `${shared} of their rows could be in either; cosine ${cosine.toFixed(2)}`,
      ),
      groupOf(code).includes(other)
        ? null
        : make(
            'button',
            { type: 'button', className: 'quiet tiny', onclick: () => complain(code, markSame(code, other)) },
            'Mark as the same',
          ),
    );
  };
  return make('div', { className: 'near' }, make('h4', {}, 'Nearest classes'), make('ul', {}, near.map(say)));
};

const showTraits = (code) => {
  const { traits, isKnown } = classes[code];
  if (!traits.length) return null;
  return make(
    'div',
    { className: 'traits' },
    make('h4', {}, isKnown ? 'Stands out by' : 'Suggested description'),
    make(
      'ul',
      {},
      traits.map(([text, detail]) => make('li', { title: flat(detail, 300) }, own(text))),
    ),
  );
};

const showNaming = (code, mapButton) => {
  const one = classes[code];
  const mates = groupOf(code).filter((member) => member !== code);
  const complaint = make('p', { className: 'complaint', role: 'alert' });
  const field = make('input', {
    type: 'text',
    className: 'name-field',
    value: drafts.get(code) ?? givenName(code) ?? '',
    maxLength: 1000,
    oninput: () => drafts.set(code, field.value),
    onkeydown: (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      drafts.delete(code);
      field.value = givenName(code) ?? '';
    },
    placeholder: flat(
      one.traits
        .slice(0, 2)
        .map(([text]) => text)
        .join(' / ') || 'What is it?',
      40,
    ),
    'aria-label': `Name of ${flat(one.label)}`,
  });
  const form = make(
    'form',
    {
      className: 'naming',
      onsubmit: (event) => {
        event.preventDefault();
        const draft = drafts.get(code);
        drafts.delete(code);
        const wrong = giveName(code, field.value);
        if (wrong) drafts.set(code, draft);
        complain(code, wrong);
      },
    },
    field,
    make('button', { type: 'submit', className: 'quiet' }, 'Name it'),
  );
  const choose = make(
    'select',
    { className: 'same-as', 'aria-label': `${flat(one.label)} is the same as` },
    make('option', { value: '' }, 'the same as …'),
  );
  const fillOptions = () => {
    if (choose.options.length > 1) return;
    const others = classes
      .map((_, other) => other)
      .filter((other) => other !== code && !mates.includes(other) && !(one.isKnown && classes[other].isKnown));
    others.sort((a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }));
    choose.append(...others.map((other) => make('option', { value: String(other) }, flat(nameOf(other), 60))));
  };
  choose.addEventListener('focus', fillOptions);
  choose.addEventListener('pointerdown', fillOptions);
  choose.addEventListener('change', () => choose.value !== '' && complain(code, markSame(code, Number(choose.value))));
  return make(
    'div',
    { className: 'decide' },
    one.isKnown || mates.some((member) => classes[member].isKnown) ? null : form,
    make(
      'div',
      { className: 'same-row' },
      choose,
      mapButton,
      mates.length
        ? make(
            'span',
            { className: 'mates' },
            'the same as ',
            mates.map((member) => classButton(member)),
            make('button', { type: 'button', className: 'quiet tiny', onclick: () => markDifferent(code) }, 'Undo'),
          )
        : null,
    ),
    complaint,
  );
};

const complain = (code, message) => {
  const place = cardOf.get(code)?.querySelector('.complaint');
  if (place) place.textContent = message ?? '';
};

const showCard = (code) => {
  const one = classes[code];
  const title = `class-${code}-title`;
  const matches = choice.found.get(code);
  const card = make(
    'article',
    {
      id: `class-${code}`,
      className: `card${view.selected === code ? ' chosen' : ''}`,
      tabIndex: 0,
      'aria-labelledby': title,
      dataset: { code },
    },
    make(
      'header',
      {},
      make('h3', { id: title }, markOf(code), own(titleOf(code), { className: 'name' })),
      make(
        'p',
        { className: 'chips' },
        make('span', { className: `chip ${one.isKnown ? 'known' : 'novel'}` }, one.isKnown ? 'known' : 'novel'),
        one.isConfirmed && !one.isKnown ? make('span', { className: 'chip' }, 'named by a person') : null,
        givenName(code) ? make('span', { className: 'chip' }, 'was ', own(one.label)) : null,
        make('span', { className: 'small' }, count(one.size, 'row')),
      ),
    ),
    one.size === 0
      ? make('p', { className: 'small' }, 'No row of these data is in this class.')
      : make(
          'div',
          { className: 'confidence' },
          make('meter', { min: 0, max: 1, value: one.confidence, 'aria-label': 'Mean probability' }),
          make(
            'span',
            { className: 'small' },
            `${percent(one.confidence)} sure on average; ${number.format(one.nUnsure)} unsure`,
          ),
        ),
    matches
      ? make(
          'p',
          { className: 'small hit' },
          `${count(matches, 'row')} of it ${matches === 1 ? 'matches' : 'match'} the search`,
        )
      : null,
    showTraits(code),
    showThings('Most typical', one.typical, () => null),
    showThings('Most doubtful', one.doubtful, doubtNote),
    showNear(code),
    showNaming(
      code,
      one.size === 0
        ? null
        : make(
            'button',
            {
              type: 'button',
              className: 'quiet on-map',
              'aria-pressed': String(view.selected === code),
              onclick: () => {
                select(code);
                if (view.selected === code) byId('map').scrollIntoView();
              },
            },
            'Show on the map',
          ),
    ),
  );
  cardOf.set(code, card);
  return card;
};
