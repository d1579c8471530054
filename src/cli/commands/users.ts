import { emailInput } from '../../features/user-migrations/migration.input.ts';
import { emailOf } from '../../features/users/users.rules.ts';
import { renameUser } from '../../features/users/users.service.ts';
import { objectInput } from '../../lib/input.ts';
import { isoFromPgOrNull } from '../../lib/instants.ts';
import { type CommandBody, printable } from '../kit/command.ts';
import { checked, uuid } from '../kit/flags.ts';
import { nodeOf, openFeatures, orCommandError } from '../kit/open-services.ts';
import { changeCommand } from '../kit/row-commands.ts';

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

const emailFlag = objectInput({ email: emailInput.refine((email) => emailOf(email) !== '', 'must not be blank') });

/** `portcullis users rename`: gives a user another email. */
export const usersRename = changeCommand({
  noun: 'user',
  description: [
    'Gives a user another email. It resolves a clash that portcullis clashes lists: emails of earlier releases that count as',
    'one. The id, external id, wallet and KYC status stay, and no event is published. The former email can be used again.',
  ].join('\n'),
  flags: { email: { help: 'email, unique within the tenant', required: 'EMAIL' } },
  examples: [
    'portcullis users rename ID --email ada@example.com',
    'portcullis users rename ID --email ada@example.com --json',
  ],
  readFlags: ({ flags }) => checked(emailFlag, flags),
  change: async ({ db }, nodeId, id, { email }) => ({ id, email: (await renameUser(db, nodeId, id, email)).email }),
  now: ({ email }) => printable(email),
});
