import { html } from './html.ts';
import { Page } from './ui.ts';

export function AuditPage() {
  return html`<${Page} title="Audit"><//>`;
}
