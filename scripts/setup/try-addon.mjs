// Run by build.mjs in a process of its own: node try-addon.mjs ADDON. Prints what the addon says of itself as JSON.
import { createRequire } from "node:module";
import { argv, stdout } from "node:process";

const addon = createRequire(import.meta.url)(argv[2] ?? "");
addon.selfTest();
stdout.write(JSON.stringify(addon.nativeInfo()));
