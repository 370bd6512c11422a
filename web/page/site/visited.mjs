// Keeps opened pages readable without a network: the service worker stores them.
import { book } from "../book.mjs";

/** The first page loads before its service worker, so it reports what it has loaded, and later that Python is live. */
async function tell() {
  const { active } = await navigator.serviceWorker.ready;
  active?.postMessage({ seen: [location.href, ...performance.getEntriesByType("resource").map((one) => one.name)] }, []);
  const live = () => { if (document.documentElement.dataset.live === "live") active?.postMessage({ live: true }, []); };
  new MutationObserver(live).observe(document.documentElement, { attributeFilter: ["data-live"] });
  live();
}

export function setUpVisited() {
  if (!navigator.serviceWorker || location.protocol === "file:" || navigator.connection?.saveData) return; // there is no service worker without https
  const register = () => navigator.serviceWorker.register(new URL("offline.js", book)).then(tell).catch(() => {}); // a browser that stores nothing
  if (document.readyState === "complete") register(); else addEventListener("load", register);
}
