import type { BetterAuthOptions } from "better-auth";
import { SEALING, sealingSender } from "../../isolation/links";
import type { Mail } from "../options";
import type { Subject } from "./subject";

type Holder = Record<string | symbol, unknown>;

/**
 * Stands in for every mail sender until the end of the run: nothing is sent. The senders are
 * options, and better-auth and its plugins read most of them when they need them.
 */
export function catchMails({ ctx, plugins }: Subject) {
  const mails: Mail[] = [];
  const caught = (name: string, given: unknown) => {
    if (typeof given !== "function") return given;
    const keep = async (data: unknown) => {
      mails.push({ sender: name, data: data as Mail["data"] });
    };
    // What is caught is what the application would have sent: some links are sealed.
    return SEALING in given ? sealingSender(ctx, keep) : keep;
  };
  const undo = [
    ...catchOwn(ctx.options, caught),
    ...holdersIn(plugins).flatMap((holder) =>
      senderNames(holder)
        .filter((name) => typeof holder[name] === "function")
        .map((name) => replace(holder, name, caught(name, holder[name]))),
    ),
  ];
  return {
    take: (): Mail[] => mails.splice(0),
    restore: () => {
      for (const step of undo.reverse()) step();
    },
  };
}

type Caught = (name: string, given: unknown) => unknown;

/** better-auth's own senders, in copies of the options that keep their getters. */
function catchOwn(options: BetterAuthOptions, caught: Caught): (() => void)[] {
  const quiet = <Group extends object>(group: Group | undefined, more: Partial<Group> = {}) => {
    if (!group) return group;
    const holder = group as Holder;
    const senders = senderNames(group).map((name) => [name, caught(name, holder[name])] as const);
    const copy = Object.create(
      Object.getPrototypeOf(group),
      Object.getOwnPropertyDescriptors(group),
    );
    for (const [name, value] of [...senders, ...Object.entries(more)]) replace(copy, name, value);
    return copy as Group;
  };
  const { emailAndPassword, emailVerification, user } = options;
  const copies = {
    emailAndPassword: quiet(emailAndPassword),
    emailVerification: quiet(emailVerification),
    user: quiet(user, {
      ...(user?.changeEmail && { changeEmail: quiet(user.changeEmail) }),
      ...(user?.deleteUser && { deleteUser: quiet(user.deleteUser) }),
    }),
  };
  return Object.entries(copies).flatMap(([name, copy]) =>
    copy ? [replace(options as Holder, name, copy)] : [],
  );
}

/** Where options of plugins have senders, perhaps nested. Plugins keep the object that they were given. */
function holdersIn(plugins: Subject["plugins"]): Holder[] {
  return plugins
    .flatMap(({ id, options }) =>
      options && !id.startsWith("tenant-auth") ? [options, ...Object.values(options)] : [],
    )
    .filter((holder) => typeof holder === "object" && holder !== null && !Array.isArray(holder))
    .map((holder) => holder as Holder);
}

/** What senders are called, and some switches. They may be of a class. */
function senderNames(holder: object | null): string[] {
  if (!holder || holder === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(holder).filter((name) => /^send[A-Z]/.test(name));
  return [...new Set([...own, ...senderNames(Object.getPrototypeOf(holder))])];
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
