/** Modules of the jobs that need no script. */
export const jobModules = {
  finetune: new URL("./jobs/finetune.ts", import.meta.url),
  pretrain: new URL("./jobs/pretrain.ts", import.meta.url),
} as const;
