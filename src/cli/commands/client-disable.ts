import { OPERATOR } from '../../oauth/administration.rules.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { clientView } from '../client-view.ts';
import { type Command, EXIT_OK } from '../command.ts';
import { uuid } from '../flags.ts';

/** `portcullis client disable`: the end of a client's credentials, tokens and logins. */
export const clientDisable: Command = {
  name: 'client disable',
  summary: 'end the credentials and tokens of a client, and the logins made through it',
  description: [
    'Disables a client: its secrets, every token that it has, and the logins that were made through it',
    'end, on running servers within a second. To enable it again does not bring tokens or logins back.',
  ].join('\n'),
  positionals: ['CLIENT_ID'],
  flags: {},
  flagHelp: {},
  examples: ['portcullis client disable CLIENT_ID', 'portcullis client disable CLIENT_ID --json'],
  async run({ positionals, env, json, print }) {
    const clientId = uuid('CLIENT_ID', positionals[0]);
    await using stack = new AsyncDisposableStack();
    const { clients, nodeOfClient } = await openAdministration(env, 'mutation setClientStatus', stack);
    const disabled = clients.setStatus(await nodeOfClient(clientId), OPERATOR, clientId, 'disabled');
    const client = await orCommandError(`there is no client ${clientId}`, disabled);
    print(json ? `${JSON.stringify(clientView(client))}\n` : `Client ${client.id} is disabled.\n`);
    return EXIT_OK;
  },
};
