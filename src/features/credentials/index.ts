import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { keepGenerations } from "./endings";
import { bindLinking, guardCredentials } from "./guard";

/** Keeps ended sessions of a user from creating credentials or new sessions. */
export const credentials = (isolation: Isolation): Extension => ({
  name: "credentials",
  hooks: { beforeEndpoint: [bindLinking] },
  guards: [guardCredentials(isolation)],
  install: () => keepGenerations(isolation),
});
