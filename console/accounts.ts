import { html } from './html.ts';
import { Page } from './ui.ts';

export function AccountsPage() {
  return html`<${Page} title="Accounts"><//>`;
}
export function AccountPage({ id }: { id: string }) {
  return html`<${Page} title="Account">${id}<//>`;
}
