/** Where the application lives. Tenants are at `/t/<slug>` below it, and at `<slug>.<its host>`. */
export const APP_URL = new URL(process.env.APP_URL ?? "http://localhost:3000");

/** The tenant that a host belongs to: `acme` for `acme.localhost:3000`, null for `localhost:3000`. */
export function slugOfHost(host: string | null): string | null {
  const own = `.${APP_URL.host}`;
  return host?.toLowerCase().endsWith(own) ? host.slice(0, -own.length).toLowerCase() : null;
}

/** The address of a tenant that has its host for itself. */
export function hostAddress(slug: string): string {
  return `${APP_URL.protocol}//${slug}.${APP_URL.host}`;
}
