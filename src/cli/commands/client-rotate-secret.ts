import { rotationInput } from '../../clients/client.input.ts';
import { OPERATOR } from '../../oauth/administration.rules.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { clientView } from '../client-view.ts';
import { type Command, EXIT_OK } from '../command.ts';
import { checked, uuid, wholeNumber } from '../flags.ts';

/** `portcullis client rotate-secret`: another secret, and how long the one so far lives on. */
export const clientRotateSecret: Command = {
  name: 'client rotate-secret',
  summary: 'give a client another secret and show it once',
  description: [
    'Gives a client another secret, which is shown this once. The one so far ends at once, or after the',
    'overlap: both are good until then, and never more than two. Running servers know within a second.',
    "The servers' pepper must be here too: SECRET_PEPPER, or their DATA_DIR.",
  ].join('\n'),
  positionals: ['CLIENT_ID'],
  flags: { overlap: { type: 'string' } },
  flagHelp: { overlap: 'for how many seconds the secret so far lives on (0; at most 30 days)' },
  examples: [
    'portcullis client rotate-secret CLIENT_ID --overlap 86400',
    'portcullis client rotate-secret CLIENT_ID --json',
  ],
  async run({ flags, positionals, env, json, print }) {
    const clientId = uuid('CLIENT_ID', positionals[0]);
    const members = { overlap_seconds: wholeNumber(flags, 'overlap') };
    const { overlap_seconds: overlap } = checked(rotationInput, members, { overlap_seconds: '--overlap' });
    await using stack = new AsyncDisposableStack();
    const { clients, nodeOfClient } = await openAdministration(env, 'mutation rotateClientSecret', stack);
    const rotated = clients.rotateSecret(await nodeOfClient(clientId), OPERATOR, clientId, overlap);
    const { client, secret } = await orCommandError(`there is no client ${clientId}`, rotated);
    if (json) print(`${JSON.stringify({ ...clientView(client), client_secret: secret })}\n`);
    else {
      const before = overlap === 0 ? 'has ended' : `ends in ${overlap} s at the latest`;
      print(`client_id      ${client.id}\nclient_secret  ${secret}\n`);
      print(`The secret is shown this once: only its hash is kept. The one before ${before}.\n`);
    }
    return EXIT_OK;
  },
};
