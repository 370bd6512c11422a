/**
 * The message of a problem; anything may be thrown, here and in Python.
 * @param {any} problem
 */
export const words = (problem) => String(problem?.message ?? problem);
