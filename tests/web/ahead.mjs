// The page's own modules on a slider that is dragged: for each move, whether its picture was there, and what was made after it.
import { text } from "node:stream/consumers";

globalThis.HTMLInputElement = class {};
const { Ahead } = await import("../../web/page/explorer/ahead.mjs");
const { Pictures } = await import("../../web/page/explorer/pictures.mjs");

const { last, values } = JSON.parse(await text(process.stdin));
const slider = Object.assign(new HTMLInputElement(), { type: "range", name: "n", min: "0", max: String(last), step: "1", value: "0" });
const made = [];
const engine = { state: "live", answer: async (call, key, state) => {
  made.push(JSON.parse(state).n);
  return { text: JSON.stringify({ figure: state }), ms: 1 };
} };
const controls = { inputs: [slider], state: () => ({ n: Number(slider.value) }) };
const pictures = new Pictures(engine, "an explorer"), view = { wide: () => true };
const ahead = new Ahead({ controls, view, pictures, busy: () => false });
const told = [];
for (const value of values) {
  slider.value = String(value);
  const ready = pictures.ready(controls.state(), true) !== undefined;
  made.length = 0;
  await pictures.fetch(controls.state(), true);
  ahead.expect(slider);
  while (ahead.looking) await new Promise((done) => setTimeout(done, 0));
  told.push({ ready, made: made.length });
}
process.stdout.write(JSON.stringify(told));
