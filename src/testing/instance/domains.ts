/** Names that do not exist: the kit answers for them, and no name server is asked. */
export const KIT_DOMAIN = "isolation-kit.example";

/** What the domain of a provider says to prove its owner. */
export const proofOf = (domain: string) => `proof-of-${domain}`;

type Ask = (name: string, ...rest: unknown[]) => Promise<unknown>;

/** sso() asks name servers. Modules are looked up, not imported: on the edge there are none. */
export function standInForDomains(): () => void {
  const dns = globalThis.process?.getBuiltinModule?.("node:dns/promises");
  const modules = globalThis.process?.getBuiltinModule?.("node:module");
  if (!dns || !modules) return () => {};
  const { lookup, resolveTxt } = dns;
  const instead =
    (original: unknown, answer: (name: string) => unknown): Ask =>
    async (name, ...rest) =>
      name.endsWith(KIT_DOMAIN) ? answer(name) : (original as Ask)(name, ...rest);
  Object.assign(dns, {
    lookup: instead(lookup, () => []),
    // The name of the record is one label in front of the domain.
    resolveTxt: instead(resolveTxt, (name) => [[proofOf(name.slice(name.indexOf(".") + 1))]]),
  });
  modules.syncBuiltinESMExports();
  return () => {
    Object.assign(dns, { lookup, resolveTxt });
    modules.syncBuiltinESMExports();
  };
}
