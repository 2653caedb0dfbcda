// The map: marks on a canvas, with zoom, pan, and what lies under the pointer.

const GRID = 128;

// Rows by cell of a grid over the map, so that the row under the pointer is found without asking all.
const buildGrid = () => {
  const cellOf = (row) => Math.min(GRID - 1, (rows.x[row] * GRID) >> 16) + GRID * Math.min(GRID - 1, (rows.y[row] * GRID) >> 16);
  const starts = new Uint32Array(GRID * GRID + 1);
  for (let row = 0; row < nRows; row += 1) if (rows.code[row] >= 0) starts[cellOf(row) + 1] += 1;
  for (let cell = 0; cell < GRID * GRID; cell += 1) starts[cell + 1] += starts[cell];
  const filled = starts.slice();
  const members = new Uint32Array(starts[GRID * GRID]);
  for (let row = 0; row < nRows; row += 1) if (rows.code[row] >= 0) members[filled[cellOf(row)]++] = row;
  return { starts, members };
};

const median = (values) => {
  const sorted = Float64Array.from(values).sort();
  return sorted.length ? sorted[sorted.length >> 1] : 0;
};

// The middle of each class, where its name stands, and how far it reaches.
const findMiddles = () => {
  const xs = classes.map(() => []);
  const ys = classes.map(() => []);
  for (let row = 0; row < nRows; row += 1) {
    if (rows.code[row] < 0) continue;
    xs[rows.code[row]].push(part(rows.x[row]));
    ys[rows.code[row]].push(part(rows.y[row]));
  }
  return classes.map((_, code) => {
    if (!xs[code].length) return null;
    const [x, y] = [median(xs[code]), median(ys[code])];
    return { x, y, reach: median(ys[code].map((value) => Math.abs(value - y))) };
  });
};

const startMap = () => {
  const box = byId('map-box');
  const canvas = byId('map-canvas');
  const tip = byId('tip');
  const pen = canvas.getContext('2d');
  const grid = buildGrid();
  const middles = findMiddles();
  const bySize = classes.map((_, code) => code).sort((a, b) => classes[b].size - classes[a].size);
  // Places on the map run from 0 to 1; x and y are the place at the canvas's middle.
  const camera = { x: 0.5, y: 0.5, zoom: 1 };
  const size = { width: 1, height: 1, ratio: 1 };
  const MOST_ZOOM = 200;
  const MOST_WHILE_MOVING = 25000;
  let colours = {};
  let hovered = -1;
  let frame = 0;
  let settle = 0;

  const scale = () => Math.min(size.width, size.height) * 0.92 * camera.zoom;
  const toScreenX = (x) => (x - camera.x) * scale() + size.width / 2;
  const toScreenY = (y) => (camera.y - y) * scale() + size.height / 2;
  const toMap = (left, top) => ({ x: (left - size.width / 2) / scale() + camera.x, y: camera.y - (top - size.height / 2) / scale() });
  const radius = () => {
    const base = nRows < 300 ? 6 : nRows < 2000 ? 4.4 : nRows < 10000 ? 3.2 : nRows < 40000 ? 2.2 : 1.6;
    return Math.min(base * camera.zoom ** 0.3, 9) * (size.width < 500 ? 0.8 : 1);
  };

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    colours = { marks: Array.from({ length: 8 }, (_, place) => value(`--mark-${place}`)), faded: value('--faded'), ink: value('--ink'), surface: value('--surface') };
  };

  const tracePath = (target, isKnown, r) => {
    target.beginPath();
    if (isKnown) target.arc(0, 0, r, 0, 2 * Math.PI);
    else {
      target.moveTo(0, -1.2 * r);
      target.lineTo(1.15 * r, 0.9 * r);
      target.lineTo(-1.15 * r, 0.9 * r);
      target.closePath();
    }
  };

  // One small picture for each colour, shape and filling: to copy it is quicker than to draw a path.
  const makeStamps = () => {
    const r = radius();
    const side = Math.ceil((2.6 * r + 4) * size.ratio);
    const stamps = [];
    for (let kind = 0; kind < 32; kind += 1) {
      const stamp = document.createElement('canvas');
      stamp.width = stamp.height = side;
      const ink = stamp.getContext('2d');
      ink.setTransform(size.ratio, 0, 0, size.ratio, side / 2, side / 2);
      tracePath(ink, (kind & 1) === 0, r);
      ink.lineWidth = Math.max(1, r / 3);
      ink.fillStyle = kind & 2 ? colours.surface : colours.marks[kind >> 2];
      ink.strokeStyle = kind & 2 ? colours.marks[kind >> 2] : colours.surface;
      ink.globalAlpha = nRows > 20000 ? 0.8 : 1;
      ink.fill();
      if (kind & 2) ink.stroke();
      else if (r > 2.5) {
        ink.lineWidth = 0.7;
        ink.stroke();
      }
      stamps.push(stamp);
    }
    return { stamps, side: side / size.ratio };
  };

  const drawMarks = (stride) => {
    const { stamps, side } = makeStamps();
    const k = scale() / STEPS;
    const left = size.width / 2 - camera.x * scale();
    const top = size.height / 2 + camera.y * scale();
    const isAll = view.selected < 0 && view.matches === null;
    const dot = Math.max(1.2, radius());
    const draw = (row, isFull) => {
      const x = left + rows.x[row] * k;
      const y = top - rows.y[row] * k;
      if (x < -10 || y < -10 || x > size.width + 10 || y > size.height + 10) return;
      if (!isFull) {
        pen.fillRect(x - dot / 2, y - dot / 2, dot, dot);
        return;
      }
      const one = classes[rows.code[row]];
      const kind = (one.colour << 2) | (isUnsure(row) ? 2 : 0) | (one.isKnown ? 0 : 1);
      pen.drawImage(stamps[kind], x - side / 2, y - side / 2, side, side);
    };
    if (!isAll) {
      pen.fillStyle = colours.faded;
      for (let row = 0; row < nRows; row += stride) if (rows.code[row] >= 0 && !isLit(row)) draw(row, false);
    }
    for (let row = 0; row < nRows; row += isAll ? stride : 1) if (isAll ? rows.code[row] >= 0 : isLit(row)) draw(row, true);
  };

  // Names of large classes first; a name that would cover another is left out until there is room.
  const drawNames = () => {
    if (!byId('map-names').checked) return;
    pen.font = '600 12px system-ui, sans-serif';
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    const taken = [];
    const most = Math.max(5, (size.width * size.height) / 15000);
    for (const code of view.selected >= 0 ? [view.selected] : bySize) {
      if (!middles[code]) continue;
      const text = flat(nameOf(code), 22);
      const width = pen.measureText(text).width + 6;
      const x = Math.min(Math.max(toScreenX(middles[code].x), width / 2 + 2), size.width - width / 2 - 2);
      // Above a class that it would hide.
      const y = toScreenY(middles[code].y) - (middles[code].reach * scale() < 14 ? radius() + 13 : 0);
      const rawX = toScreenX(middles[code].x);
      if (rawX < -20 || rawX > size.width + 20 || y < 8 || y > size.height - 8) continue;
      if (taken.some((other) => Math.abs(other.x - x) < (other.width + width) / 2 + 8 && Math.abs(other.y - y) < 24)) continue;
      if (taken.length >= most) break;
      taken.push({ x, y, width });
      pen.lineWidth = 4;
      pen.lineJoin = 'round';
      pen.strokeStyle = colours.surface;
      pen.strokeText(text, x, y);
      pen.fillStyle = colours.ink;
      pen.fillText(text, x, y);
    }
  };

  const drawHovered = () => {
    if (hovered < 0) return;
    pen.save();
    pen.translate(toScreenX(part(rows.x[hovered])), toScreenY(part(rows.y[hovered])));
    tracePath(pen, classes[rows.code[hovered]].isKnown, radius() + 3.5);
    pen.lineWidth = 2.5;
    pen.strokeStyle = colours.ink;
    pen.stroke();
    pen.restore();
  };

  const draw = (isMoving) => {
    pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    drawMarks(isMoving ? Math.max(1, Math.ceil(nRows / MOST_WHILE_MOVING)) : 1);
    drawNames();
    drawHovered();
  };
  const redraw = (isMoving = false) => {
    cancelAnimationFrame(frame);
    clearTimeout(settle);
    const isCoarse = isMoving && nRows > MOST_WHILE_MOVING;
    frame = requestAnimationFrame(() => draw(isCoarse));
    if (isCoarse) settle = setTimeout(() => redraw(), 160);
  };

  const resize = () => {
    const { width, height } = box.getBoundingClientRect();
    size.width = Math.max(width, 50);
    size.height = Math.max(height, 50);
    size.ratio = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(size.width * size.ratio);
    canvas.height = Math.round(size.height * size.ratio);
    draw(nRows > MOST_WHILE_MOVING); // at once: a canvas that changes its size is blank
    redraw(true);
  };

  const zoomBy = (factor, left = size.width / 2, top = size.height / 2) => {
    const before = toMap(left, top);
    camera.zoom = Math.min(Math.max(camera.zoom * factor, 1), MOST_ZOOM);
    const after = toMap(left, top);
    moveTo(camera.x + before.x - after.x, camera.y + before.y - after.y);
    // One finger scrolls the page while all is seen, and moves the map once it is enlarged.
    canvas.style.touchAction = camera.zoom > 1 ? 'none' : 'pan-y';
  };
  const moveTo = (x, y) => {
    const reach = camera.zoom === 1 ? 0 : 0.5;
    camera.x = Math.min(Math.max(x, 0.5 - reach), 0.5 + reach);
    camera.y = Math.min(Math.max(y, 0.5 - reach), 0.5 + reach);
    hideTip();
    redraw(true);
  };
  const reset = () => {
    camera.zoom = 1;
    canvas.style.touchAction = 'pan-y';
    moveTo(0.5, 0.5);
  };

  const findRow = (left, top, reach) => {
    const at = toMap(left, top);
    const r = reach / scale();
    const [low, high] = [at.x - r, at.x + r].map((x) => Math.min(GRID - 1, Math.max(0, Math.floor(x * GRID))));
    const [bottom, upper] = [at.y - r, at.y + r].map((y) => Math.min(GRID - 1, Math.max(0, Math.floor(y * GRID))));
    let best = -1;
    let least = r * r;
    for (let line = bottom; line <= upper; line += 1) {
      for (let place = grid.starts[line * GRID + low]; place < grid.starts[line * GRID + high + 1]; place += 1) {
        const row = grid.members[place];
        const apart = (part(rows.x[row]) - at.x) ** 2 + (part(rows.y[row]) - at.y) ** 2;
        if (apart < least && isLit(row)) [best, least] = [row, apart];
      }
    }
    return best;
  };

  const hideTip = () => {
    tip.hidden = true;
    hovered = -1;
  };
  const showTip = (row, isSpoken = false) => {
    if (row === hovered && !tip.hidden) return;
    hovered = row;
    redraw();
    if (row < 0) {
      tip.hidden = true;
      return;
    }
    tip.replaceChildren(describeRow(row));
    tip.hidden = false;
    const left = toScreenX(part(rows.x[row]));
    const top = toScreenY(part(rows.y[row]));
    const { offsetWidth: width, offsetHeight: height } = tip;
    const x = left + 16 + width > size.width ? left - width - 16 : left + 16;
    tip.style.left = `${Math.min(Math.max(x, 4), Math.max(size.width - width - 4, 4))}px`;
    tip.style.top = `${Math.min(Math.max(top - height / 2, 4), Math.max(size.height - height - 4, 4))}px`;
    if (isSpoken) byId('map-live').textContent = flat(`${oneLine(row)}. ${nameOf(rows.code[row])}, ${percent(part(rows.p[row]))}.`, 400);
  };

  // The nearest lit row in the direction of an arrow key; without a row yet, the one nearest the middle.
  const step = (dx, dy) => {
    const from = hovered < 0 ? { x: camera.x, y: camera.y } : { x: part(rows.x[hovered]), y: part(rows.y[hovered]) };
    let best = -1;
    let least = Infinity;
    for (let row = 0; row < nRows; row += 1) {
      if (row === hovered || !isLit(row)) continue;
      const x = part(rows.x[row]) - from.x;
      const y = part(rows.y[row]) - from.y;
      const ahead = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (hovered >= 0 && (ahead <= 0 || aside > 2 * ahead)) continue;
      const far = hovered < 0 ? x * x + y * y : ahead + 2 * aside;
      if (far < least) [best, least] = [row, far];
    }
    if (best < 0) return;
    const x = toScreenX(part(rows.x[best]));
    const y = toScreenY(part(rows.y[best]));
    if (x < 0 || y < 0 || x > size.width || y > size.height) moveTo(part(rows.x[best]), part(rows.y[best]));
    showTip(best, true);
  };

  const goToRow = (row) => {
    if (view.selected >= 0 && view.selected !== rows.code[row]) select(-1);
    camera.zoom = Math.max(camera.zoom, 4);
    moveTo(part(rows.x[row]), part(rows.y[row]));
    byId('map').scrollIntoView({ block: 'start' });
    canvas.focus({ preventScroll: true });
    showTip(row, true);
  };

  listenToPointers({ canvas, zoomBy, findRow, showTip, hideTip, redraw,
    pan: (dx, dy) => moveTo(camera.x - dx / scale(), camera.y + dy / scale()), isEnlarged: () => camera.zoom > 1 });
  canvas.addEventListener('keydown', (event) => {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const actions = { '+': () => zoomBy(1.5), '=': () => zoomBy(1.5), '-': () => zoomBy(1 / 1.5), 0: reset, Enter: () => hovered >= 0 && select(rows.code[hovered]) };
    if (arrows[event.key]) step(...arrows[event.key]);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener('blur', () => { hideTip(); redraw(); });
  byId('zoom-in').addEventListener('click', () => zoomBy(1.6));
  byId('zoom-out').addEventListener('click', () => zoomBy(1 / 1.6));
  byId('zoom-reset').addEventListener('click', reset);
  byId('map-names').addEventListener('change', () => redraw());
  on('view', () => { hideTip(); redraw(); });
  on('names', () => redraw());
  on('theme', () => { readColours(); redraw(); });
  on('row', goToRow);
  new ResizeObserver(resize).observe(box);
  canvas.setAttribute('aria-label', `Map of ${count(nRows, 'row')} in ${count(classes.length, 'class', 'classes')}`);
  readColours();
  resize();
};

// What is said of a row beside the pointer.
const describeRow = (row) => {
  const second = rows.second[row];
  const p2 = part(rows.p2[row]);
  return make('div', { className: 'tip-row' },
    pictureOf(row),
    make('div', {},
      make('div', { className: 'tip-item' }, hasItem(row) ? showItem(row) : `row ${row}`),
      make('div', { className: 'tip-class' }, markOf(rows.code[row]), ' ', own(titleOf(rows.code[row]), { className: 'name' }), `, ${percent(part(rows.p[row]))} sure`),
      second >= 0 && p2 >= 0.01 ? make('div', { className: 'small' }, 'or ', own(titleOf(second)), `, ${percent(p2)}`) : null,
      data.truth && truthOf(row) !== null ? make('div', { className: 'small' }, 'truly ', own(truthOf(row))) : null,
      isFar(row) ? make('div', { className: 'small' }, 'far from every class') : null,
      isUnsure(row) ? make('div', { className: 'small' }, 'unsure') : null,
      itemText(row) === `row ${row}` ? null : make('div', { className: 'small' }, `row ${row}`)));
};

// Mouse, pen and fingers: hover, click, drag, wheel and pinch.
const listenToPointers = ({ canvas, zoomBy, findRow, showTip, hideTip, redraw, pan, isEnlarged }) => {
  const down = new Map();
  let travelled = 0;
  const at = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const spread = () => {
    const [a, b] = [...down.values()];
    return { apart: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  canvas.addEventListener('wheel', (event) => {
    if (event.deltaY > 0 && !isEnlarged()) return; // all is seen: let the page scroll on
    event.preventDefault();
    const { x, y } = at(event);
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), x, y);
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    down.set(event.pointerId, at(event));
    if (down.size === 1) travelled = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType === 'mouse') showTip(findRow(now.x, now.y, 12));
      return;
    }
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (down.size === 1) {
      down.set(event.pointerId, now);
      if (travelled > 4 && isEnlarged()) pan(now.x - before.x, now.y - before.y);
      return;
    }
    const old = spread();
    down.set(event.pointerId, now);
    const fresh = spread();
    zoomBy(fresh.apart / Math.max(old.apart, 1), fresh.x, fresh.y);
    if (isEnlarged()) pan(fresh.x - old.x, fresh.y - old.y);
  });
  const lift = (event, isClick) => {
    const wasDown = down.delete(event.pointerId);
    if (!isClick || !wasDown || travelled > 4 || down.size) return;
    const { x, y } = at(event);
    const row = findRow(x, y, event.pointerType === 'mouse' ? 12 : 24);
    if (event.pointerType === 'mouse') {
      if (row >= 0 || view.selected >= 0) select(row < 0 ? view.selected : rows.code[row]);
    } else if (row < 0) {
      hideTip();
      if (view.selected >= 0) select(view.selected);
      else redraw();
    } else {
      if (view.selected !== rows.code[row]) select(rows.code[row]);
      showTip(row, true);
    }
  };
  canvas.addEventListener('pointerup', (event) => lift(event, true));
  canvas.addEventListener('pointercancel', (event) => lift(event, false));
  canvas.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse' && !down.size) { hideTip(); redraw(); }
  });
};

const startLegend = () => {
  const list = byId('legend-list');
  const bySize = classes.map((_, code) => code).sort((a, b) => classes[b].size - classes[a].size);
  const show = () => {
    list.replaceChildren(...bySize.map((code) =>
      make('li', {}, make('button', { type: 'button', className: 'legend-entry', 'aria-pressed': String(view.selected === code), onclick: () => select(code) },
        markOf(code), own(nameOf(code), { className: 'name' }), make('span', { className: 'small' }, number.format(classes[code].size))))));
    byId('show-all').hidden = view.selected < 0 && view.matches === null;
  };
  byId('legend-note').textContent = classes.length > 8
    ? 'Colours repeat: classes of one colour lie far apart. Choose a class to see it alone.'
    : 'Choose a class to see it alone.';
  byId('show-all').addEventListener('click', showEverything);
  on('names', show);
  on('view', () => {
    [...list.children].forEach((entry, place) => entry.firstChild.setAttribute('aria-pressed', String(view.selected === bySize[place])));
    byId('show-all').hidden = view.selected < 0 && view.matches === null;
  });
  show();
};
