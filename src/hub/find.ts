import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { TroupeError, whatWasMeant } from "../errors.ts";
import { cachedNames, cachedSnapshot } from "./cache.ts";
import { findRegistry, registryVariable } from "./registry.ts";

/** Where names are looked up. */
export interface HubOptions {
  /** What paths are relative to; the working directory unless told otherwise. */
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/**
 * The folder of a model: a path, else a name of the registry, else a snapshot of Hugging Face's cache.
 * @throws {TroupeError} `HUB` naming what is near
 */
export function findModel(name: string, options: HubOptions = {}): string {
  const { folder, environment, registry } = placesOf(options);
  const path = resolve(folder, name);
  if (existsSync(path)) return path;
  const found = registry?.models[name] ?? cachedSnapshot("models", name, environment);
  if (found !== undefined && existsSync(found)) return found;
  throw unknown("model", name, found, [
    ...Object.keys(registry?.models ?? {}),
    ...cachedNames("models", environment),
  ]);
}

/**
 * The file or folder of a dataset, or of its part: a path, else a name of the registry, `name/part` before `name`, else a
 * snapshot of Hugging Face's cache.
 * @throws {TroupeError} `HUB` naming what is near
 */
export function findData(name: string, part = "", options: HubOptions = {}): string {
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
  const snapshot = cachedSnapshot("datasets", name, environment);
  const inside = snapshot === undefined ? undefined : join(snapshot, part);
  if (inside !== undefined && existsSync(inside)) return inside;
  if (snapshot !== undefined) return snapshot;
  const named = names.map((each) => registry?.data[each]).find((place) => place !== undefined);
  throw unknown("dataset", names[0] ?? name, named, [
    ...Object.keys(registry?.data ?? {}),
    ...cachedNames("datasets", environment),
  ]);
}

/**
 * The prefix of indexed data, `.idx` and `.bin` left off: a path, else a name of the registry.
 * @throws {TroupeError} `HUB` naming what is near, or the file that is not there
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

function unknown(
  what: string,
  name: string,
  missing: string | undefined,
  names: readonly string[],
): TroupeError {
  return new TroupeError(
    "HUB",
    {
      where: "hub",
      expected: `a ${what}: a path, a name of troupe-hub.toml or of ${registryVariable}'s file, or one in Hugging Face's cache`,
      got: missing === undefined ? name : `${name}, whose ${missing} is not there`,
      hint: whatWasMeant(name, [...new Set(names)]),
    },
    { fields: { name } },
  );
}
