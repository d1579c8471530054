import { type LoadCounts, loadReference } from '../../features/reference/reference-file.service.ts';
import { type CommandBody, counted, EXIT_FAILED, Progress, printable } from '../kit/command.ts';
import { openInput } from '../kit/input-file.ts';
import { openFeatures } from '../kit/open-services.ts';

const KEPT_REJECTIONS = 1_000;

/** `portcullis reference load`: loads reference data from a file. */
export const referenceLoad: CommandBody = {
  description: [
    'Loads reference data from a file, or from standard input if FILE is -. A line is a JSON object:',
    '  {"topic": "reference.accounts", "key": ID, "value": {"version": 1, "node_id": ID, "name": …}}',
    'The topics are reference.nodes, .chains, .networks, .currencies, .accounts, .wallets and .assets. The',
    'higher version wins; a null value deletes the row (an account gets deleted_at). Lines may come in any',
    'order and repeat: a row waits for its parent. Invalid lines are reported and the others are loaded;',
    'the exit status is then 1.',
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
      printError,
      answer,
    } = input;
    const { parts, size } = openInput(file);
    const { reference, dropped } = await openFeatures(input, { makes: true });
    const rejections: { line: number; reason: string }[] = [];
    const progress = new Progress(process.stderr);
    const counts = await loadReference({
      source: parts(),
      reference,
      onRejected: (line, reason) => {
        if (json && rejections.length < KEPT_REJECTIONS) rejections.push({ line, reason });
        if (json) return;
        progress.end();
        printError(`line ${line}: ${printable(reason)}\n`);
      },
      onProgress: ({ bytes, lines }) => progress.show({ done: bytes, total: size, text: `${counted(lines)} lines` }),
    });
    progress.end();
    const { lines, applied, rejected } = counts;
    const waiting = await reference.waiting();
    if (!json) printError(dropped.map((what) => `dropped ${printable(what)}\n`).join(''));
    const exit = answer({ lines, applied, waiting, rejected, rejections, dropped }, summary(counts, waiting));
    return rejected + dropped.length > 0 ? EXIT_FAILED : exit;
  },
};

function summary({ lines, applied, rejected }: LoadCounts, waiting: number): string {
  return [
    `${counted(lines)} lines: ${counted(applied)} rows written`,
    ...(rejected > 0 ? [`${counted(rejected)} invalid lines`] : []),
    ...(waiting > 0 ? [`${counted(waiting)} rows wait for parents`] : []),
  ]
    .join(', ')
    .concat('.\n');
}
