export { entryName } from "./entry-name.ts";
export { giveWay } from "./give-way.ts";
export { abandoned, PartCollection } from "./part-collection.ts";
export { type PartPlan, partsOf, planSave, type SavePlan } from "./save-plan.ts";
export { StateImage } from "./state-image.ts";
export { isSaveProgress, type SaveProgress, writeParts } from "./write-parts.ts";
