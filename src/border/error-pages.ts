import type { APIError } from "better-auth/api";
import { errorRedirect } from "../framework";
import type { Endpoint } from "../scope/endpoint";

/**
 * Somebody who follows a link has a browser, and no program that reads an answer. What is refused to
 * them is told to the page that the link names, as better-auth tells it what it refuses itself.
 */
export function toldToPage(endpoint: Endpoint | undefined, error: APIError): APIError {
  const { request, query, context } = endpoint ?? {};
  const page: unknown = query?.errorCallbackURL ?? query?.callbackURL;
  if (!context || request?.method !== "GET" || typeof page !== "string") return error;
  if (!context.isTrustedOrigin(page, { allowRelativePaths: true })) return error;
  return errorRedirect(context, String(error.body?.code), page);
}
