// The map: when it is drawn, what is said of the row under the pointer, and what keys and buttons do.

const MOST_WHILE_MOVING = 25000;

const mapCanvas = byId('map-canvas');
const mapPen = mapCanvas.getContext('2d');
let hovered = -1;
let frame = 0;
let settle = 0;

const drawMap = (isCoarse) => paintMap(mapPen, hovered, isCoarse ? Math.ceil(nRows / MOST_WHILE_MOVING) : 1);

// Many rows are drawn coarsely while the map moves, and in full once it rests.
const redrawMap = (isMoving = false) => {
  cancelAnimationFrame(frame);
  clearTimeout(settle);
  const isCoarse = isMoving && nRows > MOST_WHILE_MOVING;
  frame = requestAnimationFrame(() => drawMap(isCoarse));
  if (isCoarse) settle = setTimeout(() => redrawMap(), 160);
};

const resizeMap = () => {
  const { width, height } = byId('map-box').getBoundingClientRect();
  camera.width = Math.max(width, 50);
  camera.height = Math.max(height, 50);
  camera.ratio = Math.min(window.devicePixelRatio || 1, 2);
  mapCanvas.width = Math.round(camera.width * camera.ratio);
  mapCanvas.height = Math.round(camera.height * camera.ratio);
  drawMap(nRows > MOST_WHILE_MOVING); // at once: a canvas that changes its size is blank
  redrawMap(true);
};

// --- the row that is pointed at ---

const hideTip = () => {
  byId('tip').hidden = true;
  hovered = -1;
};

const placeTip = (row) => {
  const tip = byId('tip');
  const [left, top] = [toScreenX(part(rows.x[row])), toScreenY(part(rows.y[row]))];
  const { offsetWidth: width, offsetHeight: height } = tip;
  const x = left + 16 + width > camera.width ? left - width - 16 : left + 16;
  tip.style.left = `${Math.min(Math.max(x, 4), Math.max(camera.width - width - 4, 4))}px`;
  tip.style.top = `${Math.min(Math.max(top - height / 2, 4), Math.max(camera.height - height - 4, 4))}px`;
};

const showTip = (row, isSpoken = false) => {
  const tip = byId('tip');
  if (row === hovered && !tip.hidden) return;
  hovered = row;
  tip.hidden = row < 0;
  redrawMap();
  if (row < 0) return;
  tip.replaceChildren(describeRow(row));
  placeTip(row);
  if (!isSpoken) return;
  const said = `${oneLine(row)}. ${titleOf(rows.code[row])}, ${howSure(row)}.`;
  byId('map-live').textContent = flat(said, 400);
};

// --- moving ---

const showMoved = () => {
  // One finger scrolls the page while all is seen, and moves the map once it is enlarged.
  mapCanvas.style.touchAction = camera.zoom > 1 ? 'none' : 'pan-y';
  hideTip();
  redrawMap(true);
};
const zoomBy = (factor, left = camera.width / 2, top = camera.height / 2) => {
  zoomCamera(factor, left, top);
  showMoved();
};
const moveTo = ({ x, y }, zoom = camera.zoom) => {
  camera.zoom = zoom;
  moveCamera(x, y);
  showMoved();
};
const pan = (dx, dy) => moveTo({ x: camera.x - dx / scaleOfMap(), y: camera.y + dy / scaleOfMap() });
const resetMap = () => moveTo({ x: 0.5, y: 0.5 }, 1);

const step = (dx, dy) => {
  const next = findNext(hovered, dx, dy);
  if (next < 0) return;
  const [x, y] = [toScreenX(part(rows.x[next])), toScreenY(part(rows.y[next]))];
  if (x < 0 || y < 0 || x > camera.width || y > camera.height) moveTo(placeOf(next));
  showTip(next, true);
};

const goToRow = (row) => {
  if (view.selected >= 0 && view.selected !== rows.code[row]) select(view.selected); // chosen again: all are shown
  moveTo(placeOf(row), Math.max(camera.zoom, 4));
  byId('map').scrollIntoView({ block: 'start' });
  mapCanvas.focus({ preventScroll: true });
  showTip(row, true);
};

const KEYS_OF_MAP = {
  ArrowLeft: () => step(-1, 0),
  ArrowRight: () => step(1, 0),
  ArrowUp: () => step(0, 1),
  ArrowDown: () => step(0, -1),
  '+': () => zoomBy(1.5),
  '=': () => zoomBy(1.5),
  '-': () => zoomBy(1 / 1.5),
  0: resetMap,
  Enter: () => hovered >= 0 && select(rows.code[hovered]),
};

const startMap = () => {
  const rest = () => {
    hideTip();
    redrawMap();
  };
  listenToPointers({ canvas: mapCanvas, zoomBy, pan, isEnlarged: () => camera.zoom > 1 });
  mapCanvas.addEventListener('keydown', (event) => {
    if (!KEYS_OF_MAP[event.key]) return;
    event.preventDefault();
    KEYS_OF_MAP[event.key]();
  });
  mapCanvas.addEventListener('blur', rest);
  byId('zoom-in').addEventListener('click', () => zoomBy(1.6));
  byId('zoom-out').addEventListener('click', () => zoomBy(1 / 1.6));
  byId('zoom-reset').addEventListener('click', resetMap);
  byId('map-names').addEventListener('change', () => redrawMap());
  on('view', rest);
  on('names', () => redrawMap());
  on('theme', () => {
    readColours();
    redrawMap();
  });
  on('row', goToRow);
  new ResizeObserver(resizeMap).observe(byId('map-box'));
  const nClasses = count(classes.length, 'class', 'classes');
  mapCanvas.setAttribute('aria-label', `Map of ${count(nRows, 'row')} in ${nClasses}`);
  readColours();
  resizeMap();
};
