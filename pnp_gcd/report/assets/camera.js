// Where on the screen a place of the map is. There is one map, so that its camera is one too.

const MOST_ZOOM = 200;
// Places on the map run from 0 to 1; x and y are the place in the middle of the screen, sizes are in pixels.
const camera = { x: 0.5, y: 0.5, zoom: 1, width: 1, height: 1, ratio: 1 };

const scaleOfMap = () => Math.min(camera.width, camera.height) * 0.92 * camera.zoom;
const toScreenX = (x) => (x - camera.x) * scaleOfMap() + camera.width / 2;
const toScreenY = (y) => (camera.y - y) * scaleOfMap() + camera.height / 2;
const toMap = (left, top) => ({
  x: (left - camera.width / 2) / scaleOfMap() + camera.x,
  y: camera.y - (top - camera.height / 2) / scaleOfMap(),
});
const radiusOfMarks = () => {
  const base = nRows < 300 ? 6 : nRows < 2000 ? 4.4 : nRows < 10000 ? 3.2 : nRows < 40000 ? 2.2 : 1.6;
  return Math.min(base * camera.zoom ** 0.3, 9) * (camera.width < 500 ? 0.8 : 1);
};

const placeOf = (row) => ({ x: part(rows.x[row]), y: part(rows.y[row]) });

// The view goes no farther than half a screen beyond the rows, and shows all of them when it is not enlarged.
const moveCamera = (x, y) => {
  const reach = camera.zoom === 1 ? 0 : 0.5;
  camera.x = Math.min(Math.max(x, 0.5 - reach), 0.5 + reach);
  camera.y = Math.min(Math.max(y, 0.5 - reach), 0.5 + reach);
};

// Zoom so that the place under (left, top) stays there.
const zoomCamera = (factor, left, top) => {
  const before = toMap(left, top);
  camera.zoom = Math.min(Math.max(camera.zoom * factor, 1), MOST_ZOOM);
  const after = toMap(left, top);
  moveCamera(camera.x + before.x - after.x, camera.y + before.y - after.y);
};

// --- which row is where ---

const GRID = 128;

// Rows by cell of a grid over the map, so that the row under the pointer is found without asking all.
const buildGrid = () => {
  const cellOf = (row) =>
    Math.min(GRID - 1, (rows.x[row] * GRID) >> 16) + GRID * Math.min(GRID - 1, (rows.y[row] * GRID) >> 16);
  const starts = new Uint32Array(GRID * GRID + 1);
  for (let row = 0; row < nRows; row += 1) if (rows.code[row] >= 0) starts[cellOf(row) + 1] += 1;
  for (let cell = 0; cell < GRID * GRID; cell += 1) starts[cell + 1] += starts[cell];
  const filled = starts.slice();
  const members = new Uint32Array(starts[GRID * GRID]);
  for (let row = 0; row < nRows; row += 1) if (rows.code[row] >= 0) members[filled[cellOf(row)]++] = row;
  return { starts, members };
};

const grid = buildGrid();

// The lit row that is nearest to a point of the screen, within a reach in pixels; -1 for none.
const findRow = (left, top, reach) => {
  const at = toMap(left, top);
  const r = reach / scaleOfMap();
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

// The nearest lit row from another in the direction of an arrow key; without one, the row nearest the middle.
const findNext = (from, dx, dy) => {
  const start = from < 0 ? camera : placeOf(from);
  let best = -1;
  let least = Infinity;
  for (let row = 0; row < nRows; row += 1) {
    if (row === from || !isLit(row)) continue;
    const x = part(rows.x[row]) - start.x;
    const y = part(rows.y[row]) - start.y;
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (from >= 0 && (ahead <= 0 || aside > 2 * ahead)) continue;
    const far = from < 0 ? x * x + y * y : ahead + 2 * aside;
    if (far < least) [best, least] = [row, far];
  }
  return best;
};
