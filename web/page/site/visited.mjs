// What a reader has opened stays readable without a network: the service worker keeps it.
import { book } from "../book.mjs";

/** The first page came before its worker did, so it tells what it has loaded, and then when Python is live. */
async function tell() {
  const { active } = await navigator.serviceWorker.ready;
  active?.postMessage({ seen: [location.href, ...performance.getEntriesByType("resource").map((one) => one.name)] }, []);
  const live = () => { if (document.documentElement.dataset.live === "live") active?.postMessage({ live: true }, []); };
  new MutationObserver(live).observe(document.documentElement, { attributeFilter: ["data-live"] });
  live();
}

export function setUpVisited() {
  if (!navigator.serviceWorker || location.protocol === "file:" || navigator.connection?.saveData) return; // without https there is none
  const register = () => navigator.serviceWorker.register(new URL("offline.js", book)).then(tell).catch(() => {}); // a browser that keeps nothing
  if (document.readyState === "complete") register(); else addEventListener("load", register);
}
