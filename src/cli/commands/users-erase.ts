import type { CommandBody } from '../kit/command.ts';
import { uuid } from '../kit/flags.ts';
import { nodeOf, orCommandError } from '../kit/open-database.ts';
import { openDomain } from '../kit/open-domain.ts';
import { mutation } from '../kit/running-instance.ts';

/** `portcullis users erase`: erases the personal data of a user. */
export const usersErase: CommandBody = {
  description: [
    "Blanks a user's names, email, external id and wallet address: in the user, in the rows of migrations, in answers that",
    'are kept under an Idempotency-Key, and in audit records of which a part names the user. The user and its id stay.',
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis users erase ID', 'portcullis users erase ID --json'],
  async run(input) {
    const id = uuid('ID', input.positionals[0]);
    const advice = mutation('eraseUser', '$id: ID!', { id }, 'User { id }');
    const { userErasure, database } = await openDomain(input, { advice });
    const absent = `there is no user ${id}`;
    const nodeId = await nodeOf(database.db, 'users', id, absent);
    const user = await orCommandError(absent, userErasure.erase(nodeId, id));
    return input.answer({ id: user.id, erased: true }, `User ${user.id} is erased.\n`);
  },
};
