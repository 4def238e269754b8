import { existsSync } from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { isCompanion } from "../checkpoint/index.ts";
import {
  CachedRepository,
  type Environment,
  namesIn,
  type Repository,
  type RepositoryKind,
} from "./cache.ts";
import { download } from "./download.ts";
import { HubEndpoint } from "./endpoint.ts";

/** Options of a download. */
export interface FetchOptions {
  readonly environment: Environment;
  readonly tell: (line: string) => void;
  readonly firstDelayMs?: number | undefined;
}

/** Parses a name as a repository, `NAME` or `OWNER/NAME`, optionally with `@REVISION`; undefined where it cannot be one. */
export function repositoryNamed(kind: RepositoryKind, name: string): Repository | undefined {
  const [, repository, revision = "main"] =
    /^([\w-][\w.-]*(?:\/[\w-][\w.-]*)?)(?:@([\w./-]+))?$/.exec(name) ?? [];
  return repository === undefined || revision.includes("..")
    ? undefined
    : { kind, name: repository, revision };
}

/** Whether only the cache may be used. */
export function isOffline({ HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE }: Environment): boolean {
  return [HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE].some((value) => /^(1|on|yes|true)$/i.test(value ?? ""));
}

/**
 * Downloads the needed files of a repository into the cache, except those already there. The revision names its commit
 * only when all have arrived, so that an interrupted download is not taken for a complete one.
 * @param part - of a dataset; "" for a model
 * @returns its snapshot's folder
 * @throws {TroupeError} `HUB`, `HUB_UNREACHABLE`, `HUB_CHECKSUM`
 */
export async function fetchSnapshot(
  repository: Repository,
  part: string,
  options: FetchOptions,
): Promise<string> {
  const { environment, tell, firstDelayMs } = options;
  const hub = new HubEndpoint(environment, firstDelayMs);
  const cached = new CachedRepository(repository, environment);
  const { commit, files } = await hub.facts(repository);
  const wanted =
    repository.kind === "models" ? modelFiles(repository, files) : dataFiles(repository, files, part);
  for (const file of wanted) {
    if (cached.has(commit, file)) continue;
    const facts = await hub.fileFacts(repository, commit, file);
    const blob = cached.blob(facts.etag);
    await download(hub, { file, facts, blob, lock: cached.lock(facts.etag), tell });
    cached.link(commit, file, facts.etag);
  }
  if (repository.kind === "datasets") cached.noteComplete(commit, part, wanted);
  cached.point(commit);
  return cached.snapshotOf(commit);
}

const CONFIGS = /^(generation_|adapter_)?config\.json$/;
const WEIGHTS = /\.safetensors$/;
const INDEX = "model.safetensors.index.json";
/** Files of weights that run code when they are loaded. */
const PICKLES = /\.(bin|pt|pth|pkl|ckpt)$/;

/** A model's config files, its tokenizer's, and its weights: one file, or those that its index names. */
function modelFiles({ name }: Repository, files: readonly string[]): string[] {
  const here = files.filter((file) => !file.includes("/"));
  const weights = here.filter((file) => WEIGHTS.test(file));
  const pieces = weights.filter((file) => /^model-\d+-of-\d+\./.test(file));
  const chosen = here.includes(INDEX)
    ? [INDEX, ...pieces]
    : weights.includes("model.safetensors")
      ? ["model.safetensors"]
      : weights;
  const pickle = here.find((file) => PICKLES.test(file));
  if (weights.length === 0 && pickle !== undefined)
    throw new TroupeError("HUB", {
      where: "hub",
      expected: `weights of ${name} in .safetensors`,
      got: `${pickle}, a pickle, which can contain any program and is never downloaded`,
      hint: "a revision with safetensors, such as NAME@refs/pr/1, or convert it in Python with save_pretrained",
    });
  return [...here.filter((file) => CONFIGS.test(file) || isCompanion(file)), ...chosen];
}

const DATA = /\.(parquet|arrow|tar|jsonl(\.gz|\.zst)?|tsv|txt|conllu?)$/;

/** Data files of a part, else those at the top, else those in `data`. */
function dataFiles({ name }: Repository, files: readonly string[], part: string): string[] {
  const data = files.filter((file) => DATA.test(file) && !/^README/i.test(file));
  const folder = dataFolder(data, part);
  const found = data.filter((file) => file.slice(0, file.lastIndexOf("/") + 1) === folder);
  if (folder !== undefined && found.length > 0) return found;
  const parts = [...new Set(data.filter((file) => file.includes("/")).map((file) => file.split("/")[0]))];
  throw new TroupeError("HUB", {
    where: "hub",
    expected: `files of ${part === "" ? "" : `${part} of `}${name} in .parquet, .arrow, .tar, .jsonl, .tsv, .txt or .conll`,
    got: data.length === 0 ? `${files.length} others` : `none ${part === "" ? "on top" : "of that part"}`,
    hint: parts.length > 0 ? `its parts: ${parts.slice(0, 12).join(", ")}` : "give a folder of your own",
  });
}

/** The folder of a part's files, with a trailing slash; "" for the top, undefined where there are none. */
function dataFolder(files: readonly string[], part: string): string | undefined {
  const folders = part === "" ? ["", "data/"] : [`${part}/`, `data/${part}/`];
  return folders.find((folder) => files.some((file) => file.slice(0, file.lastIndexOf("/") + 1) === folder));
}

/** The folder of a part within a snapshot; undefined where it has no data. */
export function dataIn(snapshot: string, part: string): string | undefined {
  const folders =
    part === "" ? [snapshot, join(snapshot, "data")] : [join(snapshot, part), join(snapshot, "data", part)];
  return folders.find((folder) =>
    namesIn(folder).some((name) => DATA.test(name) && existsSync(join(folder, name))),
  );
}

/** Whether a model's snapshot has its config and all of its weights. */
export function isCompleteModel(snapshot: string): boolean {
  const has = (file: string) => existsSync(join(snapshot, file));
  if (!has("config.json")) return false;
  if (!has(INDEX)) return namesIn(snapshot).some((name) => WEIGHTS.test(name) && has(name));
  try {
    const { weight_map } = parseBoundedJson(
      readBoundedTextSync(join(snapshot, INDEX), maxFileBytes.index),
    ) as { weight_map: Record<string, string> };
    return [...new Set(Object.values(weight_map))].every(has);
  } catch {
    return false;
  }
}
