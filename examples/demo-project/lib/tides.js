// Half a lunar day lies between two high waters.
const HALF_LUNAR_DAY_MS = (12 * 60 + 25.2) * 60 * 1000;
const A_HIGH_WATER_MS = Date.UTC(2026, 0, 1, 3, 40);

export function nextTides(from, count) {
  const tides = [];
  let n = Math.ceil((from.getTime() - A_HIGH_WATER_MS) / (HALF_LUNAR_DAY_MS / 2));
  while (tides.length < count) {
    const time = new Date(A_HIGH_WATER_MS + (n * HALF_LUNAR_DAY_MS) / 2);
    tides.push({ kind: n % 2 === 0 ? "High" : "Low", time });
    n++;
  }
  return tides;
}
