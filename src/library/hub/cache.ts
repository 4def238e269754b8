import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../errors/untrusted/index.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Kinds of repositories in Hugging Face's cache. */
export type RepositoryKind = "models" | "datasets";

/** A repository at a revision. */
export interface Repository {
  readonly kind: RepositoryKind;
  /** `owner/name`, or just a name. */
  readonly name: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
}

/** Hugging Face's own folder: `HF_HOME`, else in the user's cache. */
export function homeFolder({ HF_HOME, XDG_CACHE_HOME }: Environment): string {
  return HF_HOME ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "huggingface");
}

/** Hugging Face's folder of downloads: `HF_HUB_CACHE`, else `HF_HOME/hub`, else in the user's cache. */
function cacheFolder(environment: Environment): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE } = environment;
  return HF_HUB_CACHE ?? HUGGINGFACE_HUB_CACHE ?? join(homeFolder(environment), "hub");
}

/**
 * One repository in the cache, in the layout of `huggingface_hub`: `blobs/ETAG` has each content once, `snapshots/COMMIT/FILE`
 * links to one, `refs/REVISION` contains a branch's commit. The cache is shared with Python programs.
 */
export class CachedRepository {
  readonly folder: string;
  readonly #repository: Repository;
  readonly #locks: string;

  constructor(repository: Repository, environment: Environment) {
    const folder = [repository.kind, ...repository.name.split("/")].join("--");
    const cache = cacheFolder(environment);
    this.#repository = repository;
    this.folder = join(cache, folder);
    this.#locks = join(cache, ".locks", folder);
  }

  /** The snapshot that the revision names; undefined if it is missing or empty. */
  get snapshot(): string | undefined {
    const { revision } = this.#repository;
    const snapshot = this.snapshotOf(textOf(join(this.folder, "refs", revision)) ?? revision);
    return namesIn(snapshot).length > 0 ? snapshot : undefined;
  }

  /** Whether a snapshot has a complete file. */
  has(commit: string, file: string): boolean {
    return existsSync(join(this.snapshotOf(commit), file));
  }

  /** Whether a snapshot has all files of a dataset's part, as {@link noteComplete} wrote them down. */
  isComplete(snapshot: string, part: string): boolean {
    const commit = basename(snapshot);
    try {
      const text = readBoundedTextSync(this.#noteOf(commit, part), maxFileBytes.index);
      return (parseBoundedJson(text) as string[]).every((file) => this.has(commit, file));
    } catch {
      return false;
    }
  }

  /** Notes which files a dataset's part has, once all of them are in the snapshot. */
  noteComplete(commit: string, part: string, files: readonly string[]): void {
    if (this.isComplete(commit, part)) return;
    try {
      replaceText(this.#noteOf(commit, part), JSON.stringify(files));
    } catch {
      // A cache that cannot be written costs only the question, again.
    }
  }

  /** Outside `snapshots`, where Python takes each name for a commit. */
  #noteOf(commit: string, part: string): string {
    const name = part === "" ? commit : `${commit}-${encodeURIComponent(part)}`;
    return join(this.folder, ".complete", name);
  }

  snapshotOf(commit: string): string {
    return join(this.folder, "snapshots", commit);
  }

  blob(etag: string): string {
    return join(this.folder, "blobs", etag);
  }

  /** The file that Python programs lock while they download a content. */
  lock(etag: string): string {
    return join(this.#locks, `${etag}.lock`);
  }

  /** Links a snapshot's file to a content in the cache. */
  link(commit: string, file: string, etag: string): void {
    const place = join(this.snapshotOf(commit), file);
    mkdirSync(dirname(place), { recursive: true });
    try {
      symlinkSync(relative(dirname(place), this.blob(etag)), place);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }

  /** Lets the revision name a commit, whose files are all there, so that offline runs find them. */
  point(commit: string): void {
    const { revision } = this.#repository;
    if (revision === commit) return;
    const place = join(this.folder, "refs", revision);
    if (textOf(place) !== commit) replaceText(place, commit);
  }
}

function replaceText(place: string, text: string): void {
  mkdirSync(dirname(place), { recursive: true });
  const draft = `${place}.${randomUUID()}`;
  // In a shared cache, another user's link of this name must not be followed.
  writeFileSync(draft, text, { flag: "wx" });
  renameSync(draft, place);
}

/** Returns the names of all repositories of a kind in the cache. */
export function cachedNames(kind: RepositoryKind, environment: Environment): string[] {
  return namesIn(cacheFolder(environment))
    .filter((name) => name.startsWith(`${kind}--`))
    .map((name) => name.split("--").slice(1).join("/"));
}

function textOf(path: string): string | undefined {
  try {
    return readBoundedTextSync(path, maxFileBytes.word).trim();
  } catch {
    return undefined;
  }
}

/** Returns the names in a folder; none where it does not exist. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
