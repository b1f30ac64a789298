import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { keepSignIn } from "./keep-sign-in";
import { answerWithSession } from "./routes";
import { checkSignUpValues } from "./sign-up-values";

/** Sign-up and sign-in with email and password, at routes of a tenant. */
export const email = (isolation: Isolation): Extension => ({
  name: "email",
  hooks: {
    beforeEndpoint: [checkSignUpValues(isolation)],
    afterPlugins: [answerWithSession],
  },
  install: keepSignIn,
});
