import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TroupeError } from "../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { type Environment, homeFolder, type Repository } from "./cache.ts";

/** A hub's information about a file. */
export interface FileFacts {
  /** Name of its content: SHA-256 for large files, Git's SHA-1 for others. */
  readonly etag: string;
  /** Undefined where the hub does not report it. */
  readonly sizeBytes: number | undefined;
  /** URL of its bytes: for large files on another server. */
  readonly url: string;
}

/** A repository's commit and files at a revision. */
export interface RepositoryFacts {
  readonly commit: string;
  readonly files: readonly string[];
}

/** Names of the kinds in messages. */
const wordOf = { models: "model", datasets: "dataset" } as const;

const MOST_REDIRECTS = 5;
/** Statuses for which a request is repeated: the hub is overloaded or restarting. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
const ATTEMPTS = 4;

/** A hub with huggingface.co's API. Makes no request before a method is called. */
export class HubEndpoint {
  readonly address: string;
  /** Delay before a failed request is repeated, in milliseconds; doubled each time. */
  readonly firstDelayMs: number;
  readonly #token: string | undefined;
  readonly #silenceMs: number;

  constructor(environment: Environment, firstDelayMs = 500) {
    const { HF_ENDPOINT = "https://huggingface.co", HF_HUB_ETAG_TIMEOUT = "10" } = environment;
    this.address = HF_ENDPOINT.replace(/\/+$/, "");
    this.#token = tokenIn(environment);
    this.#silenceMs = 1000 * Number(HF_HUB_ETAG_TIMEOUT);
    this.firstDelayMs = firstDelayMs;
  }

  /**
   * Requests a repository's commit and files.
   * @throws {TroupeError} `HUB_UNREACHABLE`; `HUB` for a repository that does not exist, or that this user may not
   * read, with similar names
   */
  async facts(repository: Repository): Promise<RepositoryFacts> {
    const { kind, name, revision } = repository;
    const url = `${this.address}/api/${kind}/${name}/revision/${encodeURIComponent(revision)}`;
    const response = await this.ask(url);
    if (!response.ok) throw await this.#refused(repository, response);
    const { sha, siblings } = (await response.json().catch(() => ({}))) as {
      readonly sha?: unknown;
      readonly siblings?: readonly { readonly rfilename?: unknown }[];
    };
    if (typeof sha !== "string" || !/^\w+$/.test(sha) || !Array.isArray(siblings))
      throw unreachable(this.address, `an answer from ${url} in an unknown format`, "is HF_ENDPOINT right?");
    const files = siblings.map(({ rfilename }) => String(rfilename)).filter(isInside);
    return { commit: sha, files };
  }

  /** Requests a file's facts. @throws {TroupeError} `HUB_UNREACHABLE`, `HUB` */
  async fileFacts(repository: Repository, commit: string, file: string): Promise<FileFacts> {
    const { kind, name } = repository;
    const of = kind === "models" ? "" : `${kind}/`;
    const path = file.split("/").map(encodeURIComponent).join("/");
    const url = `${this.address}/${of}${name}/resolve/${commit}/${path}`;
    const response = await this.ask(url, { method: "HEAD" });
    const { headers, status } = response;
    if (status >= 400) throw await this.#refused(repository, response, file);
    const etag = (headers.get("x-linked-etag") ?? headers.get("etag") ?? "")
      .replace(/^W\//, "")
      .replaceAll('"', "");
    if (!/^[\w.-]+$/.test(etag))
      throw unreachable(this.address, `no ETag of ${file}`, "is HF_ENDPOINT right?");
    const size = headers.get("x-linked-size") ?? (status < 300 ? headers.get("content-length") : null);
    const location = headers.get("location");
    return {
      etag,
      sizeBytes: size === null ? undefined : Number(size),
      url: location === null ? response.url : new URL(location, response.url).href,
    };
  }

  /** Searches the hub for similar names; returns none where it cannot be reached. */
  async namesNear({ kind, name }: Repository): Promise<string[]> {
    const word = encodeURIComponent(name.split("/").at(-1) ?? name);
    const url = `${this.address}/api/${kind}?search=${word}&limit=20`;
    const response = await this.ask(url).catch(() => undefined);
    const found = (response?.ok ? await response.json().catch(() => []) : []) as readonly {
      readonly id?: unknown;
    }[];
    return Array.isArray(found) ? found.map(({ id }) => String(id)) : [];
  }

  /**
   * Makes a request, repeats it where that may help, and follows redirects. For HEAD, a redirect away from the hub is
   * the answer. The token is sent to the hub only, wherever it redirects.
   * @throws {TroupeError} `HUB_UNREACHABLE`
   */
  async ask(url: string, request: RequestInit = {}): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.#follow(url, request);
        if (!TRANSIENT.has(response.status) || attempt === ATTEMPTS) return response;
        await response.body?.cancel();
      } catch (cause) {
        // Nothing listens there, or the host is unknown: repeating would not help.
        if (attempt === ATTEMPTS || isHopeless(cause))
          throw unreachable(this.address, reasonOf(cause), undefined, cause);
      }
      await sleep(this.firstDelayMs * 2 ** (attempt - 1));
    }
  }

  async #follow(first: string, { headers: own, ...request }: RequestInit): Promise<Response> {
    let url = first;
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const headers = new Headers(own);
      // Sizes and ranges must be those of the file itself.
      headers.set("accept-encoding", "identity");
      headers.set("user-agent", "troupe");
      if (this.#token !== undefined && this.isOwn(url)) headers.set("authorization", `Bearer ${this.#token}`);
      const signal = request.signal ?? AbortSignal.timeout(this.#silenceMs);
      const response = await fetch(url, { ...request, headers, redirect: "manual", signal });
      const location = response.headers.get("location");
      if (response.status < 300 || response.status >= 400 || location === null) return response;
      const next = new URL(location, url).href;
      const isLarge = response.headers.has("x-linked-etag");
      if (request.method === "HEAD" && (isLarge || !this.isOwn(next))) return response;
      await response.body?.cancel();
      url = next;
    }
    throw new Error(`more than ${MOST_REDIRECTS} redirects`);
  }

  /** Whether an address is the hub's own. */
  isOwn(url: string): boolean {
    return new URL(url).host === new URL(this.address).host;
  }

  async #refused(repository: Repository, response: Response, file?: string): Promise<TroupeError> {
    const { kind, name, revision } = repository;
    const { status, headers } = response;
    await response.body?.cancel();
    const code = headers.get("x-error-code") ?? "";
    const [what, has] = [wordOf[kind], this.#token !== undefined];
    const page = `${this.address}/${kind === "models" ? "" : `${kind}/`}${name}`;
    const got = `${status}${code === "" ? "" : `, ${code}`}`;
    if (code === "GatedRepo" || (status === 403 && code === ""))
      return this.#no(
        `a token that may read the ${what} ${name}, which is gated`,
        `${got} with ${has ? "the one given" : "none"}`,
        `accept its terms at ${page}, and set HF_TOKEN`,
      );
    if (code === "RevisionNotFound" || code === "EntryNotFound")
      return this.#no(
        code === "EntryNotFound"
          ? `${file} in the ${what} ${name}`
          : `a revision ${revision} of the ${what} ${name}`,
        got,
        `see what exists at ${page}`,
      );
    // Without access, a private repository answers 404.
    if (status === 401 || status === 403 || status === 404) {
      const near = await this.namesNear(repository);
      const named = near.filter((each) => each !== name).slice(0, 3);
      return this.#no(
        `a ${what} ${name} that ${has ? "the given token" : "everyone"} may read`,
        got,
        named.length > 0
          ? `did you mean ${named.join(", ")}?`
          : has
            ? "another name, or another HF_TOKEN"
            : "set HF_TOKEN where it is private",
      );
    }
    return unreachable(this.address, `status ${got} of ${name}`);
  }

  #no(expected: string, got: string, hint: string): TroupeError {
    const where = new URL(this.address).host;
    return new TroupeError("HUB", { where: "hub", expected: `${expected} at ${where}`, got, hint });
  }
}

/** The error for a hub that does not answer, or not like a hub. */
export function unreachable(address: string, got: string, hint?: string, cause?: unknown): TroupeError {
  return new TroupeError("HUB_UNREACHABLE", {
    where: "hub",
    expected: `an answer from ${address}`,
    got,
    hint: hint ?? "HF_HUB_OFFLINE=1 uses the cache only, HF_ENDPOINT names another hub",
    cause,
  });
}

/** Returns a one-line reason for a failed request. */
export function reasonOf(error: unknown): string {
  const cause = (error as { readonly cause?: unknown }).cause ?? error;
  const { code, name, message } = cause as { code?: unknown; name?: string; message?: string };
  if (name === "TimeoutError" || name === "AbortError") return "silence";
  return typeof code === "string" ? code : ((message ?? String(cause)).split("\n")[0] ?? "");
}

function isHopeless(error: unknown): boolean {
  return ["ECONNREFUSED", "ENOTFOUND", "ENETUNREACH", "EHOSTUNREACH"].includes(reasonOf(error));
}

/** Finds the token in the environment, or where Hugging Face's command stores it. */
function tokenIn(environment: Environment): string | undefined {
  const { HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH } = environment;
  const said = HF_TOKEN ?? HUGGING_FACE_HUB_TOKEN;
  if (said !== undefined) return said.trim() || undefined;
  try {
    const path = HF_TOKEN_PATH ?? join(homeFolder(environment), "token");
    return readBoundedTextSync(path, maxFileBytes.word).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Whether a file's name, which a server chose, stays within its folder. */
function isInside(file: string): boolean {
  return file !== "" && !file.startsWith("/") && !file.includes("\\") && !file.split("/").includes("..");
}
