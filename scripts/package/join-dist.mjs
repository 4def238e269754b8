// node scripts/package/join-dist.mjs: writes the JavaScript of dist/, see build-dist.mjs.
import { join, relative } from "node:path";
import { root } from "../setup/layout.mjs";
import { joinModules } from "./join-modules.mjs";

const sources = join(root, "src");
await joinModules({
  sources,
  folder: join(root, "dist"),
  named: "js",
  sourcemap: true,
  // The joined modules lie in dist/ itself: their parts read where they would lie alone.
  url: (module, isApart) => {
    const built = relative(sources, module).replace(/\.ts$/, ".js");
    return isApart ? "import.meta.url" : `new URL("./${built}", import.meta.url).href`;
  },
});
