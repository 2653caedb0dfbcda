// What is painted on the map: marks, names, and a ring around the row that is pointed at.

const bySize = classes.map((_, code) => code).sort((a, b) => classes[b].size - classes[a].size);

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

let colours = {};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  colours = {
    marks: Array.from({ length: 8 }, (_, place) => value(`--mark-${place}`)),
    faded: value('--faded'),
    ink: value('--ink'),
    surface: value('--surface'),
  };
};

const traceMark = (target, isKnown, r) => {
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
  const r = radiusOfMarks();
  const side = Math.ceil((2.6 * r + 4) * camera.ratio);
  const stamps = [];
  for (let kind = 0; kind < 32; kind += 1) {
    const stamp = document.createElement('canvas');
    stamp.width = stamp.height = side;
    const ink = stamp.getContext('2d');
    ink.setTransform(camera.ratio, 0, 0, camera.ratio, side / 2, side / 2);
    traceMark(ink, (kind & 1) === 0, r);
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
  return { stamps, side: side / camera.ratio };
};

const drawMarks = (pen, stride) => {
  const { stamps, side } = makeStamps();
  const k = scaleOfMap() / STEPS;
  const left = camera.width / 2 - camera.x * scaleOfMap();
  const top = camera.height / 2 + camera.y * scaleOfMap();
  const isAll = view.selected < 0 && view.matches === null;
  const dot = Math.max(1.2, radiusOfMarks());
  const draw = (row, isFull) => {
    const x = left + rows.x[row] * k;
    const y = top - rows.y[row] * k;
    if (x < -10 || y < -10 || x > camera.width + 10 || y > camera.height + 10) return;
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
  for (let row = 0; row < nRows; row += isAll ? stride : 1)
    if (isAll ? rows.code[row] >= 0 : isLit(row)) draw(row, true);
};

const middles = findMiddles();

// Names of large classes first; a name that would cover another is left out until there is room.
const drawNames = (pen) => {
  if (!byId('map-names').checked) return;
  pen.font = '600 12px system-ui, sans-serif';
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  const taken = [];
  const most = Math.max(5, (camera.width * camera.height) / 15000);
  for (const code of view.selected >= 0 ? [view.selected] : bySize) {
    if (!middles[code]) continue;
    const text = flat(nameOf(code), 22);
    const width = pen.measureText(text).width + 6;
    const x = Math.min(Math.max(toScreenX(middles[code].x), width / 2 + 2), camera.width - width / 2 - 2);
    // Above a class that it would hide.
    const y = toScreenY(middles[code].y) - (middles[code].reach * scaleOfMap() < 14 ? radiusOfMarks() + 13 : 0);
    const rawX = toScreenX(middles[code].x);
    if (rawX < -20 || rawX > camera.width + 20 || y < 8 || y > camera.height - 8) continue;
    if (taken.some((other) => Math.abs(other.x - x) < (other.width + width) / 2 + 8 && Math.abs(other.y - y) < 24))
      continue;
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

const drawRing = (pen, row) => {
  if (row < 0) return;
  pen.save();
  pen.translate(toScreenX(part(rows.x[row])), toScreenY(part(rows.y[row])));
  traceMark(pen, classes[rows.code[row]].isKnown, radiusOfMarks() + 3.5);
  pen.lineWidth = 2.5;
  pen.strokeStyle = colours.ink;
  pen.stroke();
  pen.restore();
};

// With a stride above 1 only some of the marks are drawn, for as long as the map moves.
const paintMap = (pen, row, stride) => {
  pen.setTransform(camera.ratio, 0, 0, camera.ratio, 0, 0);
  pen.clearRect(0, 0, camera.width, camera.height);
  drawMarks(pen, stride);
  drawNames(pen);
  drawRing(pen, row);
};
