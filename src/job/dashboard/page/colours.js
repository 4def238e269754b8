/** @type {Map<string, string>} */
const colours = new Map();

/** A colour of the style sheet, in the theme that is shown. @param {string} name */
export function colour(name) {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

// This module is loaded before those that draw, so that they hear of a new theme after it.
document.addEventListener("theme", () => colours.clear());
