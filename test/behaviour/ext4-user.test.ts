import { behaviourSuite } from "./suite.js";

behaviourSuite({ backing: "ext4", as: "user" });
