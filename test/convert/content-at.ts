import { openSource } from "../../src/library/convert/index.ts";

/** Every tensor of the checkpoint at a path, by name: dtype, shape and its bytes. */
export async function contentAt(path: string): Promise<Record<string, string>> {
  const source = await openSource(path);
  try {
    const content: Record<string, string> = {};
    for (const [name, { dtype, shape, read }] of source.tensors) {
      content[name] = `${dtype}[${shape}] ${Buffer.from(await read()).toString("base64")}`;
    }
    return content;
  } finally {
    await source.close();
  }
}
