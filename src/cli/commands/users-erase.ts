import { setTimeout } from 'node:timers/promises';
import { AUDIT_DELAY_MS } from '../../audit/audit-writer.ts';
import type { Db } from '../../db.ts';
import { UserErasure } from '../../users/user-erasure.service.ts';
import { openReading, orCommandError } from '../administration.ts';
import { type Command, CommandError, EXIT_OK } from '../command.ts';
import { uuid } from '../flags.ts';

/** `portcullis users erase`: the end of what is kept of a person. */
export const usersErase: Command = {
  name: 'users erase',
  summary: "blank a user's personal data for good",
  description: [
    "Blanks a user's names, email, external id and wallet address: in the user, in the rows of migrations, in answers that",
    'are kept under an Idempotency-Key, and in audit records of which a part names the user. The user and its id stay.',
  ].join('\n'),
  positionals: ['ID'],
  flags: {},
  flagHelp: {},
  examples: ['portcullis users erase ID', 'portcullis users erase ID --json'],
  async run({ positionals, env, json, print }) {
    const id = uuid('ID', positionals[0]);
    await using stack = new AsyncDisposableStack();
    const db = await openReading(env, 'mutation eraseUser', stack);
    // Running servers have spools of their own.
    const erasure = new UserErasure({ db, nowMs: Date.now, auditSettled: () => setTimeout(AUDIT_DELAY_MS) });
    const absent = `there is no user ${id}`;
    const nodeId = await nodeOfUser(db, id);
    if (nodeId === undefined) throw new CommandError(absent);
    const user = await orCommandError(absent, erasure.erase(nodeId, id));
    print(json ? `${JSON.stringify({ id: user.id, erased: true })}\n` : `User ${user.id} is erased.\n`);
    return EXIT_OK;
  },
};

async function nodeOfUser(db: Db, id: string): Promise<string | undefined> {
  const [row] = await db
    .unscoped('the operator names a user without the node')
    .run((k) => k.selectFrom('users').select('node_id').where('id', '=', id));
  return row?.node_id;
}
