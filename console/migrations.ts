import { html } from './html.ts';
import { Page } from './ui.ts';

export function MigrationsPage() {
  return html`<${Page} title="User migrations"><//>`;
}
export function MigrationPage({ id }: { id: string }) {
  return html`<${Page} title="User migration">${id}<//>`;
}
