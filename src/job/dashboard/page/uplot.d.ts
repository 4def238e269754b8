// The server serves the package's own module at this address.
import uPlot from "uplot";

export default uPlot;
