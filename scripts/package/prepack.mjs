// Run by `npm pack` before it packs. Standard output is npm's own.
import { main } from "../setup/say.mjs";
import { buildDist } from "./build-dist.mjs";
import { nameDist, nameSources } from "./manifest.mjs";

await main(async () => {
  nameSources(); // what a packing that was ended half-way has left
  await buildDist();
  nameDist();
});
