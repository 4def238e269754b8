/**
 * Says in a few words what a value is, for the `got` of an error: `undefined`, `"text"`, `3`, `a promise`, `an array`, `a Tensor`.
 */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof (value as { readonly then?: unknown }).then === "function") return "a promise";
  const { name = "" } = (value as { readonly constructor?: { readonly name?: string } }).constructor ?? {};
  if (name === "" || name === "Object") return "an object";
  return `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}`;
}
