"""The scripts that run in a page while it is measured: the recorder of its delays, and the peers."""

# A page that is told to save data starts Python at the first interaction and not before, so timing begins
# there. Predict boxes are turned off, because they would hide explorers.
ASLEEP = """
Object.defineProperty(navigator, 'connection', { value: { saveData: true } });
try { localStorage['scalingbook.asks'] ??= 'no'; } catch {}
"""
# From the first input event that is not painted yet to the first task after the frame that shows it.
RECORDER = """
globalThis.delays = [];
let since = null, drawing = 0;                 // drawing: inside a frame's callbacks and their microtasks
const after = new MessageChannel();            // its message is the first task after a frame was painted
after.port1.onmessage = ({ data: from }) => globalThis.delays.push(performance.now() - from);
const ask = requestAnimationFrame.bind(window);
globalThis.requestAnimationFrame = (call) => ask(async (time) => {
  drawing += 1;
  call(time);
  for (let i = 0; i < 30; i++) await null;
  drawing -= 1;
});
addEventListener('input', () => { since ??= performance.now(); }, true);
addEventListener('book:painted', () => {
  const from = since;
  since = null;
  if (from === null) return;
  if (drawing) after.port2.postMessage(from);  // this frame shows it
  else ask(() => after.port2.postMessage(from));
});
"""
# The minimum that a page can do: its time is the browser's share of every other delay.
ONE_NUMBER = """() => {
  document.body.innerHTML = '<input type="range" min="0" max="100" style="width: 40rem"><output></output>';
  const [slider, number] = document.body.children;
  slider.addEventListener('input', () => {
    number.textContent = slider.value;
    slider.dispatchEvent(new CustomEvent('book:painted', { bubbles: true }));
  });
}"""
# Observable Plot also gets its curves from a worker, so that both pay for one round trip.
PLOT = """async ([curves, moves]) => {
  const box = document.body.appendChild(document.createElement('div'));
  const delays = [];
  const worker = new Worker(URL.createObjectURL(new Blob(['onmessage = (e) => postMessage(e.data)'])));
  for (let i = 0; i < moves; i++) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, Math.random() * 16)));
    const from = performance.now();
    const data = await new Promise((done) => {
      worker.onmessage = (e) => done(e.data);
      worker.postMessage(curves);
    });
    box.replaceChildren(Plot.plot({
      width: 680, height: 320, grid: true, x: { type: 'log' }, y: { type: 'log' },
      marks: data.map((points, k) => Plot.line(points, { stroke: ['blue', 'red', 'green'][k] })) }));
    await new Promise((done) => requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = done;
      after.port2.postMessage(0);
    }));
    delays.push(performance.now() - from);
  }
  box.remove();
  worker.terminate();
  return delays;
}"""
BARE = """async (address) => {
  const code = `import { loadPyodide } from "${address}/_static/live/pyodide.mjs";
    await loadPyodide({ indexURL: "${address}/_static/live/", stdLibURL: "${address}/bare.zip" });
    postMessage("live");`;
  const blob = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const from = performance.now();
  const worker = new Worker(blob, { type: 'module' });
  await new Promise((done, failed) => { worker.onmessage = done; worker.onerror = failed; });
  worker.terminate();
  return performance.now() - from;
}"""
