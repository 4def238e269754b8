// The one place that decides which folders and files of this machine are used: those that no other user could have made or
// changed. Plain JavaScript, since set-up asks it too, under any Node.
import { accessSync, constants, lstatSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const me = process.geteuid?.();
/** The folder of the program itself. A user who may write there already decides what runs, and is trusted with the rest. */
const program = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const { uid: programOwner, mode: programMode } = lstatSync(program);

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
const FOR_OTHERS = 0o077;
/** The owner that a user namespace shows for each user that it does not map, root among them; undefined outside of one. */
const unmapped = mapsAll() ? undefined : 65_534;

/**
 * Why a file or folder is another user's, by what the system says of it: its owner must be this user, root, or the owner of the
 * program, and nobody else may write to it.
 * @param {import("node:fs").Stats} stats
 * @param {{ secret?: boolean }} [options] - secret: nobody else may read it either
 * @returns {string | undefined} undefined where it is not; else such as "one that others can write to (mode 777)"
 */
export function whyForeign({ uid, gid, mode }, { secret = false } = {}) {
  if (!isTrusted(uid)) return `one of another user (uid ${uid})`;
  const shown = `mode ${(mode & 0o7777).toString(8)}`;
  if (secret && (mode & FOR_OTHERS) !== 0) return `one that others can read (${shown})`;
  if ((mode & writableBits(uid, gid)) !== 0) return `one that others can write to (${shown})`;
  return undefined;
}

/**
 * Why another user could have made or changed the file or folder at a path: by itself, a link on the way there, or a folder above
 * it. If no other user can, none can later either, so the result stays true.
 * @param {string} path
 * @returns {string | undefined} undefined where nobody could; else such as "a folder below /data, one of another user (uid 7)", or
 *   why it cannot be looked at
 */
export function whyUnsafe(path) {
  try {
    const named = resolve(path);
    const real = realpathSync(named);
    const reason = whyOpenAbove(named) ?? whyOpenAbove(real);
    if (reason !== undefined) return reason;
    const link = lstatSync(named);
    if (link.isSymbolicLink() && !isTrusted(link.uid)) return `a link of another user (uid ${link.uid})`;
    return whyForeign(asOpenAsProgram(real));
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/**
 * Makes a folder that this user alone can enter, where there is none; those above it too.
 * @param {string} path
 * @returns {string | undefined} as of {@link whyUnsafe}; where that is something, nothing was made
 */
export function makeOwnFolder(path) {
  try {
    const missing = [];
    let folder = resolve(path);
    for (; !isThere(folder); folder = dirname(folder)) missing.unshift(folder);
    const reason = missing.length > 0 ? whyOpenAbove(join(realpathSync(folder), "x")) : undefined;
    if (reason !== undefined) return reason;
    for (const each of missing) makeUnlessThere(each);
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
  return whyUnsafe(path);
}

/** The user's cache folder of the program, below `XDG_CACHE_HOME` or `~/.cache`: a path, at which nothing may be yet. */
export function userCache() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "troupe");
}

/**
 * Where Node may keep what it has compiled, which it runs without a further look: the folder that `NODE_COMPILE_CACHE` names, else
 * one of the user's cache. It is made if need be.
 * @param {string} [named]
 * @returns {string | undefined} undefined where another user could have put something there: then nothing is to be kept
 */
export function compileCache(named = process.env.NODE_COMPILE_CACHE) {
  const folder = resolve(named || join(userCache(), "node-compile-cache"));
  return makeOwnFolder(folder) === undefined ? folder : undefined;
}

/**
 * A folder of the machine for temporary files, in which others may make files too but touch none of ours.
 * @param {{ inMemory?: boolean }} [options] - inMemory: the machine's shared memory where there is such a folder
 * @returns {{ path: string, reason: string | undefined }} reason: why it is not to be used
 */
export function temporaryFolder({ inMemory = false } = {}) {
  const folders = inMemory ? ["/dev/shm", tmpdir()] : [tmpdir()];
  const looks = folders.map((path) => ({ path, reason: whyUnfit(path) }));
  const [last] = looks.slice(-1);
  return looks.find(({ reason }) => reason === undefined) ?? /** @type {typeof looks[0]} */ (last);
}

/** @param {string} path */
function whyUnfit(path) {
  try {
    accessSync(path, constants.W_OK);
    return whyOpenAbove(join(path, "x")) ?? whyOpenAbove(join(realpathSync(path), "x"));
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/**
 * Whether other users can rename or remove the file at a path, by the permissions of the folders above it.
 * @param {string} path - absolute
 * @returns {string | undefined} which of them, and why
 */
function whyOpenAbove(path) {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const reason = whyOpen(folder);
    if (reason !== undefined) return `${folder}, ${reason}`;
    if (folder === dirname(folder)) return undefined;
  }
}

/** @param {string} folder */
function whyOpen(folder) {
  // A user who can change one of these folders can change the program.
  if (`${program}/`.startsWith(folder === "/" ? folder : `${folder}/`)) return undefined;
  const stats = asOpenAsProgram(folder);
  if (stats.uid === unmapped) stats.uid = 0;
  // A link's mode means nothing, and in a sticky folder others can write but not touch our files: the owner alone counts.
  if (stats.isSymbolicLink() || (stats.mode & STICKY) !== 0) stats.mode &= ~(GROUP_WRITES | OTHERS_WRITE);
  return whyForeign(stats);
}

/**
 * The stats of a path; inside the program a path may be as open as the program itself.
 * @param {string} path
 */
function asOpenAsProgram(path) {
  const stats = lstatSync(path);
  if (`${path}/`.startsWith(`${program}/`)) stats.mode &= ~(programMode & (GROUP_WRITES | OTHERS_WRITE));
  return stats;
}

/** @param {number} uid */
function isTrusted(uid) {
  return me === undefined || uid === me || uid === 0 || uid === programOwner;
}

/**
 * The write permissions that let other users change a file. A group's does not count for root's files, whose group root has chosen,
 * nor for a group with its user's own number, which has no other member.
 * @param {number} uid
 * @param {number} gid
 */
function writableBits(uid, gid) {
  return uid === 0 || uid === gid ? OTHERS_WRITE : GROUP_WRITES | OTHERS_WRITE;
}

/** Whether this process sees each user of the machine by that user's own number. */
function mapsAll() {
  try {
    return /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
  } catch {
    return true;
  }
}

/** @param {string} path */
function isThere(path) {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** @param {string} path */
function makeUnlessThere(path) {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process of this user may have made it meanwhile; another user's is refused afterwards.
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
  }
}
