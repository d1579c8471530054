import { parseReferenceChange } from '../../features/reference/reference.input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { type CommandBody, CommandError, printable, printRows, UsageError } from '../kit/command.ts';
import { text, uuid } from '../kit/flags.ts';
import { nodesOf, openFeatures, openReading } from '../kit/open-services.ts';

/** The version of a tenant that was created by hand; any row from the platform has a higher one and replaces it. */
const VERSION = 0;

/** `portcullis node create`: creates a tenant. */
export const nodeCreate: CommandBody = {
  description: [
    'Creates a tenant (node) and prints its id. It has version 0, so a row that the platform',
    'later sends on reference.nodes replaces it. An id that is or was in use is rejected.',
  ].join('\n'),
  flags: {
    name: { help: 'display name', required: 'NAME' },
    id: { help: 'UUID, if the platform already has one (default: a new one)' },
  },
  examples: ['portcullis node create --name "Acme Bank"', 'portcullis node create --name Acme --id ID --json'],
  async run(input) {
    const { flags, answer } = input;
    const name = text(flags, 'name') ?? '';
    if (name.trim() === '') throw new UsageError('--name must not be empty');
    const requestedId = text(flags, 'id');
    const id = requestedId === undefined ? uuidV7() : uuid('--id', requestedId);
    const { reference } = await openFeatures(input, { makes: true });
    const { applied } = await reference.apply([parseReferenceChange('nodes', id, { name, version: VERSION })]);
    if (applied === 0) throw new CommandError(`the tenant ${id} exists or has existed`);
    return answer({ id, name }, `${id}\n`);
  },
};

/** `portcullis node list`: prints all tenants. */
export const nodeList: CommandBody = {
  description: 'Lists all tenants (nodes) with their ids.',
  examples: ['portcullis node list', 'portcullis node list --json'],
  async run(input) {
    const nodes = await nodesOf(await openReading(input));
    return printRows(input, {
      name: 'nodes',
      rows: nodes,
      head: `${'NODE'.padEnd(36)}  NAME\n`,
      view: (node) => ({ ...node, created_at: isoFromPg(node.created_at) }),
      line: ({ id, name }) => `${id}  ${printable(name)}\n`,
    });
  },
};
