export { configure } from "./configure.ts";
export type { Precision, RuntimeOptions } from "./options.ts";
export { Runtime } from "./runtime.ts";
