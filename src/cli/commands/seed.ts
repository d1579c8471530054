import { readConfig } from '../../platform/config/config.ts';
import { demoPath, readSecrets } from '../../platform/config/secrets.ts';
import { type CommandBody, CommandError } from '../kit/command.ts';
import { openFeatures } from '../kit/open-services.ts';

/** `portcullis seed`: creates the demo data of the embedded run in the configured database. */
export const seed: CommandBody = {
  description: [
    'Adds the demo to the database: two tenants with clients, supervisors, accounts and transactions. Ids and credentials',
    'are generated once and stored in DATA_DIR/demo.json (mode 0600). Running it again changes nothing. An embedded',
    'run does this when it starts. Not allowed in production.',
  ].join('\n'),
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
