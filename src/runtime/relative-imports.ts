import { registerHooks } from "node:module";

/** The folder of the product's modules: of sources, or of what is built of them. */
const own = new URL("../", import.meta.url).href;

// Between the product's modules a path is the file's, as everybody may rely on who reads one. Node would ask the file system for
// the file behind links, whether it is there, and for each package.json above it: a fifth of the processor time that a run takes
// to begin, since each of its threads loads some hundreds of modules. Imported before these, by whatever starts a thread.
registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.startsWith(".") || !context.parentURL?.startsWith(own)) return next(specifier, context);
    const url = new URL(specifier, context.parentURL).href;
    return { url, format: url.endsWith(".ts") ? "module-typescript" : "module", shortCircuit: true };
  },
});
