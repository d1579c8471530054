import { isoFromPg } from '../lib/pg-time.ts';
import type { SupervisorRow } from '../supervisors/supervisor-pages.service.ts';
import type { GivenPassword } from './given-password.ts';
import { printable } from './printable.ts';

/** A supervisor in the REST names, without the password. */
export function supervisorView(row: SupervisorRow) {
  return { ...row, created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
}

/** A supervisor whose password was just set: the password is shown only where it was made here. */
export function withPassword(row: SupervisorRow, { password, isGenerated }: GivenPassword, json: boolean): string {
  if (json) return `${JSON.stringify({ ...supervisorView(row), ...(isGenerated ? { password } : {}) })}\n`;
  const lines = [`supervisor  ${row.id}`, `username    ${printable(row.username)}`, `role        ${row.role}`];
  if (isGenerated) lines.push(`password    ${password}`, 'The password is shown this once: only its hash is kept.');
  return lines.map((line) => `${line}\n`).join('');
}
