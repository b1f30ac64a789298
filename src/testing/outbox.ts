import type { BetterAuthOptions } from "better-auth";
import { SEALING } from "../border/links";
import type { Subject } from "./subject";

/** Something that was on its way to a person. */
export interface Mail {
  /** The name of the option that would have sent it: `sendResetPassword`. */
  sender: string;
  /** What the sender was called with. */
  data: Record<string, unknown>;
}

/** Gives the mails that were sent since it was last asked. */
export type Outbox = () => Mail[] | Promise<Mail[]>;

type Holder = Record<string | symbol, unknown>;

/**
 * Stands in for every mail sender until the end of the run: nothing is sent. The senders are
 * options, and better-auth and its plugins read most of them when they need them.
 */
export function catchMails({ ctx, plugins }: Subject) {
  const mails: Mail[] = [];
  const undo = holdersOf(ctx.options, plugins).flatMap((holder) =>
    senderNames(holder).map((name) => {
      const caught = async (data: unknown) => {
        mails.push({ sender: name, data: data as Mail["data"] });
      };
      // Inside of what seals links: what is caught is what the application would have sent.
      const sender = holder[name] as Holder;
      return typeof sender[SEALING] === "function"
        ? replace(sender, SEALING, caught)
        : replace(holder, name, caught);
    }),
  );
  return {
    take: (): Mail[] => mails.splice(0),
    restore: () => {
      for (const step of undo.reverse()) step();
    },
  };
}

/** Where options have senders: in better-auth's own, and in those of plugins, perhaps nested. */
function holdersOf(options: BetterAuthOptions, plugins: Subject["plugins"]): Holder[] {
  const { emailAndPassword, emailVerification, user } = options;
  const ofPlugins = plugins.flatMap(({ id, options: own }) =>
    own && !id.startsWith("tenant-auth") ? [own, ...Object.values(own)] : [],
  );
  return [emailAndPassword, emailVerification, user?.changeEmail, user?.deleteUser, ...ofPlugins]
    .filter((holder) => typeof holder === "object" && holder !== null && !Array.isArray(holder))
    .map((holder) => holder as Holder);
}

/** Senders may be methods of a class. */
function senderNames(holder: object | null): string[] {
  if (!holder || holder === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(holder).filter((name) => /^send[A-Z]/.test(name));
  return [...new Set([...own, ...senderNames(Object.getPrototypeOf(holder))])].filter(
    (name) => typeof (holder as Holder)[name] === "function",
  );
}

export function replace(holder: Holder, name: string | symbol, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(holder, name);
  Object.defineProperty(holder, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
  return () => {
    if (before) Object.defineProperty(holder, name, before);
    else delete holder[name];
  };
}
