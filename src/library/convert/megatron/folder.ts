import { readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileErrors } from "../../../errors/index.ts";
import { makeFolder } from "../../../errors/untrusted/index.ts";
import * as checkpoints from "../../checkpoint/index.ts";
import { findConfig, latestWord } from "../beside-config.ts";
import type { ConvertSource } from "../convert-source.ts";
import { formOf } from "../form-of.ts";
import type { LazyTensor } from "../lazy-tensor.ts";
import { joinFromMegatron, type MegatronLayout, type MegatronShard, splitForMegatron } from "./layout.ts";

const latestName = "latest_checkpointed_iteration.txt";
const rankFileName = "model_optim_rng.safetensors";
const torchFileName = "model_optim_rng.pt";
const newestVersion = 3;
const rankFolder = /^mp_rank_(\d{2,4})(?:_(\d{3}))?$/;

/** Whether a folder with these entries is Megatron-LM's, of a run or of one iteration. */
export function looksLikeMegatron(entries: readonly string[]): boolean {
  return entries.includes(latestName) || entries.some((entry) => rankFolder.test(entry));
}

/**
 * Opens a checkpoint of Megatron-LM: each rank's `model_optim_rng.pt`, or, if it is beside that, the same as safetensors,
 * `model_optim_rng.safetensors` or `model.safetensors`.
 * @param path - the folder of a run or of an iteration; it or one above has a Hugging Face `config.json`
 * @param given - the model's config.json and the checkpoint's version, if the folder lacks them
 * @throws {TroupeError} `CONVERT` for files that are missing or do not fit together
 */
export async function openMegatron(
  path: string,
  given: { readonly config?: checkpoints.JsonObject | undefined; readonly version?: number | undefined },
): Promise<ConvertSource> {
  const { folder, iteration } = await iterationFolder(path);
  const config = given.config ?? (await findConfig("megatron", [folder, path, join(folder, "..")]));
  await using opening = new AsyncDisposableStack();
  const shards: MegatronShard[] = [];
  const versions = new Set<number>();
  for (const entry of (await readdir(folder)).toSorted()) {
    const [, tp, pp = "0"] = rankFolder.exec(entry) ?? [];
    if (tp === undefined) continue;
    const file = opening.use(await openRankFile(join(folder, entry)));
    const version = given.version ?? versionOf(file);
    if (Number.isNaN(version))
      throw refusal(file.path, "the checkpoint_version", "none", {
        hint: "give --megatron-version, as checkpoint_version in the original",
      });
    versions.add(version);
    shards.push({ tp: Number(tp), pp: Number(pp), tensors: tensorsOf(file) });
  }
  const layout = layoutOf(folder, shards, versions);
  const tensors = joinFromMegatron(shards, (await formOf("megatron", "megatron", config))(config), layout);
  const files = opening.move();
  return {
    kind: "megatron",
    path,
    config,
    step: iteration,
    tensors,
    optimizer: new Map(),
    close: () => files.disposeAsync(),
  };
}

/**
 * Writes a model as a Megatron-LM checkpoint for `tp` × `pp` ranks, with its config.json.
 * @param path - an empty folder; the caller makes it durable
 */
export async function writeMegatron(
  path: string,
  source: Pick<ConvertSource, "config" | "tensors" | "step">,
  { tp = 1, pp = 1, version = newestVersion }: Partial<MegatronLayout>,
): Promise<void> {
  const config = source.config ?? {};
  const shards = splitForMegatron(source.tensors, (await formOf("megatron", "megatron", config))(config), {
    tp,
    pp,
    version,
  });
  const iteration = String(source.step).padStart(7, "0");
  const metadata = {
    ...checkpoints.pytorchMetadata,
    checkpoint_version: version.toFixed(1),
    iteration: String(source.step),
  };
  for (const shard of shards) {
    const rank =
      String(shard.tp).padStart(2, "0") + (pp === 1 ? "" : `_${String(shard.pp).padStart(3, "0")}`);
    const folder = join(path, `iter_${iteration}`, `mp_rank_${rank}`);
    makeFolder(folder);
    const tensors = [...shard.tensors].map(([name, tensor]) => ({ ...tensor, name: `model.${name}` }));
    await checkpoints.writeSafetensors(join(folder, rankFileName), tensors, metadata);
  }
  await writeFile(join(path, "config.json"), `${JSON.stringify(config, null, 2)}\n`, { flush: true });
  await writeFile(join(path, latestName), `${source.step}\n`, { flush: true });
}

async function iterationFolder(path: string): Promise<{ folder: string; iteration: number }> {
  const latest = await latestWord("megatron", join(path, latestName));
  if (latest === undefined)
    return { folder: path, iteration: Number(/^iter_(\d+)$/.exec(basename(path))?.[1] ?? 0) };
  const word = latest;
  if (word === "release") return { folder: join(path, "release"), iteration: 0 };
  if (!/^\d{1,9}$/.test(word))
    throw refusal(
      join(path, latestName),
      "an iteration or the word release",
      JSON.stringify(word.slice(0, 40)),
      { hint: "restore that file" },
    );
  return { folder: join(path, `iter_${word.padStart(7, "0")}`), iteration: Number(word) };
}

async function openRankFile(folder: string): Promise<checkpoints.SafetensorsFile | checkpoints.TorchFile> {
  const entries = await readdir(folder);
  const name = [rankFileName, "model.safetensors"].find((candidate) => entries.includes(candidate));
  if (name !== undefined) return checkpoints.SafetensorsFile.open(join(folder, name));
  if (entries.includes(torchFileName)) return checkpoints.TorchFile.open(join(folder, torchFileName));
  throw refusal(folder, torchFileName, "none", { hint: `or write ${rankFileName} beside it` });
}

/** The checkpoint's version; NaN if the file lacks it. */
function versionOf(file: checkpoints.SafetensorsFile | checkpoints.TorchFile): number {
  const values: ReadonlyMap<string, string | number> =
    file instanceof checkpoints.TorchFile ? file.values : file.metadata;
  return Number(values.get("checkpoint_version") ?? Number.NaN);
}

/** The model's tensors in a rank's file, by their names of 2022. */
function tensorsOf(file: checkpoints.TensorFile): Map<string, LazyTensor> {
  const names = [...file.tensors.keys()];
  const prefix = names.some((name) => name.startsWith("model.")) ? "model." : "";
  return new Map(
    [...file.tensors.values()]
      .filter(({ name }) => name.startsWith(prefix))
      .map(({ name, dtype, shape }) => [
        presentName(name.slice(prefix.length)),
        { dtype, shape, read: () => file.read(name) },
      ]),
  );
}

/** Renames parts: before 2021 the encoder was called transformer, and its self-attention attention. */
function presentName(name: string): string {
  return name
    .replace("language_model.transformer.", "language_model.encoder.")
    .replace(".attention.", ".self_attention.");
}

function layoutOf(
  folder: string,
  shards: readonly MegatronShard[],
  versions: ReadonlySet<number>,
): MegatronLayout {
  const [tp, pp] = [
    Math.max(...shards.map((shard) => shard.tp)) + 1,
    Math.max(...shards.map((shard) => shard.pp)) + 1,
  ];
  const distinct = new Set(shards.map((shard) => `${shard.tp} ${shard.pp}`));
  if (shards.length === 0)
    throw refusal(folder, "folders mp_rank_00 and so on", "none", {
      hint: "give the folder of a Megatron-LM checkpoint",
    });
  if (distinct.size !== tp * pp || shards.length !== tp * pp)
    throw refusal(folder, `${tp} × ${pp} ranks`, String(shards.length), { hint: "fetch the missing ones" });
  const [version, ...others] = versions;
  if (version === undefined || others.length > 0)
    throw refusal(folder, "one checkpoint_version", [...versions].join(" and "), {
      hint: "its files are of different checkpoints",
    });
  return { tp, pp, version };
}

const refusal = fileErrors("CONVERT", "megatron");
