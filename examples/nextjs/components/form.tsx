"use client";

import { type ReactNode, useActionState, useId, useState } from "react";

type Values = Record<string, string>;

/** What came of a form: something went wrong, something is done, or the page goes elsewhere. */
type Outcome = { error?: string; done?: string };

interface FormState {
  outcome: Outcome | undefined;
  /** What was typed. It stays in the form when something went wrong. */
  values: Values;
}

/** A form whose submission is a call. The browser's own submission waits until the page is ready. */
export function useForm(act: (values: Values) => Promise<Outcome | undefined>) {
  const [state, action, pending] = useActionState<FormState, FormData>(
    async (_, data) => {
      const values: Values = Object.fromEntries(
        [...data].filter((entry): entry is [string, string] => typeof entry[1] === "string"),
      );
      const outcome = await act(values).catch(() => ({ error: UNREACHABLE }));
      return { outcome, values: outcome?.error ? values : {} };
    },
    { outcome: undefined, values: {} },
  );
  return { ...state, action, pending };
}

const UNREACHABLE = "The server cannot be reached. Please try again.";

/** The error of a call as people may read it. */
export function asOutcome(error: { message?: string } | null, done?: string): Outcome {
  return error ? { error: error.message || "Something went wrong. Please try again." } : { done };
}

interface FieldProps {
  label: string;
  name: string;
  type?: string;
  defaultValue?: string;
  autoComplete?: string;
  required?: boolean;
  minLength?: number;
  pattern?: string;
  placeholder?: string;
  hint?: string;
  /** Stands before what is typed. */
  prefix?: string;
  /** Something beside the label, such as a link. */
  aside?: ReactNode;
}

/** A label above, a hint below, and between them a control that belongs to both. */
function Labelled({
  label,
  hint,
  aside,
  children,
}: Pick<FieldProps, "label" | "hint" | "aside"> & {
  children: (control: { id: string; "aria-describedby": string | undefined }) => ReactNode;
}) {
  const id = useId();
  const hintId = `${id}-hint`;
  return (
    <div className="field">
      <div className="label-row">
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children({ id, "aria-describedby": hint ? hintId : undefined })}
      {hint && (
        <p className="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function Field({ label, hint, prefix, aside, ...input }: FieldProps) {
  return (
    <Labelled label={label} hint={hint} aside={aside}>
      {(control) =>
        prefix ? (
          <div className="prefixed">
            <span aria-hidden="true">{prefix}</span>
            <input {...control} {...input} />
          </div>
        ) : (
          <input {...control} {...input} />
        )
      }
    </Labelled>
  );
}

export function EmailField({ defaultValue }: Pick<FieldProps, "defaultValue">) {
  return (
    <Field
      label="E-mail"
      name="email"
      type="email"
      autoComplete="username"
      defaultValue={defaultValue}
      required
    />
  );
}

export function PasswordField({ label, hint, aside, ...input }: Omit<FieldProps, "type">) {
  const [shown, setShown] = useState(false);
  return (
    <Labelled label={label} hint={hint} aside={aside}>
      {(control) => (
        <div className="with-button">
          <input
            {...control}
            type={shown ? "text" : "password"}
            spellCheck={false}
            autoCapitalize="none"
            {...input}
          />
          <button type="button" aria-pressed={shown} onClick={() => setShown(!shown)}>
            Show<span className="visually-hidden"> what is typed</span>
          </button>
        </div>
      )}
    </Labelled>
  );
}

/** What came of the form, said aloud by screen readers. It is there from the start, and empty. */
export function OutcomeNote({ error, done }: Outcome) {
  return (
    <>
      <div className="outcome" role="alert">
        {error && <p className="note bad">{error}</p>}
      </div>
      <div className="outcome" role="status">
        {done && <p className="note good">{done}</p>}
      </div>
    </>
  );
}

export function SubmitButton({
  pending,
  className = "wide",
  children,
}: {
  pending: boolean;
  className?: string;
  children: ReactNode;
}) {
  // It stays focusable while it works, so that the keyboard does not lose its place.
  return (
    <button
      className={`button ${className}`}
      aria-disabled={pending}
      onClick={(event) => pending && event.preventDefault()}
      type="submit"
    >
      {children}
    </button>
  );
}

/** A form that is nothing but its button. */
export function ActionButton({
  act,
  className,
  children,
}: {
  act: () => Promise<Outcome | undefined>;
  className: string;
  children: ReactNode;
}) {
  const { action, pending, outcome } = useForm(act);
  return (
    <form action={action}>
      <OutcomeNote {...outcome} />
      <SubmitButton className={className} pending={pending}>
        {children}
      </SubmitButton>
    </form>
  );
}
