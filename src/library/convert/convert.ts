import { mkdir } from "node:fs/promises";
import type { TroupeError } from "../../errors/index.ts";
import * as checkpoints from "../checkpoint/index.ts";
import { convertError } from "./convert-error.ts";
import type { ConvertSource } from "./convert-source.ts";
import { fairseqModel } from "./fairseq/model.ts";
import { toFairseq } from "./fairseq/names.ts";
import type { LazyTensor } from "./lazy-tensor.ts";
import { writeMegatron } from "./megatron/folder.ts";
import type { MegatronLayout } from "./megatron/layout.ts";
import { writeModelCenter } from "./model-center/folder.ts";
import { openSource, type SourceHints } from "./source.ts";
import { taken, writeBeside } from "./write-beside.ts";

/** Formats that a model can be converted to. */
export const convertKinds = ["hf", "megatron", "fairseq", "modelcenter", "safetensors", "troupe"] as const;

/** Options of {@link convert}. */
export interface ConvertOptions extends SourceHints {
  readonly to: (typeof convertKinds)[number];
  /** Largest file of a Hugging Face folder or a checkpoint, in bytes. Default: 5 GiB. */
  readonly maxFileBytes?: number | undefined;
  /** Ranks and `checkpoint_version` of a Megatron-LM checkpoint. */
  readonly megatron?: Partial<MegatronLayout> | undefined;
  /** Whether a single file includes the optimizer state. */
  readonly optimizer?: boolean | undefined;
}

/** Summary of a conversion. */
export interface Converted {
  readonly from: ConvertSource["kind"];
  readonly source: string;
  readonly target: string;
  readonly step: number;
  readonly numTensors: number;
}

/**
 * Converts the model at `source` to another format at `target`. Every value keeps its bits: matrices are transposed, joined and cut
 * without arithmetic.
 * @param target - a folder, a safetensors file, or for `troupe` the folder or bucket of a run; it must not exist
 * @throws {TroupeError} `CONVERT` if the model does not fit the format; errors of reading and writing. Then nothing is left behind
 */
export async function convert(source: string, target: string, options: ConvertOptions): Promise<Converted> {
  const opened = await openSource(source, options);
  try {
    const { kind, path, step, tensors } = opened;
    refuseUnused(opened, options);
    if (options.to === "troupe") await writeTroupe(target, opened, options);
    else await writeBeside("convert", target, (temporary) => write(temporary, opened, options));
    const written = options.to === "safetensors" && options.optimizer === true ? opened.optimizer.size : 0;
    return { from: kind, source: path, target, step, numTensors: tensors.size + written };
  } finally {
    await opened.close();
  }
}

/** Refuses hints about facts that the source itself contains: they would be ignored. */
function refuseUnused({ kind, path, config }: ConvertSource, { to, ...hints }: ConvertOptions): void {
  const hasOwnConfig = kind !== "megatron" && config !== undefined && config !== hints.config;
  const unused = [
    ...(hints.config !== undefined && hasOwnConfig ? ["a config.json, since it has its own"] : []),
    ...(hints.version !== undefined && kind !== "megatron" && to !== "megatron"
      ? ["a Megatron-LM version"]
      : []),
  ];
  if (unused.length === 0) return;
  throw convertError(`no more than ${path} needs`, unused.join(" and "), "leave it out", { path });
}

async function write(path: string, source: ConvertSource, options: ConvertOptions): Promise<void> {
  const { to, maxFileBytes, megatron = {}, optimizer = false } = options;
  if (to === "safetensors") {
    const tensors = optimizer ? [...source.tensors, ...source.optimizer] : [...source.tensors];
    await checkpoints.writeSafetensors(path, tensors.map(asSource));
    return;
  }
  const config = source.config ?? options.config;
  if (config === undefined) throw withoutConfig(source);
  if (to === "fairseq") {
    const renamed = await toFairseq(source.tensors, await fairseqModel(config));
    await checkpoints.writeSafetensors(path, [...renamed].map(asSource));
    return;
  }
  await mkdir(path);
  if (to === "megatron") await writeMegatron(path, { ...source, config }, megatron);
  else if (to === "modelcenter") await writeModelCenter(path, source, config);
  else {
    const weights = [...source.tensors].map(asSource);
    await checkpoints.saveHuggingFaceFolder(
      path,
      { config, generationConfig: source.generationConfig, companions: source.companions, weights },
      maxFileBytes === undefined ? {} : { maxFileBytes },
    );
  }
}

async function writeTroupe(
  target: string,
  source: ConvertSource,
  { config, maxFileBytes }: ConvertOptions,
): Promise<void> {
  const storage = await checkpoints.openStorage(target);
  await using _lock = await storage.lock("troupe checkpoint convert");
  const begun = { step: source.step, seed: 0, samplesConsumed: 0, job: null, tokenizer: null };
  const content = {
    state: source.state ?? begun,
    config: source.config ?? config ?? {},
    generationConfig: source.generationConfig,
    companions: source.companions,
    weights: [...source.tensors].map(asSource),
    optimizer: [...source.optimizer].map(asSource),
  };
  if ((await storage.list()).length > 0) throw taken("convert", target);
  await checkpoints.writeCheckpoint(storage, content, maxFileBytes === undefined ? {} : { maxFileBytes });
}

const asSource = ([name, tensor]: [string, LazyTensor]): checkpoints.TensorSource => ({ name, ...tensor });

function withoutConfig({ kind, path }: ConvertSource): TroupeError {
  const isOwn = kind === "troupe";
  return convertError(
    `a config.json ${isOwn ? `of the model in ${path}` : `beside ${path}`}`,
    isOwn ? "an empty one, for its class has no configJson" : "none",
    isOwn ? "--to safetensors writes its tensors, --config gives it one" : "give the model's with --config",
    { path },
  );
}
