import type { z } from 'zod';
import { RefusalError } from '../../errors/refusal.ts';
import { objectInput, textInput } from '../../lib/input.ts';
import { migrateUserInput, migrateUsersInput } from '../../user-migrations/migration.input.ts';
import type { SkipReason } from '../../user-migrations/migration-outcome.rules.ts';
import type { MigrationCaller } from '../../user-migrations/user-migrations.service.ts';
import type { Descriptions } from '../json-schema.ts';
import { idempotencyKey, once } from '../once.ts';
import { defineTool, type ToolCall } from '../tool.ts';
import { invalidArguments, ToolError } from '../tool-error.ts';
import { migration, migrationId, migrationView, missing } from './migrations.ts';
import { user, userView } from './users.ts';

const USER_MEMBERS: Descriptions = {
  wallet_address: "The address of the user's wallet on the chain: up to 128 characters; trimmed and lower-cased.",
  email: 'Unique in the node in any case of its letters. One of email and external_id is needed.',
  external_id: 'An identifier of your own, unique in the node. One of email and external_id is needed.',
  name: 'The given name.',
  surname: 'The family name.',
  kyc_sent: 'Whether the KYC token was sent already: the user is verified then, and none is sent.',
};

const migrateUser = defineTool({
  name: 'migrate_user',
  title: 'Migrate a user',
  description:
    'Creates a user of the node who has a wallet on the chain already. Unless kyc_sent is true, a KYC token is sent to the wallet. A user whose email, external_id or wallet_address the node has already is refused as a duplicate. For several, take migrate_users.',
  scope: 'users:migrate',
  effect: { isDestructive: false, isIdempotent: false },
  input: objectInput({ ...migrateUserInput.out.shape, idempotency_key: idempotencyKey }),
  describes: USER_MEMBERS,
  output: user,
  run({ idempotency_key: key, ...input }, call) {
    const { userMigrations, userPages } = call.services;
    const { nodeId } = call.caller;
    const work = async () => {
      const [row] = (await userMigrations.migrateOne(callerOf(call), input)).rows;
      if (row?.outcome.status === 'skipped') throw skipped(row.outcome.reason);
      const created = row?.user && (await userPages.find(nodeId, row.user.id));
      if (!created) throw new Error('one user is created or skipped');
      return userView(created);
    };
    return once(call, { name: 'migrate_user', key, input, work, around: (run) => userMigrations.inTurn(nodeId, run) });
  },
});

const migrateUsers = defineTool({
  name: 'migrate_users',
  title: 'Migrate up to 500 users',
  description:
    'Creates 1 to 500 users at once, as migrate_user does each. A row that is a duplicate or not valid does not stop the others: skipped and failed count them, and list_migration_rows says why. For more users, take start_user_migration.',
  scope: 'users:migrate',
  effect: { isDestructive: false, isIdempotent: false },
  input: objectInput({ ...migrateUsersInput.out.shape, idempotency_key: idempotencyKey }),
  describes: {
    users: 'As the arguments of migrate_user.',
    ...Object.fromEntries(Object.entries(USER_MEMBERS).map(([name, text]) => [`users.${name}`, text])),
  },
  output: migration,
  run({ idempotency_key: key, users }, call) {
    const { userMigrations } = call.services;
    const { nodeId } = call.caller;
    const work = async () => stored(call, (await userMigrations.migrateMany(callerOf(call), users)).id);
    const around = <Outcome>(run: () => Promise<Outcome>) => userMigrations.inTurn(nodeId, run);
    return once(call, { name: 'migrate_users', key, input: users, work, around });
  },
});

const startUserMigration = defineTool({
  name: 'start_user_migration',
  title: 'Migrate a file of users',
  description:
    'Takes users as CSV and migrates them in the background; it comes back at once. get_migration tells how far it is, cancel_user_migration ends it. Called again it begins another one, whose users are duplicates of the first.',
  scope: 'users:migrate',
  effect: { isDestructive: false, isIdempotent: false },
  input: objectInput({
    csv: textInput().meta({
      description:
        'The file: a header of wallet_address, email, external_id, name, surname, kyc_sent (any order, wallet_address needed) and a line for each user; up to 1 MiB.',
    }),
  }),
  output: migration,
  async run({ csv }, call) {
    try {
      const { id } = await call.services.migrationFiles.start(callerOf(call), bytesOf(csv));
      return await stored(call, id);
    } catch (error) {
      if (!(error instanceof RefusalError) || error.refusal.kind !== 'invalid') throw error;
      throw invalidArguments([{ path: 'csv', message: error.refusal.message }]);
    }
  },
});

const cancelUserMigration = defineTool({
  name: 'cancel_user_migration',
  title: 'Cancel a user migration',
  description:
    'Ends a running migration before its last row; users that it has created stay. Once more changes nothing.',
  scope: 'users:migrate',
  effect: { isDestructive: true, isIdempotent: true },
  input: objectInput({ migration_id: migrationId }),
  output: migration,
  missing,
  async run({ migration_id: id }, { caller, services }) {
    return migrationView(await services.migrationFiles.cancel(caller.nodeId, id));
  },
});

function callerOf({ caller: { nodeId, clientId, correlationId, traceparent } }: ToolCall): MigrationCaller {
  return { nodeId, createdBy: clientId, correlationId, traceparent };
}

async function stored({ caller, services }: ToolCall, id: string): Promise<z.input<typeof migration>> {
  const row = await services.migrationPages.find(caller.nodeId, id);
  if (!row) throw new Error('a migration is recorded');
  return migrationView(row);
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text, 'utf8');
}

/** Why a user is not migrated. */
function skipped(reason: SkipReason): ToolError {
  switch (reason) {
    case 'missing_email_and_external_id':
      return new ToolError({ code: reason, message: 'give email, external_id or both' });
    case 'duplicate_email':
      return duplicate(reason, 'email');
    case 'duplicate_external_id':
      return duplicate(reason, 'external_id');
    case 'duplicate_wallet':
      return duplicate(reason, 'wallet_address');
    default:
      return reason satisfies never;
  }
}

function duplicate(code: string, member: string): ToolError {
  return new ToolError({ code, message: `a user of the node has that ${member}: list_users with search finds who` });
}

export const migrationWriteTools = [migrateUser, migrateUsers, startUserMigration, cancelUserMigration];
