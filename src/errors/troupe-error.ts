/**
 * The codes of every error that Troupe throws on purpose, each with its meaning, sorted by room. `docs/reference/errors.md`
 * lists the same codes; a test compares the two.
 */
export const errorTable = {
  // node-version
  NODE_VERSION: "this version of Node is too old for Troupe",
  // access
  ACCESS_TOKEN: "the token file cannot be created, or other users of the machine can access it",
  // checkpoint
  CHECKPOINT_ABANDONED: "a save cannot be completed because the rank group was restarted",
  CHECKPOINT_DAMAGED: "a checkpoint is incomplete, or its bytes differ from those that were saved",
  CHECKPOINT_DIRECTORY: "the checkpoint folder cannot be created or written",
  CHECKPOINT_ELSEWHERE: "part of a checkpoint is on the disk of another host",
  CHECKPOINT_INCOMPLETE: "parts of some tensors never reached the save",
  CHECKPOINT_LOCKED: "another process is writing to this checkpoint folder",
  CHECKPOINT_MOVED: "the checkpoint folder was moved, removed or replaced while it was being written",
  CHECKPOINT_MISSING: "no checkpoint was found at this path",
  CHECKPOINT_STAGING: "a save would copy more bytes than the limit allows",
  CHECKPOINT_SAVE_FAILED: "a checkpoint could not be written durably; earlier checkpoints are kept",
  CHECKPOINT_OPTION: "an option of saving, reading or keeping checkpoints is invalid",
  CHECKPOINT_SERVE: "the checkpoint service cannot listen on this address",
  CHECKPOINT_SLICE: "a value to be saved is not a tensor, or is a slice that does not fit the other slices",
  CHECKPOINT_TAKEN: "a new run cannot save into a folder that holds another run's checkpoints",
  CHECKPOINT_TENSOR: "a checkpoint does not contain this tensor or this part of it",
  FOLDER_UNSAFE: "another user of the machine can change the contents of a folder, or could have done so",
  FILE_READ: "a file of named tensors cannot be read, or is not a regular file",
  FILE_WRITE: "a file cannot be created, written or flushed to disk",
  HUGGING_FACE_FOLDER: "a Hugging Face model folder lacks a file or contradicts itself",
  JSON_INVALID:
    "a JSON text is malformed, or holds something that Troupe refuses (duplicate keys, unsafe integers)",
  S3_FAILED: "an S3-compatible store refused a request or could not be reached",
  S3_UNAVAILABLE: "the S3 client is not installed",
  SAFETENSORS_INVALID: "a safetensors file is corrupt, or its contents do not match its header",
  SAFETENSORS_TENSOR:
    "a tensor to be written to a safetensors file has an invalid name, dtype, shape or size",
  TORCH_FILE: "a torch.save file is damaged, or can only be read by running code that it contains",
  CHECKPOINT_SHAPE: "a stored tensor has another shape or dtype than the model's parameter",
  // convert
  CONVERT: "a checkpoint cannot be converted because something is missing or does not fit the target format",
  EXPORT: "a model cannot be exported because an operator, a module or a size does not fit the target format",
  // config
  CONFIG_FILE: "an options file cannot be read, or is neither TOML nor JSON",
  // hub
  HUB: "a model or dataset was not found, or the registry file is invalid",
  HUB_CHECKSUM: "a file downloaded from a hub does not match its checksum",
  HUB_UNREACHABLE: "the hub cannot be reached, or its answer is not that of a hub",
  // rapidformer
  ARGUMENTS: "the arguments of a run contradict each other, or lack something that its task needs",
  ARGUMENTS_UNREAD: "a script read its arguments before they were parsed",
  // bench
  // cli
  OUTPUT_LOST: "the output of a command could not be written to standard output",
  USAGE: "the command line is invalid",
  // collectives
  COLLECTIVE_ARGUMENT: "an argument of a collective, or the description of a group, is invalid",
  COLLECTIVE_MISMATCH: "the ranks of a group issued different operations as the same collective",
  COLLECTIVE_TIMEOUT: "a rank did not join a collective within the deadline",
  STORE_UNREACHABLE: "the rendezvous store of the hosts cannot be opened or does not answer",
  GLOO_UNAVAILABLE: "Gloo is not built into the addon, or does not work on this machine",
  NCCL_UNAVAILABLE: "NCCL is not available, or the ranks do not each have a device of their own",
  // dashboard
  DASHBOARD_PORT: "the dashboard cannot listen on this address",
  DASHBOARD_SOURCE: "the dashboard's source is neither an event file nor a folder of one",
  // data
  DATA_BATCH: "a batch is not a record of named tensors and plain values, or its samples differ in kind",
  DATA_CACHE_FAILED: "the cache of prepared data cannot be written or read",
  DATA_CHANGED: "data or initial weights changed while they were being read, or since the run began",
  DATA_EMPTY: "a text is empty, or files have no records",
  DATA_EXAMPLE: "a training example does not have the format that its task reads",
  DATA_INDEX:
    "an indexed dataset or an index file beside it is damaged, or its two files contradict each other",
  DATA_INVALID: "`data` did not return a dataset, or a dataset method returned an invalid value",
  DATA_MISSING: "no data was found at this file, folder, pattern or address",
  DATA_OPTION: "an option of a dataset is invalid",
  DATA_PACKAGE: "a package that reads this kind of data is not installed",
  DATA_PENDING: "data or a batch never arrives because a promise does not settle or a loop does not end",
  DATA_SPLIT: "the dataset does not have this split, the split is empty, or its files do not belong together",
  DATA_TOO_LARGE: "a text is too large for the chosen tokenizer",
  DATA_TOO_SHORT: "a text has fewer tokens than one window needs",
  DATA_UNREADABLE: "a file of data cannot be read, or a text is not UTF-8",
  DATA_VOCABULARY: "the tokens of a text do not fit the vocabulary of the model",
  TOKENIZER_INVALID: "a tokenizer file is missing or malformed",
  TOKENIZER_UNKNOWN_CHARACTER: "a text has a character that is not in the vocabulary",
  TOKENIZER_TOO_LONG: "a text has more tokens than a row can hold",
  // definitions
  DEFINITION: "a module does not define the function that actors look up in it",
  // deltas
  DELTA_FOLDER: "an adapter folder lacks a file, or asks for something that is not supported",
  DELTA_OPTION: "an option of a delta is invalid",
  DELTA_TARGET: "a delta does not fit the model that it is applied to",
  // launch
  LAUNCH_VARIABLES: "the launcher's environment variables are incomplete or contradict each other",
  TLS_KEYS: "the TLS keys of the hosts cannot be read or do not match",
  // models
  GENERATE_OPTION: "an option of text generation is invalid",
  MODEL_CONFIG:
    "a field of a model's configuration is out of range, or asks for something that the model lacks",
  MODEL_INPUT: "an input of a model does not fit its vocabulary, context or shapes",
  MODEL_TASK: "the model family is unknown, or has no head for the task",
  MODEL_WEIGHTS: "a set of weights does not have exactly the names and shapes of the model",
  // nn
  BATCH_NORM: "an input of batch norm has the wrong number of channels, or only one value per channel",
  INITIALIZER: "an initializer is not a function, or did not return one number for each element",
  MODULE_ARGUMENT: "an argument of a module is invalid",
  MODULE_LAYOUT: "a module hides its submodules from discovery, or a list of modules was called",
  MODULE_STATE:
    "a module changed a tensor that it holds outside its parameters and buffers, so it would not be saved",
  PARAMETER_DTYPE: "a parameter has a dtype that cannot be trained",
  PARAMETER_SHAPE: "a parameter's shape is invalid, or a tensor bound to it has another shape",
  PARAMETER_SPLIT: "a parameter cannot be split among ranks in this way",
  PARAMETER_TRAINABLE:
    "ranks train different parameters in a step, or a parameter without a gradient was made trainable",
  PARAMETER_UNBOUND: "a parameter was used before it had memory",
  RANDOMNESS_UNBOUND: "a module needs random numbers and has no generator",
  // optim
  OPTIMIZER_OPTION: "an option of an optimizer or a schedule is invalid",
  // parallel
  BLOCK_OPTION: "an option of a block is unknown or invalid",
  BLOCK_TENSOR: "a tensor enters or leaves a block in a way that its gradient cannot follow",
  COLLECTIVE_ABORTED: "a collective cannot be completed because a rank has ended",
  COLLECTIVE_TWICE: "a rank joined the same collective twice",
  GRADIENT_NOT_FINITE: "the norm of a step's gradient is infinite or NaN",
  LAYOUT: "the model cannot be distributed over its ranks in this way",
  MESH_SHAPE: "the sizes of the axes of parallelism do not fit the number of ranks or each other",
  PIPELINE_LOOP: "a training loop calls backward itself although the model is split into pipeline stages",
  PIPELINE_SCHEDULE:
    "the pipeline schedule does not exist for this number of stages, micro-batches and chunks",
  PIPELINE_STAGES: "the blocks cannot be divided into this number of pipeline stages",
  TENSOR_PLAN: "a tensor parallel plan does not fit the model",
  PIPELINE_BOUNDARY: "a pipeline stage did not pass on what the next stage needs",
  PIPELINE_MODEL: "the model cannot be split into pipeline stages",
  RANKS_DIFFER: "ranks that should train the same model declared different models or got different inputs",
  RECOMPUTE_PART: "a block has no part of this name to recompute",
  ZERO_LEVEL: "the ZeRO level is not 0, 1, 2 or 3",
  // planner
  SIMULATION_DEADLOCK: "simulated ranks wait for each other forever",
  SIMULATION_ORDER: "a simulated event happened before one that it depends on",
  // runtime
  ACTOR_DOWN: "the actor has stopped, has failed or never existed",
  ACTOR_EXIT: "code in an actor called process.exit",
  ACTOR_LOST: "an actor that a job's code had asked ended before it answered",
  ACTOR_MODULE_INVALID: "the module does not export an actor",
  ACTOR_NAME_TAKEN: "a living actor already has this name",
  ACTOR_START_TIMEOUT: "an actor did not start within the deadline",
  ACTOR_STUCK: "an actor's thread did not end even when it was terminated",
  ACTOR_THREW: "an actor's handler threw an error that has no code of its own",
  ACTOR_UNKNOWN: "no actor has this name",
  ACTOR_UNHANDLED: "an actor failed and no actor watched or supervised it",
  ASK_TIMEOUT: "no answer came within the deadline",
  BLOCKING_ON_MAIN: "an actor on the main thread called a function that blocks its thread",
  DEADLINE_INVALID: "a deadline is missing or not a positive number",
  FRAME_INVALID: "another process sent a frame that no process of this system sends",
  KIND_UNKNOWN: "an actor has no handler for this kind of message",
  HOST_LOST: "another host is down, or the network to it is cut",
  HOST_MISSING:
    "some hosts of a run did not join within the deadline, or an actor is to live on one that the run does not have",
  HOST_REFUSED: "a host tried to join a run that it does not belong to, or its place there is taken",
  MESSAGE_UNROUTED: "a message lacks the field by which its pool chooses an actor",
  MESSAGE_UNSENDABLE: "a message holds a value that cannot be copied to another actor",
  NETWORK_ADDRESS: "other hosts cannot reach a host at its address",
  OUTBOX_FULL: "a sender without credit kept sending until its outbox was full",
  PEER_UNTRUSTED: "a host did not accept another host's TLS certificate",
  PEER_SILENT: "a process on another host sent nothing for so long that it counts as lost",
  PROCESS_MEMORY: "the shared memory for credit counters and status slots is used up",
  PROCESS_START_FAILED: "a process for actors ended before it was ready",
  PROCESS_UNSUPPORTED: "actors in processes of their own need support that is not loaded",
  RECEIVE_TIMEOUT: "a blocking receive got no message of its kinds within the deadline",
  SEND_TIMEOUT: "a blocking send got no credit within the deadline",
  STOP_REQUESTED: "an actor was asked to stop while it blocked",
  STREAM_ENDED: "a stream of answers has ended, or is not one",
  SUPERVISOR_OPTION: "an option of a supervisor is invalid, or it has no child of this name",
  SYSTEM_STOPPED: "an actor system was used after it had stopped",
  TIMEOUT_LADDER: "an outer timeout is shorter than one inside it",
  // sinks
  SINK: "events cannot be written because a port is taken or a package is not installed",
  // trainer
  ACTOR_STALLED: "an actor was ended because it made no progress for too long",
  INSPECTION_OVER: "a model cannot be inspected after its last step",
  JOB_CONFIG: "a setting of a job is unknown or has the wrong type",
  JOB_INVALID: "the job's module cannot be imported or does not export a job",
  LOOP_ORDER: "a training loop called forward, backward and step in an invalid order",
  LOSS_INVALID:
    "a job's loss is not a scalar tensor or depends on no trainable parameter, or a logged value is not a number",
  LOSS_NOT_FINITE: "a loss is infinite or NaN",
  CALLS_LOST: "the calls since the newest state of a live model are not kept any more",
  LIVE_CALL:
    "a call of a live model cannot be made: no such program, nothing accumulated, or a batch that the replicas cannot share",
  LOSS_SPIKE: "a loss is far above those of the steps before it, and the run was set to stop in this case",
  LOSS_WEIGHTS: "the losses of a job do not match the weights that it gives them",
  MEMORY_COPY_LOST: "the in-memory copy of a run's state is gone",
  MODEL_SERVE: "the service of a live model cannot listen on this address",
  MODEL_CLOSED: "a live model was called after its end",
  OPTION: "an option of the runtime is invalid",
  PREDICTIONS: "the predictions of a job do not have one row per sample, or the dataset has no `score`",
  RESUME_MISMATCH: "a checkpoint cannot be resumed with another model, other data or another optimizer",
  RUN_HUNG: "a run made no progress within its deadline",
  RUN_INTERRUPTED: "a signal ended a run before its last step; its state is saved",
  RUN_IN_PROGRESS: "a runtime was asked to run a job while it was running one or after it had stopped",
  RUN_OVER: "a run cannot be saved, paused or resumed before it has begun or after it is over",
  RUN_STOPPED: "a run was stopped before its last step",
  STRAGGLER: "a rank computes for far longer than usual, and the run was set to stop in this case",
  // tensor
  BACKWARD_WITHIN: "`backward` was called inside a forward pass whose backward pass belongs to the run",
  DEVICE_UNAVAILABLE: "the device name is invalid, or this process does not have the device",
  FILE_TOO_SHORT: "a file to be mapped ends before the last element that was asked for",
  FILE_UNREADABLE: "a file to be mapped cannot be opened",
  NATIVE_FAILED: "libtorch or the addon failed outside an operator",
  NATIVE_MISMATCH: "the addon and the TypeScript that calls it have different versions",
  NATIVE_UNAVAILABLE: "the native addon is not built or cannot be loaded",
  SCRATCH_FILE:
    "a file for offloaded state cannot be created, read or written (disk full, no access or a disk fault)",
  SHARED_FOLDER_TAKEN: "two actor systems of one program cannot have processes at the same time",
  SHARED_MEMORY_FULL: "the machine has no memory left to share between processes",
  SHARED_MEMORY_REFUSED: "a tensor cannot be in shared memory because this process shares none",
  TENSOR_ARGUMENT: "an argument of a tensor function is invalid",
  TENSOR_OFFLOADED: "a tensor was read while its memory was offloaded",
  TENSOR_DISPOSED: "a tensor was used after it was disposed or moved, or after its scope ended",
  TENSOR_DTYPE: "the dtype is unknown to Troupe",
  TENSOR_FRAME_FULL: "the lists passed to an operator do not fit the argument frame",
  TENSOR_OP_CHANGED: "the installed libtorch has this operator with another schema",
  TENSOR_OP_FAILED: "libtorch refused the operands of an operator",
  TENSOR_OP_MISSING: "the installed libtorch does not have this operator",
  TENSOR_READ_ONLY: "a tensor cannot be written because another thread shares it or a file backs it",
  TENSOR_REF_GONE: "a tensor ref was already attached or released",
  TENSOR_SCOPE_ASYNC: "the body of a scope returned a promise",
  TENSOR_SHARED: "a tensor cannot be written or moved while another thread reads it",
  TENSOR_TOO_MANY: "a thread holds more tensors than its table has room for",
} as const;

/** A code of {@link errorTable}. */
export type ErrorCode = keyof typeof errorTable;

/** Details that an error carries besides its message. */
export interface ErrorDetail {
  /** The values involved, as plain data, so that they can travel in a message. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The first cause, kept reachable. */
  readonly cause?: unknown;
}

/** The parts of an error's sentence. None begins with a capital letter or ends with a full stop. */
export interface ErrorSentence {
  /** The function, option or actor in which it happened. */
  readonly where: string;
  /** The words after "expected". */
  readonly expected: string;
  /** The words after "got". */
  readonly got: string;
  /** Advice; left out where `expected` says it already. */
  readonly hint?: string | undefined;
}

/** The complete sentence of an error that was made in native code or by an actor of another thread. */
export interface RelayedSentence {
  readonly relayed: string;
}

/** An error whose message is one sentence: `[where] expected X, got Y (hint)`. */
export class TroupeError extends Error {
  readonly code: ErrorCode;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, says: (ErrorSentence | RelayedSentence) & ErrorDetail) {
    const { fields = {}, cause } = says;
    super("relayed" in says ? says.relayed : sentence(says), cause === undefined ? {} : { cause });
    this.name = "TroupeError";
    this.code = code;
    this.fields = fields;
  }
}

function sentence({ where, expected, got, hint }: ErrorSentence): string {
  const advice = hint === undefined ? "" : ` (${hint})`;
  return `[${where}] expected ${expected}, got ${got}${advice}`;
}

/** Makes the errors of one code about options: `[where] expected OPTION to be X, got Y`. */
export function optionErrors(
  code: ErrorCode,
  where: string,
): (option: string, expected: string, got: unknown) => TroupeError {
  return (option, expected, got) =>
    new TroupeError(code, {
      where,
      expected: `${option} to be ${expected}`,
      got: `${got}`,
      fields: { option, got },
    });
}

/**
 * Makes the errors of one code about files and folders: `[where] expected X in PATH, got Y (hint)`.
 * @param usual - the hint of errors without one of their own
 * @param relation - the word before the path
 */
export function fileErrors(
  code: ErrorCode,
  where: string,
  usual?: string,
  relation: "in" | "at" = "in",
): (path: string, expected: string, got: string, more?: { hint?: string; cause?: unknown }) => TroupeError {
  return (path, expected, got, { hint = usual, cause } = {}) =>
    new TroupeError(code, {
      where,
      expected: `${expected} ${relation} ${path}`,
      got,
      hint,
      fields: { path },
      cause,
    });
}

const fileFailures: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EISDIR: "a folder",
  EACCES: "no permission to read it",
};

/**
 * Says why a file could not be read, as the words after "got". A reason that has no words here is the system's code or
 * message.
 */
export function fileFailure(cause: unknown): string {
  const { code, message = String(cause) } = cause as Partial<NodeJS.ErrnoException>;
  return code === undefined ? message : (fileFailures[code] ?? code);
}

/** A record with a key for every option, so that none can be forgotten. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

/** The most names that a hint lists when none is near. */
const MANY_NAMES = 12;

/**
 * Refuses misspelled options, which would otherwise be ignored without a word.
 * @throws {TroupeError} `code`, naming the unknown options and suggesting a known one
 */
export function refuseUnknown(
  code: ErrorCode,
  where: string,
  given: object,
  names: Readonly<Record<string, unknown>>,
): void {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(names, name));
  if (unknown.length === 0) return;
  const got = unknown.join(", ");
  const hint = whatWasMeant(unknown[0] ?? "", Object.keys(names));
  throw new TroupeError(code, { where, expected: "an option", got, hint, fields: { option: got } });
}

/** Says "did you mean …?" if one of `names` is near, otherwise lists them if they are few. */
export function whatWasMeant(name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  if (near !== undefined) return `did you mean ${near}?`;
  if (names.length === 0) return "there are none";
  return names.length <= MANY_NAMES
    ? `there are ${names.join(", ")}`
    : `none of the ${names.length} names is near it`;
}

/** Finds the name that is nearest to a misspelled one by edit distance, if at most a third of its letters differ. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const distances = names.map((other) => ({ other, distance: numEdits(plain(name), plain(other)) }));
  distances.sort((a, b) => a.distance - b.distance);
  const [nearest] = distances;
  if (nearest === undefined) return undefined;
  return nearest.distance <= Math.max(1, Math.floor(name.length / 3)) ? nearest.other : undefined;
}

/** Optimal string alignment distance: insertions, deletions, exchanges, and swaps of neighbours. */
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

/** Whether a value is an object and no array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is an object as `{ … }` makes it, or one without a prototype. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
