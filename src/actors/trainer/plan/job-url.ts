import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describeValue, nearestPath, TroupeError } from "../../../errors/index.ts";
import { fileStatus } from "../../../errors/untrusted/index.ts";

/**
 * Finds the URL of a job's module, given by URL or by path from the working directory.
 * @throws {TroupeError} `JOB_INVALID` for a path without a file, or a `job` that is neither
 */
export function jobUrlOf(job: URL | string): string {
  if (!(job instanceof URL) && typeof job !== "string")
    throw new TroupeError("JOB_INVALID", {
      where: "job",
      expected: "the URL or path of a job's module",
      got: describeValue(job),
      hint: 'every rank imports it: give new URL("./job.ts", import.meta.url)',
    });
  // A scheme has two letters or more: a single letter is a drive.
  if (job instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(job)) return String(job);
  if (/\.pyc?$/.test(job)) throw pythonScript(job);
  const path = resolve(job);
  const found = fileStatus(path);
  if (found?.isFile() === true) return String(pathToFileURL(path));
  const got = found === undefined ? "no such file" : "a folder";
  const meant = found === undefined ? nearestPath(job, isModule) : undefined;
  throw new TroupeError("JOB_INVALID", {
    where: "job",
    expected: `a job's module at ${job}`,
    got,
    hint: meant === undefined ? "give its path, as in examples/gpt/job.ts" : `did you mean ${meant}?`,
    fields: { job },
  });
}

/** The error for a Python script for Rapidformer or PyTorch. */
export function pythonScript(path: string): TroupeError {
  return new TroupeError("JOB_INVALID", {
    where: "job",
    expected: "a job's module in TypeScript or JavaScript",
    got: `${path}, in Python`,
    hint: "write its hooks as in examples/rapidformer/finetune-template.ts; docs/reference/rapidformer.md says what each name is called here",
    fields: { job: path },
  });
}

const isModule = ({ name }: { readonly name: string }) => /\.[cm]?[jt]s$/.test(name);
