import { type NextRequest, NextResponse } from "next/server";
import { slugOfHost } from "./lib/hosts";

/** `acme.localhost:3000/dashboard` shows what `localhost:3000/t/acme/dashboard` does. */
export function proxy(request: NextRequest) {
  const slug = slugOfHost(request.headers.get("host"));
  if (!slug) return NextResponse.next();
  const url = request.nextUrl.clone();
  url.pathname = `/t/${encodeURIComponent(slug)}${url.pathname === "/" ? "" : url.pathname}`;
  return NextResponse.rewrite(url);
}

export const config = { matcher: "/((?!api/|_next/|icon.svg).*)" };
