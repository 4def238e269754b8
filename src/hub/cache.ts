import { readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** What kinds of repositories Hugging Face's cache holds. */
export type RepositoryKind = "models" | "datasets";

/** Where Hugging Face keeps what was downloaded: `HF_HUB_CACHE`, else `HF_HOME/hub`, else the user's cache. */
export function cacheFolder({
  HF_HUB_CACHE,
  HUGGINGFACE_HUB_CACHE,
  HF_HOME,
  XDG_CACHE_HOME,
}: Environment): string {
  const home = HF_HOME ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "huggingface");
  return HF_HUB_CACHE ?? HUGGINGFACE_HUB_CACHE ?? join(home, "hub");
}

/**
 * The snapshot of a repository that lies in the cache, as `huggingface_hub` lays it out: `models--OWNER--NAME/refs/REVISION`
 * names the folder below `snapshots/`.
 * @param revision - a branch, a tag or a commit
 * @returns undefined where it is not there
 */
export function cachedSnapshot(
  kind: RepositoryKind,
  name: string,
  environment: Environment,
  revision = "main",
): string | undefined {
  const folder = join(cacheFolder(environment), [kind, ...name.split("/")].join("--"));
  const commit = textOf(join(folder, "refs", revision)) ?? revision;
  const snapshot = join(folder, "snapshots", commit);
  return namesIn(snapshot).length > 0 ? snapshot : undefined;
}

/** @returns the names of all repositories of a kind in the cache */
export function cachedNames(kind: RepositoryKind, environment: Environment): string[] {
  return namesIn(cacheFolder(environment))
    .filter((name) => name.startsWith(`${kind}--`))
    .map((name) => name.split("--").slice(1).join("/"));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
