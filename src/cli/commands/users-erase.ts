import { isoFromPgOrNull } from '../../lib/instants.ts';
import type { CommandBody } from '../kit/command.ts';
import { uuid } from '../kit/flags.ts';
import { nodeOf, openFeatures, orCommandError } from '../kit/open-services.ts';

/** `portcullis users erase`: erases the personal data of a user. */
export const usersErase: CommandBody = {
  description: [
    "Erases a user's names, email, external id and wallet address: in the user, in the rows of migrations, and in the audit",
    "records and stored responses of requests that created, changed, returned or matched the user. The user's row and id are kept.",
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis users erase ID', 'portcullis users erase ID --json'],
  async run(input) {
    const id = uuid('ID', input.positionals[0]);
    const { userErasure, database, record } = await openFeatures(input);
    const absent = `there is no user ${id}`;
    const nodeId = await nodeOf(database.db, 'users', id, absent);
    await record({ id }, { nodeId });
    const user = await orCommandError(absent, userErasure.erase(nodeId, id, null));
    const { erased_records: records, erased_responses: responses } = user;
    const erased_at = isoFromPgOrNull(user.erased_at);
    return input.answer(
      { id: user.id, erased: true, erased_at, records, responses },
      `Erased user ${user.id} at ${erased_at}: ${records} audit records, ${responses} stored responses.\n`,
    );
  },
};
