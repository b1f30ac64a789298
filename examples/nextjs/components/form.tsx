"use client";

import {
  type ChangeEventHandler,
  type FormEvent,
  type InputHTMLAttributes,
  type ReactNode,
  useActionState,
  useId,
  useState,
} from "react";
import { explain } from "@/lib/errors";

type Values = Record<string, string>;

/** What came of a form: something went wrong, something is done, or the page goes elsewhere. */
type Outcome = { error?: string; done?: string };

/**
 * A form whose submission is a call. The browser's own submission waits until the page is ready.
 * React empties a form after its action; what was typed stays when something went wrong, and with
 * `keep` always.
 */
export function useForm(
  act: (values: Values, data: FormData) => Promise<Outcome | undefined>,
  { keep = false } = {},
) {
  const [outcome, action, pending] = useActionState<Outcome | undefined, FormData>(
    async (_, data) => {
      const values: Values = Object.fromEntries(
        [...data].filter((entry): entry is [string, string] => typeof entry[1] === "string"),
      );
      return act(values, data).catch(() => ({ error: UNREACHABLE }));
    },
    undefined,
  );
  const onReset = (event: FormEvent) => {
    if (keep || outcome?.error) event.preventDefault();
  };
  return { form: { action, onReset }, pending, outcome };
}

const UNREACHABLE = "The server cannot be reached. Please try again.";

/** What came of a call, in words. */
export function asOutcome(error: Parameters<typeof explain>[0] | null, done?: string): Outcome {
  return error ? { error: explain(error) } : { done };
}

interface FieldProps {
  label: string;
  name: string;
  type?: string;
  defaultValue?: string;
  value?: string;
  onChange?: ChangeEventHandler<HTMLInputElement>;
  autoComplete?: string;
  required?: boolean;
  minLength?: number;
  maxLength?: number;
  min?: number;
  max?: number;
  step?: number | "any";
  pattern?: string;
  title?: string;
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

/** For something that is copied from elsewhere, such as a certificate. */
export function TextField({
  label,
  hint,
  ...textarea
}: Pick<FieldProps, "label" | "hint" | "name" | "required" | "placeholder">) {
  return (
    <Labelled label={label} hint={hint}>
      {(control) => (
        <textarea {...control} rows={6} spellCheck={false} autoComplete="off" {...textarea} />
      )}
    </Labelled>
  );
}

export function SelectField({
  label,
  hint,
  options,
  ...select
}: Pick<FieldProps, "label" | "hint" | "name" | "defaultValue" | "value"> & {
  options: Record<string, string>;
  onChange?: ChangeEventHandler<HTMLSelectElement>;
}) {
  return (
    <Labelled label={label} hint={hint}>
      {(control) => (
        <select {...control} {...select}>
          {Object.entries(options).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

/** A checkbox or a radio button, with its label behind it. */
export function Check({
  label,
  type = "checkbox",
  ...input
}: Omit<InputHTMLAttributes<HTMLInputElement>, "type"> & {
  label: string;
  type?: "checkbox" | "radio";
}) {
  return (
    <label className="check">
      <input type={type} {...input} />
      <span>{label}</span>
    </label>
  );
}

export function EmailField(input: Pick<FieldProps, "defaultValue">) {
  return (
    <Field label="Email" name="email" type="email" autoComplete="username" required {...input} />
  );
}

/** A name with something to see in it. */
export function NameField(input: Pick<FieldProps, "autoComplete" | "defaultValue">) {
  return (
    <Field
      label="Name"
      name="name"
      maxLength={255}
      pattern=".*\S.*"
      title="At least one character that is not a space"
      required
      {...input}
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
            Show<span className="visually-hidden"> password</span>
          </button>
        </div>
      )}
    </Labelled>
  );
}

/** A password to choose, of the length that the tenant asks for. */
export function NewPasswordField({
  minLength,
  ...input
}: Pick<FieldProps, "label" | "name"> & { minLength: number }) {
  return (
    <PasswordField
      autoComplete="new-password"
      minLength={minLength}
      hint={`At least ${minLength} characters.`}
      required
      {...input}
    />
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
  const { form, pending, outcome } = useForm(act);
  return (
    <form {...form}>
      <OutcomeNote {...outcome} />
      <SubmitButton className={className} pending={pending}>
        {children}
      </SubmitButton>
    </form>
  );
}
