/** Initializers, which users have by the name `init`: \`init.normal(0, 0.02)\`. */
export { constant, fromValues, normal, ones, uniform, zeros } from "./module/initializer.ts";
