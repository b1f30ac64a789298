"use client";

import { useRef, useState } from "react";

/** What has to be registered at a provider before anybody can sign in with it. */
export function RedirectURI({ provider, uri }: { provider: string; uri: string }) {
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState<string>();
  const copy = async () => {
    // Browsers offer the clipboard on secure addresses only. Elsewhere the text is ready to copy.
    if (code.current) getSelection()?.selectAllChildren(code.current);
    await navigator.clipboard?.writeText(uri).then(() => setCopied(uri), undefined);
  };
  return (
    <div className="copyable">
      <p className="small muted">Redirect URI to register at {provider}</p>
      <div>
        <code ref={code}>{uri}</code>
        <button className="button plain compact" type="button" onClick={copy}>
          Copy<span className="visually-hidden"> the redirect URI for {provider}</span>
        </button>
      </div>
      <p className="small outcome" role="status">
        {copied === uri && "Copied."}
      </p>
    </div>
  );
}
