import { type LoadCounts, loadReference } from '../../reference/reference-load.ts';
import { type Command, EXIT_FAILED, EXIT_OK } from '../command.ts';
import { openInput } from '../input-file.ts';
import { openReference } from '../open-reference.ts';
import { printable } from '../printable.ts';
import { Progress } from '../progress.ts';

const KEPT_REJECTIONS = 1_000;

interface Rejection {
  line: number;
  reason: string;
}

/** `portcullis reference load`: reference data out of a file. */
export const referenceLoad: Command = {
  name: 'reference load',
  summary: 'load nodes, chains, networks, currencies, accounts, wallets and assets from a file',
  description: [
    'Reads a file of reference data, or the standard input where FILE is -. A line is a JSON object:',
    '  {"topic": "reference.accounts", "key": ID, "value": {"version": 1, "node_id": ID, "name": …}}',
    'The topics are reference.nodes, .chains, .networks, .currencies, .accounts, .wallets and .assets. The',
    'higher version wins; null as the value deletes (of an account: sets deleted_at). Lines may stand in any',
    'order and be repeated: a row waits for its parent. A line at fault is named, the others are loaded, and',
    'the command ends with 1.',
  ].join('\n'),
  positionals: ['FILE'],
  flags: {},
  flagHelp: {},
  examples: [
    'portcullis reference load platform.ndjson',
    'zcat platform.ndjson.gz | portcullis reference load - --json',
  ],
  async run({ positionals: [file = '-'], env, json, print, complain }) {
    const { parts, size } = openInput(file);
    await using stack = new AsyncDisposableStack();
    const { reference, dropped } = await openReference(env, stack);
    const rejections: Rejection[] = [];
    const progress = new Progress(process.stderr);
    const counts = await loadReference({
      source: parts(),
      reference,
      onRejected: (line, reason) => {
        if (json && rejections.length < KEPT_REJECTIONS) rejections.push({ line, reason });
        if (json) return;
        progress.end();
        complain(`line ${line}: ${printable(reason)}\n`);
      },
      onProgress: ({ bytes, lines }) =>
        progress.show({ done: bytes, total: size, text: `${lines.toLocaleString('en')} lines` }),
    });
    progress.end();
    const { lines, applied, rejected } = counts;
    const waiting = await reference.waiting();
    if (json) print(`${JSON.stringify({ lines, applied, waiting, rejected, rejections, dropped })}\n`);
    else {
      complain(dropped.map((what) => `dropped ${printable(what)}\n`).join(''));
      print(summary(counts, waiting));
    }
    return rejected + dropped.length > 0 ? EXIT_FAILED : EXIT_OK;
  },
};

function summary({ lines, applied, rejected }: LoadCounts, waiting: number): string {
  const count = (number: number) => number.toLocaleString('en');
  return [
    `${count(lines)} lines: ${count(applied)} rows written`,
    ...(rejected > 0 ? [`${count(rejected)} lines at fault`] : []),
    ...(waiting > 0 ? [`${count(waiting)} rows wait for parents`] : []),
  ]
    .join(', ')
    .concat('.\n');
}
