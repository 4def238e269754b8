/** Saves checkpoints of any program: from its own script, or over HTTP. */
export { CheckpointService, type SaveRequest } from "./checkpoint-service.ts";
export type { GivenTensor, RawTensor } from "./given-tensors.ts";
export { CheckpointServer } from "./http/checkpoint-server.ts";
export type { ServeOptions } from "./http/local-server.ts";
export { ModelServer } from "./http/model-server.ts";
export type { Save, SaveProgress } from "./save.ts";
export type { CheckpointServiceOptions } from "./service-options.ts";
export type { ComingSlice, StagedSave, TensorFacts, TensorGroup } from "./staged-save.ts";
export type { Written } from "./writer.ts";
