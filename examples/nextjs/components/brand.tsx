import Link from "next/link";

export function Monogram({ name, large = false }: { name: string; large?: boolean }) {
  return (
    <span className={large ? "monogram large" : "monogram"} aria-hidden="true">
      {[...name][0]?.toUpperCase()}
    </span>
  );
}

export function Brand({ name, href }: { name: string; href?: string }) {
  const content = (
    <>
      <Monogram name={name} />
      <span className="one-line">{name}</span>
    </>
  );
  if (!href) return <span className="brand">{content}</span>;
  return (
    <Link className="brand" href={href}>
      {content}
    </Link>
  );
}
