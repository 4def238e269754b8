// Run by `npm pack` before it packs. Standard output is npm's own.
import { main } from "../setup/say.mjs";
import { buildDist } from "./build-dist.mjs";

await main(buildDist);
