// The list of classes beside the map, and what is said of a row under the pointer.

const howSure = (row) => {
  const sure = percent(part(rows.p[row]));
  return isGiven(row) ? `as labelled; the model is ${sure} sure` : `${sure} sure`;
};

// What is said of a row beside the pointer.
const describeRow = (row) => {
  const second = rows.second[row];
  const p2 = part(rows.p2[row]);
  return make(
    'div',
    { className: 'tip-row' },
    pictureOf(row),
    make(
      'div',
      {},
      make('div', { className: 'tip-item' }, hasItem(row) ? showItem(row) : `row ${row}`),
      make(
        'div',
        { className: 'tip-class' },
        markOf(rows.code[row]),
        ' ',
        own(titleOf(rows.code[row]), { className: 'name' }),
        `, ${howSure(row)}`,
      ),
      second >= 0 && p2 >= 0.01
        ? make('div', { className: 'small' }, 'or ', own(titleOf(second)), `, ${percent(p2)}`)
        : null,
      data.truth && truthOf(row) !== null ? make('div', { className: 'small' }, 'truly ', own(truthOf(row))) : null,
      isFar(row) ? make('div', { className: 'small' }, 'far from every class') : null,
      isUnsure(row) ? make('div', { className: 'small' }, 'unsure') : null,
      itemText(row) === `row ${row}` ? null : make('div', { className: 'small' }, `row ${row}`),
    ),
  );
};

const startLegend = () => {
  const list = byId('legend-list');
  const show = () => {
    list.replaceChildren(
      ...bySize.map((code) =>
        make(
          'li',
          {},
          make(
            'button',
            {
              type: 'button',
              className: 'legend-entry',
              'aria-pressed': String(view.selected === code),
              onclick: () => select(code),
            },
            markOf(code),
            own(nameOf(code), { className: 'name' }),
            make('span', { className: 'small' }, number.format(classes[code].size)),
          ),
        ),
      ),
    );
    byId('show-all').hidden = view.selected < 0 && view.matches === null;
  };
  byId('legend-note').textContent =
    classes.length > 8
      ? 'Colours repeat: classes of one colour lie far apart. Choose a class to see it alone.'
      : 'Choose a class to see it alone.';
  byId('show-all').addEventListener('click', showEverything);
  on('names', show);
  on('view', () => {
    [...list.children].forEach((entry, place) =>
      entry.firstChild.setAttribute('aria-pressed', String(view.selected === bySize[place])),
    );
    byId('show-all').hidden = view.selected < 0 && view.matches === null;
  });
  show();
};
