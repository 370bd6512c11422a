// The book's service worker, at its root: opened pages stay readable without a network, and on a slow one.
// Every request goes to the network first, because file names carry no hash. The build writes `buildFiles` above.

/** @type {{ build: string, first: string[], live: string[] }} */
const { build, first, live } = /** @type {any} */ (globalThis).buildFiles;
const worker = /** @type {any} */ (globalThis); // the page types do not cover a service worker
/** @type {string} */
const scope = worker.registration.scope; // several books may share a host
const store = `${scope} ${build}`;
const SILENT_MS = 3000; // how long a stored file waits for an answer from the network
const AT_ONCE = 6;

/** @param {string} name */
const whole = (name) => new URL(name, scope).href;

/** The cache key of a URL; a folder's address is that of its index page. @param {string} url */
const key = (url) => url.replace(/[?#].*/s, "").replace(/\/$/, "/index.html");

/**
 * Fetch and store the files that are not stored yet. A missing one is skipped; a network error is thrown.
 * @param {string[]} urls
 */
async function keep(urls) {
  const cache = await caches.open(store), waiting = [...new Set(urls.map(key))];
  const fetchNext = async () => {
    for (let url = waiting.pop(); url; url = waiting.pop()) {
      if (await cache.match(url)) continue;
      const response = await fetch(url, { cache: "no-cache" });
      if (response.ok) await cache.put(url, response);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, fetchNext));
}

/** The stores of this book's earlier builds. */
const older = async () => (await caches.keys()).filter((name) => name.startsWith(`${scope} `) && name !== store);

/** Fetch this build's copy of every file that an earlier build stored; activation then deletes the earlier one. */
async function install() {
  const had = [];
  for (const name of await older()) had.push(...await (await caches.open(name)).keys());
  await keep([...first.map(whole), ...had.map((request) => request.url)]);
  await worker.skipWaiting();
}

async function activate() {
  for (const name of await older()) await caches.delete(name);
  await worker.clients.claim();
}

/** The response for a page that is not stored: the offline page, with links relative to the root. */
async function missing() {
  const page = await caches.match(whole("offline.html"));
  if (!page) return Response.error();
  const text = (await page.text()).replace("<head>", `<head><base href="${scope}">`);
  return new Response(text, { status: 503, headers: page.headers });
}

/** @param {any} event a fetch */
async function answer(event) {
  const { request } = event, cache = await caches.open(store);
  const fresh = fetch(request).then((response) => {
    if (response.ok) event.waitUntil(cache.put(key(request.url), response.clone()).catch(() => {})); // ignore a full cache
    return response;
  });
  const kept = await cache.match(key(request.url));
  if (!kept) return fresh.catch((problem) => { if (request.mode === "navigate") return missing(); throw problem; });
  const silence = new Promise((done) => { setTimeout(() => done(kept), SILENT_MS); });
  return Promise.race([fresh.then((response) => (response.status < 500 ? response : kept), () => kept), silence]);
}

/** Whether a request is for a file of the book, whole and not a download. @param {Request} request */
const ours = ({ method, url, headers }) =>
  method === "GET" && !headers.has("range") && url.startsWith(scope) && !url.startsWith(whole("notebooks/"));

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(activate()));
worker.addEventListener("message", (/** @type {any} */ event) => {
  event.waitUntil(keep([...(event.data.live ? live.map(whole) : []), ...(event.data.seen ?? [])].filter((url) => url.startsWith(scope))));
});
worker.addEventListener("fetch", (/** @type {any} */ event) => { if (ours(event.request)) event.respondWith(answer(event)); });
