import { behaviourSuite } from "./suite.js";

behaviourSuite({ backing: "overlayfs", as: "user" });
