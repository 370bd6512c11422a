/**
 * Give a reader a file that was made here.
 * @param {string} text
 * @param {string} type
 * @param {string} name
 */
export function save(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
