"use client";

import { useRef, useState } from "react";

/** Something that has to be entered elsewhere. */
export function Copyable({ label, name, value }: { label: string; name: string; value: string }) {
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState<string>();
  const copy = async () => {
    // Browsers offer the clipboard on secure addresses only. Elsewhere the text is ready to copy.
    if (code.current) getSelection()?.selectAllChildren(code.current);
    await navigator.clipboard?.writeText(value).then(() => setCopied(value), undefined);
  };
  return (
    <div className="copyable">
      <p className="small muted">{label}</p>
      <div>
        <code ref={code}>{value}</code>
        <button className="button plain compact" type="button" onClick={copy}>
          Copy<span className="visually-hidden"> {name}</span>
        </button>
      </div>
      <p className="small outcome" role="status">
        {copied === value && "Copied."}
      </p>
    </div>
  );
}

/** What has to be registered at a provider before anybody can sign in with it. */
export function RedirectURI({ provider, uri }: { provider: string; uri: string }) {
  return (
    <Copyable
      label={`Redirect URI to register at ${provider}`}
      name={`the redirect URI for ${provider}`}
      value={uri}
    />
  );
}
