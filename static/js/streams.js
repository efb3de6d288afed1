// Streams of all windows of one browser: it opens six connections to a server at most (HTTP/1.1), so streams have four of them, and
// pages the rest. window.muster.openStream(url, options) returns an EventSource, or null where all places are taken; options:
// weight (more goes first), takesOver (the place of another window with the same weight: where one has just come), onLost (the
// place went to another window, or the page is left).
"use strict";

(() => {
  const PLACES = 4, LEASE = 10_000, RENEWAL = 2_000, PREFIX = "muster-stream-";
  const KEYS = Array.from({ length: PLACES }, (_, number) => PREFIX + number);
  const page = Math.random().toString(36).slice(2);
  const places = new Map();
  let renewing = null, count = 0;

  // Later protocols carry all streams in one connection.
  const isBounded = !/^h[23]/.test(performance.getEntriesByType("navigation")[0]?.nextHopProtocol ?? "");

  // The lease of a place; null where it is free. A window that died leaves one that runs out.
  const read = (key) => {
    try {
      const lease = JSON.parse(localStorage.getItem(key));
      const left = lease ? lease.until - Date.now() : 0;
      return left > 0 && left <= LEASE ? lease : null;
    } catch { return null; }
  };

  const write = (key, { owner, weight, since }) => localStorage.setItem(key, JSON.stringify({ owner, page, weight, since, until: Date.now() + LEASE }));

  const releasePlace = (place) => {
    if (places.get(place.key) !== place) return;
    places.delete(place.key);
    if (read(place.key)?.owner === place.owner) localStorage.removeItem(place.key);
    if (places.size) return;
    window.clearInterval(renewing);
    renewing = null;
  };

  // Closing a source releases its place.
  const losePlace = (place) => {
    place.source.close();
    place.onLost?.();
  };

  const renew = () => {
    for (const place of [...places.values()]) {
      const lease = read(place.key);
      if (lease && lease.owner !== place.owner) losePlace(place); else write(place.key, place);
    }
  };

  // The place to take: a free one, else that of the least weight, of another window, and the oldest of those.
  const choosePlace = (weight, takesOver) => {
    const leases = KEYS.map((key) => ({ key, lease: read(key) }));
    const empty = leases.find(({ key, lease }) => !lease && !places.has(key));
    if (empty) return empty.key;
    const order = ({ lease }) => [lease.weight, lease.page === page ? 1 : 0, lease.since];
    const [victim] = leases
      .filter(({ lease }) => lease && (lease.weight < weight || (takesOver && lease.weight === weight && lease.page !== page)))
      .sort((a, b) => order(a).map((value, index) => value - order(b)[index]).find(Boolean) ?? 0);
    return victim?.key;
  };

  const openStream = (url, { weight = 1, takesOver = true, onLost } = {}) => {
    const place = { owner: `${page}.${count += 1}`, weight, since: Date.now(), onLost };
    try {
      if (isBounded && !(place.key = choosePlace(weight, takesOver))) return null;
      if (places.has(place.key)) losePlace(places.get(place.key));
      if (place.key) write(place.key, place);
    } catch {
      // Without a storage windows cannot agree: each has its own streams.
      delete place.key;
    }
    const source = place.source = new EventSource(url);
    if (!place.key) return source;
    places.set(place.key, place);
    renewing ??= window.setInterval(renew, RENEWAL);
    const close = source.close.bind(source);
    source.close = () => { close(); releasePlace(place); };
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) releasePlace(place); });
    return source;
  };

  window.addEventListener("storage", (event) => {
    const place = places.get(event.key);
    if (place && read(place.key) && read(place.key).owner !== place.owner) losePlace(place);
  });
  window.addEventListener("pagehide", () => [...places.values()].forEach(losePlace));

  window.muster.openStream = openStream;
})();
