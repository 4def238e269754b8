// Run by `npm pack` when it has packed.
import { nameSources } from "./manifest.mjs";

nameSources();
