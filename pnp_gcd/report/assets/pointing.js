// Mouse, pen and fingers: hover, click, drag, wheel and pinch.
const listenToPointers = ({ canvas, zoomBy, pan, isEnlarged }) => {
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
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (event.deltaY > 0 && !isEnlarged()) return; // all is seen: let the page scroll on
      event.preventDefault();
      const { x, y } = at(event);
      zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), x, y);
    },
    { passive: false },
  );
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
      else redrawMap();
    } else {
      if (view.selected !== rows.code[row]) select(rows.code[row]);
      showTip(row, true);
    }
  };
  canvas.addEventListener('pointerup', (event) => lift(event, true));
  canvas.addEventListener('pointercancel', (event) => lift(event, false));
  canvas.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse' && !down.size) {
      hideTip();
      redrawMap();
    }
  });
};
