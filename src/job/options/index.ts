/**
 * The schema of options, and reading them from a script, a command line, a file and the environment. It imports zod: the main
 * thread loads this module when it reads options; an actor's thread imports only its types.
 */
export { type CommandOptions, readCommand } from "./command.ts";
export { environmentOptions, FILE_VARIABLE } from "./environment.ts";
export { fileOptions } from "./file.ts";
export { options } from "./kinds.ts";
export { type Given, Layers } from "./layers.ts";
export { describeStandard, groups, type Option, optionsOf } from "./option.ts";
export type { AnomalyOptions, CheckpointOptions, HostsOptions, RuntimeOptions } from "./options.generated.ts";
export { printConfig, printScript } from "./print.ts";
export { read } from "./read.ts";
export { commandSchema, ranksUpTo, runtimeSchema } from "./schema.ts";
export type * from "./settings.ts";
export { settle } from "./settle.ts";
export { bytesOf, readText } from "./texts.ts";
export { checkTraining } from "./training-plan.ts";
