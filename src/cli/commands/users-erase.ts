import type { Command } from '../kit/command.ts';
import { uuid } from '../kit/flags.ts';
import { adviceOf, nodeOf, orCommandError } from '../kit/open-database.ts';
import { openDomain } from '../kit/open-domain.ts';

/** `portcullis users erase`: erases the personal data of a user. */
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
    const { userErasure, database } = await openDomain(input, { advice: adviceOf('mutation eraseUser') });
    const absent = `there is no user ${id}`;
    const nodeId = await nodeOf(database.db, 'users', id, absent);
    const user = await orCommandError(absent, userErasure.erase(nodeId, id));
    return input.answer({ id: user.id, erased: true }, `User ${user.id} is erased.\n`);
  },
};
