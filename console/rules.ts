import { html } from './html.ts';
import { Page } from './ui.ts';

export function RulePage({ walletId, id }: { walletId: string; id: string }) {
  return html`<${Page} title="Rule">${walletId} ${id}<//>`;
}
