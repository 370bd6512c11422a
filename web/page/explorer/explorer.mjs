// One explorer: a control's event goes to the worker, and the answer goes into the page. No arithmetic here.
import { find } from "../dom.mjs";
import { Address } from "./address.mjs";
import { Controls, isSlider } from "./controls.mjs";
import { addMore } from "./more.mjs";
import { Pictures } from "./pictures.mjs";
import { Player } from "./player.mjs";
import { addStatus } from "./status.mjs";
import { View } from "./view.mjs";
/** @import { State } from "./controls.mjs" */
/** @import { Engine } from "../engine.mjs" */
/** @import { Painted } from "./view.mjs" */

const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i;

export class Explorer {
  /**
   * @param {HTMLElement} root
   * @param {Engine} engine
   * @param {{ key: string, suffix: string }} name its key in the library, and a suffix that makes it unique on this page
   */
  constructor(root, engine, { key, suffix }) {
    this.root = root;
    this.engine = engine;
    this.busy = this.again = this.back = false;
    this.controls = new Controls(root);
    this.view = new View(root);
    this.pictures = new Pictures(engine, key);
    this.address = new Address(key + suffix, this.controls);
    this.status = addStatus(root);
    this.player = this.makePlayer();
    /** @type {HTMLElement | null} */
    this.last = null; // the input that was touched last
    addMore(this);
    this.listen();
    this.restore();
  }

  makePlayer() {
    const steps = find(this.root, ".ex-steps input[type=range]", HTMLInputElement);
    if (!steps) return null;
    const player = new Player(steps, find(this.root, ".ex-play", HTMLButtonElement), (input) => this.touched(input));
    this.enable(".ex-play", () => player.toggle());
    return player;
  }

  listen() {
    this.root.addEventListener("input", (event) => this.touched(event.target));
    this.root.addEventListener("submit", (event) => event.preventDefault());
    this.enable(".ex-reset", () => this.reset());
  }

  /**
   * A button that does nothing without this script is built disabled.
   * @param {string} selector
   * @param {() => void} act
   */
  enable(selector, act) {
    const button = find(this.root, selector, HTMLButtonElement);
    if (!button) return;
    button.disabled = false;
    button.addEventListener("click", act);
  }

  /** @param {EventTarget | null} target */
  touched(target) {
    if (isSlider(target) && target !== this.player?.steps) this.player?.pause();
    if (target instanceof HTMLElement) this.last = target;
    const input = this.controls.inputs.find((one) => one === target);
    if (input) this.controls.label(input);
    this.paint();
    this.address.remember();
  }

  /** Paint the newest state; while one is being computed, later ones wait, and only the last of them is requested. */
  async paint() {
    if (this.busy) { this.again = true; return; }
    const wide = this.view.wide(), ready = this.pictures.ready(this.controls.state(), wide);
    if (ready !== undefined) { this.show(ready, wide); return; }
    this.busy = true;
    do {
      this.again = false;
      this.view.wait(this.engine.state === "live");
      try {
        const asked = this.view.wide();
        this.show(await this.pictures.fetch(this.controls.state(), asked), asked);
      } catch { /* the status says why */ }
    } while (this.again && this.engine.state !== "failed");
    this.busy = false;
    this.view.waited(this.engine.state === "failed");
  }

  /**
   * @param {Painted} painted
   * @param {boolean} wide
   */
  show(painted, wide) {
    if (!this.again) for (const [name, text] of Object.entries(painted.outputs ?? {})) this.controls.describe(name, text);
    if (!painted.error) this.player?.count(painted.frames);
    if (this.back && !this.again) { this.view.release(); this.back = false; }
    this.view.show(painted, wide, this.last);
    this.address.know(painted);
    this.address.remember();
    if (!this.again) this.root.dispatchEvent(new CustomEvent("book:painted", { bubbles: true }));
  }

  /** @param {State} states */
  set(states) {
    if (this.player && this.player.steps.name in states) this.player.allow(Number(states[this.player.steps.name]));
    this.controls.set(states);
  }

  /** Reset all controls, and release the height that larger figures took. */
  reset() {
    this.player?.pause();
    this.set(this.controls.start);
    this.back = true;
    this.paint();
    this.address.remember();
  }

  /** Show the state in the address, and changes made before this script ran. */
  async restore() {
    const { states, values } = this.address.wanted();
    if (!Object.keys({ ...states, ...values }).length && !this.controls.moved()) return;
    for (const input of this.controls.inputs) this.controls.label(input);
    this.set(states);
    this.view.wait(false);
    await this.place(values);
    this.paint();
  }

  /**
   * Move sliders to the positions of their values, except those that were touched in the meantime.
   * @param {Record<string, string>} values
   */
  async place(values) {
    const asked = Object.entries(values).filter(([, text]) => NUMBER.test(text)).map(([name, text]) => [name, Number(text)]);
    if (!asked.length) return;
    try {
      /** @type {Record<string, number>} */
      const places = await this.engine.ask("place", this.pictures.key, JSON.stringify(Object.fromEntries(asked)));
      const now = this.controls.state(), { start } = this.controls;
      this.controls.set(Object.fromEntries(Object.entries(places).filter(([name]) => now[name] === start[name])));
    } catch { /* the status says why */ }
  }

  /** Python has become available after all: show the changes made in the meantime. */
  wake() { if (!this.busy && this.controls.moved()) this.paint(); }

  /** After a change of the window's width: if the other picture is visible now, fit it once it is painted. */
  refit() {
    if (!this.view.refit()) return;
    this.root.addEventListener("book:painted", () => this.view.fit(), { once: true });
    this.paint();
  }
}
