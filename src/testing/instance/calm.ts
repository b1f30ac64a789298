import type { AuthContext } from "better-auth";
import { waitForBackground } from "./background";
import { standInForDomains } from "./domains";
import { standInForProviders } from "./network";
import { catchMails, replace } from "./outbox";
import type { Subject } from "./subject";

/**
 * What is different about the instance during a run: mails are caught, providers have a stand-in,
 * nothing is limited by rate, passwords are hashed cheaply, and answers wait for what is done in the
 * background. All of it is undone at the end.
 */
export async function calm(subject: Subject) {
  const { ctx, plugins } = subject;
  const mails = catchMails(subject);
  const providers = await standInForProviders();
  const restoreDomains = standInForDomains();
  const undo = [
    mails.restore,
    providers.restore,
    restoreDomains,
    replace(ctx.rateLimit as unknown as Holder, "enabled", false),
    ...hashCheaply(ctx),
    ...plugins.filter(({ id }) => id === "siwe").map(acceptWallets),
    hurry(subject),
    ...waitForBackground(subject),
    ...hush(subject),
  ];
  return {
    mails,
    providers,
    restore: () => {
      for (const step of undo.reverse()) step();
    },
  };
}

type Holder = Record<string, unknown>;

/** Thousands of refused requests are nothing to log. */
function hush({ ctx, options }: Subject) {
  const logger = { ...ctx.options.logger, disabled: true };
  const methods = ["error", "warn", "info", "debug", "success"] as const;
  return [
    ...[ctx.options, options].map((holder) => replace(holder as Holder, "logger", logger)),
    ...methods.map((name) => replace(ctx.logger as unknown as Holder, name, () => {})),
  ];
}

/** A real hash costs a tenth of a second, and says nothing about tenants. */
function hashCheaply({ password }: AuthContext) {
  const holder = password as unknown as Holder;
  const verify = password.verify;
  return [
    replace(holder, "hash", async (text: string) => MARK + text),
    replace(holder, "verify", async (given: { hash: string; password: string }) =>
      given.hash.startsWith(MARK) ? given.hash === MARK + given.password : verify(given),
    ),
  ];
}

const MARK = "isolation-kit:";

export const WALLET_SIGNATURE = `0x${"ab".repeat(65)}`;

/** Signing for a wallet takes a curve that WebCrypto has not. */
function acceptWallets({ options = {} }: { options?: Holder | undefined }) {
  const verify = options.verifyMessage as (given: { signature: string }) => unknown;
  return replace(options, "verifyMessage", async (given: { signature: string }) =>
    given.signature === WALLET_SIGNATURE ? true : verify(given),
  );
}

/**
 * better-auth takes half a second to send a verification mail, so that the time tells nothing. It
 * need not, while the kit waits for that.
 */
function hurry(subject: Subject) {
  const { handler } = subject;
  return replace(subject as unknown as Holder, "handler", async (request: Request) => {
    if (!new URL(request.url).pathname.endsWith("/send-verification-email"))
      return handler(request);
    const patient = globalThis.setTimeout;
    const hasty = (run: () => void, delay = 0, ...rest: []) =>
      patient(run, delay > 300 && delay <= 500 ? 0 : delay, ...rest);
    const restore = replace(globalThis as unknown as Holder, "setTimeout", hasty);
    return handler(request).finally(restore);
  });
}
