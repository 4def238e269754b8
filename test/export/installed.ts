import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Installs a program that reads exported models; the first time below build/. Its packages' scripts are not run.
 * @param name - of a folder beside this file with package.json and package-lock.json
 * @returns the folder with node_modules
 */
export function installed(name: string): string {
  const source = fileURLToPath(new URL(name, import.meta.url));
  const folder = fileURLToPath(new URL(`../../build/${name}`, import.meta.url));
  if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
    mkdirSync(folder, { recursive: true });
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(source, file), join(folder, file));
    const flags = ["--ignore-scripts", "--omit=optional", "--no-audit", "--loglevel=error"];
    execFileSync("npm", ["install", ...flags], { cwd: folder });
  }
  return folder;
}
