import { behaviourSuite } from "./suite.js";

behaviourSuite({ backing: "tmpfs", as: "root" });
