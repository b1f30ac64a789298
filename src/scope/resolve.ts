/** The places a request can name its tenant in. */
export interface TenantNames {
  /** What the `resolveTenantId` option answered. */
  resolved?: unknown;
  body?: unknown;
  query?: unknown;
  header?: string | null | undefined;
}

/**
 * R1: the resolver, else the body's `tenantId`, else the query's, else the header. The first one
 * that answers wins; an empty string is no answer, and neither is anything but a string.
 */
export function nameTenant({ resolved, body, query, header }: TenantNames): string | undefined {
  return [resolved, tenantIdIn(body), tenantIdIn(query), header].find(isAnswer);
}

function tenantIdIn(input: unknown): unknown {
  return typeof input === "object" && input !== null && Object.hasOwn(input, "tenantId")
    ? (input as { tenantId: unknown }).tenantId
    : undefined;
}

function isAnswer(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
