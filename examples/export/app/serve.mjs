// Serves page.html, the models in a folder and transformers.js to a browser of this machine: node serve.mjs MODELS [PORT]
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const [models = "models", port = "8080"] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const roots = new Map([
  ["/models/", resolve(models)],
  ["/lib/", join(here, "node_modules")],
]);
const types = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript"],
  [".mjs", "text/javascript"],
  [".json", "application/json"],
  [".wasm", "application/wasm"],
]);

/**
 * The file of a path; undefined for a path that is not below one of the roots.
 * @param {string} path
 */
function fileOf(path) {
  if (path === "/") return join(here, "page.html");
  for (const [prefix, root] of roots) {
    if (!path.startsWith(prefix)) continue;
    const file = join(root, path.slice(prefix.length));
    if (file.startsWith(root + sep) && statSync(file, { throwIfNoEntry: false })?.isFile()) return file;
  }
  return undefined;
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const file = fileOf(pathname.replaceAll("%20", " "));
  if (file === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "Content-Type": types.get(extname(file)) ?? "application/octet-stream",
    "Content-Length": statSync(file).size,
  });
  createReadStream(file).pipe(response);
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : port}/`);
});
