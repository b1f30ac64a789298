import { within } from "../../core/utils";
import { standInForDomains } from "./domains";
import { standInForProviders } from "./network";
import { catchMails, replace, undoing } from "./outbox";
import type { Subject } from "./subject";

/** What is different about the instance during a run. All of it is undone at the end. */
export async function calm(subject: Subject) {
  const mails = catchMails(subject);
  const providers = await standInForProviders();
  const undo = [
    mails.restore,
    providers.restore,
    standInForDomains(),
    replace(subject.ctx.rateLimit, "enabled", false),
    ...hashCheaply(subject),
    acceptWallets(subject),
    hurry(subject),
    ...waitForBackground(subject),
    ...hush(subject),
  ];
  return { mails, providers, restore: undoing(undo) };
}

/** Thousands of refused requests are nothing to log. */
function hush({ ctx, options }: Subject) {
  const logger = { ...ctx.options.logger, disabled: true };
  const methods = ["error", "warn", "info", "debug", "success"];
  return [
    ...[ctx.options, options].map((holder) => replace(holder, "logger", logger)),
    ...methods.map((name) => replace(ctx.logger, name, () => {})),
  ];
}

/** A real hash costs a tenth of a second, and says nothing about tenants. */
function hashCheaply({ ctx: { password } }: Subject) {
  const { verify } = password;
  return [
    replace(password, "hash", async (text: string) => MARK + text),
    replace(password, "verify", async (given: { hash: string; password: string }) =>
      given.hash.startsWith(MARK) ? given.hash === MARK + given.password : verify(given),
    ),
  ];
}

const MARK = "isolation-kit:";

export const WALLET_SIGNATURE = `0x${"ab".repeat(65)}`;

/** Signing for a wallet takes a curve that WebCrypto does not have. */
function acceptWallets({ plugins }: Subject) {
  const { options = {} } = plugins.find(({ id }) => id === "siwe") ?? {};
  const { verifyMessage } = options as Record<string, (given: object) => unknown>;
  return replace(options, "verifyMessage", async (given: { signature: string }) =>
    given.signature === WALLET_SIGNATURE ? true : verifyMessage?.(given),
  );
}

/** Skips the half second by which better-auth hides how long sending a verification mail takes. */
function hurry(subject: Subject) {
  const { handler } = subject;
  return replace(subject, "handler", async (request: Request) => {
    if (!new URL(request.url).pathname.endsWith("/send-verification-email"))
      return handler(request);
    const patient = globalThis.setTimeout;
    const hasty = (run: () => void, delay = 0, ...rest: []) =>
      patient(run, delay > 300 && delay <= 500 ? 0 : delay, ...rest);
    return handler(request).finally(replace(globalThis, "setTimeout", hasty));
  });
}

/** Responses wait for tasks behind them: the next request would be blamed for a late row. */
function waitForBackground(subject: Subject) {
  const { ctx, handler } = subject;
  const tasks: unknown[] = [];
  let patience = 1_000;

  const noting = (name: "runInBackground" | "runInBackgroundOrAwait") => {
    const run = ctx[name];
    return replace(ctx, name, (task: Promise<unknown>) => {
      tasks.push(task);
      return run(task);
    });
  };

  async function settle(): Promise<void> {
    // A task may start others.
    while (tasks.length) await Promise.allSettled(tasks.splice(0));
  }

  const patiently = async (request: Request) => {
    const response = await handler(request);
    if (!tasks.length) return response;
    // A task that never ends holds up a few requests, not all of them.
    await within(patience, settle()).catch(() => (patience /= 2));
    return response;
  };
  const names = ["runInBackground", "runInBackgroundOrAwait"] as const;
  return [...names.map(noting), replace(subject, "handler", patiently)];
}
