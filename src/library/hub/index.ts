/**
 * Resolves names of models and datasets to paths, downloading them if needed. Done once, before a run begins: no rank
 * looks anything up.
 */
export { findData, findModel, findPrefix, type HubOptions } from "./find.ts";
export { findRegistry } from "./registry.ts";
