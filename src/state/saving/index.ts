export { entryName } from "./entry-name.ts";
export { lowerPriority } from "./lower-priority.ts";
export { abandoned, PartCollection } from "./part-collection.ts";
export { partsOf, planSave } from "./save-plan.ts";
export { StateImage } from "./state-image.ts";
export { isSaveProgress, writeParts } from "./write-parts.ts";
