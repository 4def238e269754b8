// Types that the declarations of every entry need, whichever a user's project has.
/// <reference types="node" preserve="true" />
/// <reference lib="es2024" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
import { TroupeError } from "./index.ts";

/** Lowest major version of Node that Troupe runs on. */
const floor = 24;

// Imported before everything else, which calls functions that an older Node does not have.
if (Number.parseInt(process.versions.node, 10) < floor)
  throw new TroupeError("NODE_VERSION", {
    where: "troupe",
    expected: `Node ${floor} or newer`,
    got: `${process.version} at ${process.execPath}`,
    hint: `after \`npm install node@${floor}\`, \`npx node\` is one`,
  });
