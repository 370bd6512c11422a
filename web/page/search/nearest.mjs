// Which word was meant by one with a typing error?

/**
 * How many letters were added, left out, taken for another or exchanged with the next.
 * @param {string} one
 * @param {string} other
 */
export function errors(one, other) {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0 : 1));
      if (one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[one.length][other.length];
}

/**
 * The known word with the fewest errors, of several the commonest.
 * @param {string} word
 * @param {Map<string, number>} known how often each stands there
 * @param {number} most errors
 * @returns {string | undefined}
 */
export function nearest(word, known, most) {
  const near = [...known].filter(([one]) => Math.abs(one.length - word.length) <= most)
    .map(([one, times]) => ({ one, wrong: errors(word, one), times }))
    .filter(({ wrong }) => wrong <= most);
  return near.toSorted((a, b) => a.wrong - b.wrong || b.times - a.times)[0]?.one;
}
