// One rank of the overlap benchmark.
import { parentPort, workerData } from "node:worker_threads";
import {
  type Communicator,
  gatherSequence,
  openCommunicator,
  reduceScatterSequence,
} from "../../src/compute/collectives/index.ts";
import { noGrad, ops, scope, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { median } from "../measure/median.ts";

/** The measurement that a rank makes. */
export interface OverlapTask {
  readonly rank: number;
  readonly delayMs: number;
  readonly numChunks: number;
}

/** Medians of one layer. */
export interface OverlapRow {
  readonly name: string;
  /** The product alone, of the same chunks. */
  readonly productMs: number;
  /** Chunk after chunk moved and multiplied. */
  readonly inTurnMs: number;
  readonly overlappedMs: number;
}

const size = 2;
const rows = 2048; // of all ranks
const [width, outputs] = [1024, 2048];
const numRepeats = 7;

const { rank, delayMs, numChunks } = workerData as OverlapTask;
setNumThreads(1);
const options = { backend: "local", rank, size, deadlineMs: 60_000 } as const;
const slow = openCommunicator({ ...options, name: "overlap", delayMs });

noGrad(() =>
  scope(() => {
    const weight = zeros([width, outputs]).fill_(0.01);
    const [share, whole] = [zeros([rows / size, width]).fill_(1), zeros([rows, width]).fill_(1)];
    const chunksOf = (x: Tensor) => x.chunk(numChunks, 0);
    const products = () => chunksOf(whole).map((chunk) => chunk.matmul(weight));
    const measured: OverlapRow[] = [
      {
        name: "gather, then product",
        productMs: medianMs(products),
        inTurnMs: medianMs(() =>
          chunksOf(share).map((chunk) => gatherSequence(chunk, slow, 0).matmul(weight)),
        ),
        overlappedMs: medianMs(() =>
          ops.troupe.gatherMatmul(share, weight, false, slow.number, 0, numChunks),
        ),
      },
      {
        name: "product, then reduce-scatter",
        productMs: medianMs(products),
        inTurnMs: medianMs(() =>
          chunksOf(whole).map((chunk) => reduceScatterSequence(chunk.matmul(weight), slow, 0)),
        ),
        overlappedMs: medianMs(() =>
          ops.troupe.matmulReduceScatter(whole, weight, false, slow.number, 0, numChunks),
        ),
      },
    ];
    parentPort?.postMessage(measured);
  }),
);
close(slow);

function medianMs(body: () => unknown): number {
  const times = Array.from({ length: numRepeats }, () => {
    slow.barrier();
    const begin = performance.now();
    scope(() => void body());
    return performance.now() - begin;
  });
  return median(times);
}

function close(group: Communicator): void {
  group.barrier();
  group.close();
}
