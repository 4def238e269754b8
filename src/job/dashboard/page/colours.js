/** @type {Map<string, string>} */
const colours = new Map();

/** A colour of the style sheet, in the current theme. @param {string} name */
export function colour(name) {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

// This module loads before those that draw, so its listener clears the colours first.
document.addEventListener("theme", () => colours.clear());
