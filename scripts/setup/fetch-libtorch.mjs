// Run by libtorch-install.mjs in a process of its own, which has the proxies and certificates of the environment:
// node fetch-libtorch.mjs FOLDER PART run|build: unpacks the wheel for this machine into FOLDER. Standard output is the reason
// of a failure.
import { mkdirSync, rmSync } from "node:fs";
import { argv, stderr, stdout } from "node:process";
import { fetchPinned } from "./fetch-pinned.mjs";
import { progress } from "./say.mjs";
import { unpackLibtorch } from "./unpack.mjs";
import { placesOf, wheelOfThisMachine } from "./wheels.mjs";

const [folder = "", part = "", use] = argv.slice(2);
const wheel = wheelOfThisMachine();
if (wheel === undefined) throw new Error("no wheel for this machine");
const show = progress(stderr);
try {
  const path = await fetchPinned({ ...wheel, places: placesOf(wheel), part, onProgress: show.bytes });
  show.text("unpacking");
  mkdirSync(folder, { recursive: true });
  await unpackLibtorch(path, folder, use === "build");
  rmSync(part, { force: true });
} catch (error) {
  const { message, code } = /** @type {NodeJS.ErrnoException} */ (error);
  if (code === "ENOSPC") rmSync(part, { force: true });
  stdout.write(code === "ENOSPC" ? `  ${message}: the disk is full` : message);
  process.exitCode = 1;
} finally {
  show.end();
}
