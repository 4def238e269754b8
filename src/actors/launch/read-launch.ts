import { TroupeError } from "../../errors/index.ts";
import type { Launch } from "./launch.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** A launcher, its environment variables ("": none), and whether it {@link Launch.replacesLost} processes. */
type Dialect = readonly [
  by: string,
  rank: string,
  size: string,
  localRank: string,
  localSize: string,
  replacesLost: boolean,
];

// PyTorch's and Volcano's PyTorchJob set the first two for each pod. Only torchrun's own variables identify a process
// that it started, whichever launcher started torchrun: so they come first.
const [mpi, mvapich] = ["OMPI_COMM_WORLD", "MV2_COMM_WORLD"];
const dialects: readonly Dialect[] = [
  // A pod of a PyTorchJob restarts by itself; torchrun restarts the processes of all hosts.
  ["torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", true],
  // Kubeflow's TrainJob: its variables replace torchrun's flags.
  ["Kubeflow", "PET_NODE_RANK", "PET_NNODES", "", "", true],
  ["Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", true],
  ["Open MPI", `${mpi}_RANK`, `${mpi}_SIZE`, `${mpi}_LOCAL_RANK`, `${mpi}_LOCAL_SIZE`, false],
  ["MVAPICH", `${mvapich}_RANK`, `${mvapich}_SIZE`, `${mvapich}_LOCAL_RANK`, `${mvapich}_LOCAL_SIZE`, false],
  ["MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", false],
  // A step of `srun`; the batch script itself has no step and is an ordinary run.
  ["Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", false],
];

const USUAL_PORT = 29_500;
const LAST_PORT = 65_535;

/**
 * Reads this process's place from a launcher's variables; undefined without one, or where it started this process alone.
 * @throws {TroupeError} `LAUNCH_VARIABLES` naming a variable that is missing, no number or contradicts another
 */
export function readLaunch(env: Variables): Launch | undefined {
  const dialect = dialects.find(([, rank, size]) => isSaid(env, rank) && isSaid(env, size));
  if (dialect === undefined) {
    if (isSaid(env, "RANK") && isSaid(env, "MASTER_ADDR"))
      throw wrong("WORLD_SIZE to be given with RANK and MASTER_ADDR", "none", "how many processes there are");
    return undefined;
  }
  const [by, rankName, sizeName, , , replacesLost] = dialect;
  const rank = count(env, rankName);
  const size = count(env, sizeName);
  if (rank >= size) throw wrong(`${rankName} below ${sizeName}, ${size}`, `${rank}`, "they count from 0");
  if (size === 1) return undefined;
  const { localRank, localSize } = localPlace(env, dialect, size);
  return {
    by,
    rank,
    size,
    localRank,
    localSize,
    master: masterOf(env, by, localSize === size),
    isStoreKept: env.TORCHELASTIC_USE_AGENT_STORE === "True",
    replacesLost: replacesLost && env.TORCHELASTIC_RUN_ID === undefined,
    run: runOf(env),
  };
}

function localPlace(env: Variables, dialect: Dialect, size: number): Pick<Launch, "localRank" | "localSize"> {
  const [, , sizeName, rankHere, sizeHere] = dialect;
  const localRank = isSaid(env, rankHere) ? count(env, rankHere) : 0;
  const localSize = isSaid(env, sizeHere) ? count(env, sizeHere) : localRank + 1;
  const hint = "see the launcher";
  if (localSize > size) throw wrong(`${sizeHere} of at most ${sizeName}, ${size}`, `${localSize}`, hint);
  if (localRank >= localSize)
    throw wrong(`${rankHere} below ${sizeHere}, ${localSize}`, `${localRank}`, hint);
  return { localRank, localSize };
}

function masterOf(env: Variables, by: string, isOneHost: boolean): Launch["master"] {
  const prefix = by === "Kubeflow" ? "PET_MASTER" : "MASTER";
  const host = env[`${prefix}_ADDR`] ?? (by === "Slurm" ? firstOfNodes(env) : undefined);
  const portName = `${prefix}_PORT`;
  const port = isSaid(env, portName) ? count(env, portName) : usualPort(env, by);
  if (port < 1 || port > LAST_PORT)
    throw wrong(`${portName} to be a port, 1 to ${LAST_PORT}`, `${port}`, "such as 29500");
  if (host !== undefined && host !== "") return { host, port };
  if (isOneHost) return { host: "127.0.0.1", port };
  const hint = by.includes("MPI") ? "mpirun -x MASTER_ADDR=HOST …, that of rank 0" : "the host of rank 0";
  throw wrong(`${prefix}_ADDR, the host of the store`, "none", hint);
}

/** Returns a job's default port: jobs that share a host must not share a port. */
function usualPort(env: Variables, by: string): number {
  return by === "Slurm" ? 15_000 + (Number(env.SLURM_JOB_ID ?? 0) % 15_000) : USUAL_PORT;
}

/** `node[03-05,9],other` begins with `node03`. */
function firstOfNodes(env: Variables): string | undefined {
  const [, prefix, first = ""] =
    /^([^,[]+)(?:\[(\d+))?/.exec(env.SLURM_STEP_NODELIST ?? env.SLURM_JOB_NODELIST ?? "") ?? [];
  return prefix && `${prefix}${first}`;
}

function runOf(env: Variables): string {
  const { TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, SLURM_JOB_ID, SLURM_STEP_ID } = env;
  if (TORCHELASTIC_RUN_ID !== undefined) return `${TORCHELASTIC_RUN_ID} ${TORCHELASTIC_RESTART_COUNT ?? 0}`;
  return SLURM_JOB_ID === undefined ? "" : `${SLURM_JOB_ID}.${SLURM_STEP_ID ?? 0}`;
}

function isSaid(env: Variables, name: string): boolean {
  return name !== "" && env[name] !== undefined && env[name] !== "";
}

function count(env: Variables, name: string): number {
  const text = env[name] ?? "";
  if (!/^\d{1,9}$/.test(text)) throw wrong(`${name} to be a whole number`, text, "see the launcher");
  return Number(text);
}

function wrong(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("LAUNCH_VARIABLES", { where: "launch", expected, got, hint });
}
