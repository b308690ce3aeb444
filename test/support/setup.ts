/** Runs in every test file: what the file mounted is unmounted after its last test, and must not be busy then. */
import { afterAll } from "vitest";
import { destroyBackings } from "./backing.js";

afterAll(destroyBackings, 60_000);
