import { readFileSync } from 'node:fs';
import type { DemoFile, SimulationStep } from '../../app/demo/demo.ts';
import { isStatus, isTransactionCollection, statusName } from '../../features/transactions/type-codes.rules.ts';
import { parsedOrNone } from '../../lib/json.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { readConfig } from '../../platform/config/config.ts';
import { demoPath, readSecrets } from '../../platform/config/secrets.ts';
import { STATUS, TRANSACTION_COLLECTIONS } from '../../tables/transaction-content.ts';
import { type CommandBody, CommandError, EXIT_FAILED, EXIT_OK, printable, UsageError } from '../kit/command.ts';
import { list, text } from '../kit/flags.ts';
import { openFeatures } from '../kit/open-services.ts';

/** `portcullis seed`: creates the demo data of the embedded run in the configured database. */
export const seed: CommandBody = {
  description: [
    'Adds the demo to the database: two tenants with clients, supervisors, accounts and transactions. Ids and credentials',
    'are generated once and stored in DATA_DIR/demo.json (mode 0600). Running it again changes nothing. An embedded',
    'run does this when it starts. Not allowed in production.',
  ].join(' '),
  examples: ['DATABASE_URL=postgres://… portcullis seed', 'portcullis seed --json'],
  async run(input) {
    const { config, env: variables } = readConfig(input.env);
    if (config.production) throw new CommandError('the demo is not allowed in production: unset NODE_ENV');
    const features = await openFeatures(input, {
      makes: true,
      alone: 'there is nothing to do, since it added the demo',
    });
    const [{ ensureDemo }, { Passwords }] = await Promise.all([
      import('../../app/demo/ensure-demo.ts'),
      import('../../access/credentials/passwords.ts'),
    ]);
    const demo = await ensureDemo({ ...features, secrets: readSecrets(config, variables), passwords: new Passwords() });
    const path = demoPath(config.dataDir);
    const document = { demo: path, node_id: demo.node_id, client_id: demo.client.client_id };
    return input.answer(document, `The demo is in the database. Its credentials are in ${path}\n`);
  },
};

const STATUSES = Object.values(STATUS).map(String);

/** `portcullis simulate transaction`: posts the notifications of a transaction. */
export const simulateTransaction: CommandBody = {
  description: [
    'Posts notifications of a transaction to the webhook of the running instance, as the chain processor does, and',
    'stops at the first that is rejected. DATA_DIR/demo.json, which portcullis start or seed has written, says where the',
    'instance is. Not allowed in production.',
  ].join(' '),
  flags: {
    path: {
      help: `statuses, comma-separated (default 1,2,5,3): ${Object.values(STATUS)
        .map((code) => `${code} ${statusName(code)}`)
        .join(', ')}`,
    },
    id: { help: "the transaction (default: the demo's token transaction, or a new one with --register)" },
    register: {
      help: `register it first, with the client of the demo, in one of ${TRANSACTION_COLLECTIONS.join(', ')}`,
    },
  },
  examples: [
    'portcullis simulate transaction',
    'portcullis simulate transaction --register otc_transactions --path 1,2,4',
    'portcullis simulate transaction --id ID --path 3 --json',
  ],
  async run({ flags, env, answer }) {
    const path = list(flags, 'path', STATUSES) ?? ['1', '2', '5', '3'];
    if (path.length === 0) throw new UsageError('--path has no status: give one, or omit it');
    const collection = text(flags, 'register');
    if (collection !== undefined && !isTransactionCollection(collection)) {
      throw new UsageError(`--register must be one of ${TRANSACTION_COLLECTIONS.join(', ')}`);
    }
    const { config } = readConfig(env);
    if (config.production) throw new CommandError('simulations are not allowed in production: unset NODE_ENV');
    // The addresses that the running instance has written: the variables here may name another port.
    const demo: DemoFile | undefined = parsedOrNone(() => JSON.parse(readFileSync(demoPath(config.dataDir), 'utf8')));
    if (!demo) {
      throw new CommandError(
        'DATA_DIR/demo.json is missing: run portcullis start, or portcullis seed for a database server',
      );
    }
    const { notify, registerByDemo } = await import('../../app/demo/demo.ts');
    const id = text(flags, 'id') ?? (collection ? uuidV7() : demo.transactions.token_transactions);
    const steps = path
      .map(Number)
      .filter(isStatus)
      .map((code) => () => notify(demo, id, code));
    if (collection) steps.unshift(() => registerByDemo(demo, id, collection));
    const completed: SimulationStep[] = [];
    for (const step of steps) {
      if (completed.every(({ accepted }) => accepted)) completed.push(await step().catch(unreachable));
    }
    const lines = completed.map(
      ({ step, http_status: status, response }) => `${step}: ${status} ${printable(response)}`,
    );
    answer({ id, steps: completed }, `${[printable(id), ...lines].map((line) => line.trimEnd()).join('\n')}\n`);
    return completed.every(({ accepted }) => accepted) ? EXIT_OK : EXIT_FAILED;
  },
};

function unreachable(cause: Error): never {
  throw new CommandError(`no instance answers (${cause.message}): start it, or set DATA_DIR to its folder`);
}
