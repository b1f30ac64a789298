/** Runs once when the server starts. An application of yours would migrate when it is deployed. */
export async function register() {
  if (process.env.NEXT_RUNTIME !== "nodejs") return;
  const { prepareDatabase } = await import("./lib/seed");
  await prepareDatabase();
}
