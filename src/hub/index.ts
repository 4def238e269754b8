/** Names of models and datasets to where they lie. Resolved once, before a run begins: no rank looks anything up. */
export { cachedSnapshot, cacheFolder } from "./cache.ts";
export { findData, findModel, findPrefix, type HubOptions } from "./find.ts";
export { findRegistry, type Registry } from "./registry.ts";
