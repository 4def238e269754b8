/** `init` of `troupe/nn`: what a parameter starts with. */
export { constant, fromValues, normal, ones, uniform, zeros } from "../compute/nn/index.ts";
