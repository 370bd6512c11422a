// The state of one explorer's controls by parameter name: positions, options, texts and switches.
import { find } from "../dom.mjs";

/** @typedef {HTMLInputElement | HTMLSelectElement} Input */
/** @typedef {string | number | boolean | null} Value */
/** @typedef {Record<string, Value>} State */

/**
 * @param {EventTarget | null} input
 * @returns {input is HTMLInputElement}
 */
export const isSlider = (input) => input instanceof HTMLInputElement && input.type === "range";

/**
 * @param {Input} input
 * @returns {input is HTMLInputElement}
 */
const isSwitch = (input) => input instanceof HTMLInputElement && input.type === "checkbox";

/**
 * An input's state, or its state as built: a browser that returns to a page restores what was entered before.
 * @param {Input} input
 * @param {boolean} built
 */
function held(input, built) {
  if (isSwitch(input)) return built ? input.defaultChecked : input.checked;
  const value = built ? textAsBuilt(input) : input.value;
  return isSlider(input) ? Number(value) : value;
}

/** @param {Input} input */
function textAsBuilt(input) {
  if (input instanceof HTMLInputElement) return input.defaultValue;
  return ([...input.options].find((one) => one.defaultSelected) ?? input.options[0])?.value ?? "";
}

/**
 * The label of a slider's position from the page's own table, or undefined if Python has to compute it.
 * @param {Input} input
 */
function meaning(input) {
  if (!isSlider(input)) return undefined;
  if ("steps" in input.dataset) return `${input.value} of ${input.max}`;
  const { texts } = input.dataset;
  if (texts === undefined) return Number(input.value).toLocaleString("en-US");
  const at = Math.round((Number(input.value) - Number(input.min)) / (Number(input.step) || 1));
  return texts.split("|")[at];
}

export class Controls {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Input[]} */
    this.inputs = [...root.querySelectorAll("input[name], select[name]")]
      .filter((one) => one instanceof HTMLInputElement || one instanceof HTMLSelectElement);
    this.start = this.state(true);
  }

  /**
   * The current states of all controls, or their states as built.
   * @returns {State}
   */
  state(built = false) { return Object.fromEntries(this.inputs.map((input) => [input.name, held(input, built)])); }

  /** Whether any control differs from its initial state. */
  moved() { return JSON.stringify(this.state()) !== JSON.stringify(this.start); }

  /**
   * Set the controls that a state names; an address gives every value as text.
   * @param {State} state
   */
  set(state) {
    for (const input of this.inputs) {
      if (!(input.name in state)) continue;
      const value = state[input.name];
      if (isSwitch(input)) input.checked = value === true || value === "true";
      else input.value = String(value);
      this.label(input);
    }
  }

  /** Show a slider's label at once, without Python. @param {Input} input */
  label(input) {
    const text = meaning(input);
    if (text !== undefined) this.describe(input.name, text);
  }

  /**
   * Show a control's label beside it, and give it to screen readers.
   * @param {string} name
   * @param {string} text
   */
  describe(name, text) {
    const input = this.inputs.find((one) => one.name === name);
    if (!input) return;
    if (isSlider(input)) input.setAttribute("aria-valuetext", text);
    const output = input.id && find(this.root, `output[for="${CSS.escape(input.id)}"]`, HTMLOutputElement);
    if (output && output.textContent !== text) output.textContent = text;
  }
}
