/** Functions of a job's own that actors name to each other. */
export { type DefinedIn, Definitions } from "./definitions.ts";
