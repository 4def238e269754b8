// The server has the package's own module at this address.
import uPlot from "uplot";

export default uPlot;
