import { type NextRequest, NextResponse } from "next/server";
import { auth } from "./lib/auth";
import { APP_URL, slugOfHost } from "./lib/hosts";

/**
 * `acme.localhost:3000/dashboard` shows what `localhost:3000/t/acme/dashboard` does, and so does a
 * domain that Acme has verified.
 */
export async function proxy(request: NextRequest) {
  const host = request.headers.get("host")?.toLowerCase() ?? "";
  if (host === APP_URL.host) return NextResponse.next();
  const slug = slugOfHost(host) ?? (await slugOfDomain(host));
  if (!slug) return leadHome(request);
  const url = request.nextUrl.clone();
  url.pathname = `/t/${encodeURIComponent(slug)}${url.pathname === "/" ? "" : url.pathname}`;
  return NextResponse.rewrite(url);
}

/** The plugin knows whose a verified domain is. Every other host is an error. */
async function slugOfDomain(host: string): Promise<string | undefined> {
  try {
    const headers = new Headers({ host });
    return (await auth.api.getTenantSignInMethods({ headers })).tenant.slug;
  } catch {
    return undefined;
  }
}

/**
 * For another name of this machine, such as 127.0.0.1: tenants are found below the one in APP_URL.
 * Not by a redirect: Next.js takes both names for one, and would lead back to the first.
 */
function leadHome({ nextUrl: { pathname, search } }: NextRequest) {
  const home = Object.assign(new URL(APP_URL), { pathname, search });
  return new NextResponse(`This application is at ${home.origin}`, {
    headers: { refresh: `0; url=${home}` },
  });
}

export const config = { matcher: "/((?!api/|_next/|icon.svg).*)" };
