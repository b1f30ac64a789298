import { createInstance, type InstanceOptions } from "../support/instance";
import { createMailbox } from "./mailbox";

export const EMAIL = "same@example.com";

/** One person with the same e-mail in two tenants and on the platform, all signed in. */
export async function createTriplets(options: InstanceOptions = {}) {
  const { mails, auth } = createMailbox();
  const instance = await createInstance({ ...options, auth: { ...auth, ...options.auth } });
  const a = (await instance.createTenant("aa")).id;
  const b = (await instance.createTenant("bb")).id;
  const people = {
    a: await instance.signUp(a, EMAIL),
    b: await instance.signUp(b, EMAIL),
    platform: await instance.signUp(null, EMAIL),
  };
  return { instance, mails, a, b, people };
}

export type Triplets = Awaited<ReturnType<typeof createTriplets>>;
