import { behaviourSuite } from "./suite.js";

behaviourSuite({ backing: "btrfs", as: "root" });
