import { expect, it } from "vitest";
import { readLaunch } from "../../src/actors/launch/index.ts";

const torchrun = {
  RANK: "3",
  WORLD_SIZE: "4",
  LOCAL_RANK: "1",
  LOCAL_WORLD_SIZE: "2",
  GROUP_RANK: "1",
  MASTER_ADDR: "node-a",
  MASTER_PORT: "29511",
  TORCHELASTIC_RUN_ID: "job-7",
  TORCHELASTIC_RESTART_COUNT: "2",
  TORCHELASTIC_USE_AGENT_STORE: "True",
};

it.each([
  [
    "torchrun's",
    torchrun,
    {
      by: "torchrun",
      rank: 3,
      size: 4,
      localRank: 1,
      localSize: 2,
      master: { host: "node-a", port: 29_511 },
      isStoreKept: true,
      replacesLost: false,
      run: "job-7 2",
    },
  ],
  [
    "torchrun's, which Slurm has started",
    { ...torchrun, SLURM_PROCID: "1", SLURM_STEP_NUM_TASKS: "2" },
    { by: "torchrun", rank: 3, size: 4 },
  ],
  [
    "Kubeflow's PyTorchJob's, of each pod",
    { RANK: "1", WORLD_SIZE: "2", MASTER_ADDR: "job-master-0", MASTER_PORT: "23456" },
    {
      rank: 1,
      size: 2,
      localRank: 0,
      localSize: 1,
      master: { host: "job-master-0", port: 23_456 },
      isStoreKept: false,
      replacesLost: true,
    },
  ],
  [
    "Kubeflow's TrainJob's",
    { PET_NODE_RANK: "1", PET_NNODES: "2", PET_MASTER_ADDR: "node-0", PET_MASTER_PORT: "29500" },
    { by: "Kubeflow", rank: 1, size: 2, master: { host: "node-0", port: 29_500 } },
  ],
  [
    "Kubernetes' of an indexed Job, and what its manifest says",
    { JOB_COMPLETION_INDEX: "0", WORLD_SIZE: "3", MASTER_ADDR: "train-0.train" },
    {
      by: "Kubernetes",
      rank: 0,
      size: 3,
      replacesLost: true,
      master: { host: "train-0.train", port: 29_500 },
    },
  ],
  [
    "Slurm's, whose first node has the rendezvous",
    {
      SLURM_PROCID: "1",
      SLURM_STEP_NUM_TASKS: "2",
      SLURM_LOCALID: "0",
      SLURM_STEP_NODELIST: "gpu[03-04,7]",
      SLURM_JOB_ID: "16001",
      SLURM_STEP_ID: "0",
    },
    {
      by: "Slurm",
      rank: 1,
      size: 2,
      replacesLost: false,
      master: { host: "gpu03", port: 16_001 },
      run: "16001.0",
    },
  ],
  [
    "Open MPI's, on one host",
    {
      OMPI_COMM_WORLD_RANK: "1",
      OMPI_COMM_WORLD_SIZE: "2",
      OMPI_COMM_WORLD_LOCAL_RANK: "1",
      OMPI_COMM_WORLD_LOCAL_SIZE: "2",
    },
    { by: "Open MPI", rank: 1, size: 2, localSize: 2, master: { host: "127.0.0.1", port: 29_500 } },
  ],
  [
    "MPICH's",
    { PMI_RANK: "1", PMI_SIZE: "2", MASTER_ADDR: "a", MPI_LOCALRANKID: "0", MPI_LOCALNRANKS: "1" },
    { by: "MPI", rank: 1, size: 2, localSize: 1 },
  ],
  [
    "MVAPICH's",
    { MV2_COMM_WORLD_RANK: "1", MV2_COMM_WORLD_SIZE: "2", MASTER_ADDR: "a" },
    { by: "MVAPICH", rank: 1, size: 2 },
  ],
])("a process learns its place from variables: %s", (_, variables, expected) => {
  expect(readLaunch(variables)).toMatchObject(expected);
});

it("is alone where no launcher says otherwise, or only that it is: in a batch script of Slurm's too", () => {
  expect(readLaunch({})).toBeUndefined();
  expect(readLaunch({ RANK: "0", WORLD_SIZE: "1" })).toBeUndefined();
  expect(readLaunch({ SLURM_PROCID: "0", SLURM_NTASKS: "4", SLURM_JOB_ID: "7" })).toBeUndefined();
});

it.each([
  ["a rank that is none of them", { ...torchrun, RANK: "4" }, /RANK below WORLD_SIZE, 4, got 4/],
  ["a rank without a size", { RANK: "1", MASTER_ADDR: "a" }, /expected WORLD_SIZE/],
  ["what is no number", { ...torchrun, WORLD_SIZE: "two" }, /WORLD_SIZE to be a whole number, got two/],
  [
    "more on this host than there are",
    { ...torchrun, LOCAL_WORLD_SIZE: "8" },
    /LOCAL_WORLD_SIZE of at most WORLD_SIZE, 4/,
  ],
  [
    "a rank that is none of this host's",
    { ...torchrun, LOCAL_RANK: "2" },
    /LOCAL_RANK below LOCAL_WORLD_SIZE, 2/,
  ],
  ["a port that is none", { ...torchrun, MASTER_PORT: "0" }, /MASTER_PORT to be a port/],
  [
    "hosts without a rendezvous address",
    { RANK: "0", WORLD_SIZE: "2" },
    /MASTER_ADDR, the host of the store/,
  ],
  [
    "hosts of MPI without a rendezvous address",
    { OMPI_COMM_WORLD_RANK: "0", OMPI_COMM_WORLD_SIZE: "2" },
    /mpirun -x MASTER_ADDR=HOST/,
  ],
])("variables that cannot be are refused by name: %s", (_, variables, message) => {
  expect(() => readLaunch(variables)).toThrowError(
    expect.objectContaining({ code: "LAUNCH_VARIABLES", message: expect.stringMatching(message) }),
  );
});
