import { createHash } from "node:crypto";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { isUserModule, type ModuleText, type ModuleTexts } from "../../../runtime/module-texts.ts";

/** Identifies the text of a job's module. */
export type ModuleIdentity = {
  readonly file: string;
  /** Digest of the module alone; empty where it is not a file. */
  readonly sha256: string;
  /** Digests of the user's files that it imports, by path from the module's folder; none in older versions. */
  readonly imports?: Readonly<Record<string, string>>;
};

/** Mentions of another file in a module's text: an import, a re-export, a module for a thread. */
const NAMED_FILE = [
  /\b(?:from|import)\s*\(?\s*["']((?:\.{1,2}\/|file:)[^"']+)["']/g,
  /\bnew URL\(\s*["'](\.{1,2}\/[^"']+\.[mc]?[jt]s)["']\s*,\s*import\.meta\.url/g,
];

/**
 * Identifies a module by the texts that the run began with, even if its files have changed since.
 * Files that it names and that are not loaded yet are read now and returned with the others. @param file - its name in messages
 */
export async function identityOf(
  jobUrl: string,
  file: string,
  modules: ModuleTexts,
): Promise<{ readonly module: ModuleIdentity; readonly modules: ModuleTexts }> {
  if (!jobUrl.startsWith("file:")) return { module: { file, sha256: "" }, modules };
  const { sources, resolved } = modules;
  const root = resolved[jobUrl] ?? jobUrl;
  const late: Record<string, ModuleText> = {};
  const digests = new Map<string, string>();
  const read = async (url: string): Promise<void> => {
    let text = sources[url]?.source;
    if (text === undefined) {
      text = await readBoundedText(fileURLToPath(url), maxFileBytes.text);
      late[url] = { source: text };
    }
    digests.set(url, createHash("sha256").update(text).digest("hex"));
    for (const named of [...filesNamedIn(text, url), ...packagesNamedIn(url, resolved)]) {
      if (digests.has(named)) continue;
      // Node has already reported missing imports; a file mentioned in a comment is not needed.
      await read(named).catch(() => {});
    }
  };
  await read(root);
  const folder = dirname(fileURLToPath(root));
  const { [root]: sha256 = "", ...others } = Object.fromEntries(digests);
  const imports = Object.entries(others)
    .map(([url, digest]) => [relative(folder, fileURLToPath(url)), digest] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const module = { file, sha256, ...(imports.length > 0 && { imports: Object.fromEntries(imports) }) };
  return { module, modules: { sources: { ...sources, ...late }, resolved } };
}

function filesNamedIn(text: string, url: string): string[] {
  return NAMED_FILE.flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, specifier = ""]) => new URL(specifier, url).href)
    .filter(isUserModule);
}

/** Files of packages among the user's own files, such as a workspace's, that a module imports by name. */
function packagesNamedIn(url: string, resolved: ModuleTexts["resolved"]): string[] {
  return Object.entries(resolved).flatMap(([key, to]) => (key.endsWith(` from ${url}`) ? [to] : []));
}
