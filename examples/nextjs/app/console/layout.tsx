export const metadata = { title: { default: "Console", template: "%s · Console" } };

export default function ConsoleLayout({ children }: LayoutProps<"/console">) {
  return children;
}
