import { ask } from "./child.mjs";

/**
 * A program that building needs.
 * @typedef {object} Tool
 * @property {string} program
 * @property {string} debian - the package that brings it
 * @property {string} [version] - what it says of itself; absent when it does not run
 * @property {boolean} usable - it runs and is new enough
 */

/** The version that native/CMakeLists.txt requires. */
const cmakeFloor = [3, 18];

/** The compiler, cmake and the program that it builds with, as they are on this machine. */
export function tools() {
  const compiler = look(process.env.CXX ?? "c++", "g++");
  const cmake = look("cmake", "cmake");
  // Debian's cmake only recommends make, so that apt may leave it out.
  const isNinja = process.env.CMAKE_GENERATOR?.startsWith("Ninja") ?? false;
  const builder = isNinja ? look("ninja", "ninja-build") : look("make", "make");
  return [compiler, { ...cmake, usable: cmake.usable && isNewEnough(cmake.version ?? "") }, builder];
}

/** The tools without which nothing can be built. */
export function missingTools() {
  return tools().filter(({ usable }) => !usable);
}

/**
 * @param {string} program
 * @param {string} debian
 * @returns {Tool}
 */
function look(program, debian) {
  const { ok, stdout } = ask(program, ["--version"]);
  return ok
    ? { program, debian, version: stdout.split("\n")[0] ?? program, usable: true }
    : { program, debian, usable: false };
}

/** @param {string} version - "cmake version 3.25.1" */
function isNewEnough(version) {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? [];
  const [floorMajor = 0, floorMinor = 0] = cmakeFloor;
  return Number(major) > floorMajor || (Number(major) === floorMajor && Number(minor) >= floorMinor);
}
