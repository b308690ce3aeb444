import { behaviourSuite } from "./suite.js";

behaviourSuite({ backing: "xfs", as: "root" });
