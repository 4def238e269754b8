import { registerHooks } from "node:module";

/** The source of a module and its format. */
export interface ModuleText {
  /** Node's name of the format, such as `module-typescript`. Left out if nothing has loaded the module yet. */
  readonly format?: string;
  readonly source: string;
}

/** The user's modules as they were when they were first loaded. Plain data. */
export interface ModuleTexts {
  /** By the URL of the file. */
  readonly sources: Readonly<Record<string, ModuleText>>;
  /** The URLs of these files by what an import names, see `keyOf`. */
  readonly resolved: Readonly<Record<string, string>>;
}

/** The folder of Troupe's own modules. They are not kept, because no run continues after another version is installed. */
const OWN = new URL("../", import.meta.url).href;

const sources = new Map<string, ModuleText>();
const resolved = new Map<string, string>();
let isRegistered = false;

/** Whether a URL is that of a user's file, not one of this package or of `node_modules`. */
export function isUserModule(url: string): boolean {
  return url.startsWith("file:") && !url.startsWith(OWN) && !url.includes("/node_modules/");
}

/**
 * Makes this thread load the modules in `texts` from there, even if their files have changed, and keep the source of each
 * other user's module that it loads. A module that is kept already keeps its source.
 */
export function keepModules(texts?: ModuleTexts): void {
  for (const [url, text] of Object.entries(texts?.sources ?? {}))
    if (!sources.has(url)) sources.set(url, text);
  for (const [key, url] of Object.entries(texts?.resolved ?? {}))
    if (!resolved.has(key)) resolved.set(key, url);
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, next) {
      const key = keyOf(specifier, context.parentURL);
      const url = resolved.get(key);
      const kept = url === undefined ? undefined : sources.get(url);
      if (url !== undefined && kept?.format !== undefined)
        return { url, format: kept.format, shortCircuit: true };
      const found = next(specifier, context);
      if (isUserModule(found.url)) resolved.set(key, found.url);
      return found;
    },
    load(url, context, next) {
      const kept = sources.get(url);
      if (kept?.format !== undefined) return { ...kept, format: kept.format, shortCircuit: true };
      const loaded = next(url, context);
      const { format, source } = loaded;
      if (source == null || format == null || !isUserModule(url) || !TEXTS.includes(format)) return loaded;
      const text = kept?.source ?? (typeof source === "string" ? source : new TextDecoder().decode(source));
      sources.set(url, { format, source: text });
      return { ...loaded, source: text };
    },
  });
}

/** Returns the sources of the user's modules that this thread keeps. */
export function keptModules(): ModuleTexts {
  return { sources: Object.fromEntries(sources), resolved: Object.fromEntries(resolved) };
}

/** Formats that are text, unlike WebAssembly and addons. */
const TEXTS: readonly string[] = ["module", "module-typescript", "commonjs", "commonjs-typescript", "json"];

/** Returns the key of an import: a path means one file to all modules of a folder, a package depends on its importer. */
function keyOf(specifier: string, parentUrl: string | undefined): string {
  if (specifier.startsWith("file:")) return specifier;
  if (/^\.{0,2}\//.test(specifier)) return URL.parse(specifier, parentUrl)?.href ?? specifier;
  return `${specifier} from ${parentUrl}`;
}
