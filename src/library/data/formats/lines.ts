import { createReadStream } from "node:fs";
import { openRegularSync } from "../../../errors/untrusted/index.ts";

/**
 * Reads a file line by line, up to each "\n" alone: Node's `readline` also ends a line at U+2028 and U+2029, which JSON's strings may
 * have as they are.
 */
export async function* readLines(path: string): AsyncGenerator<string> {
  let rest = "";
  for await (const text of createReadStream(path, { fd: openRegularSync(path), encoding: "utf8" })) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
