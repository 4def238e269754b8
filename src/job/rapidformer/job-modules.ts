/** The modules of the jobs that are trained without a script of one's own. */
export const jobModules = {
  finetune: new URL("./jobs/finetune.ts", import.meta.url),
  pretrain: new URL("./jobs/pretrain.ts", import.meta.url),
} as const;
