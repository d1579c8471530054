import { parseReferenceChange } from '../../features/reference/reference.input.ts';
import { loadReference } from '../../features/reference/reference-file.service.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import {
  type CommandBody,
  CommandError,
  counted,
  EXIT_FAILED,
  printable,
  printRows,
  UsageError,
} from '../kit/command.ts';
import { openInput } from '../kit/command-input.ts';
import { text, uuid } from '../kit/flags.ts';
import { nodesOf, openFeatures, openReading } from '../kit/open-services.ts';

/** The version of a tenant that was created by hand; any row from the platform has a higher one and replaces it. */
const VERSION = 0;

/** `portcullis node create`: creates a tenant. */
export const nodeCreate: CommandBody = {
  description: [
    'Creates a tenant (node) and prints its id. It has version 0, so a row that the platform',
    'later sends on reference.nodes replaces it. An id that is or was in use is rejected.',
  ].join(' '),
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

const KEPT_REJECTIONS = 1_000;

/** `portcullis reference load`: loads reference data from a file. */
export const referenceLoad: CommandBody = {
  description: [
    'Loads reference data from a file, or from standard input if FILE is -. A line is a JSON object:',
    '  {"topic": "reference.accounts", "key": ID, "value": {"version": 1, "node_id": ID, "name": …}}',
    [
      'The topics are reference.nodes, .chains, .networks, .currencies, .accounts, .wallets and .assets. The',
      'higher version wins; a null value deletes the row (an account gets deleted_at). Lines may come in any',
      'order and repeat: a row waits for its parent. Invalid lines are reported and the others are loaded;',
      'the exit status is then 1.',
    ].join(' '),
  ].join('\n'),
  positionals: ['FILE'],
  examples: [
    'portcullis reference load platform.ndjson',
    'zcat platform.ndjson.gz | portcullis reference load - --json',
  ],
  async run(input) {
    const {
      positionals: [file = '-'],
      json,
      progress,
      printError,
      answer,
    } = input;
    const { parts, size } = openInput(file);
    const { reference, dropped } = await openFeatures(input, { makes: true });
    const rejections: { line: number; reason: string }[] = [];
    const counts = await loadReference({
      source: parts(),
      reference,
      onRejected: (line, reason) => {
        if (json && rejections.length < KEPT_REJECTIONS) rejections.push({ line, reason });
        if (json) return;
        printError(`line ${line}: ${printable(reason)}\n`);
      },
      onProgress: ({ bytes, lines }) => progress.show({ done: bytes, total: size, text: `${counted(lines)} lines` }),
    });
    const { lines, applied, rejected } = counts;
    const waiting = await reference.waiting();
    if (!json) printError(dropped.map((what) => `dropped ${printable(what)}\n`).join(''));
    const summary = [
      `${counted(lines)} lines: ${counted(applied)} rows written`,
      ...(rejected > 0 ? [`${counted(rejected)} invalid lines`] : []),
      ...(waiting > 0 ? [`${counted(waiting)} rows wait for parents`] : []),
    ];
    const exit = answer({ lines, applied, waiting, rejected, rejections, dropped }, `${summary.join(', ')}.\n`);
    return rejected + dropped.length > 0 ? EXIT_FAILED : exit;
  },
};
