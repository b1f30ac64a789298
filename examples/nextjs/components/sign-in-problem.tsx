import { Entrance } from "./entrance";

/** What happened, for the errors that people can do something about. */
const EXPLANATIONS: Record<string, string> = {
  access_denied: "You cancelled signing in.",
  banned: "You have been banned here.",
  state_mismatch: "The sign-in was started in another browser, or it took too long.",
  state_not_found: "The sign-in has already been completed, or it took too long.",
  please_restart_the_process: "The sign-in took too long.",
};

/** For people who come back from a provider and belong to no sign-in that is under way. */
export function SignInProblem({
  brand,
  error,
  back,
}: {
  brand: string;
  error: string | string[] | undefined;
  back: { href: string; label: string };
}) {
  const explanation = EXPLANATIONS[String(error)] ?? "Something went wrong on the way.";
  return (
    <Entrance
      brand={brand}
      motto="Please try again."
      title="We could not sign you in"
      intro={`${explanation} Please start again.`}
    >
      <div>
        <a className="button" href={back.href}>
          {back.label}
        </a>
      </div>
    </Entrance>
  );
}
