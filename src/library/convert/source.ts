import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileFailure, type TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import * as checkpoints from "../checkpoint/index.ts";
import { findConfig } from "./beside-config.ts";
import { convertError } from "./convert-error.ts";
import type { ConvertSource } from "./convert-source.ts";
import { fairseqModel } from "./fairseq/model.ts";
import { fromFairseq, looksLikeFairseq } from "./fairseq/names.ts";
import type { LazyTensor } from "./lazy-tensor.ts";
import { looksLikeMegatron, openMegatron } from "./megatron/folder.ts";
import { modelCenterFiles, readModelCenter } from "./model-center/folder.ts";
import { looksLikeModelCenter } from "./model-center/names.ts";
import { looksLikeNeoX, openNeoX } from "./neox/folder.ts";

/** Names of files written by `torch.save`. */
const torchFile = /\.(pt|pth|bin|ckpt)$/;

/** Facts that a source itself may lack. */
export interface SourceHints {
  readonly config?: checkpoints.JsonObject | undefined;
  /** The `checkpoint_version` of a Megatron-LM checkpoint. */
  readonly version?: number | undefined;
}

/**
 * Opens a model at a path: a checkpoint, a run's folder or bucket, a Hugging Face folder, a checkpoint of Megatron-LM or GPT-NeoX, a
 * ModelCenter folder, or one file of safetensors or `torch.save`; in FairSeq's or ModelCenter's names if a config.json says which
 * model it is.
 * @throws {TroupeError} `CONVERT` for anything else; errors of reading
 */
export async function openSource(path: string, hints: SourceHints = {}): Promise<ConvertSource> {
  if (path.startsWith("s3://")) return fromCheckpoint(await checkpoints.openCheckpoint(path));
  const found = await stat(path).catch((cause: unknown) => {
    throw unknownSource(path, fileFailure(cause));
  });
  if (found.isFile()) return fromFile(path, hints);
  const entries = await readdir(path);
  if (entries.includes("manifest.json") || entries.some((entry) => /^step-\d{6,}$/.test(entry)))
    return fromCheckpoint(await checkpoints.openCheckpoint(path));
  if (looksLikeMegatron(entries)) return openMegatron(path, hints);
  if (looksLikeNeoX(entries)) return openNeoX(path, hints.config);
  if (checkpoints.hasWeights(path)) return fromHuggingFace(path);
  const weights = modelCenterFiles.find((file) => entries.includes(file));
  if (weights !== undefined) {
    const config = hints.config ?? (await findConfig("model-center", [path]));
    return fromFile(join(path, weights), { ...hints, config });
  }
  throw unknownSource(path, `a folder with ${entries.slice(0, 5).join(", ") || "nothing in it"}`);
}

function fromCheckpoint(checkpoint: checkpoints.Checkpoint): ConvertSource {
  const lazy = (name: string): [string, LazyTensor] => {
    const { dtype, shape } = checkpoint.entry(name);
    const read = () =>
      checkpoint.read(name, new Uint8Array(checkpoints.tensorSizeBytes(dtype, shape) as number));
    return [name, { dtype, shape, read }];
  };
  const { path, config, generationConfig, companions, state } = checkpoint;
  return {
    kind: "troupe",
    path,
    config: Object.keys(config).length === 0 ? undefined : config,
    generationConfig,
    companions,
    step: state.step,
    state,
    tensors: new Map(checkpoint.weights.map(lazy)),
    optimizer: new Map(checkpoint.optimizer.map(lazy)),
    close: () => checkpoint[Symbol.asyncDispose](),
  };
}

async function fromHuggingFace(path: string): Promise<ConvertSource> {
  const folder = await checkpoints.HuggingFaceFolder.open(path);
  const tensors = folder.names.map((name): [string, LazyTensor] => {
    const { dtype, shape } = folder.entry(name);
    return [name, { dtype, shape, read: () => folder.read(name) }];
  });
  const plain = { kind: "hugging-face", path, step: 0, optimizer: new Map() } as const;
  const { config, generationConfig } = folder;
  const companions = await folder.companions();
  return {
    ...plain,
    config,
    generationConfig,
    companions,
    tensors: new Map(tensors),
    close: () => folder.close(),
  };
}

async function fromFile(path: string, { config }: SourceHints): Promise<ConvertSource> {
  const file = torchFile.test(path)
    ? await checkpoints.TorchFile.open(path)
    : await checkpoints.SafetensorsFile.open(path);
  const byName = modelIn(file);
  const plain = { path, config, step: 0, optimizer: new Map(), close: () => file.close() } as const;
  const own = {
    ...plain,
    kind: file instanceof checkpoints.TorchFile ? "torch" : "safetensors",
    tensors: byName,
  } as const;
  if (config === undefined) return own;
  try {
    if (looksLikeModelCenter(byName.keys())) return { ...plain, ...(await readModelCenter(byName, config)) };
    if (!looksLikeFairseq(byName.keys())) return own;
    return { ...plain, kind: "fairseq", tensors: fromFairseq(byName, await fairseqModel(config)) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** A file's tensors; for training programs that use `torch.save`, those under `model`. */
function modelIn(file: checkpoints.SafetensorsFile | checkpoints.TorchFile): Map<string, LazyTensor> {
  const part = file instanceof checkpoints.TorchFile && file.parts.has("model") ? "model." : "";
  const own = [...file.tensors.values()].filter(({ name }) => name.startsWith(part));
  return new Map(
    own.map(({ name, dtype, shape }) => [
      name.slice(part.length),
      { dtype, shape, read: () => file.read(name) },
    ]),
  );
}

function unknownSource(path: string, got: string): TroupeError {
  return convertError(
    `a checkpoint, a Hugging Face folder, one of Megatron-LM, GPT-NeoX or ModelCenter, or a file of safetensors or torch.save at ${path}`,
    got,
    whichPathWasMeant(path) ?? "see troupe checkpoint convert --help",
    { path },
  );
}
