import { basename, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { callUser, describeValue, isRecord, nearestName, noteOrigin, TroupeError } from "../errors/index.ts";
import { keepModules } from "../runtime/module-texts.ts";
import { checkGiven, noteWritten } from "./check-given.ts";
import { refuseLoss } from "./define-loop.ts";
import { explainImport } from "./explain-import.ts";
import type { Job } from "./job.ts";
import { checkLosses } from "./losses.ts";
import { LOSS, type Programs } from "./programs.ts";

/** Required functions of a job. */
const REQUIRED = ["training", "data", "model", "loss", "optimizer"] as const;

/** Optional functions of a job. */
const OPTIONAL = ["delta", "weigh", "predict", "schedule", "tensorPlan", "sample", "loop"] as const;

/**
 * Imports a job's module, and remembers in this thread its text and that of the user's modules that it imports, see
 * `keptModules`. Errors thrown in a function of the job carry its name, see `originOf`.
 * @param url - of a module whose default export is a job
 * @throws {TroupeError} `JOB_INVALID` where there is none, naming all invalid fields
 */
export async function loadJob(url: string): Promise<Job> {
  let module: { readonly default?: unknown };
  keepModules();
  try {
    module = await callUser(`the import of ${basename(url)}`, () => importQuietly(url));
  } catch (cause) {
    // The module called this package, which threw: the error is already clear.
    if (cause instanceof TroupeError) throw cause;
    throw await explainImport(url, cause);
  }
  const job = jobMadeBy(module.default);
  if (typeof job !== "object" || job === null)
    throw invalid(
      url,
      "a module whose default export is defineJob({ … })",
      job === undefined ? "no default export" : describeValue(job),
    );
  checkFields(url, job as Partial<Job>);
  return withOrigins(job as Job);
}

/** Returns the job of a class that makes one, such as a template. */
function jobMadeBy(exported: unknown): unknown {
  const { job } = (typeof exported === "function" ? exported : {}) as { readonly job?: unknown };
  return typeof job === "function" ? job.call(exported) : exported;
}

function checkFields(url: string, job: Partial<Record<string, unknown>>): void {
  const wrong = [
    ...REQUIRED.flatMap((name) => {
      if (typeof job[name] === "function") return [];
      return [job[name] === undefined ? `no ${name}(…)` : `${name}: ${describeValue(job[name])}`];
    }),
    ...OPTIONAL.flatMap((name) =>
      job[name] === undefined || typeof job[name] === "function"
        ? []
        : [`${name}: ${describeValue(job[name])}`],
    ),
  ];
  // Additional fields are allowed, but a misspelled name of a part would be ignored silently.
  const parts = ["config", "programs", ...REQUIRED, ...OPTIONAL];
  for (const name of Object.keys(job)) {
    const meant = parts.includes(name) ? undefined : nearestName(name, parts);
    if (meant !== undefined) wrong.push(`${name}, which no job has (did you mean ${meant}?)`);
  }
  const { config, programs = {} } = job;
  if (!isRecord(programs)) wrong.push(`programs: ${describeValue(programs)}`);
  else
    for (const [name, program] of Object.entries(programs))
      if (name === LOSS || typeof program !== "function")
        wrong.push(
          `programs.${name}: ${name === LOSS ? "the name of the job's loss" : describeValue(program)}`,
        );
  if (!isRecord(config)) wrong.push(config === undefined ? "no config" : `config: ${describeValue(config)}`);
  else
    for (const [name, value] of Object.entries(config))
      if (!["string", "number", "boolean"].includes(typeof value))
        wrong.push(
          `config.${name}: ${describeValue(value)}, where a text, a number, true or false is a setting`,
        );
  if (wrong.length === 0) return;
  throw invalid(
    url,
    `a record config and functions ${REQUIRED.slice(0, -1).join(", ")} and ${REQUIRED.at(-1)}`,
    wrong.join("; "),
  );
}

type AnyCall = (...given: unknown[]) => unknown;

/** The same job, with functions that add their name to errors thrown in them. */
function withOrigins(job: Job): Job {
  const wrapped: Partial<Record<string, unknown>> = { config: job.config };
  for (const name of [...REQUIRED, ...OPTIONAL]) {
    const call = job[name] as ((...given: unknown[]) => unknown) | undefined;
    // A loop without a loss is recognized by the identity of `refuseLoss`.
    if (call !== undefined) wrapped[name] = call === refuseLoss ? call : tellingOrigin(name, call, job);
  }
  const programs = Object.entries((job.programs as Programs | undefined) ?? {});
  wrapped.programs = Object.fromEntries(
    programs.map(([name, program]) => [name, tellingOrigin(name, program as AnyCall, job)]),
  );
  return wrapped as unknown as Job;
}

function tellingOrigin(name: string, call: (...given: unknown[]) => unknown, job: Job) {
  const note = (error: unknown): never => {
    noteOrigin(error, { call: name });
    throw error;
  };
  const wrapped = (...given: unknown[]): unknown => {
    try {
      const result = callUser(`${name}(…) of the job`, () =>
        refusingExit(name, () => call.apply(job, given)),
      );
      if (name === "loss") checkGiven(call, name, () => checkLosses(result));
      return result instanceof Promise ? result.catch(note) : result;
    } catch (error) {
      return note(error);
    }
  };
  noteWritten(wrapped, call);
  // The number of parameters shows what a function needs: `training(config)` needs no data.
  return Object.defineProperty(wrapped, "length", { value: call.length });
}

/**
 * Calls a job's function while `process.exit` throws: on the main thread, which calls model and training before any rank starts,
 * the program would end without an error.
 * @param name - name of the function, for the error
 * @throws {TroupeError} `ACTOR_EXIT` if it calls `process.exit`; any error of the function
 */
function refusingExit<T>(name: string, call: () => T): T {
  const { exit } = process;
  process.exit = (code) => {
    throw new TroupeError("ACTOR_EXIT", {
      where: "process.exit",
      expected: `${name}(…) of the job to return or to throw`,
      got: `process.exit(${code ?? ""})`,
      hint: "to end the run, throw an error",
      fields: { code },
    });
  };
  try {
    return call();
  } finally {
    process.exit = exit;
  }
}

/** A job's name for its user: its path from the working directory for a file's URL, else the URL. */
export function nameOfJob(url: string): string {
  return url.startsWith("file:") ? relative(process.cwd(), fileURLToPath(url)) : url;
}

function invalid(url: string, expected: string, got: string): TroupeError {
  return new TroupeError("JOB_INVALID", {
    where: "job",
    expected: `${expected} in ${nameOfJob(url)}`,
    got,
    hint: "see examples/gpt/job.ts",
    fields: { url },
  });
}

/**
 * Imports a user's module. If no package.json beside it has a `"type"`, Node would warn once per thread that it had to detect the
 * kind of module: that warning is suppressed.
 */
async function importQuietly(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { emitWarning } = process;
  const quiet = (warning: string | Error, ...how: unknown[]) => {
    // It is in an options object, or the argument after its type.
    const [options, code] = how as [{ readonly code?: unknown } | string | null | undefined, unknown];
    if ((typeof options === "object" ? options?.code : code) !== "MODULE_TYPELESS_PACKAGE_JSON")
      (emitWarning as (...given: unknown[]) => void).call(process, warning, ...how);
  };
  process.emitWarning = quiet;
  try {
    return (await import(url)) as Record<string, unknown>;
  } finally {
    if (process.emitWarning === quiet) process.emitWarning = emitWarning;
  }
}
