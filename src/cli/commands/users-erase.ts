import { setTimeout } from 'node:timers/promises';
import { AUDIT_DELAY_MS } from '../../audit/audit-writer.ts';
import { UserErasure } from '../../domain/users/user-erasure.service.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Command } from '../kit/command.ts';
import { uuid } from '../kit/flags.ts';
import { found, openReading, orCommandError } from '../kit/open-administration.ts';

/** `portcullis users erase`: the end of what is kept of a person. */
export const usersErase: Command = {
  name: 'users erase',
  summary: "blank a user's personal data for good",
  description: [
    "Blanks a user's names, email, external id and wallet address: in the user, in the rows of migrations, in answers that",
    'are kept under an Idempotency-Key, and in audit records of which a part names the user. The user and its id stay.',
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis users erase ID', 'portcullis users erase ID --json'],
  async run(input) {
    const id = uuid('ID', input.positionals[0]);
    const db = await openReading(input, 'mutation eraseUser');
    // Running servers have spools of their own.
    const erasure = new UserErasure({ db, nowMs: Date.now, auditSettled: () => setTimeout(AUDIT_DELAY_MS) });
    const absent = `there is no user ${id}`;
    const nodeId = found(await nodeOfUser(db, id), absent);
    const user = await orCommandError(absent, erasure.erase(nodeId, id));
    return input.answer({ id: user.id, erased: true }, `User ${user.id} is erased.\n`);
  },
};

async function nodeOfUser(db: Db, id: string): Promise<string | undefined> {
  const [row] = await db
    .unscoped('the operator names a user without the node')
    .run((k) => k.selectFrom('users').select('node_id').where('id', '=', id));
  return row?.node_id;
}
