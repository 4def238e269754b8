export { type InitialState, openValues } from "./initial-state.ts";
