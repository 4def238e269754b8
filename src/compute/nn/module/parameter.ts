import { describeValue, TroupeError } from "../../../errors/index.ts";
import { type DType, gradEnabled, numelOf, type Tensor } from "../../tensor/index.ts";
import { asInitializer, type Initializer, type InitializerLike } from "./initializer.ts";
import { cutShape, type ParameterSplit, type SplitOptions } from "./parameter-split.ts";

/**
 * The role of a parameter in tuning. `model`: trained and saved. `base`: frozen under a delta. `delta`: added to a base,
 * trained and saved.
 */
export type ParameterRole = "model" | "base" | "delta";

/**
 * A trainable tensor, declared without memory: shape, dtype and initializer. Memory is bound later, by `materialize` on one
 * device or by the parallel engine as views into flat blocks; the code that binds it owns it.
 */
export class Parameter {
  #shape: readonly number[];
  #split: ParameterSplit | undefined;
  /** Dtype of the master copy; the bound tensor may have lower precision (bfloat16 with float32 masters). */
  readonly dtype: DType;
  readonly init: Initializer;
  #trainable: boolean;
  /** Whether it belongs to an expert, and is held and reduced only by the ranks that have this expert. */
  expert = false;
  #role: ParameterRole = "model";
  #tensor: Tensor | undefined;
  #through: ((memory: Tensor) => Tensor) | undefined;

  /**
   * @param dtype - integers and bool are constants: they keep their dtype and are not trained
   * @throws `INITIALIZER` for a value that is not an initializer, or a distribution with an integer dtype; `PARAMETER_SHAPE`
   *   for a negative or fractional size, or data that does not fit the shape
   */
  constructor(shape: readonly number[], given: InitializerLike, dtype: DType = "float32") {
    const init = asInitializer(given);
    if (typeof init !== "object" || init === null) throw notInitializer(init);
    this.#shape = shape;
    this.dtype = dtype;
    this.init = init;
    this.#trainable = this.canTrain;
    if (!dtype.includes("float") && (init.kind === "normal" || init.kind === "uniform"))
      throw notDrawn(init.kind, dtype);
    if (shape.some((size) => !Number.isSafeInteger(size) || size < 0))
      throw new TroupeError("PARAMETER_SHAPE", {
        where: "Parameter",
        expected: "sizes that are integers and not negative",
        got: `[${shape.map(describeValue).join(",")}]`,
        fields: { shape },
      });
    if (init.kind === "data" && init.values.length !== this.numel)
      throw new TroupeError("PARAMETER_SHAPE", {
        where: "Parameter",
        expected: `initial data with a value for each of ${this.numel} elements`,
        got: `${init.values.length}`,
        fields: { shape, numValues: init.values.length },
      });
  }

  /**
   * Whether training changes it. A frozen parameter gets no gradient, and no optimizer touches it. It may be set at any time,
   * like torch's `requires_grad`: a parameter gets a gradient if it is trainable when backward runs and was trainable in the
   * forward. A parameter that is declared frozen takes no memory for gradients and optimizer state until it is trained.
   */
  get trainable(): boolean {
    return this.#trainable;
  }

  /** @throws {TroupeError} `PARAMETER_TRAINABLE` for a buffer, an integer dtype, or a delta's base */
  set trainable(flag: boolean) {
    if (flag && !this.canTrain) throw notTrainable(this.dtype);
    if (flag && this.#role === "base") throw baseNotTrainable();
    this.#trainable = flag;
    const memory = this.#tensor;
    if (memory !== undefined && !memory.disposed && memory.requiresGrad !== flag) memory.requiresGrad_(flag);
  }

  /**
   * Its role in tuning. For a base only the weights that ranks read are kept: no gradient, optimizer state or float32 master,
   * and nothing in checkpoints.
   */
  get role(): ParameterRole {
    return this.#role;
  }

  set role(role: ParameterRole) {
    if (role === "base") this.trainable = false;
    this.#role = role;
  }

  /** Whether it could have gradients. */
  protected get canTrain(): boolean {
    return this.dtype.includes("float");
  }

  /** Shape of the part that this rank holds: the complete parameter, unless {@link cut} was called. */
  get shape(): readonly number[] {
    return this.#shape;
  }

  /** The part of the complete parameter; undefined if it is complete. */
  get split(): ParameterSplit | undefined {
    return this.#split;
  }

  /**
   * Reduces this to the part that one rank holds. Name, initial values and the tensor in a checkpoint stay those of the
   * complete parameter.
   * @throws {TroupeError} `PARAMETER_SPLIT` if it cannot be divided, is split already, or has memory
   */
  cut(options: SplitOptions): void {
    if (this.#split !== undefined || this.bound)
      throw new TroupeError("PARAMETER_SPLIT", {
        where: "Parameter",
        expected: "an unsplit parameter without memory",
        got: `one of shape [${this.#shape}] that is ${this.bound ? "bound" : "split already"}`,
        hint: "split a model once, before it is bound",
        fields: { shape: this.#shape },
      });
    const { split, shape } = cutShape(this.#shape, options);
    this.#split = split;
    this.#shape = shape;
  }

  /** Number of elements. */
  get numel(): number {
    return numelOf(this.shape);
  }

  /** Whether memory is bound. */
  get bound(): boolean {
    return this.#tensor !== undefined;
  }

  /** The tensor that computations read: the bound one, unless {@link readThrough} was called. @throws `PARAMETER_UNBOUND` */
  get tensor(): Tensor {
    const through = this.#through;
    return through !== undefined && gradEnabled() ? through(this.memory) : this.memory;
  }

  /**
   * Makes computations that record gradients read `through(memory)`, of the same shape, instead of the memory. Thus gradients
   * can be changed from outside on their way to the parameter.
   */
  readThrough(through: (memory: Tensor) => Tensor): void {
    this.#through = through;
  }

  /** The bound tensor itself, which receives gradients. @throws `PARAMETER_UNBOUND` if there is none */
  get memory(): Tensor {
    if (this.#tensor !== undefined) return this.#tensor;
    throw new TroupeError("PARAMETER_UNBOUND", {
      where: "Parameter",
      expected: `a parameter of shape [${this.shape}] to have memory before it computes`,
      got: "none",
      hint: "a module made inside forward is not part of the model: make it a property; outside a runtime, materialize the model",
      fields: { shape: this.shape },
    });
  }

  /** Binds a tensor as the memory of this parameter, replacing the previous one. The caller still owns it. */
  bind(tensor: Tensor): void {
    const { shape } = tensor;
    if (shape.length !== this.shape.length || shape.some((size, dim) => size !== this.shape[dim]))
      throw new TroupeError("PARAMETER_SHAPE", {
        where: "Parameter.bind",
        expected: `shape [${this.shape}]`,
        got: `[${shape}]`,
        fields: { expected: this.shape, got: shape },
      });
    this.#tensor = tensor;
  }

  /** Unbinds the memory and returns it, undefined if none was bound. Computing throws afterwards. */
  unbind(): Tensor | undefined {
    const tensor = this.#tensor;
    this.#tensor = undefined;
    return tensor;
  }
}

function notDrawn(kind: string, dtype: DType): TroupeError {
  return new TroupeError("INITIALIZER", {
    where: "Parameter",
    expected: `init.constant, init.fromValues or your own initializer for ${dtype}`,
    got: `${kind}, which draws floats`,
    fields: { dtype },
  });
}

function notTrainable(dtype: DType): TroupeError {
  return new TroupeError("PARAMETER_TRAINABLE", {
    where: "Parameter",
    expected: "trainable to be set on a parameter of floats",
    got: `it set on a ${dtype} tensor that has no gradient`,
    hint: "buffers and integers are not trained",
    fields: { dtype },
  });
}

function baseNotTrainable(): TroupeError {
  return new TroupeError("PARAMETER_TRAINABLE", {
    where: "Parameter",
    expected: "a delta's base to stay as it was given",
    got: "trainable set on one of its parameters",
    hint: "name it among the delta's modulesToSave, or train without a delta",
  });
}

function notInitializer(given: unknown): TroupeError {
  const name = typeof given === "function" ? given.name : "";
  return new TroupeError("INITIALIZER", {
    where: "Parameter",
    expected: "an initializer",
    got: typeof given === "function" ? `the function ${name || "without a name"}` : String(given),
    hint: "use init.normal, init.uniform, init.constant or init.fromValues, and defineInitializer for a function of your own",
    fields: { name },
  });
}
