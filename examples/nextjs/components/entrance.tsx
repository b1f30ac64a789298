import type { ReactNode } from "react";
import { Brand } from "./brand";

/** The frame of pages for somebody who is not signed in. */
export function Entrance({
  brand,
  motto,
  title,
  intro,
  children,
}: {
  brand: string;
  motto: string;
  title: string;
  intro?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className="entrance">
      <aside aria-label={brand}>
        <Brand name={brand} />
        <blockquote>
          <p className="three-lines">{motto}</p>
        </blockquote>
      </aside>
      <main id="content">
        <div className="form">
          <div className="tight">
            <h1>{title}</h1>
            {intro && <p className="muted">{intro}</p>}
          </div>
          {children}
        </div>
      </main>
    </div>
  );
}
