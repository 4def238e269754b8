/** Names of models and datasets to where they lie, downloaded where need be. Resolved once, before a run begins: no rank looks anything up. */
export { findData, findModel, findPrefix, type HubOptions } from "./find.ts";
export { findRegistry } from "./registry.ts";
