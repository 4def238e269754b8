import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { TensorSource } from "../../src/library/checkpoint/format/safetensors-writer.ts";

/** The reference writer's file of one tensor, "a" of float32 [1.5, -2], in hexadecimal. */
export const golden =
  "38000000000000007b2261223a7b226474797065223a22463332222c227368617065223a5b325d2c22646174615f6f666673657473223a5b" +
  "302c385d7d7d20200000c03f000000c0";

/** Where the tests of a file have their files. */
export interface SafetensorsFiles {
  /** A path at which there is nothing. */
  freshPath(): string;
  /** A file with any header and data, its length prefix right unless given. */
  forge(header: string, data?: Uint8Array, headerBytes?: bigint): Promise<string>;
}

/** To be called outside of tests: a folder that is gone after the last of them. */
export function safetensorsFiles(): SafetensorsFiles {
  let folder: string;
  let numFiles = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-safetensors-"));
  });
  afterAll(() => rm(folder, { recursive: true }));
  const freshPath = () => join(folder, `${numFiles++}.safetensors`);
  return {
    freshPath,
    async forge(header, data = new Uint8Array(0), headerBytes) {
      const json = Buffer.from(header);
      const prefix = Buffer.alloc(8);
      prefix.writeBigUInt64LE(headerBytes ?? BigInt(json.length));
      const path = freshPath();
      await writeFile(path, Buffer.concat([prefix, json, data]));
      return path;
    },
  };
}

/** A tensor of float32. */
export function floats(name: string, values: number[]): TensorSource {
  return {
    name,
    dtype: "F32",
    shape: [values.length],
    read: () => new Uint8Array(Float32Array.from(values).buffer),
  };
}
