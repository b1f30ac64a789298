/** Drizzle wraps the driver's error into one whose message has all the values in it. */
export function rootCause(error: unknown): DatabaseError {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? rootCause(cause) : (error as DatabaseError);
}

type DatabaseError = { name?: string; message?: string; constraint?: string; code?: string };
