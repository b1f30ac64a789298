/** Says what a run with nothing but Node does not cover. */
export default function setup() {
  const skipped = [
    "PostgreSQL, MariaDB, Redis, the soak test and most cases of each matrix (npm run test:servers runs them, on 127.0.0.1)",
    "Prisma (npm run test:prisma)",
    "the packed package in fresh projects (npm run test:package)",
  ];
  console.log(`\nSkipped: ${skipped.join("; ")}.\n`);
}
