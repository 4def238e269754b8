/**
 * Every error Troupe throws on purpose: a code and what it means, one line each, sorted by room.
 * `docs/reference/errors.md` lists the same codes; a test compares the two.
 */
export const errorTable = {
  // node-version
  NODE_VERSION: "Troupe was imported by a Node that is too old for it",
  // access
  ACCESS_TOKEN: "the file that keeps a token cannot be made, or is not its owner's alone",
  // checkpoint
  CHECKPOINT_ABANDONED: "a save can never become whole, because the rank group was restarted",
  CHECKPOINT_DAMAGED: "a checkpoint is incomplete or its bytes are not those that were saved",
  CHECKPOINT_DIRECTORY: "the folder for checkpoints cannot be made or written",
  CHECKPOINT_ELSEWHERE: "part of a checkpoint lies on the disk of another host",
  CHECKPOINT_INCOMPLETE: "tensors were to be saved of which parts have not come",
  CHECKPOINT_LOCKED: "a folder of checkpoints is being written by another process",
  CHECKPOINT_MOVED: "the folder that a writer holds was moved or removed, or another took its place",
  CHECKPOINT_MISSING: "no checkpoint is where one was expected",
  CHECKPOINT_STAGING: "a save would copy more than it may",
  CHECKPOINT_SAVE_FAILED: "a checkpoint could not be made durable; the ones saved before it are kept",
  CHECKPOINT_OPTION: "an option of saving, reading or keeping checkpoints is out of its range",
  CHECKPOINT_SERVE: "the checkpoint service cannot listen where it was told to",
  CHECKPOINT_SLICE: "what was given to be saved is no tensor, or a part that does not fit the others",
  CHECKPOINT_TAKEN: "a new run was to save into a folder that holds another run's checkpoints",
  CHECKPOINT_TENSOR: "a checkpoint has no tensor of that name, or not that part of it",
  FOLDER_UNSAFE:
    "another user of the machine could have made or changed what lies in a folder, or could do so",
  FILE_READ: "a file of named tensors cannot be read, or is no regular file",
  FILE_WRITE: "a file cannot be made, written or brought to the disk",
  HUGGING_FACE_FOLDER: "a Hugging Face model folder lacks a file or contradicts itself",
  JSON_INVALID: "a JSON text is malformed or holds what Troupe refuses (duplicate keys, unsafe integers)",
  S3_FAILED: "an S3-compatible store refused a request or could not be reached",
  S3_UNAVAILABLE: "checkpoints are to lie in S3, and the client for it is not installed",
  SAFETENSORS_INVALID: "a safetensors file is corrupt or does not hold what its header says",
  SAFETENSORS_TENSOR: "a tensor is not what the caller of a safetensors file says it is",
  TORCH_FILE: "a file of torch.save is damaged, or holds what would have to be run to be read",
  CHECKPOINT_SHAPE: "a stored tensor is not of the shape or kind that the model's parameter has",
  // convert
  CONVERT: "a checkpoint cannot be converted: something is missing, or does not fit the form asked for",
  // config
  CONFIG_FILE: "a file of options cannot be read or is neither TOML nor JSON",
  // hub
  HUB: "a model or dataset is not where its name leads, or the registry of names is none",
  HUB_CHECKSUM: "what a hub sent of a file is not what it says the file holds",
  HUB_UNREACHABLE: "a hub of models and data cannot be reached, or does not answer as one",
  // rapidformer
  ARGUMENTS: "what a run was asked for contradicts itself, or lacks what its task needs",
  ARGUMENTS_UNREAD: "a script asks for its arguments before there are any",
  // bench
  BENCH_PEER: "PyTorch, which a table is to be measured beside, does not run",
  // cli
  OUTPUT_LOST: "what a command was asked for could not be written to standard output",
  USAGE: "the command line cannot be understood",
  // collectives
  COLLECTIVE_ARGUMENT: "an argument of a collective or the description of a group is out of its range",
  COLLECTIVE_MISMATCH: "the ranks of a group issued different operations at one place of the program",
  COLLECTIVE_TIMEOUT: "a rank did not come to a collective within the deadline",
  STORE_UNREACHABLE:
    "the store in which the hosts of a run find each other cannot be opened, or does not answer",
  GLOO_UNAVAILABLE: "Gloo is not built into the addon, or does not work on this machine",
  NCCL_UNAVAILABLE: "NCCL is not there, or has no device of its own for each rank",
  // dashboard
  DASHBOARD_PORT: "the address that the dashboard was to be served at cannot be listened on",
  DASHBOARD_SOURCE: "what the dashboard was to show is no file of events, nor a folder that could hold one",
  // data
  DATA_BATCH:
    "what a dataset gives as a batch is no record of named tensors and plain values, or its samples differ in kind",
  DATA_CACHE_FAILED: "the cache of encoded text cannot be written or read",
  DATA_CHANGED: "data, or weights to begin with, changed while they were read or since the run began",
  DATA_EMPTY: "a text holds nothing",
  DATA_EXAMPLE: "an example that a task is to learn is not of the form that its files have",
  DATA_INDEX:
    "an indexed dataset, or an index file beside it, is damaged, or its two files contradict each other",
  DATA_INVALID: "what a job's data gives is no dataset, or a function of it answers with what it cannot mean",
  DATA_MISSING: "a named file, directory or pattern leads to no text",
  DATA_OPTION: "an option of a dataset is out of its range",
  DATA_PENDING:
    "a job's data, or a batch of it, does not come: a promise that nothing settles, or a loop without end",
  DATA_SPLIT: "a split that a run is to read is not among those of its dataset, or holds nothing",
  DATA_TOO_LARGE: "a text is too large for the tokenizer chosen",
  DATA_TOO_SHORT: "a text holds fewer tokens than one window needs",
  DATA_UNREADABLE: "a text cannot be read, or is not UTF-8",
  DATA_VOCABULARY: "the tokens of a text do not fit the vocabulary of the model",
  TOKENIZER_INVALID: "the description of a tokenizer is missing or malformed",
  TOKENIZER_UNKNOWN_CHARACTER: "a text holds a character that the vocabulary does not know",
  TOKENIZER_TOO_LONG: "texts do not fit the tokens that a row may have",
  // definitions
  DEFINITION: "a function that actors name to each other is not defined by the module that it is named with",
  // deltas
  DELTA_FOLDER: "a folder of a delta lacks a file, or asks for what is not there",
  DELTA_OPTION: "an option of a delta is out of its range",
  DELTA_TARGET: "a delta does not fit the model that it is put to",
  // launch
  LAUNCH_VARIABLES:
    "the variables by which a launcher tells a process its place are incomplete or contradict each other",
  TLS_KEYS: "the keys by which the hosts of a run know each other cannot be read, or do not go together",
  // models
  GENERATE_OPTION: "an option of text generation is out of its range",
  MODEL_CONFIG: "a field of a model's configuration is out of its range or asks for what the model lacks",
  MODEL_INPUT: "what a model is called with does not fit its vocabulary, context or shapes",
  MODEL_TASK: "a model is asked for that no family has, or for a task that its family has no head for",
  MODEL_WEIGHTS: "a set of weights has not exactly the names and shapes of the model",
  // nn
  BATCH_NORM: "what is to be normalised over its batch has other channels, or one value of each",
  INITIALIZER:
    "what is to start a parameter is no initializer, or gives other than one number for each element",
  MODULE_ARGUMENT: "an argument of a module is out of its range",
  MODULE_LAYOUT: "a module hides its parts from discovery, or a list is called as if it computed",
  MODULE_STATE: "a module changes a tensor that it holds beside its parameters, which nobody would save",
  PARAMETER_DTYPE: "a parameter is of a dtype that is not trained",
  PARAMETER_SHAPE: "a parameter's shape is invalid, or what is bound to it has another",
  PARAMETER_SPLIT: "a parameter cannot be split among ranks as was asked",
  PARAMETER_TRAINABLE:
    "ranks do not train the same parameters in a step, or what has no gradient was to be trained",
  PARAMETER_UNBOUND: "a parameter was used before memory was bound to it",
  RANDOMNESS_UNBOUND: "a module must draw at random and has nothing to draw from",
  // optim
  OPTIMIZER_OPTION: "an option of an optimizer or a schedule is out of its range",
  // parallel
  BLOCK_OPTION: "an option of a block of a model is unknown or out of its range",
  BLOCK_TENSOR: "a tensor enters or leaves a block on a way that its gradient cannot take",
  COLLECTIVE_ABORTED: "a collective can never become whole, because a rank has ended",
  COLLECTIVE_TWICE: "a rank contributed twice to one collective",
  GRADIENT_NOT_FINITE: "the norm of a step's gradient is infinite or not a number",
  LAYOUT: "a model cannot be spread over its ranks in the way that was asked for",
  MESH_SHAPE: "the numbers of ranks along the axes of parallelism do not fit each other",
  PIPELINE_LOOP:
    "a training loop walks losses backwards by itself where the model is cut into pipeline stages",
  PIPELINE_SCHEDULE: "a pipeline schedule does not exist for that many stages, micro-batches and chunks",
  PIPELINE_STAGES: "a list of blocks cannot be cut into that many pipeline stages",
  TENSOR_PLAN: "a plan of tensor parallelism does not fit the model",
  PIPELINE_BOUNDARY: "what passes from one pipeline stage to the next is not what the next one needs",
  PIPELINE_MODEL: "a model cannot be cut into pipeline stages",
  RANKS_DIFFER:
    "ranks that should train the same model have declared different ones, or are given different inputs",
  RECOMPUTE_PART: "a part of a block that is to be recomputed does not exist",
  ZERO_LEVEL: "a ZeRO level is none of 0, 1, 2 and 3",
  // planner
  SIMULATION_DEADLOCK: "simulated ranks wait for what never comes",
  SIMULATION_ORDER: "in a simulated run something happened before what it depends on",
  // runtime
  ACTOR_DOWN: "an actor was asked or awaited that has stopped, failed or never was",
  ACTOR_EXIT: "code that an actor runs called process.exit",
  ACTOR_MODULE_INVALID: "a module to be spawned does not export an actor",
  ACTOR_NAME_TAKEN: "two living actors would have one name",
  ACTOR_START_TIMEOUT: "an actor did not finish its start in time",
  ACTOR_STUCK: "the thread of an actor did not end even by force",
  ACTOR_THREW: "a handler of an actor threw an error that has no code of its own",
  ACTOR_UNHANDLED: "an actor failed and nobody watched or supervised it",
  ASK_TIMEOUT: "no answer came within the deadline",
  BLOCKING_ON_MAIN: "an actor that shares the main thread called what blocks its thread",
  DEADLINE_INVALID: "a deadline is missing or not a positive number",
  FRAME_INVALID: "another process sent what no process of this system sends",
  KIND_UNKNOWN: "an actor was asked a kind of message that it has no handler for",
  HOST_LOST: "another host of a run is down, or the network between the two is cut",
  HOST_MISSING: "hosts that a run was to be spread over did not come within the deadline",
  HOST_REFUSED: "a host wanted to join a run that it does not belong to, or that has its place taken",
  MESSAGE_UNSENDABLE: "a message holds what cannot be copied to another actor",
  NETWORK_ADDRESS: "a host cannot be reached by others where it was told to be",
  OUTBOX_FULL: "a sender ignored for too long that it was out of credit",
  PEER_UNTRUSTED: "of two hosts that were to talk by TLS one did not take the other's certificate",
  PEER_SILENT: "a process of another host gave no sign for so long that it counts as lost",
  PROCESS_MEMORY: "the memory that processes share for their books is used up",
  PROCESS_START_FAILED: "a process that was to host actors ended before it was ready",
  PROCESS_UNSUPPORTED: "actors were to live in processes of their own, without the support that takes",
  RECEIVE_TIMEOUT: "a blocking receive got no message of its kinds within the deadline",
  SEND_TIMEOUT: "a blocking sender got no credit within the deadline",
  STOP_REQUESTED: "an actor that blocks was asked to stop",
  SUPERVISOR_OPTION: "an option of a supervisor is out of its range, or it has no child of that name",
  SYSTEM_STOPPED: "an actor system was used after it had stopped",
  TIMEOUT_LADDER: "an outer waiting time runs out before one inside it",
  // sinks
  SINK: "events were to be written where they cannot be: a port that is taken, a package that is not installed",
  // trainer
  ACTOR_STALLED: "an actor of a run showed no progress for so long that it was ended",
  INSPECTION_OVER: "a model was to be inspected after its last step",
  JOB_CONFIG: "a setting of a job is unknown or of the wrong type",
  JOB_INVALID: "a job's module cannot be imported or does not export a job",
  LOOP_ORDER: "a training loop calls forward, backward and step in an order in which nothing can be trained",
  LOSS_INVALID:
    "what a job returns as its loss is no scalar tensor, or one that no parameter can be trained by; what a loop logs is no number",
  LOSS_NOT_FINITE: "a loss is infinite or not a number",
  LOSS_SPIKE: "a loss stands out above those of the steps before it, and the run was told to stop then",
  LOSS_WEIGHTS: "the losses of a job and what it weighs them by do not fit together",
  MEMORY_COPY_LOST: "the copy of a run's state that was kept in memory is gone",
  OPTION: "an option of the runtime is out of its range",
  PREDICTIONS: "what a job predicts is not a row for each sample, or nobody scores it",
  RESUME_MISMATCH:
    "a run was to go on from a checkpoint as another run: another model, other data or trained by something else",
  RUN_HUNG: "a run made no progress within its deadline",
  RUN_INTERRUPTED: "a signal has ended a run before its last step; its state is saved",
  RUN_IN_PROGRESS: "a runtime was asked to run a job while it runs one, or after it was stopped",
  RUN_OVER: "a run was to be saved, paused or resumed that is over or has not begun",
  RUN_STOPPED: "a run was stopped before its last step",
  STRAGGLER: "a rank computes for far longer than is usual, and the run was told to stop then",
  // tensor
  BACKWARD_WITHIN: "a graph was to be walked backwards within a forward that the run itself walks",
  DEVICE_UNAVAILABLE: "a device was named that this process does not have, or that is none",
  FILE_TOO_SHORT: "a file to be mapped ends before the last element asked for",
  FILE_UNREADABLE: "a file to be mapped cannot be opened",
  NATIVE_FAILED: "libtorch or the addon failed outside an operator",
  NATIVE_MISMATCH: "the addon and the TypeScript that calls it are of different versions",
  NATIVE_UNAVAILABLE: "the native addon is not built or cannot be loaded",
  SCRATCH_FILE:
    "a file for offloaded state cannot be made, read or written: no room, no access, or a fault of the disk",
  SHARED_FOLDER_TAKEN: "two systems of one program were to have processes at once",
  SHARED_MEMORY_FULL: "the system has no room left for memory that processes share",
  SHARED_MEMORY_REFUSED: "a tensor was to be in memory that processes share, in a process that shares none",
  TENSOR_ARGUMENT: "an argument of a tensor function has a value it cannot take",
  TENSOR_OFFLOADED:
    "a tensor was read while its memory is given up, as that of offloaded activations and parameters is",
  TENSOR_DISPOSED: "a tensor was used after it was disposed, moved, or gone with its scope",
  TENSOR_DTYPE: "a dtype is unknown to Troupe",
  TENSOR_FRAME_FULL: "the lists passed to an operator do not fit the argument frame",
  TENSOR_OP_CHANGED: "the installed libtorch has the operator with another schema",
  TENSOR_OP_FAILED: "libtorch refused the operands of an operator",
  TENSOR_OP_MISSING: "the installed libtorch lacks the operator",
  TENSOR_READ_ONLY: "a tensor that is shared by another thread or mapped from a file was to be written",
  TENSOR_REF_GONE: "a tensor ref was attached or released before",
  TENSOR_SCOPE_ASYNC: "the body of a scope returned a promise",
  TENSOR_SHARED: "a tensor was to be written or moved while another thread reads it",
  TENSOR_TOO_MANY: "a thread holds more tensors at once than its table has room for",
} as const;

/** A code of {@link errorTable}. */
export type ErrorCode = keyof typeof errorTable;

/** What an error carries beside its message. */
export interface ErrorDetail {
  /** The operands of the mistake, plain data, so that they can travel in a message. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The first cause, kept reachable. */
  readonly cause?: unknown;
}

/** The parts of what an error says; none begins with a capital or ends with a full stop. */
export interface ErrorSentence {
  /** The function, option or actor that it happened in, as people call it. */
  readonly where: string;
  /** What was expected, as the words after "expected". */
  readonly expected: string;
  /** What came, as the words after "got". */
  readonly got: string;
  /** What to do about it; left out where what was expected says it. */
  readonly hint?: string | undefined;
}

/** The whole sentence of an error that was made elsewhere: in native code, or by an actor of another thread. */
export interface RelayedSentence {
  readonly relayed: string;
}

/**
 * An error that says where it happened, what was expected, what came and what to do, in one sentence:
 * `[where] expected X, got Y (hint)`.
 */
export class TroupeError extends Error {
  readonly code: ErrorCode;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, says: ErrorSentence | RelayedSentence, detail: ErrorDetail = {}) {
    super(
      "relayed" in says ? says.relayed : sentence(says),
      detail.cause === undefined ? {} : { cause: detail.cause },
    );
    this.name = "TroupeError";
    this.code = code;
    this.fields = detail.fields ?? {};
  }
}

function sentence({ where, expected, got, hint }: ErrorSentence): string {
  const advice = hint === undefined ? "" : ` (${hint})`;
  return `[${where}] expected ${expected}, got ${got}${advice}`;
}

const fileFailures: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EISDIR: "a folder",
  EACCES: "no permission to read it",
};

/** Why a file could not be read, as the words after "got": the usual reasons in words, others as the system's code or message. */
export function fileFailure(cause: unknown): string {
  const { code, message = String(cause) } = cause as Partial<NodeJS.ErrnoException>;
  return code === undefined ? message : (fileFailures[code] ?? code);
}

/** Every name that some options have, none left out. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

/** Names of so many are told where none is near; of more nobody finds theirs. */
const MANY_NAMES = 12;

/**
 * What a misspelled option is refused by, which would otherwise be passed over without a word.
 * @param subject - whose options these are, as in "an option of checkpoint"
 * @returns what was expected, which of those given is no name, and what may have been meant, in words; undefined where all
 *   are known
 */
export function unknownNames(
  given: object,
  names: Readonly<Record<string, unknown>>,
  subject = "an option",
): { readonly expected: string; readonly got: string; readonly hint: string } | undefined {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(names, name));
  if (unknown.length === 0) return undefined;
  const known = Object.keys(names);
  return { expected: subject, got: unknown.join(", "), hint: whatWasMeant(unknown[0] ?? "", known) };
}

/** @returns "did you mean …?" for a name that is near one of some, else the names, where they are few */
export function whatWasMeant(name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  if (near !== undefined) return `did you mean ${near}?`;
  if (names.length === 0) return "there are none";
  return names.length <= MANY_NAMES
    ? `there are ${names.join(", ")}`
    : `none of the ${names.length} names is near it`;
}

/**
 * @returns of some names the one that is nearest to a misspelled one by the letters left out, put in, exchanged or swapped,
 *   if no more than a third of them are
 */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const distances = names.map((other) => ({ other, distance: numEdits(plain(name), plain(other)) }));
  distances.sort((a, b) => a.distance - b.distance);
  const [nearest] = distances;
  if (nearest === undefined) return undefined;
  return nearest.distance <= Math.max(1, Math.floor(name.length / 3)) ? nearest.other : undefined;
}

/** Optimal string alignment: insertions, deletions, exchanges, and swaps of neighbours. */
function numEdits(from: string, to: string): number {
  let [before, last] = [[] as number[], Array.from({ length: to.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const exchanged = at(last, j - 1) + Number(from[i - 1] !== to[j - 1]);
      const swapped =
        from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
          ? at(before, j - 2) + 1
          : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(last, j) + 1, at(row, j - 1) + 1, exchanged, swapped));
    }
    [before, last] = [last, row];
  }
  return at(last, to.length);
}

const at = (row: readonly number[], index: number) => row[index] ?? Number.POSITIVE_INFINITY;

/**
 * Says in a few words what a value is, for the `got` of an error: `undefined`, `"text"`, `3`, `a promise`, `an array`, `a Tensor`.
 */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof (value as { readonly then?: unknown }).then === "function") return "a promise";
  const { name = "" } = (value as { readonly constructor?: { readonly name?: string } }).constructor ?? {};
  if (name === "" || name === "Object") return "an object";
  return `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}`;
}
