import { describeValue, TroupeError } from "../../../errors/index.ts";
import { type DType, gradEnabled, numelOf, type Tensor } from "../../tensor/index.ts";
import { asInitializer, type Initializer, type InitializerLike } from "./initializer.ts";
import { cutShape, type ParameterSplit, type SplitOptions } from "./parameter-split.ts";

/**
 * What a parameter is to what is tuned: a `model`'s own, trained and saved; of the `base` that a delta stands on, which is as it
 * was given and stays so; or of the `delta`, which the base lacks.
 */
export type ParameterRole = "model" | "base" | "delta";

/**
 * A trainable tensor, declared without memory: shape, dtype and how it starts. Whoever runs the model binds memory
 * to it (`materialize` on one device, the parallel engine as views into flat blocks) and owns that memory.
 */
export class Parameter {
  #shape: readonly number[];
  #split: ParameterSplit | undefined;
  /** Of the master copy; the bound tensor may be narrower (bfloat16 computing over float32 masters). */
  readonly dtype: DType;
  readonly init: Initializer;
  #trainable: boolean;
  /** Whether it belongs to an expert: held only by the ranks that have this expert, and reduced among them. */
  expert = false;
  #role: ParameterRole = "model";
  #tensor: Tensor | undefined;
  #through: ((memory: Tensor) => Tensor) | undefined;

  /**
   * @param dtype - whole numbers and bool are constants: they keep their type, and are not trained
   * @throws `INITIALIZER` for a function in place of one, or a distribution of whole numbers; `PARAMETER_SHAPE` for a negative or fractional size, or data of another length than the shape holds
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
    if (shape.some((size) => !Number.isSafeInteger(size) || size < 0)) {
      throw new TroupeError(
        "PARAMETER_SHAPE",
        {
          where: "Parameter",
          expected: "sizes that are whole and not negative",
          got: `[${shape.map(describeValue).join(",")}]`,
        },
        { fields: { shape } },
      );
    }
    if (init.kind === "data" && init.values.length !== this.numel) {
      throw new TroupeError(
        "PARAMETER_SHAPE",
        {
          where: "Parameter",
          expected: `initial data with a value for each of ${this.numel} elements`,
          got: `${init.values.length}`,
        },
        { fields: { shape, numValues: init.values.length } },
      );
    }
  }

  /**
   * Whether training changes it; a frozen parameter gets no gradient, and no optimizer touches it. May be set at any time, as
   * torch's `requires_grad`: what counts is what it is when a loss is walked backwards, and of what was computed before, that
   * it was trainable then too. A parameter that is declared frozen takes no memory for gradients and optimizer state until it
   * is trained.
   */
  get trainable(): boolean {
    return this.#trainable;
  }

  /** @throws {TroupeError} `PARAMETER_TRAINABLE` for what has no gradient: a buffer, or whole numbers; for a delta's base */
  set trainable(flag: boolean) {
    if (flag && !this.canTrain) throw notTrainable(this.dtype);
    if (flag && this.#role === "base") throw baseNotTrainable();
    this.#trainable = flag;
    const memory = this.#tensor;
    if (memory !== undefined && !memory.disposed && memory.requiresGrad !== flag) memory.requiresGrad_(flag);
  }

  /**
   * What it is to what is tuned. Of a base nothing is kept but what the ranks read: no gradient, no optimizer state, no master
   * in float32, no byte of a checkpoint.
   */
  get role(): ParameterRole {
    return this.#role;
  }

  set role(role: ParameterRole) {
    if (role === "base") this.trainable = false;
    this.#role = role;
  }

  /** Whether gradients could train it. */
  protected get canTrain(): boolean {
    return this.dtype.includes("float");
  }

  /** Of what is held here: the whole parameter, unless {@link split} has cut it. */
  get shape(): readonly number[] {
    return this.#shape;
  }

  /** Which part of a whole parameter this is; undefined for the whole. */
  get split(): ParameterSplit | undefined {
    return this.#split;
  }

  /**
   * Makes this the part of the parameter that one rank holds. Its name, initial values and place in a checkpoint stay
   * those of the whole.
   * @throws {TroupeError} `PARAMETER_SPLIT` where it does not divide, is split already, or has memory
   */
  cut(options: SplitOptions): void {
    if (this.#split !== undefined || this.bound) {
      throw new TroupeError(
        "PARAMETER_SPLIT",
        {
          where: "Parameter",
          expected: "a whole parameter without memory",
          got: `one of shape [${this.#shape}] that is ${this.bound ? "bound" : "split already"}`,
          hint: "split a model once, before it is bound",
        },
        { fields: { shape: this.#shape } },
      );
    }
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

  /** What a computation reads: the bound tensor, unless {@link readThrough} put something before it. @throws `PARAMETER_UNBOUND` */
  get tensor(): Tensor {
    const through = this.#through;
    return through !== undefined && gradEnabled() ? through(this.memory) : this.memory;
  }

  /**
   * Lets computations whose gradients are recorded read `through(memory)`, of the same shape, in place of the memory: how
   * gradients are changed from outside on their way to the parameter.
   */
  readThrough(through: (memory: Tensor) => Tensor): void {
    this.#through = through;
  }

  /** The bound tensor itself, where gradients arrive. @throws `PARAMETER_UNBOUND` where there is none */
  get memory(): Tensor {
    if (this.#tensor !== undefined) return this.#tensor;
    throw new TroupeError(
      "PARAMETER_UNBOUND",
      {
        where: "Parameter",
        expected: `a parameter of shape [${this.shape}] to have memory before it computes`,
        got: "none",
        hint: "a module made within forward is none of the model's: make it a property; outside a runtime, materialize the model",
      },
      { fields: { shape: this.shape } },
    );
  }

  /** Makes `tensor` the memory of this parameter, in place of what was bound. The caller keeps owning it. */
  bind(tensor: Tensor): void {
    const { shape } = tensor;
    if (shape.length !== this.shape.length || shape.some((size, dim) => size !== this.shape[dim])) {
      throw new TroupeError(
        "PARAMETER_SHAPE",
        { where: "Parameter.bind", expected: `shape [${this.shape}]`, got: `[${shape}]` },
        {
          fields: { expected: this.shape, got: shape },
        },
      );
    }
    this.#tensor = tensor;
  }

  /** Takes the memory away and returns it, undefined where none was bound; computing now throws. */
  unbind(): Tensor | undefined {
    const tensor = this.#tensor;
    this.#tensor = undefined;
    return tensor;
  }
}

function notDrawn(kind: string, dtype: DType): TroupeError {
  return new TroupeError(
    "INITIALIZER",
    {
      where: "Parameter",
      expected: `init.constant, init.fromValues or an initializer of one's own for ${dtype}`,
      got: `${kind}, which draws floats`,
    },
    { fields: { dtype } },
  );
}

function notTrainable(dtype: DType): TroupeError {
  return new TroupeError(
    "PARAMETER_TRAINABLE",
    {
      where: "Parameter",
      expected: "trainable to be set of a parameter of floats",
      got: `it set of a ${dtype} tensor that has no gradient`,
      hint: "buffers and whole numbers are not trained",
    },
    { fields: { dtype } },
  );
}

function baseNotTrainable(): TroupeError {
  return new TroupeError("PARAMETER_TRAINABLE", {
    where: "Parameter",
    expected: "a delta's base to stay as it was given",
    got: "trainable set of one of its parameters",
    hint: "name it among the delta's modulesToSave, or train without a delta",
  });
}

function notInitializer(given: unknown): TroupeError {
  const name = typeof given === "function" ? given.name : "";
  return new TroupeError(
    "INITIALIZER",
    {
      where: "Parameter",
      expected: "an initializer",
      got: typeof given === "function" ? `the function ${name || "without a name"}` : String(given),
      hint: "use init.normal, init.uniform, init.constant or init.fromValues, and defineInitializer for a function of your own",
    },
    { fields: { name } },
  );
}
