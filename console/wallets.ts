import { html } from './html.ts';
import { Page } from './ui.ts';

export function WalletPage({ id }: { id: string }) {
  return html`<${Page} title="Wallet">${id}<//>`;
}
