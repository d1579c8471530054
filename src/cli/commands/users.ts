import { emailInput } from '../../features/user-migrations/migration.input.ts';
import { emailOf } from '../../features/users/users.rules.ts';
import { renameUser } from '../../features/users/users.service.ts';
import { identifierKeySql } from '../../lib/identifier-key.ts';
import { objectInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { readConfig } from '../../platform/config/config.ts';
import { type CommandBody, printable } from '../kit/command.ts';
import { checked, uuid } from '../kit/flags.ts';
import { nodeOf, openFeatures, openForCommand, orCommandError } from '../kit/open-services.ts';
import { changeCommand } from '../kit/row-commands.ts';

/** `portcullis users erase`: erases the personal data of a user. */
export const usersErase: CommandBody = {
  description: [
    "Erases a user's names, email, external id and wallet address: in the user, in the rows of migrations, and in the audit",
    "records and stored responses of requests that created, changed, returned or matched the user. The user's row and id are kept.",
  ].join(' '),
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
    const erased_at = user.erased_at && isoFromPg(user.erased_at);
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
  ].join(' '),
  flags: { email: { help: 'email, unique within the tenant', required: 'EMAIL' } },
  examples: [
    'portcullis users rename ID --email ada@example.com',
    'portcullis users rename ID --email ada@example.com --json',
  ],
  readFlags: ({ flags }) => checked(emailFlag, flags),
  change: async ({ db }, nodeId, id, { email }) => ({ id, email: (await renameUser(db, nodeId, id, email)).email }),
  now: ({ email }) => printable(email),
});

/** `portcullis clashes`: lists users and supervisors whose identifiers count as one. */
export const clashes: CommandBody = {
  description: [
    'Lists by their ids the users of a tenant whose emails count as one, and its supervisors whose usernames do: they differ only',
    'in letter case, composed letters, blanks or invisible characters. 0.1.0 told some of them apart. They go on working by their',
    'exact spelling until users rename or supervisor rename resolves the clash. Runs on the schema of the previous release, too.',
  ].join(' '),
  examples: ['portcullis clashes', 'DATABASE_URL=postgres://… portcullis clashes --json'],
  async run({ env, stack, answer }) {
    const { db } = await openForCommand(readConfig(env).config, stack);
    const unscoped = db.unscoped('operators look for clashes on all nodes');
    const clashes = await db.transaction(async () => {
      // The schema of the previous release has no such function.
      await unscoped.raw((sql) => sql`${sql.raw(identifierKeySql('pg_temp.clash_key'))}`);
      const rows = await unscoped.raw(
        (sql) => sql<{
          kind: 'user' | 'supervisor';
          node_id: string;
          /** The oldest first. */
          ids: string[];
        }>`
          select 'user' as kind, node_id, json_agg(id order by created_at, id) as ids
          from users where email <> '' group by node_id, pg_temp.clash_key(email) having count(*) > 1
          union all
          select 'supervisor', node_id, json_agg(id order by created_at, id)
          from supervisors group by node_id, pg_temp.clash_key(username) having count(*) > 1`,
      );
      await unscoped.raw((sql) => sql`drop function pg_temp.clash_key(text)`);
      return rows;
    });
    const lines = clashes.map(({ kind, node_id, ids }) => `${kind}  ${node_id}  ${ids.join(' ')}\n`);
    return answer({ clashes: clashes }, lines.join('') || 'No clashes.\n');
  },
};
