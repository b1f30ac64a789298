import { SEALING, sealingSender } from "../../core/isolate/links";
import type { Mail } from "../options";
import type { Subject } from "./subject";

/** Replaces every mail sender until the end of the run. Most are read when they are needed. */
export function catchMails({ ctx, plugins }: Subject) {
  const mails: Mail[] = [];
  const { emailAndPassword, emailVerification, user } = ctx.options;
  // Options of plugins may be nested. Plugins keep the object that they were given.
  const ofPlugins = plugins.flatMap(({ id, options }) =>
    options && !id.startsWith("tenant-auth") ? [options, ...Object.values(options)] : [],
  );
  const own = [emailAndPassword, emailVerification, user, user?.changeEmail, user?.deleteUser];
  const undo = [...own, ...ofPlugins].flatMap((holder) =>
    senderNames(holder).flatMap((sender) => {
      const given: unknown = Reflect.get(holder, sender);
      if (typeof given !== "function") return [];
      const keep = async (data: unknown) => void mails.push({ sender, data: data as Mail["data"] });
      // What is caught is what the application would have sent: some links are sealed.
      return [replace(holder, sender, SEALING in given ? sealingSender(ctx, keep) : keep)];
    }),
  );
  return { take: (): Mail[] => mails.splice(0), restore: undoing(undo) };
}

/** Undoes the last step first. */
export const undoing = (steps: (() => void)[]) => () => {
  for (const step of steps.toReversed()) step();
};

/** What senders are called, and some switches. They may be of a class. */
function senderNames(holder: unknown): string[] {
  if (typeof holder !== "object" || !holder || holder === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(holder).filter((name) => /^send[A-Z]/.test(name));
  return [...new Set([...own, ...senderNames(Object.getPrototypeOf(holder))])];
}

/** Returns a function that puts the property back as it was. */
export function replace(holder: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(holder, name);
  const rest = { configurable: true, enumerable: true, writable: true };
  Object.defineProperty(holder, name, { value, ...rest });
  return () => {
    if (before) Object.defineProperty(holder, name, before);
    else Reflect.deleteProperty(holder, name);
  };
}
