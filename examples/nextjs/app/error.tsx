"use client";

/** Something broke on the server. What it was is in the server's log. */
export default function ServerError({ reset }: { error: Error; reset: () => void }) {
  return (
    <div className="page">
      <title>Something went wrong</title>
      <main id="content" className="content middle">
        <h1>Something went wrong</h1>
        <p className="muted">It is not your fault. Please try again in a moment.</p>
        <p className="row centred">
          <button className="button" type="button" onClick={reset}>
            Try again
          </button>
          <a className="button plain" href="/">
            Go to the start page
          </a>
        </p>
      </main>
    </div>
  );
}
