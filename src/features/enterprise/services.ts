import type { DBTransactionAdapter } from "better-auth/types";
import type { Rotated } from "../oauth/config-store";

/** What other features can ask about the identity providers of `sso()`. */
export interface IdentityProviders {
  /** Returns the tenant's providers that users can sign in with. */
  offered(tenantId: string): Promise<{ id: string }[]>;
  /** Returns the ids of offered providers, and of the application's providers for all tenants. */
  usable(tenantId: string): Promise<Set<string>>;
  /** Returns whether the identity provider of the running sign-in proves an email. */
  vouchesFor(email: unknown): boolean;
  /** Returns whether the application configures providers for all tenants (`defaultSSO`). */
  areShared(): boolean;
  /** Encrypts the secrets of all providers with the newest auth secret. */
  rotateSecrets(): Promise<Rotated>;
}

/** What other features can ask about a tenant's directories in `scim()`. */
export interface Directory {
  /** Returns whether a directory has deactivated a user. Queries the database each time. */
  isBarred(tenantId: string, userId: string, adapter?: DBTransactionAdapter): Promise<boolean>;
  /** Returns whether the running request deactivates this user. */
  isDeactivating(userId: string): boolean;
}

declare module "../../core/extension" {
  interface Services {
    identityProviders: IdentityProviders;
    directory: Directory;
  }
}
