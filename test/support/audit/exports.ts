import { spawn } from 'node:child_process';
import { createHash, createPublicKey, sign } from 'node:crypto';
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { AuditSeals } from '../../../src/audit/seals.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { blocksOf } from '../docs/markdown.ts';
import { SEAL_KEY, sealsIn } from '../harness/audit-seals.ts';
import { serviceAddress } from '../services/real.ts';

const PAGE = 'docs/operations/audit-export.md';

export const SIGNING_KEY = SEAL_KEY.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Seals in a test's database, and copies them to a file, as `AUDIT_CHECKPOINTS` does. */
export function sealsTo(db: Db, file: string): AuditSeals {
  return sealsIn(db, { sink: async (seal) => appendFileSync(file, `${JSON.stringify(seal)}\n`) });
}

/** Verifies an export as its page says, by the script of the page. @returns what it printed, and its exit code. */
export async function verifiedByScript(
  folder: string,
  checkpoints: string,
  scratch: string,
): Promise<{ code: number | null; said: string }> {
  const script = blocksOf(PAGE).find(({ lang }) => lang === 'python')?.text ?? '';
  const key = createPublicKey(SEAL_KEY).export({ type: 'spki', format: 'pem' });
  writeFileSync(join(scratch, 'verify.py'), script);
  writeFileSync(join(scratch, 'audit-key.pub'), key);
  const python = spawn(serviceAddress('python'), ['verify.py', folder, checkpoints, 'audit-key.pub'], { cwd: scratch });
  const ended = new Promise<number | null>((resolve) => python.once('close', resolve));
  const [out, err] = await Promise.all([text(python.stdout), text(python.stderr)]);
  return { code: await ended, said: out + err };
}

/** Copies an export with its files changed, and signs it anew by the key if it is stolen. */
export function tampered(from: string, to: string, changes: Changes, isResigned: boolean): void {
  cpSync(from, to, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(from, 'manifest.json'), 'utf8'));
  for (const [name, change] of Object.entries(changes)) {
    const lines = readFileSync(join(from, name), 'utf8').split(/(?<=\n)/);
    const changed = change(lines).join('');
    writeFileSync(join(to, name), changed);
    manifest.files[name] = { bytes: changed.length, sha256: createHash('sha256').update(changed).digest('hex') };
  }
  if (!isResigned) return;
  const stated = JSON.stringify(manifest);
  writeFileSync(join(to, 'manifest.json'), stated);
  writeFileSync(join(to, 'manifest.sig'), sign(null, Buffer.from(stated), SEAL_KEY));
}

export type Changes = Record<string, (lines: string[]) => string[]>;
