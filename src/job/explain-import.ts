import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { framesOf, nearestName, TroupeError, whatWasMeant } from "../errors/index.ts";
import { fileStatus } from "../errors/untrusted/index.ts";

/** This package, by the name that jobs import it by. */
const PACKAGE = "troupe";

/** Parts of the error for a module that could not be imported. */
interface Explained {
  readonly got: string;
  readonly hint?: string;
  /** A stack that names the line, if the cause's does not. */
  readonly stack?: string | undefined;
}

/**
 * Explains why the module at `url` could not be imported.
 * @returns `JOB_INVALID`: the mistake, its file and line, and a suggestion
 */
export async function explainImport(url: string, cause: unknown): Promise<TroupeError> {
  const { got, hint, stack } = await explain(url, cause);
  if (stack !== undefined && cause instanceof Error) cause.stack = stack;
  const expected = `${nameOf(url)} to be a module that can be imported`;
  return new TroupeError("JOB_INVALID", { where: "job", expected, got, hint, fields: { url }, cause });
}

async function explain(url: string, cause: unknown): Promise<Explained> {
  if (!(cause instanceof Error)) return { got: `${String(cause)}, thrown while it was loaded` };
  const { code } = cause as { readonly code?: unknown };
  if (code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX")
    return {
      got: `${cause.message}`,
      hint: "Node runs TypeScript by leaving its types out: write what is left to JavaScript, a const object for an enum",
    };
  if (code === "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING")
    return {
      got: "TypeScript inside node_modules, which Node does not run",
      hint: "copy the file into your project, outside node_modules",
    };
  if (code === "ERR_MODULE_NOT_FOUND") return missingModule(cause);
  if (!(cause instanceof SyntaxError)) return { got: `an error while it was loaded: ${cause.message}` };
  const missing = /^The requested module '(.+)' does not provide an export named '(.+)'/.exec(cause.message);
  if (missing !== null) return await missingExport(cause, missing[1] ?? "", missing[2] ?? "");
  return { got: `a syntax error: ${cause.message}`, stack: placedSyntaxError(url, cause) };
}

const MISSING_MODULE = /^Cannot find (?<kind>package|module) '(?<name>[^']+)' imported from (?<importer>.+)$/;

function missingModule(cause: Error): Explained {
  const { kind, name = "", importer = "" } = MISSING_MODULE.exec(cause.message)?.groups ?? {};
  if (kind === undefined) return { got: cause.message };
  const stem = basename(name, extname(name));
  const stack = stackAtImport(importer, kind === "package" ? name : basename(name), cause);
  if (kind === "package") {
    const near = nearestName(name, installedPackages(dirname(importer)));
    const hint = near === undefined ? `install it: npm install ${name}` : `did you mean ${near}?`;
    return { got: `an import of ${name}, which is not installed`, hint, stack };
  }
  const beside = filesIn(dirname(name));
  const sameStem = beside.find((file) => basename(file, extname(file)) === stem);
  const meant = sameStem ?? nearestName(basename(name), beside);
  const hint =
    meant === undefined
      ? `there is no such file in ${dirname(name)}`
      : `did you mean ${meant}? An import names the file as it is, ${extname(meant)} too`;
  return { got: `an import of ${name}, which does not exist`, hint, stack };
}

async function missingExport(cause: Error, specifier: string, name: string): Promise<Explained> {
  const importer = framesOf(cause.stack)[0]?.file;
  const names = await exportsOf(specifier, importer);
  const entry =
    specifier === PACKAGE || specifier.startsWith(`${PACKAGE}/`) ? await entryOf(name) : undefined;
  const near = nearestName(name, names);
  const other = near === undefined ? "a type is imported with import type { … }" : whatWasMeant(name, names);
  const hint = entry === undefined ? other : `import it from ${entry}`;
  return { got: `an import of ${name}, which ${specifier} does not export`, hint };
}

/** Finds the entry of this package that exports a value of this name. */
async function entryOf(name: string): Promise<string | undefined> {
  const files = filesIn(dirname(fileURLToPath(import.meta.resolve(PACKAGE))));
  const modules = files.filter((file) => file.endsWith(".js")).map((file) => basename(file, ".js"));
  for (const entry of modules.map((module) => (module === "index" ? PACKAGE : `${PACKAGE}/${module}`)))
    if ((await exportsOf(entry, undefined)).includes(name)) return entry;
  return undefined;
}

/** The names that a module exports; empty where it cannot be imported from here. */
async function exportsOf(specifier: string, importer: string | undefined): Promise<string[]> {
  try {
    const isRelative = /^[./]/.test(specifier) && importer !== undefined;
    const url = isRelative
      ? new URL(specifier, pathToFileURL(importer)).href
      : import.meta.resolve(specifier);
    return Object.keys((await import(url)) as object);
  } catch {
    return [];
  }
}

/** A stack that begins with the line on which a file imports something, in the form of Node's other errors. */
function stackAtImport(file: string, name: string, cause: Error): string | undefined {
  let lines: string[];
  try {
    lines = readFileSync(file, "utf8").split(/\r?\n/);
  } catch {
    return undefined;
  }
  const index = lines.findIndex((line) => /["']/.test(line) && line.includes(name));
  const text = lines[index];
  if (text === undefined) return undefined;
  return `${file}:${index + 1}\n${text}\n${" ".repeat(text.indexOf(name))}^\n\n${cause.stack ?? ""}`;
}

/** Node's error for plain JavaScript lacks the line; checking the file again finds it. */
function placedSyntaxError(url: string, cause: Error): string | undefined {
  const isPlaced = framesOf(cause.stack)[0]?.file.startsWith("node:") === false;
  if (isPlaced || !url.startsWith("file:")) return undefined;
  const { stderr } = spawnSync(process.execPath, ["--check", fileURLToPath(url)], { encoding: "utf8" });
  return stderr.includes("SyntaxError") ? stderr : undefined;
}

/** Packages that a file can import by name, from the folders above it. */
function installedPackages(folder: string): string[] {
  const here = filesIn(join(folder, "node_modules")).flatMap((name) =>
    name.startsWith("@")
      ? filesIn(join(folder, "node_modules", name)).map((scoped) => `${name}/${scoped}`)
      : [name],
  );
  const above = dirname(folder);
  return above === folder ? here : [...here, ...installedPackages(above)];
}

function filesIn(folder: string): string[] {
  return fileStatus(folder)?.isDirectory() === true ? readdirSync(folder) : [];
}

const nameOf = (url: string): string => (url.startsWith("file:") ? basename(fileURLToPath(url)) : url);
