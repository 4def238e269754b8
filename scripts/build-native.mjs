// node scripts/build-native.mjs: brings build/troupe.node up to date, with all that this takes.
import { main } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

await main(setUp);
