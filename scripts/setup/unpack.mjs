import { createWriteStream, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import yauzl from "yauzl";

/** Libraries of Python's side of torch and of its tests. */
const idle = /(python|_test|jitbackend|backend_with_compiler|aoti_custom_ops|shm)[^/]*$/;

/**
 * Unpacks libtorch out of a wheel of torch: libraries, the version, licenses, cmake's files, and the headers on request.
 * @param {string} wheel
 * @param {string} folder - where its folder `torch` will be; made if it does not exist
 * @param {boolean} headers - what compiling needs
 */
export async function unpackLibtorch(wheel, folder, headers) {
  const archive = await yauzl.openPromise(wheel);
  for await (const entry of archive.eachEntry()) {
    const { fileName } = entry;
    if (fileName.endsWith("/") || !isNeeded(fileName, headers)) continue;
    const to = join(folder, fileName);
    mkdirSync(dirname(to), { recursive: true });
    await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(to));
  }
}

/**
 * @param {string} name
 * @param {boolean} headers
 */
function isNeeded(name, headers) {
  if (headers && /^torch\/(include|share)\//.test(name)) return true;
  if (/^torch\/lib\/[^/]+$/.test(name)) return !idle.test(name);
  return /^torch\.libs\/|^torch\/(version\.py|share\/cmake\/Torch\/[^/]+)$|\.dist-info\/.*(LICENSE|NOTICE)/.test(
    name,
  );
}
