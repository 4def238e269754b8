export { openValues } from "./open-values.ts";
