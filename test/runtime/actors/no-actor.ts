/** A module that exports no actor. */
export default {};
