import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manualPage } from '../../scripts/cli-page.ts';
import { COMMAND_NAMES, loadCommands } from '../../src/cli/commands.ts';
import { findCommand, missing, PROGRAM_EXAMPLES, parse } from '../../src/cli/kit/usage.ts';
import { ROOT } from '../support/start/process.ts';

const COMMANDS = await loadCommands();

/** The arguments of a line of a shell: what stands before the program and after `<` or `>` is the shell's. */
function argumentsOf(line: string): string[] {
  const words = (line.match(/"[^"]*"|[^\s"]+/g) ?? []).map((word) => word.replaceAll('"', ''));
  const after = words.slice(words.indexOf('portcullis') + 1);
  const end = after.findIndex((word) => word === '<' || word === '>');
  return end < 0 ? after : after.slice(0, end);
}

it.each(COMMANDS.map((command) => [command.name, command] as const))(
  'D1-12: every example of %s is valid',
  (name, command) => {
    expect(command.examples.length).toBeGreaterThan(0);
    for (const example of command.examples) {
      const found = findCommand(COMMAND_NAMES, argumentsOf(example));
      expect([example, found?.name]).toEqual([example, name]);
      const parsed = parse(command, found?.remainingArgs ?? []);
      expect([example, typeof parsed === 'string' ? parsed : missing(command, parsed)]).toEqual([example, undefined]);
    }
  },
);

it('D1-12: each command is found by its name', () => {
  expect(COMMANDS.map(({ name }) => name)).toEqual(COMMAND_NAMES);
});

it('D1-12: every example of the program is an existing command', () => {
  for (const example of PROGRAM_EXAMPLES) expect(findCommand(COMMAND_NAMES, argumentsOf(example))).toBeDefined();
});

it('D1-12: every flag of a command has a description', () => {
  for (const { name, flags = {} } of COMMANDS) {
    for (const { help } of Object.values(flags)) expect([name, help]).toEqual([name, expect.stringMatching(/./)]);
  }
});

it('D1-12: docs/cli.md matches the output of npm run schema', () => {
  expect(readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')).toBe(manualPage(COMMANDS));
});
