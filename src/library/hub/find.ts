import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { TroupeError, whatWasMeant, whichPathWasMeant } from "../../errors/index.ts";
import { CachedRepository, cachedNames, type Environment, type RepositoryKind } from "./cache.ts";
import { findRegistry, registryVariable } from "./registry.ts";
import { dataIn, fetchSnapshot, isCompleteModel, isOffline, repositoryNamed } from "./snapshot.ts";

/** Options of a look-up. */
export interface HubOptions {
  /** Folder that paths are relative to. Default: the working directory. */
  readonly folder?: string;
  /** `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` and `TROUPE_HUB`. Default: the program's own. */
  readonly environment?: Environment;
  /** Receives a line for each download. Default: none are reported. */
  readonly tell?: (line: string) => void;
  /** Delay before a failed request to a hub is repeated, in milliseconds, doubled each time. Default: 500. */
  readonly firstDelayMs?: number;
}

/**
 * Finds the folder of a model: a path, else a name in the registry, else a snapshot in Hugging Face's cache, else a
 * download from its hub. `NAME@REVISION` selects another revision than `main`.
 * @throws {TroupeError} `HUB` with similar names; `HUB_UNREACHABLE`, `HUB_CHECKSUM` from a download
 */
export async function findModel(name: string, options: HubOptions = {}): Promise<string> {
  const { folder, environment, registry } = placesOf(options);
  const path = resolve(folder, name);
  if (existsSync(path)) return path;
  const registered = registry?.models[name];
  if (registered !== undefined && existsSync(registered)) return registered;
  const found = registered === undefined ? await atHub("models", name, "", options) : undefined;
  if (found !== undefined) return found;
  throw unknown("model", name, registered, [
    ...Object.keys(registry?.models ?? {}),
    ...cachedNames("models", environment),
  ]);
}

/**
 * Finds the file or folder of a dataset, or of a part of it: a path, else a name in the registry (`name/part` before
 * `name`), else a snapshot in Hugging Face's cache, else a download from its hub.
 * @throws {TroupeError} `HUB` with similar names; `HUB_UNREACHABLE`, `HUB_CHECKSUM` from a download
 */
export async function findData(name: string, part = "", options: HubOptions = {}): Promise<string> {
  const { folder, environment, registry } = placesOf(options);
  const names = part === "" ? [name] : [`${name}/${part}`, name];
  for (const each of names) {
    const path = resolve(folder, each);
    if (existsSync(path)) return path;
  }
  for (const each of names) {
    const registered = registry?.data[each];
    if (registered !== undefined && existsSync(registered)) return registered;
  }
  const named = names.map((each) => registry?.data[each]).find((place) => place !== undefined);
  const found = named === undefined ? await atHub("datasets", name, part, options) : undefined;
  if (found !== undefined) return found;
  throw unknown("dataset", names[0] ?? name, named, [
    ...Object.keys(registry?.data ?? {}),
    ...cachedNames("datasets", environment),
  ]);
}

/**
 * Finds the prefix of indexed data, without `.idx` and `.bin`: a path, else a name in the registry.
 * @throws {TroupeError} `HUB` with similar names, or the missing file
 */
export function findPrefix(name: string, options: HubOptions = {}): string {
  const { folder, registry } = placesOf(options);
  const places = [resolve(folder, name), registry?.data[name]];
  const found = places.find((place) => place !== undefined && existsSync(`${place}.idx`));
  if (found !== undefined) return found;
  throw unknown(
    "prefix of indexed data",
    name,
    `${registry?.data[name] ?? name}.idx`,
    Object.keys(registry?.data ?? {}),
  );
}

function placesOf({ folder = process.cwd(), environment = process.env }: HubOptions) {
  return { folder, environment, registry: findRegistry(folder, environment) };
}

/** Uses the cache if it is complete, else the hub; if that does not answer, the cache again. */
async function atHub(
  kind: RepositoryKind,
  name: string,
  part: string,
  { environment = process.env, tell = () => {}, firstDelayMs }: HubOptions,
): Promise<string | undefined> {
  const repository = repositoryNamed(kind, name);
  if (repository === undefined) return undefined;
  const folderIn = (snapshot: string | undefined) =>
    kind === "models" || snapshot === undefined ? snapshot : dataIn(snapshot, part);
  const cached = new CachedRepository(repository, environment);
  const { snapshot } = cached;
  const here = folderIn(snapshot);
  const isComplete = (folder: string) =>
    kind === "models" ? isCompleteModel(folder) : cached.isComplete(folder, part);
  if (here !== undefined && isComplete(snapshot as string)) return here;
  if (isOffline(environment)) return here;
  try {
    return folderIn(await fetchSnapshot(repository, part, { environment, tell, firstDelayMs }));
  } catch (error) {
    const isAway = error instanceof TroupeError && error.code === "HUB_UNREACHABLE";
    if (isAway && here !== undefined) return here;
    throw error;
  }
}

function unknown(
  what: string,
  name: string,
  missing: string | undefined,
  names: readonly string[],
): TroupeError {
  return new TroupeError("HUB", {
    where: "hub",
    expected: `a ${what}: a path, a name of troupe-hub.toml or of ${registryVariable}'s file, or one in Hugging Face's cache`,
    got: missing === undefined ? name : `${name}, whose ${missing} does not exist`,
    hint:
      whichPathWasMeant(name) ??
      (names.length === 0 ? "no names are known here" : whatWasMeant(name, [...new Set(names)])),
    fields: { name },
  });
}
