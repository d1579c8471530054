import { argon2Sync, randomBytes, randomUUID } from 'node:crypto';
import type { Portcullis } from '../harness.ts';
import { rows } from './clients.ts';

/** A hash of a password that costs next to nothing to verify: a hash says itself what it takes. */
export function cheapHash(password: string): string {
  const nonce = randomBytes(16);
  const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory: 8, passes: 1 });
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${hash}`;
}

/** From here on a login of the demo supervisor costs next to nothing. */
export async function makeLoginsCheap(p: Portcullis): Promise<void> {
  const { password, username } = p.demo.supervisor;
  await rows(p).run((k) =>
    k
      .updateTable('supervisors')
      .set({ password_hash: cheapHash(password) })
      .where('node_id', '=', p.demo.node_id)
      .where('username', '=', username),
  );
}

/** A supervisor of the demo node whose logins cost next to nothing. */
export async function addSupervisor(p: Portcullis, password: string): Promise<{ id: string; username: string }> {
  const supervisor = { id: randomUUID(), username: `person-${randomUUID()}` };
  const row = { ...supervisor, node_id: p.demo.node_id, password_hash: cheapHash(password), role: 'viewer' };
  await rows(p).run((k) => k.insertInto('supervisors').values(row));
  return supervisor;
}
