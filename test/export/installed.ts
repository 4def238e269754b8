import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Installs a program that reads exported models; the first time below build/. Its packages' scripts are not run.
 * @param name - of a folder beside this file with package.json and package-lock.json
 * @returns the folder with node_modules
 */
export function installed(name: string): string {
  const source = fileURLToPath(new URL(name, import.meta.url));
  const folder = fileURLToPath(new URL(`../../build/${name}`, import.meta.url));
  if (existsSync(folder)) return folder;
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  const made = mkdtempSync(join(parent, `.${name}-`));
  for (const file of ["package.json", "package-lock.json"]) cpSync(join(source, file), join(made, file));
  const flags = ["--ignore-scripts", "--omit=optional", "--no-audit", "--loglevel=error"];
  execFileSync("npm", ["install", ...flags], { cwd: made });
  try {
    renameSync(made, folder);
  } catch {
    // Another file of tests was first.
    rmSync(made, { recursive: true });
  }
  return folder;
}
