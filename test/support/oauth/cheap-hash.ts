import { argon2Sync, randomBytes, randomUUID } from 'node:crypto';
import type { Passwords } from '../../../src/access/credentials/passwords.ts';
import type { Demo } from '../../../src/app/demo/demo.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Portcullis } from '../harness.ts';
import { rows } from './clients.ts';

/** A hash of a password that costs next to nothing to verify: a hash says itself what it takes. */
export function cheapHash(password: string): string {
  const nonce = randomBytes(16);
  const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory: 8, passes: 1 });
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${hash}`;
}

/** From here on the hash of a password costs next to nothing to make and to verify. What it costs is tested without a service. */
export function hashCheaply(passwords: Passwords): void {
  passwords.hash = (password, nodeId) =>
    passwords.semaphore.run(nodeId, async () => {
      passwords.runs += 1;
      return cheapHash(password);
    });
}

/** Makes the logins of a demo's supervisors cost next to nothing. */
export async function makeLoginsCheap(db: Db, demo: Demo): Promise<void> {
  for (const { node_id, supervisor } of [demo, demo.other_node]) {
    const { username, password } = supervisor;
    const set = { password_hash: cheapHash(password) };
    await db.forNode(node_id).run((k) => k.updateTable('supervisors').set(set).where('username', '=', username));
  }
}

/** A supervisor of the demo node whose logins cost next to nothing. */
export async function addSupervisor(p: Portcullis, password: string): Promise<{ id: string; username: string }> {
  const supervisor = { id: randomUUID(), username: `person-${randomUUID()}` };
  const row = { ...supervisor, node_id: p.demo.node_id, password_hash: cheapHash(password), role: 'viewer' };
  await rows(p).run((k) => k.insertInto('supervisors').values(row));
  return supervisor;
}
