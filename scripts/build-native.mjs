// node scripts/build-native.mjs: brings build/troupe.node up to date, with all that this takes.
import { readArguments } from "./arguments.mjs";
import { main } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

readArguments("usage: npm run build:native\n\nBrings build/troupe.node up to date", {});
await main(setUp);
