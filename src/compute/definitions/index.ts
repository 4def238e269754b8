/** A job's own functions that actors name to each other. */
export { type DefinedIn, Definitions } from "./definitions.ts";
